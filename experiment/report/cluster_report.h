// The page of a cluster's schemes, from what `mltcp cluster --json FILE` wrote, "mltcp.cluster/1": whether each scheme
// did better or worse than the one that others are compared with, how slow-downs are distributed, and whom it hit most.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/experiment/cluster/cluster_results.h"

namespace mltcp::experiment {

/// What the page shows of the file.
struct ClusterFile {
  struct Run {
    std::string scheme;
    std::uint64_t seed = 0;
    std::vector<double> percentiles;     ///< of the slow-downs of all iterations: the 0th to the 100th
    std::vector<ClusterJobResult> jobs;  ///< without hosts
  };
  std::string name;
  std::string level;
  std::string cc;
  std::uint32_t hosts = 0;
  double oversubscription = 1;
  double time_scale = 1;
  double rate_scale = 1;
  std::vector<SchemeSummary> schemes;
  std::vector<Run> runs;
  std::vector<ClusterResults::Unfinished> unfinished;
  std::optional<Provenance> provenance;
};

/// `file` stands for the file in messages. Throws InputError, in one line that names file, place, what is wrong and the
/// cure.
ClusterFile parse_cluster(std::string_view text, const std::string& file);

/// The page. All names are escaped, whatever they hold. The same file gives the same bytes.
std::string render_cluster(const ClusterFile& cluster);

}  // namespace mltcp::experiment
