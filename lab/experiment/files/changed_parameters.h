// Lists the parameters of congestion control that an experiment has changed.
#pragma once

#include <map>
#include <string>

#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

/// Returns the parameters with values other than the defaults, for the algorithms that the experiment's jobs use, and
/// with `iteration_aware` those of policy `turns` (policy `mltcp` also detects short bursts by them). Maps keys to
/// values as text, such as "swift.base_target" to "40 us".
std::map<std::string, std::string> changed_parameters(const Experiment& experiment, bool iteration_aware);

}  // namespace mltcp::experiment
