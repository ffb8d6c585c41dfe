// Simulates the jobs from many start times, and chooses the policy to recommend (see advice.h).
#include "mltcp/lab/experiment/advice/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/parallel.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/run/runner.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::experiment {
namespace {

constexpr double kAlone = 1.02;  // a job with at most this slow-down counts as undisturbed
// A simpler policy is preferred if its slow-down is at most this much above the lowest one.
constexpr double kAsGood = 0.02;
// A policy counts as helpful if it lowers the slow-down of fair sharing by at least this.
constexpr double kWorthIt = 0.01;
constexpr std::uint32_t kFewest = 8;  // minimum number of iterations of the job with the longest iterations
constexpr double kLucky = 0.1;  // the worst start is mentioned if its slow-down exceeds the mean by more than this
// A policy is not recommended if it makes a job slower than fair sharing does by more than this share: a job, or legacy
// traffic.
constexpr double kHarm = 0.01;
constexpr double kHarmToLegacy = 0.03;
const std::vector<std::string> kUnplannedFlows{"fair", "mltcp"};
const std::vector<std::string> kUnplannedPackets{"fair", "mltcp", "turns"};
const std::vector<std::string> kPlanned{"schedule", "mltcp+schedule"};
constexpr std::size_t kFewestPhases = 100;  // every job may have this many phases, even if there are many jobs
// If there are more than two jobs: maximum number of bursts in one iteration, added up over all jobs.
constexpr std::size_t kMaxCrossedBursts = 48;
constexpr Nanos kLongestIteration{100'000'000'000'000};  // about a day
constexpr std::uint32_t kFewestStarts = 2;               // minimum to which max_work reduces the number of starts

workload::IdealIteration ideal(const Experiment& experiment, const workload::Job& job) {
  const Rate link = job.rate.is_zero() ? experiment.bottleneck.rate : job.rate;
  return workload::ideal_iteration(job, link);
}

/// Returns the generalised golden ratio: the root above 1 of x^(dimensions + 1) = x + 1.
double golden_ratio(std::size_t dimensions) {
  double x = 2;
  for (int i = 0; i < 64; ++i) x = std::pow(1 + x, 1.0 / static_cast<double>(dimensions + 1));
  return x;
}

/// Returns constellation `number` of `count`: the start of each job as a share of its period, 0 to 1. The first job
/// starts at 0.
std::vector<double> phases_of(std::uint32_t number, std::uint32_t count, std::size_t jobs) {
  std::vector<double> phases(jobs, 0);
  if (jobs == 2) {
    phases[1] = (number + 0.5) / count;
    return phases;
  }
  const double ratio = jobs > 1 ? golden_ratio(jobs - 1) : 1;
  for (std::size_t job = 1; job < jobs; ++job) {
    const double place = 0.5 + (number + 1) * std::pow(ratio, -static_cast<double>(job));
    phases[job] = place - std::floor(place);
  }
  return phases;
}

/// Combines phases so that at most `max` remain. Each group of consecutive phases becomes one computation and one
/// communication. The computation lasts as long as all computations of the group together, and the communication sends
/// all bytes of the group.
std::vector<workload::Phase> coarsened(const std::vector<workload::Phase>& phases, std::size_t max) {
  using Kind = workload::Phase::Kind;
  const std::size_t each = (2 * phases.size() + max - 1) / max;
  std::vector<workload::Phase> result;
  for (std::size_t first = 0; first < phases.size(); first += each) {
    workload::Phase compute;
    workload::Phase send;
    send.kind = Kind::communicate;
    send.overlap = true;
    for (std::size_t i = first; i < std::min(first + each, phases.size()); ++i) {
      const workload::Phase& phase = phases[i];
      compute.compute += phase.compute;
      send.bytes = std::min(send.bytes + phase.bytes, Bytes{1} << 62U);
      if (phase.kind != Kind::communicate) continue;
      send.overlap = send.overlap && phase.overlap;
      if (!phase.rate.is_zero()) send.rate = send.rate.is_zero() ? phase.rate : std::min(send.rate, phase.rate);
    }
    if (compute.compute.count > 0) result.push_back(compute);
    if (send.bytes > 0) result.push_back(send);
  }
  return result;
}

/// Returns the experiment with the number of phases reduced to the limit. Adds a warning if the number is reduced.
Experiment with_fewer_phases(const Experiment& experiment, std::vector<std::string>& warnings) {
  Experiment result = experiment;
  const std::size_t max = std::max(kFewestPhases, kMaxAdvicePhases / std::max<std::size_t>(1, result.jobs.size()));
  std::size_t coarse = 0;
  std::string first;
  for (workload::Job& job : result.jobs) {
    if (job.ranked() || job.phases.size() <= max) continue;
    const std::size_t all = job.phases.size();
    job.phases = coarsened(job.phases, max);
    if (++coarse == 1)
      first =
          fmt::format("job {}: its iteration has {} phases and is simulated with {}, each of which combines several",
                      in_quotes(job.name), all, job.phases.size());
  }
  if (coarse > 1) first += fmt::format("; the same applies to {} more", coarse - 1);
  if (coarse > 0) warnings.push_back(first + "; to simulate all phases, use mltcp run");
  return result;
}

/// Returns the number of iterations of each job, such that all jobs run for the same time. In this time, the job with
/// the shortest iterations has at least `iterations` of them. The job with the longest iterations has at least
/// min(iterations, kFewest). In a shorter time, a job could end before another job has sent anything.
std::vector<std::uint32_t> iterations_of(const Experiment& experiment, std::uint32_t iterations) {
  std::vector<double> periods;
  for (const workload::Job& job : experiment.jobs)
    periods.push_back(std::max(1.0, static_cast<double>(ideal(experiment, job).length.count)));
  const auto [shortest, longest] = std::minmax_element(periods.begin(), periods.end());
  const double time = std::max(*shortest * iterations, *longest * std::min(iterations, kFewest));
  std::vector<std::uint32_t> result;
  for (const double period : periods)
    result.push_back(static_cast<std::uint32_t>(std::clamp(std::ceil(time / period - 1e-9), 2.0, 1e6)));
  return result;
}

/// Returns the experiment to run for a prediction, with the starts of constellation `number`.
Experiment started(const Experiment& experiment, const AdviceOptions& options, std::uint32_t number,
                   const std::vector<std::string>& policies) {
  Experiment result = experiment;
  result.policies = policies;
  result.iterations = *options.iterations;
  result.seed = experiment.seed + number;
  const std::vector<double> phases = phases_of(number, *options.starts, result.jobs.size());
  const std::vector<std::uint32_t> iterations = iterations_of(experiment, *options.iterations);
  for (std::size_t i = 0; i < result.jobs.size(); ++i) {
    workload::Job& job = result.jobs[i];
    const double period = static_cast<double>(ideal(experiment, job).length.count);
    job.start = Nanos(std::llround(phases[i] * period));
    job.start_jitter = Nanos(0);
    job.iterations = iterations[i];
    if (!job.compute_varies())
      job.jitter = Nanos(std::llround(options.jitter * static_cast<double>(job.compute_per_iteration().count)));
  }
  return result;
}

/// Returns the experiment with only the jobs in `numbers`.
Experiment part_of(const Experiment& experiment, const std::vector<std::uint32_t>& numbers) {
  Experiment part = experiment;
  part.jobs.clear();
  part.places.clear();
  for (const std::uint32_t number : numbers) {
    part.jobs.push_back(experiment.jobs[number]);
    if (!experiment.places.empty()) part.places.push_back(experiment.places[number]);
  }
  return part;
}

/// A task, which runs an experiment under some policies from one constellation.
struct Work {
  const Experiment* experiment = nullptr;
  std::vector<std::string> policies;
  bool packets = false;
  std::uint32_t start = 0;
  std::vector<Run> runs{};  ///< one run per policy; filled in by the task
};

void run_all(std::vector<Work>& work, const AdviceOptions& options) {
  std::mutex mutex;
  std::vector<double> done(work.size());
  // All tasks share the measurements of isolated jobs. At least at flow level, these do not depend on the starts.
  std::map<std::string, PlanMemo> memos;
  for (const std::string& policy : kPlanned) memos[policy];
  const auto interrupted = [&]() -> std::string {
    return options.stop && options.stop() ? "interrupted by the user" : "";
  };
  in_parallel(options.threads, work.size(), [&](std::size_t i) {
    if (const std::string why = interrupted(); !why.empty()) throw RunError(why);
    Work& task = work[i];
    const std::unique_ptr<Datapath> datapath = task.packets ? make_sim_datapath() : make_flow_datapath();
    RunOptions run_options;
    run_options.interrupted = interrupted;
    run_options.plan_memos = &memos;
    run_options.metered = false;
    const auto progress = [&](double fraction, const std::string& /*what*/) {
      if (!options.progress) return;
      const std::lock_guard lock(mutex);
      // Weights each task by its approximate duration, because simulating packets takes nearly all of the time.
      double all = 0;
      double sum = 0;
      done[i] = fraction;
      for (std::size_t k = 0; k < work.size(); ++k) {
        const double weight = work[k].packets ? 100 : 1;
        all += weight;
        sum += weight * done[k];
      }
      options.progress(sum / all);
    };
    Experiment experiment = started(*task.experiment, options, task.start, task.policies);
    experiment.datapath = task.packets ? "sim" : "flow";
    Results results = run_experiment(experiment, *datapath, progress, run_options);
    if (!results.unfinished.empty()) throw RunError("interrupted by the user");
    task.runs = std::move(results.runs);
  });
}

double over_isolated(Nanos time, const JobResult& job) {
  return job.isolated.count > 0 ? static_cast<double>(time.count) / static_cast<double>(job.isolated.count) : 1;
}

/// Returns the prediction for job number `job` under policy number `policy` of the tasks in `work`.
Advice::Prediction prediction_of(const std::vector<const Work*>& work, std::size_t policy, std::size_t job) {
  Advice::Prediction sum{0, 0, 0, 0};
  for (const Work* task : work) {
    const JobResult& result = task->runs[policy].jobs[job];
    const double mean = over_isolated(result.mean, result);
    sum.mean += mean / static_cast<double>(work.size());
    sum.later += over_isolated(result.second_half_mean, result) / static_cast<double>(work.size());
    sum.best = sum.best == 0 ? mean : std::min(sum.best, mean);
    sum.worst = std::max(sum.worst, mean);
  }
  return sum;
}

std::vector<Advice::Policy> policies_of(const std::vector<const Work*>& work) {
  std::vector<Advice::Policy> result;
  if (work.empty()) return result;
  for (std::size_t policy = 0; policy < work.front()->policies.size(); ++policy) {
    Advice::Policy entry;
    entry.name = work.front()->policies[policy];
    entry.packets = work.front()->packets;
    for (std::size_t job = 0; job < work.front()->runs[policy].jobs.size(); ++job)
      entry.jobs.push_back(prediction_of(work, policy, job));
    result.push_back(std::move(entry));
  }
  return result;
}

double mean_of(const std::vector<Advice::Policy>& policies, std::string_view name) {
  const auto found = std::ranges::find_if(policies, [&](const auto& policy) { return policy.name == name; });
  return found == policies.end() ? 0 : found->mean();
}

/// The score of the link on which the jobs are least compatible.
struct Fit {
  double score = 1;
  double upper_bound = 1;
  bool proven = true;
};
Fit fit_of(const Experiment& experiment, std::size_t max_bursts, std::vector<std::string>* warnings) {
  ScheduleOptions options;
  options.max_bursts = max_bursts;
  options.solve.max_stretch = experiment.schedule.max_stretch;
  const ScheduleResult schedule = make_schedule(experiment, options);
  if (warnings != nullptr) warnings->insert(warnings->end(), schedule.warnings.begin(), schedule.warnings.end());
  Fit fit;
  for (const ScheduleResult::Link& link : schedule.links) {
    if (!link.competed || link.solution.score >= fit.score) continue;
    fit = {link.solution.score, link.solution.upper_bound, link.solution.optimal};
  }
  return fit;
}

/// Returns the number of bursts in one iteration, added up over all jobs.
std::size_t bursts_of(const Experiment& experiment) {
  std::size_t sum = 0;
  for (const workload::Job& job : experiment.jobs)
    sum += workload::ideal_transfers(job, experiment.bottleneck.rate).size();
  return sum;
}

/// Returns whether the placement of jobs stays the same if some jobs are left out. On a topology, jobs without their
/// own hosts are placed by their position in the list.
bool can_be_parted(const Experiment& experiment) {
  return !experiment.topology ||
         std::ranges::none_of(experiment.jobs, [](const workload::Job& job) { return job.hosts.empty(); });
}

std::string times(double slowdown) { return fmt::format("{:.2f}", slowdown); }

const Advice::Policy& policy_of(const Advice& advice, std::string_view name) {
  return *std::ranges::find_if(advice.policies, [&](const auto& policy) { return policy.name == name; });
}

/// Returns the name of the job to move elsewhere. If slow-downs of pairs are known, this is the job whose pairs have
/// the highest total slow-down.
std::string whom_to_move(const Advice& advice) {
  if (advice.pairs.empty()) return advice.jobs.size() == 2 ? "one of them" : "jobs";
  std::vector<double> harm(advice.jobs.size());
  for (const Advice::Pair& pair : advice.pairs) {
    harm[pair.a] += std::min(pair.fair, pair.mltcp) - 1;
    harm[pair.b] += std::min(pair.fair, pair.mltcp) - 1;
  }
  const auto worst = std::ranges::max_element(harm);
  return in_quotes(advice.jobs[static_cast<std::size_t>(worst - harm.begin())].name);
}

/// Returns the job that `policy` makes slower than fair sharing does, by the largest share; no value if there is none.
std::optional<std::size_t> harmed_by(const Advice& advice, const Advice::Policy& policy) {
  const Advice::Policy& fair = policy_of(advice, "fair");
  std::optional<std::size_t> harmed;
  double most = 0;
  for (std::size_t i = 0; i < policy.jobs.size(); ++i) {
    const double harm = policy.jobs[i].mean / fair.jobs[i].mean - 1;
    if (harm <= std::max(most, advice.jobs[i].unaware ? kHarmToLegacy : kHarm)) continue;
    most = harm;
    harmed = i;
  }
  return harmed;
}

/// Returns ", but it slows "a" down from 1.10 to 1.20" if `policy` slows a job down; otherwise an empty text.
std::string harm_text(const Advice& advice, const Advice::Policy& policy) {
  const auto harmed = harmed_by(advice, policy);
  if (!harmed) return {};
  return fmt::format(", but {} slows {} down from {} to {}", policy.name, in_quotes(advice.jobs[*harmed].name),
                     times(policy_of(advice, "fair").jobs[*harmed].mean), times(policy.jobs[*harmed].mean));
}

/// Returns the names of jobs without computation, e.g. jobs of traces without times.
std::vector<std::string> without_computation(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const workload::Job& job : experiment.jobs)
    if (job.compute_per_iteration().count == 0) names.push_back(in_quotes(job.name));
  return names;
}

