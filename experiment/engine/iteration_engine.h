// The iterations of a job, or of one of its ranks: which operation of its program begins when, for how long it
// computes, when each iteration began and ended, and when it is done. One engine for all that live through iterations,
// at packet level and at flow level, in one process and on many hosts; what carries the bytes is its Carrier.
//
// An operation begins as soon as those that it waits for are done; computations take their turn, as on one accelerator.
// An iteration is over when all of its operations are done, and the next one begins at once. When a phase of a job is
// over, its program says: workload/phase_program.h.
//
// After set-up nothing is allocated, but for operations that end at a time to come (flow level).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/engine/compute_times.h"
#include "mltcp/workload/job.h"
#include "mltcp/workload/rank_program.h"

namespace mltcp::experiment {

class IterationEngine {
 public:
  /// Carries what is sent and received.
  class Carrier {
   public:
    /// Before the first operation of an iteration begins.
    virtual void begin_iteration(Nanos now) = 0;
    /// A send or a receive begins. Its end is told to finish(): within this call, or later.
    virtual void begin(std::uint32_t operation, Nanos now) = 0;

   protected:
    ~Carrier() = default;
  };
  struct Settings {
    std::uint32_t iterations = 0;  ///< to record; 0: all
    bool stop_when_done = false;   ///< begins none beyond those that are recorded
    std::uint64_t seed = 1;        ///< of compute times, with the next
    std::uint64_t stream = 0;      ///< see ComputeTimes
  };
  enum class Step {
    waiting,     ///< for its time, or for the carrier
    advanced,    ///< as far as it goes
    recorded,    ///< an iteration has ended, which is recorded; the next one begins with the next call
    unrecorded,  ///< so, but it is beyond those to record
  };

  /// `program` and `job` outlive this. Compute times are drawn for `job`.
  IterationEngine(const workload::RankProgram& program, const workload::Job& job, const Settings& settings);

  /// The first iteration begins at `at`. Once.
  void start(Nanos at) {
    state_ = State::before;
    wake_ = at;
  }
  /// Moves on as far as possible at `now`, or until an iteration has ended.
  Step advance(Nanos now, Carrier& carrier);
  /// The operation, which has begun, is done at `now`, or will be at `at`.
  void finish(std::uint32_t operation) { finished_.push_back(operation); }
  void finish(std::uint32_t operation, Nanos now, Nanos at);
  /// When advance() has something to do: at once if an operation has been finished since, otherwise by itself; never()
  /// if it waits for the carrier.
  [[nodiscard]] Nanos wake() const;

  [[nodiscard]] bool running() const { return state_ == State::running; }
  /// All that the operation waits for in this iteration is done.
  [[nodiscard]] bool has_begun(std::uint32_t operation) const { return waits_[operation] == 0; }
  /// Operations of this iteration that are not done.
  [[nodiscard]] std::uint32_t left() const { return left_; }
  /// The iteration that it is in, or that has just ended: from 0.
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  [[nodiscard]] Nanos iteration_start() const { return iteration_start_; }
  /// When the latest computation ended in this iteration; its start if there was none.
  [[nodiscard]] Nanos computed_at() const { return computed_at_; }

  /// All iterations that were asked for are recorded.
  [[nodiscard]] bool done() const { return settings_.iterations > 0 && times_.size() >= settings_.iterations; }
  [[nodiscard]] std::size_t recorded() const { return times_.size(); }
  /// Of recorded iterations: when each began, how long it took, and where that varies how long it computed.
  [[nodiscard]] std::vector<Nanos> starts() const {
    return {starts_.begin(), starts_.begin() + static_cast<std::ptrdiff_t>(times_.size())};
  }
  [[nodiscard]] const std::vector<Nanos>& times() const { return times_; }
  [[nodiscard]] const std::vector<Nanos>& computes() const { return computes_; }

 private:
  enum class State { idle, before, running, between, ended };
  struct Later {
    std::uint32_t operation = 0;
    Nanos at;
  };

  void begin_iteration(Nanos now, Carrier& carrier);
  Step end_iteration(Nanos now);
  /// Tells the dependents of what is done.
  void settle(Nanos now, Carrier& carrier);
  void begin(std::uint32_t operation, Nanos now, Carrier& carrier);

  const workload::RankProgram& program_;
  const Settings settings_;
  const bool compute_varies_;
  ComputeTimes compute_times_;

  std::vector<std::uint32_t> dependents_;       ///< of all operations, one after the other
  std::vector<std::uint32_t> first_dependent_;  ///< by operation, and the end
  std::vector<std::uint32_t> waits_;            ///< by operation: how many it still waits for
  std::vector<std::uint32_t> finished_;         ///< operations whose dependents have not been told
  std::vector<Later> later_;                    ///< operations that will be done, and hold up others until then
  std::uint32_t ending_ = 0;                    ///< how many more, which hold up the end of the iteration alone
  Nanos ending_until_;                          ///< when the last of those is done
  std::vector<std::uint32_t> to_compute_;       ///< ready, in order; of this iteration
  std::size_t computed_ = 0;                    ///< of to_compute_
  std::uint32_t left_ = 0;

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
