// Runs experiments (see runner.h).
#include "mltcp/lab/experiment/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/files/plan_file.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/run/internal/side_by_side.h"
#include "mltcp/lab/experiment/run/isolated_profile.h"
#include "mltcp/lab/experiment/run/plan.h"
#include "mltcp/lab/experiment/run/plan_keeper.h"

namespace mltcp::experiment {
namespace {

// First random stream for start times. Streams with lower numbers belong to the jobs.
constexpr std::uint64_t kStartStreams = std::uint64_t{1} << 32U;

bool schedules(const std::string& policy) { return policy_named(policy).slots; }

constexpr std::string_view kNothingLeft = "no policy was complete, so no results are written";

/// Thrown to end a run at once. It is neither InputError nor RunError, so that datapaths do not handle it.
struct Interrupted {
  std::string why;
};

/// Returns the cost of running all jobs together under one policy; see work_of().
double work_of_run(const Experiment& experiment, bool real_time) {
  double work = 0;
  for (const workload::Job& job : experiment.jobs) {
    const double own =
        (job.iterations > 0 ? job.iterations : experiment.iterations) * work_of(job, experiment, real_time);
    work = real_time ? std::max(work, own) : work + own;
  }
  return work;
}

/// Returns the jobs with starts drawn from the seed. The starts are the same under every policy.
std::vector<workload::Job> with_drawn_starts(const Experiment& experiment) {
  std::vector<workload::Job> jobs = experiment.jobs;
  for (std::size_t number = 0; number < jobs.size(); ++number) {
    workload::Job& job = jobs[number];
    if (job.start_jitter.count <= 0) continue;
    Random random = Random::stream(experiment.seed, kStartStreams + number);
    job.start += Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(job.start_jitter.count))));
  }
  return jobs;
}

