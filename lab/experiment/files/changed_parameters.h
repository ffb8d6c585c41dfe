// Which parameters of congestion control an experiment has set.
#pragma once

#include <map>
#include <string>

#include "mltcp/lab/experiment/files/experiment.h"

namespace mltcp::experiment {

/// The parameters, of algorithms used by the experiment's jobs, that differ from the defaults: text values by key, such
/// as {"swift.base_target", "40 us"}.
std::map<std::string, std::string> changed_parameters(const Experiment& experiment);

}  // namespace mltcp::experiment
