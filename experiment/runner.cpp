// Running of experiments (see runner.h).
#include "mltcp/experiment/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <span>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/experiment/flow_level.h"
#include "mltcp/experiment/job_driver.h"
#include "mltcp/experiment/link_results.h"
#include "mltcp/experiment/run_plan.h"
#include "mltcp/workload/inspection.h"

namespace mltcp::experiment {
namespace {

constexpr std::uint64_t start_streams = std::uint64_t{1} << 32U;  // of random numbers; those below are the jobs' own

/// How long an iteration of `job` takes at most, when it has the network to itself.
double longest_alone_ns(const workload::Job& job, Rate rate, Nanos rtt) {
  std::int64_t transfers = 0;
  for (const workload::Phase& phase : job.phases) transfers += phase.kind == workload::Phase::Kind::communicate ? 1 : 0;
  return static_cast<double>(workload::ideal_iteration(job, rate).length.count) +
         static_cast<double>(rtt.count) * static_cast<double>(transfers * round_trips_per_phase) +
         static_cast<double>(job.jitter.count) * jitters_per_iteration +
         static_cast<double>(job.compute_per_iteration().count) * (job.straggler.factor - 1);
}

/// The network of one run, and how many workers each job of the plan has there.
std::unique_ptr<Testbed> make_testbed(const Experiment& experiment, const RunPlan& plan, TestbedFactory& factory,
                                      std::vector<std::uint32_t>& workers) {
  const std::uint32_t classes = plan.policy == "priority" ? kPriorities : 1;
  if (!experiment.topology) {
    fabric::DumbbellConfig network = network_of(experiment);
    network.pairs = static_cast<std::uint32_t>(plan.jobs.size());
    network.classes = classes;
    workers.assign(plan.jobs.size(), 1);
    return factory.make(network);
  }
  const std::vector<Placement> all = place(experiment.jobs, experiment.topology->hosts());
  const auto placements = std::span(all).subspan(plan.first_number, plan.jobs.size());
  for (const Placement& placement : placements) workers.push_back(static_cast<std::uint32_t>(placement.workers.size()));
  sim::LeafSpineConfig network = *experiment.topology;
  network.classes = classes;
  return factory.make(network, placements);
}

/// The algorithms' parameters, with what one network has in common for all its flows. Swift's target is such a value
/// (section 3.2 of its paper): flows that each derived their own from what they measured would not be fair to each
/// other, as a late one has never seen the queue empty. In real time the loops of the hosts are part of the delay,
/// which only measuring tells.
cc::Parameters parameters_of(const Experiment& experiment, std::int64_t round_trip_links, bool real_time) {
  constexpr std::int64_t packets_per_round_trip = 2;  // at the rate of the slowest link; the others add little
  constexpr std::int64_t target_round_trips = 2;
  cc::Parameters parameters = experiment.parameters;
  if (parameters.swift.base_target == Nanos(0) && !real_time) {
    const std::uint32_t mtu = experiment.topology ? experiment.topology->mtu : experiment.mtu;
    Rate slowest = experiment.bottleneck.rate;
    if (experiment.topology && !experiment.topology->uplink_rate.is_zero())
      slowest = std::min(slowest, experiment.topology->uplink_rate);
    const Nanos unloaded =
        experiment.bottleneck.delay * round_trip_links + slowest.time_for(mtu) * packets_per_round_trip;
    parameters.swift.base_target = std::min(unloaded, most_initial_rtt) * target_round_trips;
  }
  return parameters;
}

/// One run on a fresh network. `tick` is told the share of the iterations that are done.
Run run_once(const Experiment& experiment, const RunPlan& plan, TestbedFactory& factory,
             const std::function<void(double)>& tick) {
  std::vector<std::uint32_t> workers;
  const std::unique_ptr<Testbed> testbed = make_testbed(experiment, plan, factory, workers);

  // Before the first measurement, a round trip with a full buffer is the safe guess.
  const fabric::LinkConfig& link = experiment.bottleneck;
  const std::int64_t round_trip_links = experiment.topology ? 8 : 4;
  const Nanos initial_rtt = std::clamp(link.delay * round_trip_links + link.rate.time_for(link.buffer_bytes), 1_ms,
                                       most_initial_rtt + link.delay * round_trip_links);

  const auto parameters =
      std::make_shared<const cc::Parameters>(parameters_of(experiment, round_trip_links, factory.real_time()));
  std::vector<std::unique_ptr<JobDriver>> drivers;
  double longest_ns = 0;
  Nanos last_start;
  for (std::uint32_t index = 0; index < plan.jobs.size(); ++index) {
    JobDriver::Settings settings;
    settings.job = plan.jobs[index];
    if (settings.job.rate.is_zero()) settings.job.rate = experiment.bottleneck.rate;
    settings.number = plan.first_number + index;
    settings.workers = workers[index];
    settings.iterations = plan.iterations_of(settings.job);
    settings.seed = experiment.seed;
    settings.real_payload = factory.real_payload();
    settings.connection.congestion_control = settings.job.cc.empty() ? experiment.cc : settings.job.cc;
    settings.connection.ecn = link.ecn.enabled;
    settings.connection.parameters = parameters;
    if (cc::find_algorithm(settings.connection.congestion_control).capabilities.rate_based)
      settings.connection.max_rate = settings.job.rate;
    // A link that damages packets damages some beyond what UDP's 16-bit sum finds.
    settings.connection.full_integrity = link.faults.corruption > 0;
    settings.connection.initial_rtt = initial_rtt;
    if (plan.policy == "priority" && !settings.job.unaware)
      settings.connection.priority = static_cast<std::uint8_t>(settings.job.priority);
    settings.augmentation = augmentation_of(plan.policy, experiment, settings.job);
    settings.learn_iterations = experiment.mltcp.learn_iterations;
    longest_ns += longest_alone_ns(settings.job, link.rate, initial_rtt);
    last_start = std::max(last_start, settings.job.start);
    drivers.push_back(std::make_unique<JobDriver>(*testbed, settings));
  }

  const auto all = [&](auto&& predicate) {
    return std::all_of(drivers.begin(), drivers.end(), [&](const auto& driver) { return predicate(*driver); });
  };
  const Nanos setup_limit = std::max(shortest_setup_limit, initial_rtt * round_trips_for_connecting);
  if (!testbed->run(testbed->now() + setup_limit,
                    [&] { return all([](const JobDriver& d) { return d.connected(); }); }))
    throw RunError(fmt::format("the jobs' connections were not open after {}; is the link losing almost everything?",
                               to_text(setup_limit)));
  // Time 0 of the experiment falls on the edge of a bin of the usage meter.
  const Nanos bin = testbed->links().front().usage->bin();
  const Nanos epoch((testbed->now().count / bin.count + 2) * bin.count);
  for (const auto& driver : drivers) driver->start(epoch);

  const auto all_done = [&] { return all([](const JobDriver& d) { return d.done(); }); };
  std::size_t recorded = 0;
  Nanos last_progress = epoch;
  double total = 0;
  for (const workload::Job& job : plan.jobs) total += plan.iterations_of(job);
  Nanos first_start = Nanos::never();
  for (const workload::Job& job : plan.jobs) first_start = std::min(first_start, job.start);
  const Nanos pause_limit(static_cast<std::int64_t>(std::min(longest_ns * patience, 1e18)));
  while (!testbed->run(testbed->now() + slice, all_done)) {
    std::size_t now_recorded = 0;
    for (const auto& driver : drivers) now_recorded += driver->recorded();
    if (now_recorded != recorded) last_progress = testbed->now();
    recorded = now_recorded;
    if (tick) tick(static_cast<double>(recorded) / total);
    if (testbed->now() > std::max(last_progress, epoch + last_start) + pause_limit)
      throw RunError(fmt::format(
          "policy {}: no job has finished an iteration for {}, {} times what all of them need one after the other; {}",
          plan.policy, to_text(pause_limit), patience,
          plan.policy == "priority" ? "give the jobs of higher priority less to send, or the link a higher rate"
                                    : "give the link a higher rate, a larger buffer or fewer faults"));
  }

  Run run;
  run.policy = plan.policy;
  run.cc = experiment.cc;
  run.datapath = factory.datapath();
  run.seed = experiment.seed;
  run.duration = testbed->now() - epoch - first_start;
  run.stalls = testbed->stalls();
  for (std::size_t i = 0; i < drivers.size(); ++i) {
    run.jobs.push_back(drivers[i]->result());
    run.jobs.back().cc = plan.jobs[i].cc;
    run.jobs.back().unaware = plan.jobs[i].unaware;
  }

  std::map<std::uint32_t, std::string> names;
  for (const workload::Job& job : plan.jobs)
    names[plan.first_number + static_cast<std::uint32_t>(names.size())] = job.name;
  record_links(testbed->links(), epoch, names, run);
  return run;
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

/// Has the jobs of a run follow a plan file. One for each run.
class PlanFollower {
 public:
  PlanFollower(const RunOptions& options, bool real_time)
      : options_(options), real_time_(real_time), watcher_(options.plan_file) {}

/// Does one run; the second argument is told the share of the iterations that are done.
using RunOnce = std::function<Run(const RunPlan& plan, const std::function<void(double)>& tick)>;

 private:
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
  PlanWatcher watcher_;
};

/// The scheduler beside a run: hands out slots, and plans again when a job has fallen out of them.
class Scheduling {
 public:
  Scheduling(const ScheduleSettings& settings, const std::vector<workload::Job>& jobs, std::vector<Profile> profiles)
      : settings_(settings), jobs_(jobs), profiles_(std::move(profiles)) {
    schedule_ = plan_jobs(settings_, jobs_, profiles_);
    for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i].start += schedule_.delays[i];
  }

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const std::vector<workload::Job>& jobs() const { return jobs_; }

  /// Slots that one of the jobs has fallen out of keep nobody apart: those that were planned with it lose theirs too,
  /// unless new ones can be found.
  void follow(std::span<const std::unique_ptr<JobDriver>> drivers, Nanos epoch) {
    for (std::size_t i = 0; i < drivers.size(); ++i) {
      if (!schedule_.slots[i] || drivers[i]->plan_state() != PlanState::misfit) continue;
      const std::size_t group = schedule_.groups[i];
      if (settings_.replan && measure_again(i, *drivers[i])) {
        const Schedule next = plan_jobs(settings_, as_they_run(drivers), profiles_);
        for (std::size_t j = 0; j < drivers.size(); ++j)
          if (schedule_.groups[j] == group) schedule_.slots[j] = next.slots[j];
        ++schedule_.summary.replanned;
        schedule_.summary.stretch = std::max(schedule_.summary.stretch, next.summary.stretch);
      } else {
        for (std::size_t j = 0; j < drivers.size(); ++j)
          if (schedule_.groups[j] == group) schedule_.slots[j].reset();
      }
      for (std::size_t j = 0; j < drivers.size(); ++j) {
        if (schedule_.groups[j] != group) continue;
        if (!schedule_.slots[j]) {
          if (drivers[j]->plan_state() == PlanState::active) drivers[j]->clear_plan();
          continue;
        }
        PhasePlan slots = *schedule_.slots[j];
        slots.slot += epoch;
        drivers[j]->set_plan(slots);
      }
    }
  }

 private:
  /// False if the job computes what it did when it was measured: then other slots wouldn't suit it better.
  bool measure_again(std::size_t number, const JobDriver& driver) {
    constexpr std::size_t latest = 3;
    constexpr double least_change = 0.001;
    std::vector<Nanos> computed = driver.result().iteration_compute;
    if (computed.size() < latest) return false;
    const auto last = computed.end() - latest;
    std::sort(last, computed.end());
    const Nanos compute = last[latest / 2];
    Profile& profile = profiles_[number];
    if (std::abs((compute - profile.compute).seconds()) < least_change * profile.period.seconds()) return false;
    profile = with_compute(profile, compute);
    return true;
  }
  /// The jobs, each to start when its next iteration would begin by itself.
  [[nodiscard]] std::vector<workload::Job> as_they_run(std::span<const std::unique_ptr<JobDriver>> drivers) const {
    std::vector<workload::Job> jobs = jobs_;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const JobResult result = drivers[i]->result();
      if (!result.starts.empty()) jobs[i].start = result.starts.back() + result.iterations.back() + profiles_[i].period;
    }
    return jobs;
  }

