// Determines which hosts run an experiment across machines, and which ranks run on each host.
//
// Hosts have the numbers of the experiment's topology. A bottleneck with J jobs has J + 1 hosts. Host k sends for job
// k. Host J receives for all jobs, so that all jobs share the path to host J. A job without a list of hosts has two
// ranks: rank 0 sends, rank 1 receives. A job with a list of hosts has one rank on each of them, in the order of the
// list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

struct HostLayout {
  struct Rank {
    std::uint32_t job = 0;  ///< number of the job in the experiment
    std::uint32_t rank = 0;
    bool operator==(const Rank&) const = default;
  };
  /// Host number of each rank, by job and rank.
  std::vector<std::vector<std::uint32_t>> jobs;
  /// Numbers of the hosts with at least one rank, ascending. All of these hosts must join.
  std::vector<std::uint32_t> hosts;

  /// Returns the ranks on a host, in the order of jobs.
  [[nodiscard]] std::vector<Rank> ranks_of(std::uint32_t host) const;
};

HostLayout host_layout(const Experiment& experiment);

/// Returns the roles of a host for people, such as "receives for \"a\", receives for \"b\"".
std::string roles_of(const Experiment& experiment, const HostLayout& layout, std::uint32_t host);
/// Returns the host's number and roles for people, such as "host 2 (receives for \"a\")".
std::string describe_host(const Experiment& experiment, const HostLayout& layout, std::uint32_t host);

}  // namespace mltcp::experiment
