// Computes sums over the phases of a job (see job.h).
#include "mltcp/lab/workload/job.h"

#include <algorithm>

namespace mltcp::workload {

Nanos Job::compute_per_iteration() const {
  Nanos sum;
  for (const Phase& phase : phases)
    if (phase.kind == Phase::Kind::compute) sum += phase.compute;
  return sum;
}

Nanos Job::compute_before_sending() const {
  Nanos sum;
  for (const Phase& phase : phases) {
    if (phase.kind == Phase::Kind::communicate) break;
    sum += phase.compute;
  }
  return sum;
}

Bytes Job::bytes_per_iteration() const {
  Bytes sum = 0;
  for (const Phase& phase : phases)
    if (phase.kind == Phase::Kind::communicate) sum += phase.bytes;
  return sum;
}

bool alike(const Job& a, const Job& b) {
  const auto same_phase = [](const Phase& p, const Phase& q) {
    return p.kind == q.kind && p.compute == q.compute && p.bytes == q.bytes && p.rate == q.rate &&
           p.overlap == q.overlap;
  };
  return a.flows == b.flows && a.rate == b.rate && a.cc == b.cc && a.programs == b.programs &&
         std::ranges::equal(a.phases, b.phases, same_phase);
}

}  // namespace mltcp::workload
