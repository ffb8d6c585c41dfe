// Two result files side by side: what the same policies did to the same jobs in each.
#pragma once

#include <string>

#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

/// Results with the name of their file.
struct NamedResults {
  std::string name;
  const Results* results = nullptr;
};

/// The page: what both are and in what they differ; by policy the mean slow-down and from when on jobs interleave, in
/// `a` and in `b`; and by policy and job the slow-downs and their ratio. Says so where both are from one run, or
/// measured the same. Where one of them
/// has a policy several times, runs are told apart by congestion control, datapath and seed, as far as they differ in
/// it. All names are escaped. Throws InputError "cause; cure", in one line, for two without a policy or a job in
/// common, and where no slow-down is known in both.
std::string render_comparison(const NamedResults& a, const NamedResults& b);

}  // namespace mltcp::experiment
