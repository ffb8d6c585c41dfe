// Compares two result files: the same policies and jobs in each.
#pragma once

#include <string>

#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

/// Results with the name of their file.
struct NamedResults {
  std::string name;
  const Results* results = nullptr;
};

/// Renders the page: origin and differences of both; by policy the mean slow-down and when jobs interleave, in `a` and
/// `b`; by policy and job the slow-downs and their ratio. States if both are of one run or measured the same. If a file
/// has several runs of a policy, they are distinguished by congestion control, datapath and seed, as far as these
/// differ. All names are escaped. Throws InputError "cause; cure", in one line, if the files have no policy or no job
/// in common, or no slow-down known in both.
std::string render_comparison(const NamedResults& a, const NamedResults& b);

}  // namespace mltcp::experiment
