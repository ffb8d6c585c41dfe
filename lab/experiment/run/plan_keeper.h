// The scheduler during a run: plans slots, and maintains them while the jobs run.
//
// A job that misses its slot is held by its gate (transport/phase_gate.h) for up to a period. The keeper detects that
// and chooses the cheapest repair: release it now or soon and delay others a little, or let it wait
// (scheduler/repair.h).
//
// If jobs overlap even in their slots, packet-level effects may be worse than predicted. So actual iteration times are
// checked periodically: if they exceed the prediction without slots, all jobs that were planned together lose their
// slots.
//
// A job that computes longer than measured, in iteration after iteration, gets slots of its new length, and so do all
// jobs planned together with it. If no slots suit them any more, or if a gate has dropped a plan as a misfit although
// the job is unchanged, all of them lose their slots.
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
  /// `options.repaired` is ignored unless `settings.replan` is set and correction is at_once. `settings` must outlive
  /// the keeper.
  PlanKeeper(const ScheduleSettings& settings, std::vector<workload::Job> jobs, std::vector<Profile> profiles,
             PlanOptions options);

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  /// The jobs with starts adjusted to their slots.
  [[nodiscard]] const std::vector<workload::Job>& jobs() const { return jobs_; }
  /// Summary of the schedule, with the current slots.
  [[nodiscard]] ScheduleSummary summary() const;
  /// Interval at which follow() should be called, which is the maximum delay until a missed slot is noticed.
  [[nodiscard]] Nanos slice() const;

  /// Checks and repairs the slots; `drivers` are the jobs in order. Only while time stands still. The slots are
  /// relative to `epoch`.
  void follow(std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);

 private:
  struct GroupState {
    Nanos looked_at;    ///< last check by worth_nothing(), relative to the epoch
    double debt = 0;    ///< periods that repairs have cost, minus those that slots have saved
    Nanos repaired_at;  ///< time of the last repair, relative to the epoch
  };
  struct JobState {
    Nanos decided_until;  ///< a drift before this time has been handled, or is none; relative to the epoch
    Nanos joins_until;    ///< before this time it waits for a plan's first slot if early; relative to the epoch
  };

  /// Whether recent iterations have taken longer than predicted without slots.
  [[nodiscard]] bool worth_nothing(const Schedule::Group& group, std::span<RunningJob* const> drivers,
                                   std::string& reason) const;
  [[nodiscard]] bool drifts(std::size_t number, const RunningJob& driver, Nanos now) const;
  void repair(std::size_t late, std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);
  void plan_again(std::size_t group, std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);
  void give_up(std::size_t group, const std::string& reason, std::span<RunningJob* const> drivers);
  /// False if the job computes as long as when it was measured: other slots would not suit it better.
  bool measure_again(std::size_t number, const RunningJob& driver);
  [[nodiscard]] std::vector<workload::Job> as_they_run(std::span<RunningJob* const> drivers) const;

  const ScheduleSettings& settings_;
  PlanOptions options_;
  std::vector<workload::Job> jobs_;
  std::vector<Profile> profiles_;  ///< latest measurement
  Schedule schedule_;
  std::vector<JobState> states_;    ///< by job
  std::vector<GroupState> groups_;  ///< by group
};

}  // namespace mltcp::experiment