void recommend(Advice& advice, const std::vector<std::string>& never_compute) {
  if (advice.jobs.size() == 1) {
    advice.recommended = "fair";
    advice.sentence = "There is one job, so no other job slows it down.";
    return;
  }
  const Advice::Policy& sharing = policy_of(advice, "fair");
  const double fair = sharing.mean();
  const auto suffers = [](const Advice::Prediction& one, const Advice::Prediction& other) {
    return one.mean < other.mean;
  };
  const auto victim = std::ranges::max_element(sharing.jobs, suffers);
  if (victim->mean <= kAlone) {
    advice.recommended = "fair";
    advice.sentence = fmt::format(
        "The jobs do not slow each other down: under fair sharing they take {} of their time alone, so nothing needs "
        "to change.",
        times(fair));
    return;
  }
  if (!never_compute.empty()) {
    advice.sentence = fmt::format(
        "Whether the jobs slow each other down is unknown: {} {} no computation and would send all the time; give a "
        "trace that has times, such as one of PyTorch's profiler (Kineto), or a [[job]] with compute.",
        fmt::join(never_compute, ", "), never_compute.size() == 1 ? "has" : "have");
    return;
  }
  std::string trouble =
      fmt::format("The jobs slow each other down: under fair sharing they take {} of their time alone", times(fair));
  std::vector<std::string> more;
  if (victim->mean > fair + 0.02)
    more.push_back(fmt::format("{} {}",
                               in_quotes(advice.jobs[static_cast<std::size_t>(victim - sharing.jobs.begin())].name),
                               times(victim->mean)));
  double unlucky = 1;
  for (const Advice::Prediction& job : sharing.jobs) unlucky = std::max(unlucky, job.worst);
  if (unlucky > victim->mean + kLucky) more.push_back(fmt::format("up to {} from the worst start", times(unlucky)));
  if (!more.empty()) trouble += fmt::format(" ({})", fmt::join(more, ", "));
  std::vector<const Advice::Policy*> harmless;
  for (const Advice::Policy& policy : advice.policies)
    if (!harmed_by(advice, policy)) harmless.push_back(&policy);
  double best = fair;
  for (const Advice::Policy* policy : harmless) best = std::min(best, policy->mean());
  // The policies are in the order of what they require: slots require that the jobs are known.
  for (const Advice::Policy* policy : harmless) {
    const double mean = policy->mean();
    if (mean > best + kAsGood || mean > fair - kWorthIt) continue;
    const auto worst = std::ranges::max_element(policy->jobs, suffers);
    advice.recommended = policy->name;
    advice.sentence = fmt::format("{}. Use {}: {}", trouble, policy->name, times(mean));
    if (worst->mean > mean + 0.02)
      advice.sentence +=
          fmt::format(" ({} {})", in_quotes(advice.jobs[static_cast<std::size_t>(worst - policy->jobs.begin())].name),
                      times(worst->mean));
    const Advice::Policy& mltcp = policy_of(advice, "mltcp");
    if (policy->name.ends_with("schedule"))
      advice.sentence += fmt::format("; mltcp, which needs no plan, {}", times(mltcp.mean()));
    if (policy->name != "mltcp") advice.sentence += harm_text(advice, mltcp);
    if (mean > 1.05) advice.sentence += fmt::format("; to run as if alone, move {} elsewhere", whom_to_move(advice));
    advice.sentence += ".";
    return;
  }
  advice.recommended = "";
  const auto least = std::ranges::min_element(advice.policies, {}, [](const auto& policy) { return policy.mean(); });
  advice.sentence = fmt::format("{}, and under the best policy{} {}{}; move {} elsewhere.", trouble,
                                harmed_by(advice, *least) ? fmt::format(", {},", least->name) : "",
                                times(least->mean()), harm_text(advice, *least), whom_to_move(advice));
}

