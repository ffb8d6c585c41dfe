// The HTML page that compares the schemes of a cluster, from a file of `mltcp cluster --json FILE`, "mltcp.cluster/1".
// The page compares each scheme with the baseline, and shows the distribution of slow-downs and the jobs that were
// slowed down most.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/cluster/cluster_results.h"

namespace mltcp::experiment {

/// Contents of the file that the page shows. ClusterRun::slowdowns contains the percentiles 0 to 100 of a run's
/// slow-downs.
struct ClusterFile : ClusterResults {
  std::vector<SchemeSummary> schemes;
};

/// Parses the text of a file. Error messages use `file` as the file's name. Throws InputError with one line that names
/// file, position, cause and remedy.
ClusterFile parse_cluster(std::string_view text, const std::string& file);

/// Renders the page. All names are escaped. Equal input gives identical bytes.
std::string render_cluster(const ClusterFile& cluster);

}  // namespace mltcp::experiment
