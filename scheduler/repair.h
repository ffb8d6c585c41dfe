// Repairs slots after a job has missed its slot.
//
// Waiting for the next slot of the job costs up to a period. Often the links have free capacity for the job at once. If
// not, they may have it if the jobs that are not sending yet start slightly later, each when the previous job finishes.
// The moved slots keep their new positions, so a repair delays each job only once.
//
// The late job may start at once, when a burst of another job ends, or on its next slot. For each of these start times,
// the repair places the other jobs in the order in which they will send. Each job is placed where its cost is minimal,
// given the jobs that are already placed: on its slot, or where a burst of a placed job ends. The cost is the delay of
// the job, plus the loss by new overload on its links in this and some following iterations. The repair chooses the
// start time with the minimum total cost, so its cost is never above the cost of waiting for the next slot. If a job is
// between the first and the last burst of an iteration, the repair can only delay its next iterations.
//
// Adjacent bursts of a job on a link count as one burst. The algorithm is greedy. If each job has one burst on a single
// link, the algorithm is optimal for each start time that it tries.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::scheduler {

struct Repair {
  /// For each job, the delay of its slots from now on, 0 or more. The delay of the late job moves one of its slots to
  /// the time at which the job starts to send. A delay of 0 means that the late job starts on its next slot.
  std::vector<Nanos> delays;
  Nanos wait;   ///< time from now until the late job starts to send
  Nanos delay;  ///< `wait` plus the delays of all other jobs
  Nanos cost;   ///< `delay` plus the cost of new overload
  /// Number of demand steps and burst ends that the repair examined. Work is not measured as a time, so that results
  /// are the same on every machine.
  std::uint64_t work = 0;
  bool complete = true;  ///< false if some start times were not tried because of kMaxRepairWork
};

/// Maximum of Repair::work. This amount of work takes a few tenths of a second.
inline constexpr std::uint64_t kMaxRepairWork = 50'000'000;

/// The slots of all jobs of a problem, prepared for repair().
class Timetable {
 public:
  /// held[j] is the time from the start of an iteration of job j to the slot, that is, to the bytes that the phase gate
  /// may hold back. If `held` is empty, held[j] is the time to the first burst of job j on a shared link. Traffic
  /// between the slot and this burst is ignored. Copies what it needs of `problem`. Throws InputError like check().
  Timetable(const Problem& problem, const Slots& slots, std::span<const Nanos> held = {});

  /// Returns the time from the start of an iteration of `job` to its slot.
  [[nodiscard]] Nanos held(std::uint32_t job) const { return jobs_[job].held; }

  /// Returns by how much `job` can be delayed, at most `max`, without more overload on any link. All other jobs keep
  /// their shifts.
  [[nodiscard]] Nanos margin_behind(std::span<const Nanos> shifts, std::uint32_t job, Nanos max) const;

  /// Returns the repair for `job`, which has missed its slot and is ready to send at `now`. Iterations of job j start
  /// at shifts[j] + k * period, and its slots are held(j) later.
  [[nodiscard]] Repair repair(std::span<const Nanos> shifts, std::uint32_t job, Nanos now) const;

 private:
  struct Span {  ///< a burst in an iteration
    Nanos from;
    Nanos to;
    double rate = 0;  ///< rate as a share of the link capacity
  };
  struct Use {
    std::uint32_t job = 0;
    std::vector<Span> spans;
  };
  struct SlottedJob {
    Nanos period;  ///< period of its slots
    Nanos held;    ///< time from the start of an iteration to its slot
    Nanos first;   ///< time from the start of an iteration to its first burst
    Nanos last;    ///< time from the start of an iteration to the end of its last burst
    std::vector<std::uint32_t> links;
  };
  class Cursor;
  class Window;
  /// Returns 0, and all delays of `job` with which one of its bursts starts exactly at the end of a burst of a job k
  /// for which in[k] is true. The delays are ascending, shorter than `end`, and shorter than the period of `job`. Adds
  /// the number of examined burst ends to `work`.
  [[nodiscard]] std::vector<Nanos> seams(std::span<const Nanos> shifts, const std::vector<bool>& in, std::uint32_t job,
                                         Nanos end, std::uint64_t& work) const;

  std::vector<SlottedJob> jobs_;
  std::vector<std::vector<Use>> links_;  ///< one entry for each link that several jobs use
  Nanos perimeter_;
  double min_ = 0;  ///< a smaller excess counts as 0; unit: seconds at full rate
};

}  // namespace mltcp::scheduler
