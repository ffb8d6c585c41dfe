// Repair of slots after a job has missed its slot.
//
// Waiting for the job's next slot costs up to a period. Often there is capacity for the job at once, or there would be
// if jobs that have not started to send yet started slightly later, each just late enough for the previous one to
// finish. All moved slots keep their new positions, so the disturbance costs only once.
//
// The late job may start at once, when a burst of another job ends, or on its next slot. For each of these times the
// other jobs are processed in the order in which they will send. Each is placed where its cost is minimal, given those
// placed before: on its slot, or where one of their bursts ends. The cost is the delay, plus the loss of both jobs on
// links that the placement newly overloads, in this and some following iterations. The start time with the minimum
// total cost is chosen, so a repair never costs more than waiting for the next slot. Jobs in the middle of an
// iteration's bursts are not interrupted; their next iterations may be moved.
//
// Adjacent bursts of a job on a link count as one. The algorithm is greedy; with one burst per job on a single link it
// is optimal for each start time tried.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler {

struct Repair {
  /// Delay of each job's slots from now on, 0 or more. The late job's delay moves its slot to the time at which it
  /// starts to send; 0 means its next slot.
  std::vector<Nanos> delays;
  Nanos wait;   ///< time that the late job waits, from now on
  Nanos delay;  ///< the wait plus the delays of the other jobs
  Nanos cost;   ///< the delay plus the price of overlaps
  /// Work done: steps of the jobs' demands and burst ends examined. It is not a time, so that results are the same on
  /// every machine.
  std::uint64_t work = 0;
  bool complete = true;  ///< false: start times were left out, because the work would exceed kMaxRepairWork
};

/// Maximum work of a repair; it takes a few tenths of a second.
inline constexpr std::uint64_t kMaxRepairWork = 50'000'000;

/// The time slots of a problem's jobs, for repair.
class Timetable {
 public:
  /// `held`: by job, the time from the start of an iteration to its slot, at which the phase gate may hold it; default:
  /// the time to its first burst on a shared link. Traffic between the slot and that burst is ignored. `problem` is
  /// copied. Throws InputError like check().
  Timetable(const Problem& problem, const Slots& slots, std::span<const Nanos> held = {});

  /// Time from the start of the job's iteration to its slot.
  [[nodiscard]] Nanos held(std::uint32_t job) const { return jobs_[job].held; }

  /// Maximum delay of the job, at most `most`, that overloads no link while the other jobs keep their shifts.
  [[nodiscard]] Nanos room_behind(std::span<const Nanos> shifts, std::uint32_t job, Nanos most) const;

  /// Repairs the schedule for `job`, which has missed its slot and is ready to send at `now`. Iterations start at
  /// shifts[j] + k * period; slots are held(j) later.
  [[nodiscard]] Repair repair(std::span<const Nanos> shifts, std::uint32_t job, Nanos now) const;

 private:
  struct Span {  ///< a burst of an iteration
    Nanos from;
    Nanos to;
    double rate = 0;  ///< as a share of the link's capacity
  };
  struct Use {
    std::uint32_t job = 0;
    std::vector<Span> spans;
  };
  struct SlottedJob {
    Nanos period;  ///< period of its slots
    Nanos held;    ///< from the start of an iteration
    Nanos first;   ///< start of its first burst, from the start of an iteration
    Nanos last;    ///< end of its last burst
    std::vector<std::uint32_t> links;
  };
  class Cursor;
  class Window;
  /// Delays of `job` with which one of its bursts starts exactly when a burst of a job in `in` ends. Sorted, with 0 as
  /// the first; all others are shorter than `end` and than the period of `job`. Adds the number of steps to `work`.
  [[nodiscard]] std::vector<Nanos> seams(std::span<const Nanos> shifts, const std::vector<bool>& in, std::uint32_t job,
                                         Nanos end, std::uint64_t& work) const;

  std::vector<SlottedJob> jobs_;
  std::vector<std::vector<Use>> links_;  ///< links used by several jobs
  Nanos perimeter_;
  double min_ = 0;  ///< excess below this counts as none, in time at full rate
};

}  // namespace mltcp::scheduler
