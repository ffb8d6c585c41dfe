// Running of experiments (see runner.h).
#include "mltcp/experiment/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text.h"
#include "mltcp/experiment/backends/packet_run.h"
#include "mltcp/experiment/backends/run_plan.h"
#include "mltcp/experiment/files/plan_file.h"
#include "mltcp/experiment/run/isolated_profile.h"
#include "mltcp/experiment/run/plan.h"
#include "mltcp/experiment/run/plan_keeper.h"

namespace mltcp::experiment {
namespace {

constexpr std::uint64_t start_streams = std::uint64_t{1} << 32U;  // of random numbers; those below are the jobs' own

bool schedules(const std::string& policy) { return policy == "schedule" || policy == "mltcp+schedule"; }

constexpr std::string_view nothing_left = "no policy was complete, so there is nothing to keep";

/// Thrown out of a run that is ended where it is. Not of InputError's and RunError's kind: datapaths know nothing of
/// it.
struct Interrupted {
  std::string why;
};

/// What running all jobs together costs, under any policy; see work_of().
double work_of_run(const Experiment& experiment, bool real_time) {
  double work = 0;
  for (const workload::Job& job : experiment.jobs) {
    const double own =
        (job.iterations > 0 ? job.iterations : experiment.iterations) * work_of(job, experiment, real_time);
    work = real_time ? std::max(work, own) : work + own;
  }
  return work;
}

/// The jobs with the starts that the seed gives them, the same under every policy.
std::vector<workload::Job> with_drawn_starts(const Experiment& experiment) {
  std::vector<workload::Job> jobs = experiment.jobs;
  for (std::size_t number = 0; number < jobs.size(); ++number) {
    workload::Job& job = jobs[number];
    if (job.start_jitter.count <= 0) continue;
    Random random = Random::stream(experiment.seed, start_streams + number);
    job.start += Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(job.start_jitter.count))));
  }
  return jobs;
}

/// Has the jobs of a run follow a plan file. One for each run; `without` are the jobs named as having no slots, in all
/// runs.
class PlanFollower {
 public:
  PlanFollower(const RunOptions& options, bool real_time, std::set<std::string>& without)
      : options_(options), real_time_(real_time), without_(without), watcher_(options.plan_file) {}

  void operator()(std::span<RunningJob* const> drivers, std::span<const workload::Job> jobs, Nanos epoch, Nanos now) {
    const PlanWatcher::News news = watcher_.poll(now);
    for (const std::string& problem : watcher_.take_problems()) report(problem);
    if (news == PlanWatcher::News::none) return;
    if (news == PlanWatcher::News::gone) {
      for (RunningJob* driver : drivers) driver->clear_plan();
      return;
    }
    const PlanFile& plan = *watcher_.plan();
    if (plan.clock == PlanFile::Clock::realtime && !real_time_) {
      report(fmt::format("{}: clock is \"realtime\" and the datapath has virtual time; write \"experiment\"",
                         options_.plan_file));
      return;
    }
    const Nanos zero = plan.clock == PlanFile::Clock::experiment ? epoch : now - real_time_now();
    std::size_t used = 0;
    std::vector<std::string> without;
    std::vector<bool> left_out(plan.jobs.size(), true);
    for (std::size_t i = 0; i < drivers.size(); ++i) {
      if (jobs[i].unaware) continue;
      const auto entry = std::find_if(plan.jobs.begin(), plan.jobs.end(),
                                      [&](const PlanFile::Job& job) { return job.name == jobs[i].name; });
      if (entry == plan.jobs.end()) {
        drivers[i]->clear_plan();
        if (without_.insert(jobs[i].name).second) without.push_back(jobs[i].name);
        continue;
      }
      left_out[static_cast<std::size_t>(entry - plan.jobs.begin())] = false;
      ++used;
      drivers[i]->set_plan(slots_of(plan, *entry, zero));
    }
    if (used < plan.jobs.size())
      report(fmt::format("{}: of the {} in serial {}, {}; {}", options_.plan_file, plural(plan.jobs.size(), "job"),
                         plan.serial, list_of(plan, left_out, jobs),
                         used > 0 ? "the others have their slots" : "nobody has slots"));
    if (!without.empty() && (used > 0 || plan.jobs.empty()))
      report(fmt::format("{} has no slots for {}, which run{} without", options_.plan_file, first_of(without),
                         without.size() == 1 ? "s" : ""));
  }

 private:
  /// "\"a\", \"b\", and 3 more".
  static std::string first_of(const std::vector<std::string>& jobs) {
    constexpr std::size_t most = 5;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(most, jobs.size()); ++i) names.push_back(in_quotes(jobs[i]));
    if (jobs.size() > most) names.push_back(fmt::format("and {} more", jobs.size() - most));
    return fmt::format("{}", fmt::join(names, ", "));
  }
  /// "\"a\" isn't in the experiment, \"b\" is unaware": the first few of those that are left out.
  static std::string list_of(const PlanFile& plan, const std::vector<bool>& left_out,
                             std::span<const workload::Job> jobs) {
    constexpr std::size_t most = 5;
    std::vector<std::string> names;
    std::size_t count = 0;
    for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
      if (!left_out[i] || ++count > most) continue;
      const bool unaware = std::any_of(jobs.begin(), jobs.end(),
                                       [&](const workload::Job& job) { return job.name == plan.jobs[i].name; });
      names.push_back(in_quotes(plan.jobs[i].name) + (unaware ? " is unaware" : " isn't in the experiment"));
    }
    if (count > most) names.push_back(fmt::format("and {} more are left out", count - most));
    return fmt::format("{}", fmt::join(names, ", "));
  }
  void report(const std::string& problem) const {
    if (options_.report) options_.report(problem);
  }
  static Nanos real_time_now() {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return Nanos(std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec);
  }

  const RunOptions& options_;
  bool real_time_;
  std::set<std::string>& without_;
  PlanWatcher watcher_;
};

}  // namespace