/// Returns the work of running an experiment and its parts from one constellation.
double work_of_all(const Experiment& experiment, const std::vector<Experiment>& parts, std::uint32_t iterations) {
  // The experiment runs twice: under the policies without a schedule, and under those with a schedule.
  double work = 2 * flow_work_of(experiment, iterations);
  for (const Experiment& part : parts) work += flow_work_of(part, iterations);
  return work;
}

/// Returns the options with starts and iterations set. If the caller has not set an option, its default is used, or
/// less if the work would exceed max_work. May clear `parts` to reduce the work.
AdviceOptions bounded(const Experiment& experiment, const AdviceOptions& asked, std::vector<Experiment>& parts,
                      std::vector<std::string>& warnings) {
  AdviceOptions options = asked;
  if (!asked.starts) options.starts = experiment.jobs.size() > 1 ? kAdviceStarts : 1;
  if (!asked.iterations) options.iterations = kAdviceIterations;
  if (asked.starts && asked.iterations) return options;
  const auto work = [&] { return *options.starts * work_of_all(experiment, parts, *options.iterations); };
  if (work() <= asked.max_work) return options;
  std::vector<std::string> less;
  if (!parts.empty() &&
      work_of_all(experiment, parts, *options.iterations) > 4 * flow_work_of(experiment, *options.iterations)) {
    parts.clear();
    less.emplace_back("without pairs of jobs");
  }
  if (!asked.starts && work() > asked.max_work) {
    while (*options.starts > kFewestStarts && work() > asked.max_work) --*options.starts;
    less.push_back(fmt::format("from {} starts", *options.starts));
  }
  if (!asked.iterations && work() > asked.max_work) {
    while (*options.iterations > kFewest && work() > asked.max_work) --*options.iterations;
    less.push_back(fmt::format("for {} iterations", *options.iterations));
  }
  if (work() > asked.max_work)
    throw InputError(
        fmt::format("advice on {} would take {:.0f} times the work that is done by default; give fewer jobs, or jobs "
                    "whose iterations differ less, or set the amount of work: --starts 1 --iterations {}",
                    plural(experiment.jobs.size(), "job"), work() / asked.max_work, kFewest));
  if (!less.empty())
    warnings.push_back(
        fmt::format("to limit the work, the jobs are simulated {} only; give --starts and --iterations to run more",
                    fmt::join(less, ", ")));
  return options;
}

