// Sums over the phases of a job (see job.h).
#include "mltcp/workload/job.h"

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

}  // namespace mltcp::workload
