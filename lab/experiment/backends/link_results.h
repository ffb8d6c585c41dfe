// Converts the state of a network's links after a run into results.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

/// Traffic that a link has carried.
struct Carried {
  Bytes bytes = 0;
  std::size_t jobs = 0;  ///< number of jobs with traffic on the link
};

/// Fills in `run.bottleneck`, and `run.links` if there are several links. Counts traffic from `epoch` on, which is time
/// 0 of the run. `names` maps job numbers to names. `run.duration` must be set. `carried` is indexed by link; if it is
/// empty, the function computes it from the usage meters. Meters may be null only if `carried` is given. Returns the
/// index of the link chosen as `run.bottleneck`.
std::size_t record_links(std::span<const JobNetwork::LinkView> links, Nanos epoch,
                         const std::map<std::uint32_t, std::string>& names, Run& run,
                         std::span<const Carried> carried = {});

}  // namespace mltcp::experiment
