// What the links of a testbed tell about a run, as results.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "mltcp/experiment/results.h"
#include "mltcp/experiment/testbed.h"

namespace mltcp::experiment {

/// Fills `run.bottleneck`, and `run.links` where there is more than one link. Usage is counted from `epoch`, the run's
/// time 0, on; `names` are the jobs' by number; run.duration is set.
void record_links(std::span<const Testbed::LinkView> links, Nanos epoch,
                  const std::map<std::uint32_t, std::string>& names, Run& run);

}  // namespace mltcp::experiment
