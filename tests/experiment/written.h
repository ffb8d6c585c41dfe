// Converts results to the text of a result file.
#pragma once

#include <sstream>
#include <string>

#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

inline std::string written(const Results& results) {
  std::ostringstream out;
  write_json(results, out);
  return out.str();
}

}  // namespace mltcp::experiment
