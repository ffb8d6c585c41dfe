// Short functions that create the phases of jobs, and a text form to compare all phases at once.
#pragma once

#include <string>
#include <vector>

#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

inline Phase computes(Nanos time) {
  Phase phase;
  phase.compute = time;
  return phase;
}
inline Phase sends(Bytes bytes, bool overlap = false, Rate rate = {}) {
  Phase phase;
  phase.kind = Phase::Kind::communicate;
  phase.bytes = bytes;
  phase.overlap = overlap;
  phase.rate = rate;
  return phase;
}

/// Returns the phases as texts, such as "compute 20 ms" or "send 1000 B at 500 Mbps beside". "beside" marks an
/// overlapping phase: the next phase begins at the same time.
inline std::vector<std::string> phases_of(const std::vector<Phase>& phases) {
  std::vector<std::string> all;
  for (const Phase& phase : phases) {
    const bool computes = phase.kind == Phase::Kind::compute;
    std::string& text = all.emplace_back(computes ? "compute " + to_text(phase.compute) : "send ");
    if (!computes) text += std::to_string(phase.bytes) + " B";
    if (!phase.rate.is_zero()) text += " at " + to_text(phase.rate);
    if (phase.overlap) text += " beside";
  }
  return all;
}

}  // namespace mltcp::workload
