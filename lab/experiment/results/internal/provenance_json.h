// The JSON of a Provenance, for all result files.
#pragma once

#include <nlohmann/json.hpp>

#include "mltcp/lab/experiment/results/provenance.h"

namespace mltcp::experiment {

nlohmann::ordered_json to_json(const Provenance& provenance);

}  // namespace mltcp::experiment