void check_options(const AdviceOptions& options) {
  const auto refuse = [](std::string_view what, std::string_view range) {
    throw InputError(fmt::format("advice: {} is out of range; it is {}", what, range));
  };
  if (options.starts && (*options.starts < 1 || *options.starts > 1000)) refuse("the number of starts", "1 to 1000");
  if (options.iterations && (*options.iterations < 2 || *options.iterations > 1'000'000))
    refuse("the number of iterations", "2 to 1000000");
  if (!(options.jitter >= 0 && options.jitter <= 0.5)) refuse("jitter", "a share of the compute time from 0 to 0.5");
}

}  // namespace

double Advice::Policy::mean() const {
  double sum = 0;
  for (const Prediction& job : jobs) sum += job.mean / static_cast<double>(jobs.size());
  return sum;
}

std::uint64_t packets_of(const Experiment& experiment, std::uint32_t iterations) {
  constexpr Bytes headers = 80;  // approximate size of IP, UDP and transport headers
  long double packets = 0;
  const std::vector<std::uint32_t> each = iterations_of(experiment, iterations);
  for (std::size_t i = 0; i < experiment.jobs.size(); ++i) {
    const workload::Job& job = experiment.jobs[i];
    const long double workers = static_cast<long double>(std::max<std::size_t>(1, job.hosts.size()));
    long double own = 0;
    for (const workload::Phase& phase : job.phases)
      if (phase.kind == workload::Phase::Kind::communicate)
        own +=
            std::max(4.0L, static_cast<long double>(phase.bytes) / static_cast<long double>(experiment.mtu - headers));
    packets += workers * static_cast<long double>(each[i]) * own;
  }
  return static_cast<std::uint64_t>(std::min(packets, 1e18L));
}

