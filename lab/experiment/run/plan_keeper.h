// The scheduler during a run: plans slots, and maintains them while the jobs run.
//
// If a job misses its slot, the job's gate (transport/phase_gate.h) holds the job for up to a period. The keeper
// detects this and chooses the cheapest repair (scheduler/repair.h). Either the keeper releases the job now or soon,
// which delays other jobs a little, or the job waits.
//
// Packet-level effects, and traffic that the plan does not know, may make iterations longer than predicted. So the
// keeper checks actual iteration times periodically. If they exceed the prediction without slots, all jobs that were
// planned together lose their slots.
//
// If a job misses its slots because its compute time has changed, the keeper plans new slots for this job and all jobs
// planned together with it. All of them lose their slots if no slots suit them any more, or if a gate has dropped a
// plan as a misfit although the job is unchanged.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/backends/packet_run.h"
#include "mltcp/lab/experiment/engine/running_job.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/isolated_profile.h"
#include "mltcp/lab/experiment/run/plan.h"
#include "mltcp/lab/workload/job.h"

namespace mltcp::experiment {

class PlanKeeper {
 public:
  /// `options.repaired` is ignored unless `settings.replan` is set and `settings.correction` is at_once. `settings`
  /// must outlive the keeper.
  PlanKeeper(const ScheduleSettings& settings, std::vector<workload::Job> jobs, std::vector<Profile> profiles,
             PlanOptions options);

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  /// Returns the jobs, with starts adjusted to their slots.
  [[nodiscard]] const std::vector<workload::Job>& jobs() const { return jobs_; }
  /// Returns a summary of the schedule, with the current slots.
  [[nodiscard]] ScheduleSummary summary() const;
  /// Returns the interval at which follow() should be called. It is the maximum delay until a missed slot is detected.
  [[nodiscard]] Nanos slice() const;

  /// Checks and repairs the slots. `drivers` are the running jobs, in the order of jobs(). Call it only while the
  /// experiment's time stands still. Slots are relative to `epoch`.
  void follow(std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);

 private:
  struct GroupState {
    Nanos planned_at;       ///< time of the group's plan, relative to the epoch
    double overrun = 0;     ///< periods of each job by which iterations have taken longer than predicted without slots
    double sum = 0;         ///< lengths of the iterations since planned_at, as multiples of the isolated length
    std::size_t count = 0;  ///< number of these iterations
    double debt = 0;  ///< number of periods that repairs have cost, minus the number of periods that slots have saved
    Nanos repaired_at{};  ///< time of the last repair, relative to the epoch
  };
  struct JobState {
    Nanos decided_until;  ///< until this time the keeper ignores drifts of the job; relative to the epoch
    Nanos joins_until;    ///< until this time an early job waits for the first slot of its plan; relative to the epoch
    std::size_t judged = 0;  ///< number of iterations that worth_nothing() has seen
  };

  /// Counts the iterations that have ended since the last call. Returns whether iterations have taken longer than
  /// predicted without slots, by more than chance or a single disturbance explains. If so, sets `reason`.
  [[nodiscard]] bool worth_nothing(std::size_t group, std::span<RunningJob* const> drivers, std::string& reason);
  [[nodiscard]] bool drifts(std::size_t number, const RunningJob& driver, Nanos now) const;
  void repair(std::size_t late, std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);
  void plan_again(std::size_t group, std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);
  void give_up(std::size_t group, const std::string& reason, std::span<RunningJob* const> drivers);
  /// Updates the job's profile if its compute time has changed. Returns false if no change is detected, since new slots
  /// would then not suit the job better.
  bool measure_again(std::size_t number, const RunningJob& driver);
  [[nodiscard]] std::vector<workload::Job> as_they_run(std::span<RunningJob* const> drivers, Nanos now) const;

  const ScheduleSettings& settings_;
  PlanOptions options_;
  std::vector<workload::Job> jobs_;
  std::vector<Profile> profiles_;  ///< latest profile of each job
  Schedule schedule_;
  std::vector<JobState> states_;    ///< state of each job
  std::vector<GroupState> groups_;  ///< state of each group
};

}  // namespace mltcp::experiment
