// Executes the iterations of a job, or of one of its ranks. Decides when each operation of its program begins, how long
// it computes, and when iterations begin and end. A Carrier transports the bytes. The engine is the same at packet
// level and at flow level, and the same in one process and on many hosts.
//
// An operation begins as soon as all operations that it depends on are done. Computations run one at a time, as on one
// accelerator; delays run in parallel to computations. An iteration ends when all of its operations are done, and the
// next iteration begins at once. The job's program defines when a phase ends (lab/workload/phase_program.h).
//
// A program that does not communicate stops after the last iteration to record, because no other rank depends on
// further iterations. Without this rule, a program without operations would begin iterations for ever at the same
// instant.
//
// Allocates memory only at set-up, except for operations whose end time is given in advance (flow level).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/engine/compute_times.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::experiment {

/// The times at which an operation of an iteration began and ended.
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
    /// Begins a send or receive. The carrier calls finish() when the operation is done, either within this call or
    /// later.
    virtual void begin(std::uint32_t operation, Nanos now) = 0;
  };
  struct Settings {
    std::uint32_t iterations = 0;  ///< number of iterations to record; 0 to record all
    bool stop_when_done = false;   ///< whether to stop after the recorded iterations
    std::uint64_t seed = 1;        ///< seed of the random compute times
    std::uint64_t stream = 0;      ///< random number stream, see ComputeTimes
    /// Number of recorded iterations that timeline() returns, counted back from the latest one.
    std::uint32_t timeline = 0;
  };
  enum class Step {
    waiting,     ///< nothing was done; the engine waits for a time or for the carrier
    advanced,    ///< the engine has advanced as far as possible
    recorded,    ///< a recorded iteration has ended; the next call begins the next iteration
    unrecorded,  ///< an iteration that is not recorded has ended; the next call begins the next iteration
  };

  /// `program` and `job` must outlive this object. `job` defines the compute times.
  IterationEngine(const workload::RankProgram& program, const workload::Job& job, const Settings& settings);

  /// Sets the time at which the first iteration begins. Call once.
  void start(Nanos at) {
    state_ = State::before;
    wake_ = at;
  }
  /// Advances until nothing more can happen at `now`, or until an iteration has ended.
  Step advance(Nanos now, Carrier& carrier);
  /// Marks a begun operation as done: now, or at time `at`.
  void finish(std::uint32_t operation) { finished_.push_back(operation); }
  void finish(std::uint32_t operation, Nanos now, Nanos at);
  /// Returns the time at which advance() must be called: 0, for an immediate call, if an operation has finished since
  /// the last call; never() if the engine waits for the carrier.
  [[nodiscard]] Nanos wake() const;

  [[nodiscard]] bool running() const { return state_ == State::running; }
  /// Returns whether all dependencies of `operation` are done in this iteration.
  [[nodiscard]] bool has_begun(std::uint32_t operation) const { return waits_[operation] == 0; }
  /// Returns how many operations of this iteration are not done.
  [[nodiscard]] std::uint32_t left() const { return left_; }
  /// Returns the number of the current iteration, from 0. Between two iterations, returns the number of the ended
  /// iteration.
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  /// Returns the time at which the latest computation of this iteration ended; the iteration's start if no computation
  /// has ended.
  [[nodiscard]] Nanos computed_at() const { return computed_at_; }

  /// Returns whether all requested iterations are recorded.
  [[nodiscard]] bool done() const { return settings_.iterations > 0 && times_.size() >= settings_.iterations; }
  [[nodiscard]] std::size_t recorded() const { return times_.size(); }
  /// Return the start times, durations, and compute times of the recorded iterations. computes() is empty if compute
  /// times do not vary.
  [[nodiscard]] std::vector<Nanos> starts() const {
    return {starts_.begin(), starts_.begin() + static_cast<std::ptrdiff_t>(times_.size())};
  }
  [[nodiscard]] Nanos start_of(std::size_t iteration) const { return starts_[iteration]; }
  [[nodiscard]] const std::vector<Nanos>& times() const { return times_; }
  [[nodiscard]] const std::vector<Nanos>& computes() const { return computes_; }
  /// Returns the times of each operation in the latest recorded iterations (Settings::timeline), ordered by iteration
  /// and operation. A receive begins when its dependencies are done; a send ends when the carrier calls finish().
  [[nodiscard]] std::vector<OperationTimes> timeline() const;

 private:
  enum class State { idle, before, running, between, ended };
  struct Later {
    std::uint32_t operation = 0;
    Nanos at;
  };

  void begin_iteration(Nanos now, Carrier& carrier);
  Step end_iteration(Nanos now);
  /// Updates the operations that depend on finished operations, and begins those that are ready. Returns whether a send
  /// or receive has begun.
  bool settle(Nanos now, Carrier& carrier);
  void begin(std::uint32_t operation, Nanos now, Carrier& carrier);
  /// Returns the times of an operation in the current iteration; null if Settings::timeline is 0.
  OperationTimes* times_of(std::uint32_t operation) {
    if (timeline_.empty()) return nullptr;
    return &timeline_[(times_.size() % settings_.timeline) * program_.operations.size() + operation];
  }

  const workload::RankProgram& program_;
  const Settings settings_;
  const bool compute_varies_;
  ComputeTimes compute_times_;

  /// Dependents of all operations, in order of the operations that they depend on.
  std::vector<std::uint32_t> dependents_;
  /// By operation: index of its first dependent in `dependents_`; the last entry is the size of `dependents_`.
  std::vector<std::uint32_t> first_dependent_;
  std::vector<std::uint32_t> waits_;     ///< by operation: number of unfinished dependencies
  std::vector<std::uint32_t> finished_;  ///< finished operations whose dependents have not been updated
  std::vector<Later> later_;             ///< unfinished operations with a known end time and with dependents
  std::uint32_t ending_ = 0;  ///< number of unfinished operations with a known end time and without dependents
  Nanos ending_until_;        ///< latest end time of the operations that `ending_` counts
  std::vector<std::uint32_t> to_compute_;  ///< computations of this iteration that are ready or done, in order
  std::size_t computed_ = 0;               ///< number of computations in `to_compute_` that are done
  std::uint32_t left_ = 0;

  std::vector<OperationTimes> timeline_;  ///< indexed by iteration modulo settings_.timeline, then by operation

  State state_ = State::idle;
  Nanos wake_ = Nanos::never();
  std::uint64_t iteration_ = 0;
  Nanos iteration_start_;
  Nanos computed_at_;
  Nanos compute_;  ///< total compute time in this iteration
  std::vector<Nanos> starts_;
  std::vector<Nanos> times_;
  std::vector<Nanos> computes_;
};

}  // namespace mltcp::experiment