double flow_work_of(const Experiment& experiment, std::uint32_t iterations) {
  constexpr double fixed = 16;  // fixed cost of an event, as a number of recomputed flow rates
  constexpr double gains = 64;  // changes of a worker's share per iteration under MLTCP (steps of sim::FlowNetwork)
  struct Load {
    double computes;
    double sends;
    double flows;
  };
  std::vector<Load> loads;
  for (const workload::Job& job : experiment.jobs) {
    const workload::IdealIteration alone = ideal(experiment, job);
    loads.push_back({std::max(1.0, (alone.length - alone.sending).seconds() * 1e9), alone.sending.seconds() * 1e9,
                     static_cast<double>(std::max<std::size_t>(1, job.hosts.size()))});
  }
  // Mean number of jobs that send at once. Each send takes longer by this factor. Found by fixed-point iteration.
  auto together = static_cast<double>(loads.size());
  const auto takes = [&](const Load& load) { return load.computes + load.sends * together; };
  for (int i = 0; i < 64; ++i) {
    double sending = 0;
    for (const Load& load : loads) sending += load.sends * together / takes(load);
    together = std::max(1.0, sending);
  }
  // All jobs run until the last one is done.
  const std::vector<std::uint32_t> each = iterations_of(experiment, iterations);
  double time = 0;
  double flows = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    time = std::max(time, each[i] * takes(loads[i]));
    flows = std::max(flows, loads[i].flows);
  }
  double events = 0;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    const auto sends =
        static_cast<double>(std::ranges::count_if(experiment.jobs[i].phases, [](const workload::Phase& phase) {
          return phase.kind == workload::Phase::Kind::communicate;
        }));
    // 4: two policies, and under each of them a flow begins and ends.
    events += time / takes(loads[i]) * loads[i].flows * (4 * sends + gains);
  }
  return events * (fixed + together * flows);
}

