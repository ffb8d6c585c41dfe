// The compute time of each iteration of a job: jitter and stragglers, drawn from the seed and the job's number, and the
// job's configured disturbances. The times are the same at packet and flow level and under every policy.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/base/random.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::experiment {

class ComputeTimes {
 public:
  /// `job` must outlive this object. `stream`: random number stream; the job's number if the whole job shares one.
  ComputeTimes(const workload::Job& job, std::uint64_t seed, std::uint64_t stream)
      : job_(job), random_(Random::stream(seed, stream)) {}

  /// Draws the values for the next iteration.
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
  /// Duration of the compute phase `phase` in this iteration. Call once for each phase, in order.
  Nanos of(const workload::Phase& phase) { return of(phase.compute); }
  Nanos of(Nanos compute) {
    const Nanos pause = pause_;
    pause_ = Nanos(0);
    return pause + delay(compute);
  }
  /// Duration of a delay that runs in parallel to computations and is scaled as they are in this iteration.
  [[nodiscard]] Nanos delay(Nanos time) const {
    // Bounds the random value, so that the result can be added to a time without overflow.
    constexpr double most = 0x1p60;
    return Nanos(static_cast<std::int64_t>(std::min(static_cast<double>(time.count) * scale_ + 0.5, most)));
  }

 private:
  const workload::Job& job_;
  Random random_;
  double scale_ = 1.0;
  Nanos pause_;                  ///< of the next compute phase
  std::uint32_t iteration_ = 0;  ///< number of the next iteration
};

}  // namespace mltcp::experiment