  const ScheduleSettings& settings_;
  std::vector<workload::Job> jobs_;  ///< with the starts that put them on their slots
  std::vector<Profile> profiles_;    ///< as measured last
  Schedule schedule_;
};

void check(const Experiment& experiment, const RunOptions& options, bool real_time) {
  const bool any = std::any_of(experiment.policies.begin(), experiment.policies.end(), schedules);
  if (any && experiment.mltcp.learn_iterations)
    throw InputError("policies with a schedule need jobs that tell their iterations; set mltcp.iterations = \"exact\"");
  if (options.plan_file.empty()) return;
  if (!any) throw InputError("a plan file is for policies schedule and mltcp+schedule; add one of them");
  if (read_plan(options.plan_file).clock == PlanFile::Clock::realtime && !real_time)
    throw InputError(fmt::format("{}: clock is \"realtime\" and datapath {} has virtual time; write \"experiment\"",
                                 options.plan_file, experiment.datapath));
}

Results run_all(const Experiment& experiment, const RunOnce& once, InterleaveRule rule, const Progress& progress) {
  Results results;
  results.experiment = experiment.name;

  // Shares of the whole, by iterations to run.
  std::vector<std::size_t> representative(experiment.jobs.size());
  std::size_t distinct = 0;
  for (std::size_t i = 0; i < experiment.jobs.size(); ++i) {
    representative[i] = i;
    for (std::size_t j = 0; j < i && representative[i] == i; ++j)
      if (!experiment.topology && alike(experiment.jobs[i], experiment.jobs[j])) representative[i] = j;
    if (representative[i] == i) ++distinct;
  }
  const auto alone_share = static_cast<double>(std::min(isolated_iterations, experiment.iterations));
  const double total = alone_share * static_cast<double>(distinct) +
                       static_cast<double>(experiment.iterations) * static_cast<double>(experiment.policies.size());
  double finished = 0;
  const auto ticker = [&](double share, std::string what) {
    return [&progress, finished, total, share, what = std::move(what)](double fraction) {
      if (progress) progress((finished + share * fraction) / total, what);
    };
  };

  std::vector<Nanos> isolated(experiment.jobs.size());
  for (std::size_t i = 0; i < experiment.jobs.size(); ++i) {
    if (representative[i] != i) {
      isolated[i] = isolated[representative[i]];
      continue;
    }
    const auto tick = ticker(alone_share, fmt::format("{} alone", experiment.jobs[i].name));
    tick(0);
    isolated[i] = isolated_time(experiment, static_cast<std::uint32_t>(i), once, tick);
    finished += alone_share;
  }
  const std::vector<workload::Job> jobs = with_drawn_starts(experiment);
  for (const std::string& policy : experiment.policies) {
    const auto tick = [&](double fraction) {
      if (progress) progress((finished + each * fraction) / total, "policy " + policy);
    };
    tick(0);
    RunPlan plan;
    plan.policy = policy;
    plan.jobs = with_drawn_starts(experiment);
    plan.iterations = experiment.iterations;
    std::optional<Scheduling> scheduling;
    std::optional<PlanFollower> follower;
    if (schedules(policy) && options.plan_file.empty()) {
      scheduling.emplace(experiment.schedule, plan.jobs, profiles);
      plan.slots = scheduling->schedule().slots;
      plan.jobs = scheduling->jobs();
    } else if (schedules(policy)) {
      follower.emplace(options, factory.real_time());
    }
    plan.between = [&](std::span<const std::unique_ptr<JobDriver>> drivers, Nanos epoch, Nanos now) {
      if (options.between_slices) options.between_slices(policy, now - epoch);
      if (follower) (*follower)(drivers, plan.jobs, epoch, now);
      if (scheduling) scheduling->follow(drivers, epoch);
    };
    Run run = run_once(experiment, plan, factory, tick);
    for (std::size_t i = 0; i < run.jobs.size(); ++i) {
      run.jobs[i].isolated = profiles[i].period;
      if (scheduling) run.jobs[i].time_shift = scheduling->schedule().delays[i];
    }
    if (scheduling) run.schedule = scheduling->schedule().summary;
    summarize(run, rule);
    results.runs.push_back(std::move(run));
    finished += each;
  }
  if (progress) progress(1.0, "done");
  return results;
}

}  // namespace