void check(const Experiment& experiment, const Datapath& datapath, const RunOptions& options) {
  const bool real_time = datapath.real_time();
  const bool any = std::any_of(experiment.policies.begin(), experiment.policies.end(), schedules);
  if (any && experiment.mltcp.learn_iterations)
    throw InputError("policies with a schedule need jobs that tell their iterations; set mltcp.iterations = \"exact\"");
  if (any && options.plan_file.empty() && experiment.topology && datapath.datapath() == "hosts")
    throw InputError(
        "policies with a schedule need to know which links the jobs meet on, and nobody measures those of "
        "hosts; make a plan (mltcp schedule EXPERIMENT.toml --measure --plan PLAN.json) and give it with "
        "--plan");
  if (options.plan_file.empty()) return;
  if (!any) throw InputError("a plan file is for policies schedule and mltcp+schedule; add one of them");
  if (read_plan(options.plan_file).clock == PlanFile::Clock::realtime && !real_time)
    throw InputError(fmt::format("{}: clock is \"realtime\" and datapath {} has virtual time; write \"experiment\"",
                                 options.plan_file, experiment.datapath));
}

const std::vector<std::string>& available_policies() {
  static const std::vector<std::string> names{"fair", "static", "priority", "mltcp", "schedule", "mltcp+schedule"};
  return names;
}

Results run_experiment(const Experiment& experiment, Datapath& datapath, const Progress& progress,
                       const RunOptions& options) {
  check(experiment, datapath, options);
  Results results;
  results.experiment = experiment.name;
  results.unfinished = experiment.policies;

  const auto check_interrupted = [&] {
    if (!options.interrupted) return;
    if (std::string why = options.interrupted(); !why.empty()) throw Interrupted{std::move(why)};
  };
  const bool real_time = datapath.real_time();
  const double alone = profile_work(experiment, real_time);
  const double each = work_of_run(experiment, real_time);
  const double total = alone + each * static_cast<double>(experiment.policies.size());
  std::vector<Profile> profiles;
  try {
    profiles = profile_jobs(experiment, datapath, [&](double fraction, const std::string& job) {
      check_interrupted();
      if (progress) progress(alone * fraction / total, fmt::format("{} alone", job));
    });
  } catch (const Interrupted& end) {
    throw RunError(fmt::format("{}; {}", end.why, nothing_left));
  }
  if (datapath.real_time() && options.report) {
    constexpr double most = 0.05;
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      if (profiles[i].deviation > most)
        options.report(
            fmt::format("job \"{}\" takes times alone that differ by {:.0f}%: {} it up, and slow-downs say "
                        "little; stop other load and run again",
                        experiment.jobs[i].name, profiles[i].deviation * 100,
                        datapath.datapath() == "hosts" ? "machines, or links that go for a moment (above), hold"
                                                       : "the machine holds"));
    }
  }
  double finished = alone;
  std::set<std::string> without_slots;
  const InterleaveRule rule = datapath.real_time() ? InterleaveRule::real_time() : InterleaveRule::virtual_time();
  for (const std::string& policy : experiment.policies) {
    const auto tick = [&](double fraction) {
      check_interrupted();
      if (progress) progress((finished + each * fraction) / total, "policy " + policy);
    };
    RunPlan plan;
    plan.policy = policy;
    plan.jobs = with_drawn_starts(experiment);
    plan.iterations = experiment.iterations;
    std::optional<PlanKeeper> keeper;
    std::optional<PlanFollower> follower;
    if (schedules(policy) && options.plan_file.empty()) {
      PlanOptions planning;
      if (policy == "mltcp+schedule") planning.sharing = experiment.mltcp.function;
      // Hosts tell what becomes of plans too seldom for repairs.
      planning.repaired = datapath.datapath() != "hosts";
      keeper.emplace(experiment.schedule, plan.jobs, profiles, std::move(planning));
      plan.slots = keeper->schedule().slots;
      plan.jobs = keeper->jobs();
      plan.slice = keeper->slice();
    } else if (schedules(policy)) {
      follower.emplace(options, datapath.real_time(), without_slots);
    }
    plan.between = [&](std::span<RunningJob* const> drivers, Nanos epoch, Nanos now) {
      check_interrupted();
      if (options.between_slices) options.between_slices(policy, now - epoch);
      if (follower) (*follower)(drivers, plan.jobs, epoch, now);
      if (keeper) keeper->follow(drivers, epoch, now);
    };
    Run run;
    try {
      tick(0);
      run = datapath.run(experiment, plan, tick);
    } catch (const Interrupted& end) {
      if (results.runs.empty()) throw RunError(fmt::format("{}; {}", end.why, nothing_left));
      return results;
    }
    for (std::size_t i = 0; i < run.jobs.size(); ++i) {
      run.jobs[i].isolated = profiles[i].period;
      if (keeper) run.jobs[i].time_shift = keeper->schedule().delays[i];
    }
    if (keeper) run.schedule = keeper->summary();
    summarize(run, rule);
    results.runs.push_back(std::move(run));
    results.unfinished.erase(results.unfinished.begin());
    finished += each;
    if (options.finished && results.runs.size() < experiment.policies.size()) options.finished(results);
  }
  if (progress) progress(1.0, "done");
  return results;
}

}  // namespace mltcp::experiment
