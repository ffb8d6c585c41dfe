// Converts the state of a network's links after a run into results.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

/// Traffic carried by a link.
struct Carried {
  Bytes bytes = 0;
  std::size_t jobs = 0;  ///< number of jobs with traffic on it
};

/// Fills in `run.bottleneck`, and `run.links` if there are several links. Use is counted from `epoch`, the run's time
/// 0; `names` are the jobs' names by number; run.duration must be set. `carried` is by link; if it is empty, it is
/// computed from the meters, which may be missing otherwise. Returns the index of the link that is run.bottleneck.
std::size_t record_links(std::span<const JobNetwork::LinkView> links, Nanos epoch,
                         const std::map<std::uint32_t, std::string>& names, Run& run,
                         std::span<const Carried> carried = {});

}  // namespace mltcp::experiment
