// The HTML page of a cluster's schemes, from a file of `mltcp cluster --json FILE`, "mltcp.cluster/1": compares each
// scheme with the baseline, shows the distribution of slow-downs, and the jobs that were slowed down most.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/cluster/cluster_results.h"

namespace mltcp::experiment {

/// The file's contents that the page shows.
struct ClusterFile {
  struct Run {
    std::string scheme;
    std::uint64_t seed = 0;
    std::vector<double> percentiles;     ///< percentiles 0 to 100 of the slow-downs of all iterations
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

/// `file` is used in messages. Throws InputError with one line that names file, position, cause and cure.
ClusterFile parse_cluster(std::string_view text, const std::string& file);

/// Renders the page. All names are escaped. Equal input gives identical bytes.
std::string render_cluster(const ClusterFile& cluster);

}  // namespace mltcp::experiment
