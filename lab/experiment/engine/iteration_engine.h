// Executes the iterations of a job, or of one of its ranks: decides when each operation of its program begins, how long
// it computes, and when iterations begin and end. The same at packet level and at flow level, in one process
// and on many hosts; a Carrier transports the bytes.
//
// An operation begins as soon as those it depends on are done. Computations run one at a time, as on one accelerator;
// delays run in parallel to them. An iteration ends when all of its operations are done, and the next one begins at
// once. The job's program defines when a phase is over: lab/workload/phase_program.h. A program that does not
// communicate ends with the last iteration to record: nothing depends on further ones, and a program without operations
// would begin iterations at the same instant for ever.
//
// Allocates only at set-up, except for operations whose end time is given in advance (flow level).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/engine/compute_times.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::experiment {

/// When an operation of an iteration began and ended.
struct OperationTimes {
  Nanos begin;
  Nanos end;
};

class IterationEngine {
 public:
  /// Transports the data of sends and receives.
  class Carrier {
   public:
    virtual ~Carrier() = default;
    /// Called before the first operation of an iteration begins.
    virtual void begin_iteration(Nanos now) = 0;
    /// A send or receive begins. The carrier calls finish() when it is done: within this call, or later.
    virtual void begin(std::uint32_t operation, Nanos now) = 0;
  };
  struct Settings {
    std::uint32_t iterations = 0;  ///< number to record; 0: all
    bool stop_when_done = false;   ///< begin no iterations beyond the recorded ones
    std::uint64_t seed = 1;        ///< of compute times
    std::uint64_t stream = 0;      ///< see ComputeTimes
    std::uint32_t timeline = 0;    ///< number of the latest recorded iterations that timeline() returns
  };
  enum class Step {
    waiting,     ///< for a time, or for the carrier
    advanced,    ///< as far as possible
    recorded,    ///< a recorded iteration has ended; the next one begins with the next call
    unrecorded,  ///< an iteration beyond those to record has ended; the next one begins with the next call
  };

  /// `program` and `job` must outlive this object. Compute times are drawn for `job`.
  IterationEngine(const workload::RankProgram& program, const workload::Job& job, const Settings& settings);

  /// The first iteration begins at `at`. Call once.
  void start(Nanos at) {
    state_ = State::before;
    wake_ = at;
  }
  /// Advances as far as possible at `now`, or until an iteration has ended.
  Step advance(Nanos now, Carrier& carrier);
  /// An operation that has begun is done: now, or at `at`.
  void finish(std::uint32_t operation) { finished_.push_back(operation); }
  void finish(std::uint32_t operation, Nanos now, Nanos at);
  /// When advance() must be called: at once if an operation has finished since; never() if it waits for the carrier.
  [[nodiscard]] Nanos wake() const;

  [[nodiscard]] bool running() const { return state_ == State::running; }
  /// Whether all dependencies of the operation are done in this iteration.
  [[nodiscard]] bool has_begun(std::uint32_t operation) const { return waits_[operation] == 0; }
  /// Number of operations of this iteration that are not done.
  [[nodiscard]] std::uint32_t left() const { return left_; }
  /// Number of the current iteration, or of the one that has just ended, from 0.
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  /// When the latest computation of this iteration ended; the iteration's start if there was none.
  [[nodiscard]] Nanos computed_at() const { return computed_at_; }

  /// Whether all requested iterations are recorded.
  [[nodiscard]] bool done() const { return settings_.iterations > 0 && times_.size() >= settings_.iterations; }
  [[nodiscard]] std::size_t recorded() const { return times_.size(); }
  /// Start times, durations, and compute times (empty if they do not vary) of the recorded iterations.
  [[nodiscard]] std::vector<Nanos> starts() const {
    return {starts_.begin(), starts_.begin() + static_cast<std::ptrdiff_t>(times_.size())};
  }
  [[nodiscard]] Nanos start_of(std::size_t iteration) const { return starts_[iteration]; }
  [[nodiscard]] const std::vector<Nanos>& times() const { return times_; }
  [[nodiscard]] const std::vector<Nanos>& computes() const { return computes_; }
  /// When each operation of the latest recorded iterations began and ended, iteration after iteration. A receive begins
  /// when its dependencies are done; a send ends when the carrier calls finish().
  [[nodiscard]] std::vector<OperationTimes> timeline() const;

 private:
  enum class State { idle, before, running, between, ended };
  struct Later {
    std::uint32_t operation = 0;
    Nanos at;
  };

  void begin_iteration(Nanos now, Carrier& carrier);
  Step end_iteration(Nanos now);
  /// Notifies the dependents of finished operations. Returns whether the carrier was asked to send or receive.
  bool settle(Nanos now, Carrier& carrier);
  void begin(std::uint32_t operation, Nanos now, Carrier& carrier);
  /// The times of an operation in the current iteration; null without Settings::timeline.
  OperationTimes* times_of(std::uint32_t operation) {
    if (timeline_.empty()) return nullptr;
    return &timeline_[(times_.size() % settings_.timeline) * program_.operations.size() + operation];
  }

  const workload::RankProgram& program_;
  const Settings settings_;
  const bool compute_varies_;
  ComputeTimes compute_times_;

  std::vector<std::uint32_t> dependents_;       ///< the dependents of all operations, concatenated
  std::vector<std::uint32_t> first_dependent_;  ///< by operation, and one past the last: index in dependents_
  std::vector<std::uint32_t> waits_;            ///< by operation: number of unfinished dependencies
  std::vector<std::uint32_t> finished_;         ///< operations whose dependents have not been notified
  std::vector<Later> later_;                    ///< operations with a known end time that others depend on
  std::uint32_t ending_ = 0;  ///< number of operations with a known end time that only the iteration's end depends on
  Nanos ending_until_;        ///< latest end time of those operations
  std::vector<std::uint32_t> to_compute_;  ///< ready computations of this iteration, in order
  std::size_t computed_ = 0;               ///< number of to_compute_ that are done
  std::uint32_t left_ = 0;

  std::vector<OperationTimes> timeline_;  ///< by iteration modulo settings_.timeline, and operation

  State state_ = State::idle;
  Nanos wake_ = Nanos::never();
  std::uint64_t iteration_ = 0;
  Nanos iteration_start_;
  Nanos computed_at_;
  Nanos compute_;  ///< in this iteration
  std::vector<Nanos> starts_;
  std::vector<Nanos> times_;
  std::vector<Nanos> computes_;
};

}  // namespace mltcp::experiment
