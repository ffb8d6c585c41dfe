// The loop that drives a run on any backend (see datapath.h and live_run.h).
#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/live_run.h"
#include "mltcp/lab/experiment/backends/packet_run.h"
#include "mltcp/lab/experiment/files/changed_parameters.h"
#include "mltcp/lab/experiment/files/policy.h"

namespace mltcp::experiment {
namespace {

constexpr double kMaxSlices = 1 << 18;  ///< approximate maximum number of slices of a run in virtual time

/// Reports the progress of the jobs, about once per percent.
class Progress {
 public:
  Progress(const LiveRun& live, const Experiment& experiment, const RunPlan& plan, bool real_time,
           const std::function<void(double)>& tick)
      : live_(live), tick_(tick) {
    for (const workload::Job& job : plan.jobs) {
      work_.push_back(work_of(job, experiment, real_time));
      total_ += plan.iterations_of(job) * work_.back();
    }
  }

  void tell() {
    if (!tick_) return;
    double done = 0;
    const auto jobs = live_.jobs();
    for (std::size_t i = 0; i < jobs.size(); ++i) done += static_cast<double>(jobs[i]->recorded()) * work_[i];
    if (done / total_ < next_) return;
    reported_ = done / total_;
    tick_(reported_);
    next_ = reported_ + 0.01;
  }
  /// Repeats the latest report, so that the callback can end the run.
  void ask() const {
    if (tick_) tick_(reported_);
  }

 private:
  const LiveRun& live_;
  const std::function<void(double)>& tick_;
  std::vector<double> work_;  ///< by job: work of an iteration
  double total_ = 0;
  double reported_ = 0;
  double next_ = 0;
};

std::size_t recorded_by(const LiveRun& live) {
  std::size_t recorded = 0;
  for (const RunningJob* job : live.jobs()) recorded += job->recorded();
  return recorded;
}

}  // namespace

std::map<std::uint32_t, std::string> names_of(const RunPlan& plan) {
  std::map<std::uint32_t, std::string> names;
  for (std::uint32_t i = 0; i < plan.jobs.size(); ++i) names[plan.first_number + i] = plan.jobs[i].name;
  return names;
}

void record_job(JobResult result, const workload::Job& job, Run& run) {
  run.jobs.push_back(std::move(result));
  run.jobs.back().cc = job.cc;
  run.jobs.back().unaware = job.unaware;
}

void record_jobs(std::span<RunningJob* const> jobs, const RunPlan& plan, Run& run) {
  for (std::size_t i = 0; i < jobs.size(); ++i) record_job(jobs[i]->result(), plan.jobs[i], run);
}

void LiveRun::record(SeriesRecorder& /*recorder*/, Nanos /*epoch*/) {
  throw InputError("this datapath records no series; leave --series out, or use datapath sim or flow");
}

Run Datapath::run(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick) {
  const std::unique_ptr<LiveRun> live = prepare(experiment, plan);
  Progress progress(*live, experiment, plan, real_time(), tick);
  // In real time, callbacks would delay a polling loop, and slices are short enough to report the progress after each
  // slice.
  if (!real_time()) live->ask_with([&] { progress.ask(); });
  live->connect();
  const Nanos epoch = live->choose_epoch();
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (!plan.slots[i]) continue;
    PhasePlan slots = *plan.slots[i];
    slots.slot += epoch;
    if (const std::string wrong = objection_to(slots); !wrong.empty())
      throw InputError(fmt::format("job {}: its plan: {}", in_quotes(plan.jobs[i].name), wrong));
    live->jobs()[i]->set_plan(slots);
  }
  if (plan.between) plan.between(live->jobs(), epoch, epoch);
  if (plan.series != nullptr) live->record(*plan.series, epoch);
  live->start(epoch);

  Nanos first_start = Nanos::never();
  Nanos last_progress = epoch;
  for (const workload::Job& job : plan.jobs) {
    first_start = std::min(first_start, job.start);
    last_progress = std::max(last_progress, epoch + job.start);
  }
  const Nanos patience = live->patience();
  std::size_t reports = 0;
  // Reports once per plan.jobs.size() iterations, so that the cost per iteration does not depend on the number of jobs.
  const auto tell = [&] {
    if (++reports % plan.jobs.size() == 0) progress.tell();
  };
  const bool in_slices = !live->reports_progress(tell) || plan.between != nullptr || real_time();
  Nanos slice = live->slice(plan.slice);
  // Limits the number of slices. The total cost of slices is then at most some seconds, however long the run is in
  // virtual time.
  if (!real_time())
    for (const workload::Job& job : plan.jobs) {
      const double run = work_of(job, experiment, true) * plan.iterations_of(job);
      slice = std::max(slice, Nanos(static_cast<std::int64_t>(std::min(run, 9e18) / kMaxSlices)));
    }
  std::size_t recorded = 0;
  while (!live->run(in_slices ? live->now() + slice : Nanos::never())) {
    if (!in_slices)
      throw RunError(fmt::format(
          "policy {}: nothing is left to happen, but not all jobs are done; this is a bug: report it", plan.policy));
    const Nanos now = live->now();
    if (const std::size_t by_now = recorded_by(*live); by_now > recorded) {
      recorded = by_now;
      last_progress = std::max(last_progress, now);
    }
    progress.tell();
    progress.ask();
    if (plan.between) plan.between(live->jobs(), epoch, now);
    if (now > last_progress + patience) throw RunError(lost_patience(plan, patience));
  }

  Run run;
  run.policy = plan.policy;
  run.cc = experiment.cc;
  run.cc_parameters = changed_parameters(experiment, policy_named(plan.policy).interleaves);
  run.datapath = datapath();
  run.seed = experiment.seed;
  run.duration = live->now() - epoch - first_start;
  const std::vector<JobNetwork::LinkView> links = live->finish(run);
  if (plan.finished) plan.finished(links, epoch);
  return run;
}

}  // namespace mltcp::experiment
