// The compute time of each iteration of a job. Jitter and stragglers are random, and depend only on the seed, the job's
// number, and the rank if the job has ranks. The job's configured disturbances are included. The times are the same at
// packet level and at flow level, and under every policy.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/base/random.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::experiment {

class ComputeTimes {
 public:
  /// `job` must outlive this object. `stream` is the number of a random number stream. If all workers of the job share
  /// their compute times, it is the job's number.
  ComputeTimes(const workload::Job& job, std::uint64_t seed, std::uint64_t stream)
      : job_(job), random_(Random::stream(seed, stream)) {}

  /// Draws the random values of the next iteration.
  void begin_iteration() {
    const std::uint32_t iteration = iteration_++;
    pause_ = iteration == job_.pause.iteration ? job_.pause.time : Nanos(0);
    scale_ = 1.0;
    const Nanos compute = job_.compute_per_iteration();
    if (job_.jitter.count > 0 && compute.count > 0)
      scale_ = std::max(
          0.0, 1.0 + random_.normal() * static_cast<double>(job_.jitter.count) / static_cast<double>(compute.count));
    if (job_.straggler.probability > 0 && random_.chance(job_.straggler.probability)) scale_ *= job_.straggler.factor;
    if (iteration >= job_.change.iteration) scale_ *= job_.change.compute_scale;
  }
  /// Returns the duration of compute phase `phase` in this iteration. Call once for each phase, in order.
  Nanos of(const workload::Phase& phase) { return of(phase.compute); }
  Nanos of(Nanos compute) {
    const Nanos pause = pause_;
    pause_ = Nanos(0);
    return pause + delay(compute);
  }
  /// Returns the duration in this iteration of a delay that runs in parallel to computations. The same random factor
  /// applies to delays and computations.
  [[nodiscard]] Nanos delay(Nanos time) const {
    // Limits the random value so that the result can be added to a time without overflow.
    constexpr double max = 0x1p60;
    return Nanos(static_cast<std::int64_t>(std::min(static_cast<double>(time.count) * scale_ + 0.5, max)));
  }

 private:
  const workload::Job& job_;
  Random random_;
  double scale_ = 1.0;
  Nanos pause_;                  ///< pause to add to the next compute phase
  std::uint32_t iteration_ = 0;  ///< number of the next iteration
};

}  // namespace mltcp::experiment
