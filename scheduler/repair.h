// Repair of slots: what to do when a job has missed its slot.
//
// Waiting for the job's next slot costs up to a period. Often there is capacity for it at once, or there would be if
// jobs that have not started to send yet started slightly later, each just late enough for the previous one to finish.
// All moved slots keep their new positions, so the disturbance costs once.
//
// The late job may start at once, when a burst of another job ends, or on its next slot. For each of these times the
// other jobs are processed in the order in which they will send, and each is placed where its cost is minimal given
// those placed before: on its slot, or where one of their bursts ends. The cost is the delay, plus what both jobs lose
// wherever links become overloaded that were not before, in this and some following iterations. The start time with the
// minimum total cost is chosen, so a repair never costs more than waiting for the next slot. Jobs in the middle of an
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
  /// By job, 0 or more: how much later its slots are from now on. The late job's delay leads to the time at which it
  /// starts to send; 0 for it means its next slot.
  std::vector<Nanos> delays;
  Nanos wait;   ///< of the late job, from now on
  Nanos delay;  ///< the wait plus the delays of the other jobs
  Nanos cost;   ///< the delay plus the price of overlaps
  /// Work done: steps of the jobs' demands and burst ends examined. Not a time, so that results are the same on every
  /// machine.
  std::uint64_t work = 0;
  bool complete = true;  ///< false: some start times were not tried, as the work would have exceeded kMaxRepairWork
};

/// Takes a few tenths of a second.
inline constexpr std::uint64_t kMaxRepairWork = 50'000'000;

/// The time slots of a problem's jobs, for repair.
class Timetable {
 public:
  /// `held`: by job, how long after the start of an iteration it waits for its slot; default: until its first burst on
  /// a shared link. What it sends in between is ignored. `problem` is copied. Throws InputError like check().
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
    Nanos period;  ///< of its slots
    Nanos held;    ///< from the start of an iteration
    Nanos first;   ///< start of its first burst, from the start of an iteration
    Nanos last;    ///< end of its last burst
    std::vector<std::uint32_t> links;
  };
  class Cursor;
  class Window;
  /// Delays, from 0 to a period and below `end`, with which a burst of `job` starts where a burst of one of the jobs in
  /// `in` ends; includes 0. Adds to `work`.
  [[nodiscard]] std::vector<Nanos> seams(std::span<const Nanos> shifts, const std::vector<bool>& in, std::uint32_t job,
                                         Nanos end, std::uint64_t& work) const;

  std::vector<SlottedJob> jobs_;
  std::vector<std::vector<Use>> links_;  ///< links used by several jobs
  Nanos perimeter_;
  double min_ = 0;  ///< excess below this counts as none, in time at full rate
};

}  // namespace mltcp::scheduler
