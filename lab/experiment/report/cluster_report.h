// The HTML page of a cluster's schemes, from a file of `mltcp cluster --json FILE`, "mltcp.cluster/1": compares each
// scheme with the baseline, shows the distribution of slow-downs, and the jobs that were slowed down most.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/cluster/cluster_results.h"

namespace mltcp::experiment {

/// The file's contents that the page shows. Of its slow-downs, a run has percentiles 0 to 100.
struct ClusterFile : ClusterResults {
  std::vector<SchemeSummary> schemes;
};

/// `file` is used in messages. Throws InputError with one line that names file, position, cause and cure.
ClusterFile parse_cluster(std::string_view text, const std::string& file);

/// Renders the page. All names are escaped. Equal input gives identical bytes.
std::string render_cluster(const ClusterFile& cluster);

}  // namespace mltcp::experiment
