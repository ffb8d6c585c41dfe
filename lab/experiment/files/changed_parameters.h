// The parameters of congestion control that an experiment has set.
#pragma once

#include <map>
#include <string>

#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

/// The parameters that differ from the defaults, of the algorithms used by the experiment's jobs: text values by key,
/// such as {"swift.base_target", "40 us"}.
std::map<std::string, std::string> changed_parameters(const Experiment& experiment);

}  // namespace mltcp::experiment
