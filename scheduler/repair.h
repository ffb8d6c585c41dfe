// Repair of slots: what to do when a job has missed its own.
//
// Its next slot is up to a period away, and waiting for it may be the dearest of all cures. Often there is room for it
// at once, or there would be if jobs that have not begun to send yet began a little later: each of them by no more than
// it takes to let the one before it finish. All slots that were moved keep their new places, so that the disturbance is
// paid for once, by those near it, instead of with a period by the one.
//
// The late job may begin at once, or when some burst of another job ends, or on its next slot. For each of these times
// the others are gone through in the order in which they would send, and each is put where it costs least with those
// that are placed already: on its slot, or where one of their bursts ends. It costs what it is moved by, and where
// links are asked for more than they have, and weren't before, what both jobs lose by that, in this iteration and some
// more. The time with the least sum is taken. So no repair costs more than to wait for the next slot. Jobs that are in
// the middle of an iteration's bursts aren't interrupted; their next iterations may be moved.
//
// Bursts of a job on a link that lie close together count as one. It is greedy, not optimal: with one burst a job on
// one link it is least for each of the times that are tried.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler {

struct Repair {
  /// By job, 0 or more: how much later its slots are from now on. The late job's leads to the time at which it begins
  /// to send; 0 for it means its next slot.
  std::vector<Nanos> delays;
  Nanos wait;   ///< of the late job, from now on
  Nanos delay;  ///< that, and the delays of the others
  Nanos cost;   ///< that, and the price of overlaps
  /// Looked at: steps of the jobs' demands, and ends of bursts. Not a time, so that results are the same on every
  /// machine.
  std::uint64_t work = 0;
  bool complete = true;  ///< false: not all times were tried, as that would have been more than kMostRepairWork
};

/// A few tenths of a second.
inline constexpr std::uint64_t kMostRepairWork = 50'000'000;

/// The slots of a problem's jobs as a timetable that may be changed.
class Timetable {
 public:
  /// `held`: by job, how long after the begin of an iteration it waits for its slot; none: until its first burst on a
  /// link that several use. What it sends between the two counts for nobody. `problem` may be forgotten afterwards.
  /// Throws InputError as check() does.
  Timetable(const Problem& problem, const Slots& slots, std::span<const Nanos> held = {});

  /// How long after the begin of an iteration the job waits for its slot.
  [[nodiscard]] Nanos held(std::uint32_t job) const { return jobs_[job].held; }

  /// How late the job may be, `most` at most, without asking for more than the links have with the others on their
  /// shifts.
  [[nodiscard]] Nanos room_behind(std::span<const Nanos> shifts, std::uint32_t job, Nanos most) const;

  /// `job` could begin to send `now`, and has missed its slot: iterations begin at shifts[j] + k * period, and a job's
  /// slots are held(j) later.
  [[nodiscard]] Repair repair(std::span<const Nanos> shifts, std::uint32_t job, Nanos now) const;

 private:
  struct Span {  ///< of an iteration
    Nanos from;
    Nanos to;
    double rate = 0;  ///< as a share of the link's capacity
  };
  struct Use {
    std::uint32_t job = 0;
    std::vector<Span> spans;
  };
  struct Job {
    Nanos period;  ///< of its slots
    Nanos held;    ///< from the begin of an iteration
    Nanos first;   ///< of its bursts, like the next
    Nanos last;    ///< end of them
    std::vector<std::uint32_t> links;
  };
  class Cursor;
  class Window;
  /// Later times, up to a period and below `end`, at which a burst of `job` begins where one of those that are `in`
  /// ends; 0 is one. Adds to `work`.
  [[nodiscard]] std::vector<Nanos> seams(std::span<const Nanos> shifts, const std::vector<bool>& in, std::uint32_t job,
                                         Nanos end, std::uint64_t& work) const;

  std::vector<Job> jobs_;
  std::vector<std::vector<Use>> links_;  ///< that several use
  Nanos perimeter_;
  double least_ = 0;  ///< an excess, in time at full rate, that is none
};

}  // namespace mltcp::scheduler
