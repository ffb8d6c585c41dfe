// Compares the policies and jobs that two result files have in common.
#pragma once

#include <string>

#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

/// Results with the name of their file.
struct NamedResults {
  std::string name;
  const Results* results = nullptr;
};

/// Renders the page. It shows the origin and the differences of both files. For each policy, it shows the mean
/// slow-down and when jobs interleave. For each policy and job, it shows the slow-downs and their ratio. It states
/// whether both files are from one run, or contain the same measurements. If a file has several runs of a policy, their
/// labels include congestion control, datapath and seed, as far as these differ. All names are escaped. Throws
/// InputError with one line, "cause; remedy", if the files have no policy, no job or no known slow-down in common.
std::string render_comparison(const NamedResults& a, const NamedResults& b);

}  // namespace mltcp::experiment