cc::Augmentation augmentation_of(const std::string& policy, const Experiment& experiment, const workload::Job& job) {
  if (job.unaware) return {};
  if (policy == "static") return cc::Augmentation::constant(job.weight);
  if (policy == "mltcp") {
    cc::Augmentation augmentation = cc::Augmentation::mltcp(experiment.mltcp.function);
    augmentation.scale_decrease(experiment.mltcp.scale_decrease);
    return augmentation;
  }
  if (policy == "fair" || policy == "priority") return {};
  throw InputError(fmt::format("policy \"{}\" can't be run by this version", policy));
}

const std::vector<std::string>& available_policies() {
  static const std::vector<std::string> names{"fair", "static", "priority", "mltcp"};
  return names;
}

fabric::DumbbellConfig network_of(const Experiment& experiment) {
  fabric::DumbbellConfig network;
  network.pairs = static_cast<std::uint32_t>(experiment.jobs.size());
  network.bottleneck = experiment.bottleneck;
  network.mtu = experiment.mtu;
  network.bottleneck.seed = experiment.seed;
  network.reverse = network.bottleneck;
  network.access_delay = experiment.bottleneck.delay;
  return network;
}

Results run_experiment(const Experiment& experiment, TestbedFactory& factory, const Progress& progress) {
  return run_all(
      experiment,
      [&](const RunPlan& plan, const std::function<void(double)>& tick) {
        return run_once(experiment, plan, factory, tick);
      },
      factory.real_time() ? InterleaveRule::real_time() : InterleaveRule::virtual_time(), progress);
}

Results run_experiment_at_flow_level(const Experiment& experiment, const Progress& progress) {
  return run_all(
      experiment,
      [&](const RunPlan& plan, const std::function<void(double)>& tick) {
        return run_at_flow_level(experiment, plan, tick);
      },
      InterleaveRule::virtual_time(), progress);
}

}  // namespace mltcp::experiment