Advice advise(const Experiment& given, const AdviceOptions& asked) {
  check_options(asked);
  if (asked.progress) asked.progress(0);
  Advice advice;
  advice.experiment = given.name;
  advice.cc = given.cc;
  advice.warnings = given.warnings;
  for (const workload::Job& job : given.jobs)
    if (const Nanos length = ideal(given, job).length; length > kLongestIteration)
      throw InputError(
          fmt::format("job {}: its iteration takes {} alone on the link; give a faster link, or fewer bytes to send",
                      in_quotes(job.name), to_text(length)));
  const Experiment experiment = with_fewer_phases(given, advice.warnings);
  std::vector<Experiment> parts;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  const std::size_t jobs = experiment.jobs.size();
  if (jobs > 2 && jobs * (jobs - 1) / 2 <= kMaxAdvicePairs && can_be_parted(experiment)) {
    for (std::uint32_t a = 0; a < jobs; ++a)
      for (std::uint32_t b = a + 1; b < jobs; ++b) {
        pairs.emplace_back(a, b);
        parts.push_back(part_of(experiment, {a, b}));
      }
  }
  const AdviceOptions options = bounded(experiment, asked, parts, advice.warnings);
  pairs.resize(parts.size());
  advice.starts = *options.starts;
  advice.iterations = *options.iterations;
  for (const workload::Job& job : experiment.jobs) {
    const workload::IdealIteration alone = ideal(experiment, job);
    advice.jobs.push_back({job.name, alone.length, alone.duty_cycle(), job.unaware});
  }

  bool planned = true;
  const std::size_t max_bursts = jobs > 2 ? std::max<std::size_t>(kMaxCrossedBursts / jobs, 4) : kMaxBursts;
  try {
    const Fit fit = fit_of(experiment, max_bursts, &advice.warnings);
    advice.score = fit.score;
    advice.upper_bound = fit.upper_bound;
    advice.proven = fit.proven;
  } catch (const InputError& error) {
    planned = false;
    advice.warnings.push_back(fmt::format("no schedule: {}", error.what()));
  }
  if (const std::size_t bursts = bursts_of(experiment); planned && jobs > 2 && bursts > kMaxCrossedBursts) {
    planned = false;
    advice.warnings.push_back(
        fmt::format("no schedule: iterations of the {} jobs have {} bursts, and finding slots for more than {} takes "
                    "long; use mltcp run --policy schedule",
                    jobs, bursts, kMaxCrossedBursts));
  }

  const auto by_packets = [&](std::size_t policies) {
    return options.level == AdviceOptions::Level::packet ||
           (options.level == AdviceOptions::Level::automatic &&
            packets_of(experiment, advice.iterations) <= options.max_packets / (advice.starts * policies));
  };
  // Slots keep bursts apart, so flows show their effect nearly as well as packets, except beside legacy traffic.
  const bool has_legacy = std::ranges::any_of(experiment.jobs, &workload::Job::unaware);
  const bool planned_packets = planned && by_packets(kUnplannedPackets.size() + kPlanned.size());
  const bool packets = planned_packets || ((!planned || !has_legacy) && by_packets(kUnplannedPackets.size()));
  if (!packets && has_legacy)
    advice.warnings.emplace_back(
        "flows do not show how legacy traffic changes the rates of congestion control; give --level packet");
  const std::vector<std::string>& unplanned = packets ? kUnplannedPackets : kUnplannedFlows;
  std::vector<Work> work;
  for (std::uint32_t start = 0; start < advice.starts; ++start) {
    work.push_back({&experiment, unplanned, packets, start});
    if (planned) work.push_back({&experiment, kPlanned, planned_packets, start});
    for (const Experiment& part : parts) work.push_back({&part, kUnplannedFlows, false, start});
  }
  run_all(work, options);

  const auto done = [&](const Experiment* of, const std::vector<std::string>& policies) {
    std::vector<const Work*> result;
    for (const Work& task : work)
      if (task.experiment == of && task.policies == policies) result.push_back(&task);
    return result;
  };
  for (const std::vector<std::string>& names : {unplanned, kPlanned})
    for (Advice::Policy& policy : policies_of(done(&experiment, names))) advice.policies.push_back(std::move(policy));
  // Replaces the ideal iteration times by measured ones.
  for (std::size_t i = 0; i < jobs; ++i) advice.jobs[i].isolated = work.front().runs.front().jobs[i].isolated;
  std::vector<Fit> fits(pairs.size());
  if (planned)
    in_parallel(options.threads, pairs.size(), [&](std::size_t i) {
      if (options.stop && options.stop()) throw RunError("interrupted by the user");
      fits[i] = fit_of(parts[i], max_bursts, nullptr);
    });
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::vector<Advice::Policy> both = policies_of(done(&parts[i], kUnplannedFlows));
    advice.pairs.push_back({pairs[i].first, pairs[i].second, fits[i].score, fits[i].upper_bound, mean_of(both, "fair"),
                            mean_of(both, "mltcp")});
  }
  recommend(advice, without_computation(experiment));
  return advice;
}

}  // namespace mltcp::experiment
