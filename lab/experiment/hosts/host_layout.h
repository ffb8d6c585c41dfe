// Which hosts run an experiment across machines, and which ranks run on each host.
//
// Hosts have the numbers of the experiment's topology. A bottleneck with J jobs has J + 1 hosts: host k sends for job
// k, and host J receives for all of them, so that the jobs share the path to host J. A job without hosts of its own has
// two ranks: 0 sends, 1 receives. A job with hosts has a rank on each, in the order of the list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

struct HostLayout {
  struct Rank {
    std::uint32_t job = 0;  ///< its number in the experiment
    std::uint32_t rank = 0;
    bool operator==(const Rank&) const = default;
  };
  /// The host's number, by job and rank.
  std::vector<std::vector<std::uint32_t>> jobs;
  /// Numbers of the hosts with at least one rank, ascending; all of them must join.
  std::vector<std::uint32_t> hosts;

  /// The host's ranks, in the order of jobs.
  [[nodiscard]] std::vector<Rank> ranks_of(std::uint32_t host) const;
};

HostLayout host_layout(const Experiment& experiment);

/// The roles of a host, for people: "receives for \"a\", receives for \"b\"".
std::string roles_of(const Experiment& experiment, const HostLayout& layout, std::uint32_t host);
/// The same with its number: "host 2 (receives for \"a\")".
std::string describe_host(const Experiment& experiment, const HostLayout& layout, std::uint32_t host);

}  // namespace mltcp::experiment