/// Makes the jobs of one run follow a plan file. `without` contains the jobs that any run has already reported as
/// having no slots.
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
      report(fmt::format("{}: clock is \"realtime\", but the datapath has virtual time; write \"experiment\"",
                         options_.plan_file));
      return;
    }
    const Nanos zero = plan.clock == PlanFile::Clock::experiment ? epoch : now - real_time_now();
    std::size_t used = 0;
    std::vector<std::string> without;
    std::vector<bool> left_out(plan.jobs.size(), true);
    for (std::size_t i = 0; i < drivers.size(); ++i) {
      if (jobs[i].unaware) continue;
      const auto entry =
          std::ranges::find_if(plan.jobs, [&](const PlanFile::PlannedJob& job) { return job.name == jobs[i].name; });
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
                         used > 0 ? "the others have their slots" : "no job has slots"));
    if (!without.empty() && (used > 0 || plan.jobs.empty()))
      report(fmt::format("{} has no slots for {}, which run{} without", options_.plan_file, first_of(without),
                         without.size() == 1 ? "s" : ""));
  }

 private:
  /// Returns text such as "\"a\", \"b\", and 3 more".
  static std::string first_of(const std::vector<std::string>& jobs) {
    constexpr std::size_t max = 5;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(max, jobs.size()); ++i) names.push_back(in_quotes(jobs[i]));
    if (jobs.size() > max) names.push_back(fmt::format("and {} more", jobs.size() - max));
    return fmt::format("{}", fmt::join(names, ", "));
  }
  /// Returns text such as "\"a\" is not in the experiment, \"b\" is unaware", for the first few jobs that are left out.
  static std::string list_of(const PlanFile& plan, const std::vector<bool>& left_out,
                             std::span<const workload::Job> jobs) {
    constexpr std::size_t max = 5;
    std::vector<std::string> names;
    std::size_t count = 0;
    for (std::size_t i = 0; i < plan.jobs.size(); ++i) {
      if (!left_out[i] || ++count > max) continue;
      const bool unaware =
          std::ranges::any_of(jobs, [&](const workload::Job& job) { return job.name == plan.jobs[i].name; });
      names.push_back(in_quotes(plan.jobs[i].name) + (unaware ? " is unaware" : " is not in the experiment"));
    }
    if (count > max) names.push_back(fmt::format("and {} more are left out", count - max));
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

Nanos shortest_series_interval(const Experiment& experiment) {
  const std::uint32_t mtu = experiment.topology ? experiment.topology->mtu : experiment.mtu;
  return std::max(experiment.bottleneck.rate.time_for(mtu), Nanos(1));
}

void check(const Experiment& experiment, const Datapath& datapath, const RunOptions& options) {
  const bool real_time = datapath.real_time();
  const bool any = std::ranges::any_of(experiment.policies, schedules);
  if (options.series && options.series->interval.count > 0 &&
      options.series->interval < shortest_series_interval(experiment))
    throw InputError(
        fmt::format("series every {}: a packet takes {} on the bottleneck, and nothing changes in a shorter time; give "
                    "at least that, or leave the interval out",
                    to_text(options.series->interval), to_text(shortest_series_interval(experiment))));
  if (any && experiment.mltcp.learn_iterations)
    throw InputError(
        "policies with a schedule need jobs that announce their iterations; set mltcp.iterations = \"exact\"");
  if (any && options.plan_file.empty() && !options.isolated)
    throw InputError(
        "policies with a schedule plan from the jobs' isolated times; measure these, or give a plan with --plan");
  if (any && options.plan_file.empty() && experiment.topology && !datapath.kind().links_measured)
    throw InputError(
        "policies with a schedule need to know which links the jobs share, but links between hosts are not measured; "
        "make a plan (mltcp schedule EXPERIMENT.toml --measure --plan PLAN.json) and give it with --plan");
  if (options.plan_file.empty()) return;
  if (!any) throw InputError("a plan file is for policies schedule and mltcp+schedule; add one of them");
  if (read_plan(options.plan_file).clock == PlanFile::Clock::realtime && !real_time)
    throw InputError(fmt::format("{}: clock is \"realtime\", but datapath {} has virtual time; write \"experiment\"",
                                 options.plan_file, experiment.datapath));
}

namespace {

/// Executes all runs of an experiment. In virtual time, independent runs are executed in parallel. Each run has its own
/// network, and its results depend only on the experiment.
class Runner {
 public:
  Runner(const Experiment& experiment, Datapath& datapath, const Progress& progress, const RunOptions& options)
      : experiment_(experiment),
        datapath_(datapath),
        progress_(progress),
        options_(options),
        // With a plan file or between_slices, the policies must run one after the other.
        threads_(datapath.real_time() || !options.plan_file.empty() || options.between_slices ? 1 : options.threads),
        alone_(options.isolated ? profile_work(experiment, datapath.real_time()) : 0),
        each_(work_of_run(experiment, datapath.real_time())),
        complete_(experiment.policies.size()),
        series_(experiment.policies.size()),
        fractions_(experiment.policies.size()) {
    results_.experiment = experiment.name;
  }

  Results run() {
    measure_alone();
    std::vector<std::exception_ptr> failures(experiment_.policies.size());
    side_by_side(threads_, experiment_.policies.size(), [&](std::size_t number) {
      if (ends_before(number)) return;
      try {
        run_policy(number);
      } catch (const Interrupted& end) {
        const std::lock_guard lock(mutex_);
        ended_ = end.why;
      } catch (const Superseded&) {
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failures[number] = std::current_exception();
        failed_ = std::min(failed_.load(), number);
      }
    });
    // Throws the first failure in the order of the policies, so that the message does not depend on the machine.
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    collect();
    if (options_.recorded != nullptr)
      for (std::optional<RunSeries>& series : series_)
        if (series) options_.recorded->push_back(std::move(*series));
    if (results_.runs.empty()) throw RunError(fmt::format("{}; {}", ended_, kNothingLeft));
    if (progress_ && results_.unfinished.empty()) progress_(1.0, "done");
    return std::move(results_);
  }

 private:
  /// Thrown to abort a run if the run of an earlier policy has failed.
  struct Superseded {};

  void check_interrupted() {
    if (!options_.interrupted) return;
    if (std::string why = options_.interrupted(); !why.empty()) throw Interrupted{std::move(why)};
  }

  [[nodiscard]] bool ends_before(std::size_t number) {
    if (failed_ < number) return true;
    const std::lock_guard lock(mutex_);
    return !ended_.empty();
  }

  void measure_alone() {
    if (!options_.isolated) {
      profiles_.resize(experiment_.jobs.size());
      return;
    }
    try {
      profiles_ = profile_jobs(
          experiment_, datapath_,
          [&](double fraction, const std::string& job) {
            check_interrupted();
            if (progress_) progress_(alone_ * fraction / total(), fmt::format("{} alone", job));
          },
          threads_);
    } catch (const Interrupted& end) {
      throw RunError(fmt::format("{}; {}", end.why, kNothingLeft));
    }
    if (!datapath_.real_time() || !options_.report) return;
    constexpr double max = 0.05;
    for (std::size_t i = 0; i < profiles_.size(); ++i) {
      if (profiles_[i].deviation <= max) continue;
      options_.report(fmt::format(
          "job \"{}\" alone has iteration times that differ by {:.0f}%: {} it up, so slow-downs are unreliable; stop "
          "other load and run again",
          experiment_.jobs[i].name, profiles_[i].deviation * 100,
          datapath_.kind().links_measured ? "the machine holds" : "machines, or short outages of links (above), hold"));
    }
  }

  void run_policy(std::size_t number) {
    const std::string& policy = experiment_.policies[number];
    const auto tick = [&](double fraction) {
      check_interrupted();
      if (failed_ < number) throw Superseded();
      tell(number, fraction);
    };
    tick(0);
    RunPlan plan;
    plan.policy = policy;
    plan.jobs = with_drawn_starts(experiment_);
    plan.iterations = experiment_.iterations;
    plan.metered = options_.metered;
    if (options_.capture) {
      plan.capture =
          experiment_.policies.size() > 1 ? capture::with_suffix(*options_.capture, policy) : options_.capture;
      plan.captured = [&](const std::string& line, bool is_complete) {
        const std::lock_guard lock(mutex_);
        if (options_.captured) options_.captured(fmt::format("policy {}: {}", policy, line), is_complete);
      };
    }
    std::optional<PlanKeeper> keeper;
    std::optional<PlanFollower> follower;
    if (schedules(policy) && options_.plan_file.empty()) {
      PlanOptions planning;
      if (policy_named(policy).interleaves) planning.sharing = experiment_.mltcp.function;
      planning.turns = policy_named(policy).turns;
      planning.repaired = datapath_.kind().repairs;
      if (options_.plan_memos != nullptr)
        if (const auto memo = options_.plan_memos->find(policy); memo != options_.plan_memos->end())
          planning.memo = &memo->second;
      keeper.emplace(experiment_.schedule, plan.jobs, profiles_, std::move(planning));
      plan.slots = keeper->schedule().slots;
      plan.jobs = keeper->jobs();
      plan.slice = keeper->slice();
    } else if (schedules(policy)) {
      follower.emplace(options_, datapath_.real_time(), without_slots_);
    }
    plan.between = [&](std::span<RunningJob* const> drivers, Nanos epoch, Nanos now) {
      check_interrupted();
      if (options_.between_slices) options_.between_slices(policy, now - epoch);
      if (follower) (*follower)(drivers, plan.jobs, epoch, now);
      if (keeper) keeper->follow(drivers, epoch, now);
    };
    std::optional<SeriesRecorder> recorder;
    if (options_.series) {
      SeriesOptions series = *options_.series;
      if (series.interval.count == 0) {
        series.interval = usual_series_interval();
        series.is_usual_interval = true;
      }
      recorder.emplace(series);
      plan.series = &*recorder;
    }
    Run run = datapath_.run(experiment_, plan, tick);
    for (std::size_t i = 0; i < run.jobs.size(); ++i) {
      run.jobs[i].isolated = profiles_[i].period;
      if (keeper) run.jobs[i].time_shift = keeper->schedule().delays[i];
    }
    if (keeper) run.schedule = keeper->summary();
    summarize(run, datapath_.real_time() ? InterleaveRule::real_time() : InterleaveRule::virtual_time());

    tell(number, 1);
    const std::lock_guard lock(mutex_);
    if (recorder) series_[number] = series_of(*recorder, run);
    complete_[number] = std::move(run);
    if (!options_.finished) return;
    collect();
    if (!results_.unfinished.empty()) options_.finished(results_);
  }

  /// Returns the interval of series if the user chose none. This is a 200th of the median iteration, which is fine
  /// enough to show what happens in a burst. The interval is longer if the network or the datapath requires it.
  [[nodiscard]] Nanos usual_series_interval() const {
    constexpr std::int64_t per_iteration = 200;
    std::vector<Nanos> periods;
    for (const Profile& profile : profiles_) periods.push_back(profile.period);
    const auto middle = periods.begin() + static_cast<std::ptrdiff_t>(periods.size() / 2);
    std::nth_element(periods.begin(), middle, periods.end());
    const Nanos round_trip =
        experiment_.topology ? experiment_.topology->round_trip_delay() : experiment_.bottleneck.delay * 4;
    // In real time, each sample may wake a sleeping host, so the minimum is 1 ms.
    const Nanos min = datapath_.real_time() ? Nanos(1'000'000) : Nanos();
    return std::max({*middle / per_iteration, round_trip, shortest_series_interval(experiment_), min});
  }

  [[nodiscard]] RunSeries series_of(SeriesRecorder& recorder, const Run& run) const {
    RunSeries series = recorder.take();
    series.policy = run.policy;
    series.cc = run.cc;
    series.datapath = run.datapath;
    series.seed = run.seed;
    series.duration = run.duration;
    series.packets = datapath_.kind().packets;
    return series;
  }

  /// Collects complete runs in the order of the policies. The caller must lock the mutex, or call it after all runs.
  void collect() {
    results_.runs.clear();
    results_.unfinished.clear();
    for (std::size_t i = 0; i < complete_.size(); ++i) {
      if (complete_[i])
        results_.runs.push_back(*complete_[i]);
      else
        results_.unfinished.push_back(experiment_.policies[i]);
    }
  }

  [[nodiscard]] double total() const { return alone_ + each_ * static_cast<double>(experiment_.policies.size()); }

  void tell(std::size_t number, double fraction) {
    if (!progress_) return;
    const std::lock_guard lock(mutex_);
    fractions_[number] = fraction;
    std::vector<std::string_view> running;
    for (std::size_t i = 0; i < fractions_.size(); ++i)
      if (fractions_[i] && *fractions_[i] < 1) running.push_back(experiment_.policies[i]);
    double done = 0;
    for (const std::optional<double>& of_one : fractions_) done += of_one.value_or(0);
    if (!running.empty())
      progress_((alone_ + each_ * done) / total(),
                fmt::format("polic{} {}", running.size() == 1 ? "y" : "ies", fmt::join(running, ", ")));
  }

  const Experiment& experiment_;
  Datapath& datapath_;
  const Progress& progress_;
  const RunOptions& options_;
  const std::uint32_t threads_;
  // Work of measuring all jobs in isolation, and work of one run under a policy; see work_of().
  const double alone_;
  const double each_;
  std::vector<Profile> profiles_;
  std::set<std::string> without_slots_;  ///< jobs already reported as having no slots; see PlanFollower
  /// Number of the first policy that has failed.
  std::atomic<std::size_t> failed_{std::numeric_limits<std::size_t>::max()};

  std::mutex mutex_;  ///< protects all members below, and serialises callbacks
  std::string ended_;
  std::vector<std::optional<Run>> complete_;  ///< complete run of each policy; the next two members are also by policy
  std::vector<std::optional<RunSeries>> series_;
  std::vector<std::optional<double>> fractions_;
  Results results_;
};

}  // namespace

Results run_experiment(const Experiment& experiment, Datapath& datapath, const Progress& progress,
                       const RunOptions& options) {
  check(experiment, datapath, options);
  return Runner(experiment, datapath, progress, options).run();
}

}  // namespace mltcp::experiment
