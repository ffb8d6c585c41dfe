// The scheduler beside a run: plans slots, and keeps them true while the jobs run.
//
// A job that misses its slot is held by its gate (transport/phase_gate.h), for up to a period. The keeper hears of it
// and finds what costs least: to let it go now or soon, others a little later, or to let it wait (scheduler/repair.h).
//
// Where jobs meet in their slots, too, packets may make more of it than the forecast says. So what iterations take in
// slots is looked at now and then: if that is more than they would take without, by the forecast, all of the jobs that
// were planned together lose their slots.
//
// A job that computes longer than when it was measured, iteration after iteration, gets slots of its new length, and so
// do all that were planned with it. Where no slots suit any more, or where the gate has dropped a plan as a misfit
// although the job is as it was, all of them lose theirs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/backends/packet_run.h"
#include "mltcp/experiment/engine/running_job.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/experiment/run/isolated_profile.h"
#include "mltcp/experiment/run/plan.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

class PlanKeeper {
 public:
  /// `options.repaired` is taken from `settings.replan` where it is true. `settings` outlive the keeper.
  PlanKeeper(const ScheduleSettings& settings, std::vector<workload::Job> jobs, std::vector<Profile> profiles,
             PlanOptions options);

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  /// With the starts that put them on their slots.
  [[nodiscard]] const std::vector<workload::Job>& jobs() const { return jobs_; }
  /// What became of it: slots as they are now.
  [[nodiscard]] ScheduleSummary summary() const;
  /// How often follow() should be called: what a job that has missed its slot waits at most until it is heard.
  [[nodiscard]] Nanos slice() const;

  /// Looks after the jobs, in their order; while time stands still. The slots' time 0 is `epoch`.
  void follow(std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);

 private:
  struct GroupState {
    Nanos looked_at;    ///< when worth_nothing() was asked last, from the epoch on like the next
    double debt = 0;    ///< periods that repairs have cost beyond what slots save
    Nanos repaired_at;  ///< the last time
  };
  struct JobState {
    Nanos decided_until;  ///< before, a drift is one that has been looked at, or none; from the epoch on like the next
    Nanos joins_until;    ///< before, it waits for the first slot of a plan if it is early
  };

  /// Whether the latest iterations have taken longer than they would without slots, by the forecast.
  [[nodiscard]] bool worth_nothing(const Schedule::Group& group, std::span<RunningJob* const> drivers,
                                   std::string& reason) const;
  [[nodiscard]] bool drifts(std::size_t number, const RunningJob& driver, Nanos now) const;
  void repair(std::size_t late, std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);
  void plan_again(std::size_t group, std::span<RunningJob* const> drivers, Nanos epoch, Nanos now);
  void give_up(std::size_t group, const std::string& reason, std::span<RunningJob* const> drivers);
  /// False if the job computes what it did when it was measured: then other slots wouldn't suit it better.
  bool measure_again(std::size_t number, const RunningJob& driver);
  [[nodiscard]] std::vector<workload::Job> as_they_run(std::span<RunningJob* const> drivers) const;

  const ScheduleSettings& settings_;
  PlanOptions options_;
  std::vector<workload::Job> jobs_;
  std::vector<Profile> profiles_;  ///< as measured last
  Schedule schedule_;
  std::vector<JobState> states_;    ///< by job
  std::vector<GroupState> groups_;  ///< by group
};

}  // namespace mltcp::experiment
