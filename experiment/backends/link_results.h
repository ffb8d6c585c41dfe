// What the links of a network tell about a run, as results.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

/// What crossed a link, on the wire.
struct Carried {
  Bytes bytes = 0;
  std::size_t jobs = 0;  ///< that sent some of them
};

/// Fills `run.bottleneck`, and `run.links` where there is more than one link. Usage is counted from `epoch`, the run's
/// time 0, on; `names` are the jobs' by number; run.duration is set. `carried`, by link, is taken from the meters where
/// it is empty; otherwise links may be without. Returns which link run.bottleneck is.
std::size_t record_links(std::span<const JobNetwork::LinkView> links, Nanos epoch,
                         const std::map<std::uint32_t, std::string>& names, Run& run,
                         std::span<const Carried> carried = {});

}  // namespace mltcp::experiment
