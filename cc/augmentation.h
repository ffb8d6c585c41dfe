// The iteration-aware augmentation: tracks how much of its current iteration a job has sent, and derives the gain from
// that.
//
// MLTCP (arXiv 2402.09589; HotNets'24, doi 10.1145/3696348.3696878) is not an algorithm but a factor F(bytes_ratio) on
// the increase step of any algorithm. Static unfairness (HotNets'22, doi 10.1145/3563766.3564115) uses a constant
// factor, and plain fairness the constant 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/cc/iteration_learner.h"

namespace mltcp::cc {

/// Counts a job's bytes within its current iteration. Shared by all flows of the job on a shard. Iterations begin when
/// the application reports them. Until the application does so, they begin when a learner detects them.
class IterationTracker {
 public:
  /// Call when the application begins an iteration. `bytes_per_iteration` is the number of bytes that the iteration
  /// will send; 0 if not known.
  void begin_iteration(Bytes bytes_per_iteration) {
    undeclared_before_ = undeclared_bytes();
    exact_ = exact_ || bytes_per_iteration > 0;
    max_bytes_ = std::numeric_limits<Bytes>::max();
    ++iteration_;
    bytes_sent_ = 0;
    bytes_per_iteration_ = bytes_per_iteration;
  }
  /// Call when the application stops stating the sizes of iterations. No iteration is known until a new learner detects
  /// iterations (see follow()). The numbers of iterations continue.
  void learn_again() {
    undeclared_before_ = undeclared_bytes();
    exact_ = false;
    before_learner_ = iteration_;
    bytes_sent_ = 0;
    bytes_per_iteration_ = 0;
  }
  /// Copies the state of `learner`, unless the application states the sizes of its iterations.
  void follow(const IterationLearner& learner) {
    if (exact_) return;
    iteration_ = before_learner_ + learner.iteration();
    bytes_sent_ = learner.bytes_sent();
    bytes_per_iteration_ = learner.bytes_per_iteration();
    max_bytes_ = learner.max_bytes();
  }
  /// Returns whether the application states the sizes of its iterations, so that nothing needs to be learned.
  [[nodiscard]] bool exact() const { return exact_; }
  /// Call when `bytes` of application data were acknowledged for the first time.
  void on_delivered(Bytes bytes) { bytes_sent_ += bytes; }

  /// Number of iterations begun so far; 0 before the first iteration.
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  [[nodiscard]] Bytes bytes_sent() const { return bytes_sent_; }
  /// Bytes per iteration; 0 if not known.
  [[nodiscard]] Bytes bytes_per_iteration() const { return bytes_per_iteration_; }
  /// Returns whether the size of the iteration is known. Returns false once a learned iteration has exceeded its size,
  /// which shows that the job's traffic has changed.
  [[nodiscard]] bool known() const { return bytes_per_iteration_ > 0 && bytes_sent_ <= max_bytes_; }
  /// Returns whether the iteration has sent more than twice the size that the application stated. Without this limit,
  /// such a job would have the gain of an iteration's end for any number of bytes. A smaller excess is allowed, because
  /// the stated size may be an estimate of the shard's part.
  [[nodiscard]] bool overrun() const {
    return exact_ && bytes_per_iteration_ > 0 && bytes_sent_ / 2 > bytes_per_iteration_;
  }
  /// Total bytes that all iterations have sent beyond their stated sizes.
  [[nodiscard]] Bytes undeclared_bytes() const {
    const bool is_stated = exact_ && bytes_per_iteration_ > 0;
    return undeclared_before_ + (is_stated ? std::max(bytes_sent_, bytes_per_iteration_) - bytes_per_iteration_ : 0);
  }
  /// Bytes sent in the iteration / bytes per iteration, at most 1; 0 while the size is not known.
  [[nodiscard]] double bytes_ratio() const {
    if (!known()) return 0;
    return std::min(1.0, static_cast<double>(bytes_sent_) / static_cast<double>(bytes_per_iteration_));
  }

 private:
  std::uint64_t iteration_ = 0;
  std::uint64_t before_learner_ = 0;  ///< number of iterations before the current learner began
  Bytes bytes_sent_ = 0;
  Bytes bytes_per_iteration_ = 0;
  Bytes max_bytes_ = std::numeric_limits<Bytes>::max();
  Bytes undeclared_before_ = 0;  ///< undeclared_bytes() of all iterations before the current one
  bool exact_ = false;
};

/// The gain of a job's flows: a constant, or F of the iteration's progress.
class Augmentation {
 public:
  /// Plain fairness: gain 1.
  Augmentation() = default;
  /// Returns an augmentation with a constant gain. Throws InputError unless `gain` is finite and above 0.
  static Augmentation constant(double gain);
  /// Parses user input: "fair", a constant such as "0.5", a function that Aggressiveness::read() accepts, "turns" for
  /// policy `turns` with function F1, or "turns " and a function. Throws InputError for anything else.
  static Augmentation read(std::string_view text);
  /// Returns the augmentation of MLTCP: the gain is F of the iteration's progress. The gain is 1 while the iteration's
  /// size is not known. It is the minimum of F for the rest of an iteration that overruns its stated size
  /// (IterationTracker::overrun()).
  static Augmentation mltcp(const Aggressiveness& function);
  /// Returns the augmentation of policy `turns`: MLTCP's gain, and the waiting and overtaking of cc/turns.h.
  static Augmentation turns(const Aggressiveness& function);

  /// Turns on the decrease variant: the gain also scales decreases (see reduction() in algorithm.h). Off by default.
  void scale_decrease(bool on) { scale_decrease_ = on; }

  IterationTracker tracker;

  [[nodiscard]] double gain() const { return iteration_aware_ && tracker.known() ? of_progress() : constant_; }
  /// Returns the gain divided by the minimum of F. This quotient is 1 or more. A constant gain is not divided. For
  /// algorithms with Capabilities::timed_increase.
  [[nodiscard]] double gain_over_min() const {
    return iteration_aware_ && tracker.known() ? of_progress() * inverse_min_ : constant_;
  }
  /// Bytes per iteration if they are known and the gain depends on iterations; 0 otherwise.
  [[nodiscard]] Bytes known_iteration_bytes() const {
    return iteration_aware_ && tracker.known() ? tracker.bytes_per_iteration() : 0;
  }
  /// Returns whether the gain depends on the progress of the iteration.
  [[nodiscard]] bool iteration_aware() const { return iteration_aware_; }
  /// Returns whether the job's bursts wait for and overtake other bursts (cc/turns.h).
  [[nodiscard]] bool takes_turns() const { return takes_turns_; }
  /// Returns `gain` divided by the minimum of F.
  [[nodiscard]] double over_min(double gain) const { return gain * inverse_min_; }
  /// Returns the gain at progress `bytes_ratio`, from 0 to 1, independently of the tracker.
  [[nodiscard]] double gain_at(double bytes_ratio) const {
    return iteration_aware_ ? function_(bytes_ratio) : constant_;
  }
  [[nodiscard]] double decrease_gain() const { return scale_decrease_ ? gain() : 1.0; }

 private:
  [[nodiscard]] double of_progress() const { return tracker.overrun() ? min_ : function_(tracker.bytes_ratio()); }

  bool iteration_aware_ = false;
  bool scale_decrease_ = false;
  bool takes_turns_ = false;
  double constant_ = 1.0;
  double min_ = 1.0;          ///< minimum of function_
  double inverse_min_ = 1.0;  ///< 1 / min_
  Aggressiveness function_;
};

}  // namespace mltcp::cc
