// The iteration-aware augmentation: how far a job's iteration is, and the gain that follows from it.
//
// MLTCP (arXiv 2402.09589; HotNets'24, doi 10.1145/3696348.3696878) is not an algorithm but a factor F(bytes_ratio)
// on the increase step of any algorithm. Static unfairness (HotNets'22, doi 10.1145/3563766.3564115) is the same
// hook with a constant, and plain fairness is the constant 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "mltcp/base/units.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/cc/iteration_learner.h"

namespace mltcp::cc {

/// Counts a job's bytes within its current iteration. Shared by all flows of the job on a shard. Iterations are what
/// the application says they are, or what a learner has found until the application says.
class IterationTracker {
 public:
  /// The application says: an iteration begins, and it will send `bytes_per_iteration` (0: not known).
  void begin_iteration(Bytes bytes_per_iteration) {
    exact_ = exact_ || bytes_per_iteration > 0;
    most_bytes_ = std::numeric_limits<Bytes>::max();
    ++iteration_;
    bytes_sent_ = 0;
    bytes_per_iteration_ = bytes_per_iteration;
  }
  /// What `learner` knows now, unless the application has ever named an iteration's size.
  void follow(const IterationLearner& learner) {
    if (exact_) return;
    iteration_ = learner.iteration();
    bytes_sent_ = learner.bytes_sent();
    bytes_per_iteration_ = learner.bytes_per_iteration();
    most_bytes_ = learner.most_bytes();
  }
  /// The application names its iterations: whoever learns them may stop.
  [[nodiscard]] bool exact() const { return exact_; }
  /// `bytes` of the application were delivered: acknowledged for the first time.
  void on_delivered(Bytes bytes) { bytes_sent_ += bytes; }

  /// Iterations begun; 0 before the first.
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  [[nodiscard]] Bytes bytes_sent() const { return bytes_sent_; }
  /// As far as known; 0 when not.
  [[nodiscard]] Bytes bytes_per_iteration() const { return bytes_per_iteration_; }
  /// Also false once a learned iteration has outgrown its size: the job is doing something else.
  [[nodiscard]] bool known() const { return bytes_per_iteration_ > 0 && bytes_sent_ <= most_bytes_; }
  /// min(1, bytes sent in the iteration / bytes per iteration), in [0, 1]; 0 while not known.
  [[nodiscard]] double bytes_ratio() const {
    if (!known()) return 0;
    return std::min(1.0, static_cast<double>(bytes_sent_) / static_cast<double>(bytes_per_iteration_));
  }

 private:
  std::uint64_t iteration_ = 0;
  Bytes bytes_sent_ = 0;
  Bytes bytes_per_iteration_ = 0;
  Bytes most_bytes_ = std::numeric_limits<Bytes>::max();
  bool exact_ = false;
};

/// The gain of a job's flows: a constant, or F of the iteration's progress.
class Augmentation {
 public:
  /// Plain fairness.
  Augmentation() = default;
  /// A constant gain; throws InputError unless finite and above 0.
  static Augmentation constant(double gain);
  /// MLTCP. While the iteration's size is not known the gain is 1.
  static Augmentation mltcp(const Aggressiveness& function);

  /// The decrease variant: the gain also scales decreases (see reduction() in algorithm.h). Off by default.
  void scale_decrease(bool on) { scale_decrease_ = on; }

  IterationTracker tracker;

  [[nodiscard]] double gain() const {
    return iteration_aware_ && tracker.known() ? function_(tracker.bytes_ratio()) : constant_;
  }
  /// The same as a multiple of the least gain of an iteration, 1 or more, for algorithms with
  /// Capabilities::timed_increase. A constant gain is what it is.
  [[nodiscard]] double gain_over_least() const {
    return iteration_aware_ && tracker.known() ? function_(tracker.bytes_ratio()) * inverse_least_ : constant_;
  }
  /// Bytes of an iteration if the gain follows iterations of known size, and 0 otherwise.
  [[nodiscard]] Bytes known_iteration_bytes() const {
    return iteration_aware_ && tracker.known() ? tracker.bytes_per_iteration() : 0;
  }
  /// Whether the gain depends on progress.
  [[nodiscard]] bool iteration_aware() const { return iteration_aware_; }
  /// The gain at that share of an iteration's bytes, from 0 to 1, whatever the tracker says.
  [[nodiscard]] double gain_at(double bytes_ratio) const {
    return iteration_aware_ ? function_(bytes_ratio) : constant_;
  }
  [[nodiscard]] double decrease_gain() const { return scale_decrease_ ? gain() : 1.0; }

 private:
  bool iteration_aware_ = false;
  bool scale_decrease_ = false;
  double constant_ = 1.0;
  double inverse_least_ = 1.0;  ///< of function_
  Aggressiveness function_;
};

}  // namespace mltcp::cc
