// Simulates clusters (see cluster_run.h).
#include "mltcp/lab/experiment/cluster/cluster_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/parallel.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/cluster/cluster_network.h"
#include "mltcp/lab/experiment/run/demand.h"
#include "mltcp/lab/experiment/run/plan.h"
#include "mltcp/lab/experiment/run/plan_forecast.h"
#include "mltcp/scheduler/cluster.h"
#include "mltcp/scheduler/placement.h"

namespace mltcp::experiment {
namespace {

using workload::Arrival;

/// Thrown to end a run at once because the user interrupted it.
struct Interrupted {
  std::string why;
};

constexpr std::uint32_t kIsolatedIterations = 5;
// A run is given up when it takes longer than this factor times the total duration of all jobs in isolation.
constexpr double kPatience = 20;
// Minimum time limit in nanoseconds; long enough for timeouts even if jobs run for microseconds.
constexpr double kMinLimit = 3600e9;
// Maximum total duration of all jobs in isolation, in nanoseconds; prevents overflows of times.
constexpr double kLongest = 2e18;
constexpr double kNanosPerYear = 365.25 * 86'400e9;
// Index of the first random number stream for placements.
constexpr std::uint64_t kPlacementStreams = std::uint64_t{1} << 33U;

fabric::SwitchedNetworkConfig with_seed(fabric::SwitchedNetworkConfig topology, std::uint64_t seed) {
  topology.seed = seed;
  return topology;
}

std::unique_ptr<ClusterNetwork> make_network(const ClusterExperiment& experiment, std::uint64_t seed) {
  ClusterNetworkConfig config;
  config.topology = with_seed(experiment.topology, seed);
  config.parameters = experiment.parameters;
  return experiment.level == ClusterExperiment::Level::packet ? make_packet_network(config) : make_flow_network(config);
}

// Slots must save this share of an iteration, because a job waits for its first slot about half a period, and jobs that
// come and go change slots every few tens of iterations.
constexpr double kCostOfSlots = 0.02;

/// Identifies jobs with equal properties.
using Kind = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // type, workers, batch
Kind kind_of(const Arrival& arrival) { return {arrival.type, arrival.workers, arrival.batch}; }

const workload::Job& job_of(const ClusterExperiment& experiment, const Kind& kind) {
  const auto [type, workers, batch] = kind;
  return experiment.types[type].jobs.at({workers, batch});
}

std::vector<workload::WorkerHosts> ring(std::span<const std::uint32_t> hosts) {
  std::vector<workload::WorkerHosts> workers;
  for (std::size_t i = 0; i < hosts.size(); ++i) workers.push_back({hosts[i], hosts[(i + 1) % hosts.size()]});
  return workers;
}

JobSpec starting(const ClusterExperiment& experiment, const Kind& kind, std::uint32_t number,
                 std::span<const std::uint32_t> hosts, std::uint32_t iterations, std::uint64_t seed) {
  JobSpec job;
  job.job = job_of(experiment, kind);
  job.number = number;
  job.workers = ring(hosts);
  job.iterations = iterations;
  job.seed = seed;
  const std::string& cc = experiment.types[std::get<0>(kind)].cc;
  job.connection.congestion_control = cc.empty() ? experiment.cc : cc;
  job.learn_iterations = experiment.mltcp.learn_iterations;
  return job;
}

/// Returns the duration of an iteration if the job runs alone on a network: the median over all iterations but the
/// first.
Nanos isolated_period(const ClusterExperiment& experiment, const Kind& kind) {
  std::vector<std::uint32_t> hosts(std::get<1>(kind));
  for (std::uint32_t i = 0; i < hosts.size(); ++i) hosts[i] = i;
  JobSpec job = starting(experiment, kind, 0, hosts, kIsolatedIterations, experiment.seed);
  job.job.jitter = Nanos(0);
  job.job.straggler = {};
  const std::unique_ptr<ClusterNetwork> network = make_network(experiment, experiment.seed);
  network->add(job);
  if (network->run(Nanos::never()).empty())
    throw RunError(
        fmt::format("a job of type {} alone on the network stopped making progress; give the topology a larger buffer",
                    experiment.types[std::get<0>(kind)].name));
  std::vector<Nanos> times = network->remove(0).result.iterations;
  times.erase(times.begin());
  std::nth_element(times.begin(), times.begin() + 2, times.end());
  return times[2];
}

// ---- One run ----

/// One run: one scheme with one seed, from the first arrival to the end of the last job.
class ClusterRunner {
 public:
  ClusterRunner(const ClusterExperiment& experiment, const Scheme& scheme, std::uint64_t seed,
                const std::map<Kind, Nanos>& isolated, const std::function<void(double)>& tick)
      : experiment_(experiment),
        scheme_(scheme),
        seed_(seed),
        isolated_(isolated),
        tick_(tick),
        arrivals_(arrivals_of(experiment, seed)),
        occupancy_(experiment.topology.hosts(), experiment.gpus_per_host),
        cluster_(*experiment.topology.topology, options(experiment, isolated)),
        fabric_(flow_fabric(with_seed(experiment.topology, seed))) {
    network_ = scheme.placement == Scheme::Placement::ideal
                   ? make_dedicated_network([&] { return make_network(experiment_, seed_); })
                   : make_network(experiment, seed);
    network_->on_work([this] { tick_(progress()); });
    run_.scheme = scheme.name;
    run_.seed = seed;
    run_.jobs.resize(arrivals_.size());
    double alone = 0;
    for (const Arrival& arrival : arrivals_) {
      work_ += length_of(arrival) * arrival.workers;
      alone += length_of(arrival);
    }
    if (alone > kLongest)
      throw InputError(
          fmt::format("{}: the jobs of seed {} take {:.3g} years one after the other; give fewer jobs or fewer "
                      "iterations, for at most {:.0f} years",
                      experiment.file, seed, alone / kNanosPerYear, kLongest / kNanosPerYear));
    limit_ =
        arrivals_.back().at + Nanos(static_cast<std::int64_t>(std::clamp(alone * kPatience, kMinLimit, 2 * kLongest)));
  }

  ClusterRun run() {
    for (std::size_t ended = 0; ended < arrivals_.size();) {
      Nanos next = arrived_ < arrivals_.size() ? std::max(arrivals_[arrived_].at, network_->now()) : Nanos::never();
      if (!on_one_host_.empty()) next = std::min(next, on_one_host_.begin()->first);
      std::vector<std::uint32_t> done = network_->run(std::min(next, limit_));
      const Nanos now = network_->now();
      for (; !on_one_host_.empty() && on_one_host_.begin()->first <= now; on_one_host_.erase(on_one_host_.begin()))
        done.push_back(on_one_host_.begin()->second);
      account(now);
      if (done.empty() && now >= limit_)
        throw RunError(
            fmt::format("scheme {}, seed {}: the jobs stopped making progress; give the topology a larger buffer",
                        scheme_.name, seed_));
      for (const std::uint32_t number : done) end(number);
      ended += done.size();
      while (arrived_ < arrivals_.size() && arrivals_[arrived_].at <= now) queue_.push_back(arrived_++);
      bool changed = !done.empty();
      while (!queue_.empty() && has_space(arrivals_[queue_.front()])) {
        start(queue_.front());
        queue_.pop_front();
        changed = true;
      }
      if (changed && scheme_.policy->slots) give_plans();
      tick_(progress());
    }
    finish();
    return std::move(run_);
  }

 private:
  /// Returns the duration of a job in isolation, in nanoseconds.
  [[nodiscard]] double length_of(const Arrival& arrival) const {
    if (arrival.workers == 1) return static_cast<double>(arrival.length.count);
    return static_cast<double>(isolated_.at(kind_of(arrival)).count) * arrival.iterations;
  }
  [[nodiscard]] bool has_space(const Arrival& arrival) const {
    return arrival.workers <= occupancy_.free_places(arrival.gpus_per_worker());
  }
  /// Returns the fraction of all work done. Assumes that running jobs progress as in isolation, up to 99 % of each
  /// job's work.
  [[nodiscard]] double progress() const {
    constexpr double max = 0.99;
    double done = work_done_;
    for (const std::uint32_t number : running_) {
      const ClusterJobResult& job = run_.jobs[number];
      const double alone = length_of(arrivals_[number]);
      const auto ran = static_cast<double>((network_->now() - arrivals_.front().at - job.start).count);
      done += std::min(ran, max * alone) * job.workers;
    }
    return done / work_;
  }
  static scheduler::ClusterOptions options(const ClusterExperiment& experiment, const std::map<Kind, Nanos>& isolated) {
    scheduler::ClusterOptions options;
    options.solve.max_stretch = experiment.schedule.max_stretch;
    options.solve.slack = experiment.schedule.slack.value_or(0);
    if (!experiment.schedule.slack)
      for (const auto& [kind, period] : isolated)
        options.solve.slack = std::max(
            options.solve.slack,
            slack_for(job_of(experiment, kind).jitter.seconds() / period.seconds(), experiment.schedule.tolerance));
    options.solve.seed = experiment.seed;
    options.max_slot_stretch = experiment.max_slot_stretch;
    options.min_score = experiment.min_score;
    options.threads = 1;  // runs already execute in parallel
    return options;
  }

  /// Returns whether the scheduler must know the running jobs.
  [[nodiscard]] bool informed() const {
    return scheme_.policy->slots || scheme_.placement == Scheme::Placement::compatible;
  }
  /// Describes a job to the scheduler, with the links that the network will select by a hash of each connection.
  [[nodiscard]] scheduler::ClusterJob described(std::uint32_t number, const scheduler::Demand& demand,
                                                const std::vector<std::uint32_t>& hosts) const {
    scheduler::ClusterJob job{name_of(number), demand, scheduler::ring(hosts)};
    if (!cluster_.topology().has_choices()) return job;
    JobSpec flows;
    flows.job = job_of(experiment_, kind_of(arrivals_[number]));
    flows.number = number;
    flows.workers = ring(hosts);
    flows.seed = seed_;
    job.flows.clear();
    for (scheduler::Burst& burst : job.demand.bursts)
      burst.rate = Rate(std::max<std::uint64_t>(1, burst.rate.bits_per_second / flows.job.flows));
    for (std::uint32_t worker = 0; worker < flows.workers.size(); ++worker)
      for (FlowPath& path : fabric_.route(flows, worker))
        job.flows.push_back({flows.workers[worker].from, flows.workers[worker].to, 1, std::move(path.data)});
    return job;
  }
  static std::string name_of(std::uint32_t number) { return fmt::format("job {}", number); }
  static std::uint32_t number_of(std::string_view name) {
    return static_cast<std::uint32_t>(std::stoul(std::string(name.substr(4))));
  }

  void start(std::uint32_t number) {
    const Arrival& arrival = arrivals_[number];
    ClusterJobResult& result = run_.jobs[number];
    result.number = number;
    result.type = experiment_.types[arrival.type].name;
    result.workers = arrival.workers;
    result.gpus = arrival.all_gpus();
    result.batch = arrival.batch;
    result.iterations = arrival.iterations;
    result.arrival = arrival.at - arrivals_.front().at;
    result.start = network_->now() - arrivals_.front().at;
    running_.insert(number);
    if (arrival.workers == 1) {  // without network traffic, the job's duration is known
      result.hosts = place(number, {Nanos(1), {}}, arrival);
      take_hosts(number, arrival);
      on_one_host_.emplace(network_->now() + arrival.length, number);
      return;
    }
    const Kind kind = kind_of(arrival);
    const Nanos period = isolated_.at(kind);
    const scheduler::Demand demand = demand_of(job_of(experiment_, kind), period);
    result.isolated = period;
    result.hosts = place(number, demand, arrival);
    take_hosts(number, arrival);
    if (informed()) {
      scheduler::ClusterJob described_job = described(number, demand, result.hosts);
      used_[number] = links_of(described_job);
      for (const auto link : used_[number]) ++users_[link];
      for (const scheduler::Move& move : cluster_.join(std::move(described_job)).moves)
        ++run_.jobs[number_of(move.job)].moves;
    }
    JobSpec job = starting(experiment_, kind, number, result.hosts, arrival.iterations, seed_);
    job.augmentation = augmentation_of(*scheme_.policy, experiment_.mltcp, job.job);
    network_->add(job);
    first_send_[number] = demand.bursts.empty() ? Nanos() : demand.bursts.front().from;
  }

  void take_hosts(std::uint32_t number, const Arrival& arrival) {
    std::vector<std::uint32_t> slots;
    for (const std::uint32_t host : run_.jobs[number].hosts) slots.insert(slots.end(), arrival.gpus_per_worker(), host);
    occupancy_.take(name_of(number), slots);
    busy_ += static_cast<std::uint32_t>(slots.size());
  }

  std::vector<std::uint32_t> place(std::uint32_t number, const scheduler::Demand& demand, const Arrival& arrival) {
    scheduler::GeneratorOptions options;
    options.seed = Random::stream(seed_, kPlacementStreams + number).next();
    options.slots_per_worker = arrival.gpus_per_worker();
    const bool compatible = scheme_.placement == Scheme::Placement::compatible && arrival.workers > 1;
    options.candidates = compatible ? experiment_.candidates : 1;
    options.locality = scheme_.placement != Scheme::Placement::random;
    options.random = compatible || scheme_.placement == Scheme::Placement::random;
    options.compatible = compatible;
    const std::vector<scheduler::WorkerPlacement> placements =
        scheduler::generate_placements(cluster_, occupancy_, demand, arrival.workers, options);
    if (!compatible || placements.size() == 1) return placements.front().workers;
    std::vector<scheduler::Candidate> candidates;
    std::vector<double> shared;  // by candidate: number of links shared with other jobs
    for (const scheduler::WorkerPlacement& placement : placements) {
      candidates.push_back({{described(number, demand, placement.workers)}});
      shared.push_back(shared_links(links_of(candidates.back().jobs.front())));
    }
    std::size_t best = candidates.size();
    double min = 0;
    for (const scheduler::RankedCandidate& ranked : cluster_.rank(candidates)) {
      const double lost = (1 - ranked.score) * shared[ranked.candidate];
      if (best < candidates.size() && (lost > min || (lost == min && ranked.candidate > best))) continue;
      best = ranked.candidate;
      min = lost;
    }
    return placements[best].workers;
  }

  /// Returns the links that a job uses.
  [[nodiscard]] std::set<scheduler::Topology::Link> links_of(const scheduler::ClusterJob& job) const {
    std::set<scheduler::Topology::Link> links;
    for (const scheduler::Flow& flow : job.flows) {
      const auto path = flow.path.empty() ? cluster_.topology().path(flow.from, flow.to, 0) : flow.path;
      links.insert(path.begin(), path.end());
    }
    return links;
  }
  /// Returns the number of links that several jobs would share if a job on the links `added` were added.
  [[nodiscard]] double shared_links(const std::set<scheduler::Topology::Link>& added) const {
    std::size_t shared = 0;
    for (const auto& [link, jobs] : users_)
      if (jobs + (added.contains(link) ? 1 : 0) >= 2) ++shared;
    return static_cast<double>(shared);
  }

  void end(std::uint32_t number) {
    const Arrival& arrival = arrivals_[number];
    ClusterJobResult& result = run_.jobs[number];
    result.end = network_->now() - arrivals_.front().at;
    occupancy_.release(name_of(number));
    busy_ -= arrival.gpus_per_worker() * arrival.workers;
    running_.erase(number);
    work_done_ += length_of(arrival) * arrival.workers;
    if (arrival.workers == 1) return;
    EndedJob ended = network_->remove(number);
    const std::vector<Nanos>& times = ended.result.iterations;
    const IterationStats stats = iteration_stats(times);
    result.mean = stats.mean;
    result.p50 = stats.p50;
    result.p99 = stats.p99;
    result.marked_packets = ended.marked_packets;
    result.retransmitted_packets = ended.result.retransmitted_packets;
    result.corrections = ended.result.gate_corrections;
    result.plan_dropped = ended.result.plan_dropped;
    for (const Nanos time : times)
      run_.slowdowns.push_back(
          static_cast<float>(static_cast<double>(time.count) / static_cast<double>(result.isolated.count)));
    if (informed()) {
      for (const auto link : used_.at(number)) --users_[link];
      used_.erase(number);
      for (const scheduler::Move& move : cluster_.leave(name_of(number))) ++run_.jobs[number_of(move.job)].moves;
    }
    plans_.erase(number);
    first_send_.erase(number);
  }

  [[nodiscard]] PhasePlan plan_of(const scheduler::ClusterSolution::SolvedJob& job) const {
    PhasePlan plan;
    plan.slot = job.time_shift + first_send_.at(number_of(job.name));
    plan.period = job.slot_period;
    plan.tolerance = experiment_.schedule.tolerance;
    plan.correction = experiment_.schedule.correction;
    plan.gradual_step = experiment_.schedule.gradual_step;
    plan.clock_bound = experiment_.schedule.clock_bound;
    return plan;
  }

  /// Gives slots to competing jobs if all jobs of their connected component fit. If demands exceed a link's capacity
  /// even in the best slots, iterations become longer than their slots. A job that misses its slot then has to wait for
  /// its next slot. In this case, slots cost more time than fair sharing, and fair sharing costs more time than MLTCP.
  /// The same applies to jobs that share links with a job without slots.
  ///
  /// Slots are also left out if they are predicted to harm a job, or to gain nothing.
  void give_plans() {
    const scheduler::ClusterSolution& solution = cluster_.solution();
    std::vector<bool> competing(solution.jobs.size());
    std::vector<bool> fitting;
    for (const auto& component : solution.components) fitting.push_back(component.within_limit);
    for (const auto& link : solution.links) {
      if (!link.competed) continue;
      for (const scheduler::LinkUse& use : link.uses) competing[use.job] = true;
      if (link.solution.score < experiment_.min_score) fitting[link.component] = false;
    }
    for (std::uint32_t component = 0; component < fitting.size(); ++component)
      fitting[component] = fitting[component] && slots_pay(component);
    for (std::uint32_t i = 0; i < solution.jobs.size(); ++i) {
      const auto& job = solution.jobs[i];
      const std::uint32_t number = number_of(job.name);
      const auto at = plans_.find(number);
      if (!competing[i] || !fitting[job.component]) {
        if (at == plans_.end()) continue;
        network_->clear_plan(number);
        plans_.erase(at);
        continue;
      }
      const PhasePlan plan = plan_of(job);
      if (at != plans_.end() && at->second == plan) continue;
      network_->set_plan(number, plan);
      plans_[number] = plan;
    }
  }

  /// Returns whether slots pay for the jobs of a component, by forecasts (plan_forecast.h): compared with fair sharing,
  /// the jobs save time and none of them takes longer, and compared with MLTCP without slots they lose none. Returns
  /// true for a component that is too large for a forecast.
  [[nodiscard]] bool slots_pay(std::uint32_t component) {
    const scheduler::ClusterSolution& solution = cluster_.solution();
    const std::vector<std::uint32_t>& members = solution.components[component].jobs;
    if (members.size() < 2 || members.size() > kMaxRepairedJobs) return true;
    scheduler::Problem problem;
    std::vector<ForecastJob> jobs;
    std::vector<std::tuple<std::uint32_t, Nanos, Nanos>> key;
    std::map<std::string, std::uint32_t> index;
    for (const std::uint32_t member : members) {
      const auto& job = solution.jobs[member];
      const std::uint32_t number = number_of(job.name);
      index.emplace(job.name, static_cast<std::uint32_t>(problem.jobs.size()));
      problem.jobs.push_back({job.name, job.period, {}});
      const Nanos jitter = job_of(experiment_, kind_of(arrivals_[number])).jitter;
      jobs.push_back({first_send_.at(number), jitter.seconds() / job.period.seconds(), plan_of(job)});
      key.emplace_back(number, jobs.back().slots.slot, job.slot_period);
    }
    const auto [known, added] = slots_pay_.try_emplace(std::move(key), true);
    if (!added) return known->second;
    for (std::size_t link = 0; link < solution.links.size(); ++link) {
      if (!solution.links[link].competed || solution.links[link].component != component) continue;
      scheduler::LinkProblem one = cluster_.link_problem(link);
      for (scheduler::Problem::Use& use : one.problem.links[0].uses) use.job = index.at(one.problem.jobs[use.job].name);
      problem.links.push_back(std::move(one.problem.links[0]));
    }
    std::optional<cc::Aggressiveness> function;
    if (scheme_.policy->interleaves) function = experiment_.mltcp.function;
    const Forecast slots = forecast_slots(problem, jobs, function, nullptr);
    const Forecast fair = forecast_sharing(problem, jobs, std::nullopt);
    bool harms = false;
    for (std::size_t i = 0; i < jobs.size(); ++i) harms = harms || slots.jobs[i] > fair.jobs[i] + kForecastError;
    known->second = !harms && slots.mean + kCostOfSlots < fair.mean &&
                    (!function || slots.mean <= forecast_sharing(problem, jobs, function).mean + kForecastError);
    return known->second;
  }

  /// Updates the time averages. The state has been constant from the last call until `now`.
  void account(Nanos now) {
    const double duration = static_cast<double>((now - accounted_).count);
    accounted_ = now;
    busy_time_ += duration * busy_;
    if (!informed()) return;
    for (const auto& link : cluster_.solution().links) {
      if (!link.competed) continue;
      score_time_ += duration * link.solution.score;
      link_time_ += duration;
    }
  }

  void finish() {
    for (const ClusterJobResult& job : run_.jobs) run_.makespan = std::max(run_.makespan, job.end);
    std::ranges::sort(run_.slowdowns);
    const ClusterTraffic traffic = network_->traffic();
    run_.marked_packets = traffic.marked_packets;
    run_.dropped_packets = traffic.dropped_packets;
    run_.packets = traffic.packets;
    if (traffic.bytes > 0) run_.contended = traffic.contended_bytes / traffic.bytes;
    const auto makespan = static_cast<double>(run_.makespan.count);
    run_.mean_score = link_time_ > 0 ? score_time_ / link_time_ : 1;
    run_.competed_links = link_time_ / makespan;
    run_.busy_hosts = busy_time_ / makespan / occupancy_.hosts() / experiment_.gpus_per_host;
  }

  const ClusterExperiment& experiment_;
  const Scheme& scheme_;
  const std::uint64_t seed_;
  const std::map<Kind, Nanos>& isolated_;
  const std::function<void(double)>& tick_;
  const std::vector<Arrival> arrivals_;
  std::uint32_t arrived_ = 0;
  std::deque<std::uint32_t> queue_;
  scheduler::Occupancy occupancy_;
  scheduler::Cluster cluster_;
  const FlowFabric fabric_;
  // The next two fields are in use only if informed(): the links of each job, and the number of jobs on each link.
  std::map<std::uint32_t, std::set<scheduler::Topology::Link>> used_;
  std::map<scheduler::Topology::Link, std::uint32_t> users_;
  std::unique_ptr<ClusterNetwork> network_;
  std::map<std::uint32_t, PhasePlan> plans_;
  /// What slots_pay() has found for jobs with these slots and slot periods.
  std::map<std::vector<std::tuple<std::uint32_t, Nanos, Nanos>>, bool> slots_pay_;
  /// By running job: time of the first send in an iteration, from the start of the iteration.
  std::map<std::uint32_t, Nanos> first_send_;
  ClusterRun run_;

  double work_ = 0;  ///< total work of all jobs, in nanoseconds * hosts
  double work_done_ = 0;
  std::set<std::uint32_t> running_;
  std::multimap<Nanos, std::uint32_t> on_one_host_;  ///< running jobs with only one host, by end time
  Nanos limit_;
  Nanos accounted_;
  std::uint32_t busy_ = 0;  ///< number of GPUs in use
  double busy_time_ = 0;
  double score_time_ = 0;
  double link_time_ = 0;
};

/// One call of run_cluster(): measures each kind of job alone, then runs each scheme with each seed.
class Schemes {
 public:
  Schemes(const ClusterExperiment& experiment, const ClusterRunSettings& settings)
      : experiment_(experiment), settings_(settings), runs_(experiment.schemes.size() * experiment.seeds) {
    for (std::uint32_t i = 0; i < experiment.seeds; ++i)
      for (const Arrival& arrival : arrivals_of(experiment, experiment.seed + i)) {
        if (arrival.workers > 1) isolated_[kind_of(arrival)];
        together_ += arrival.iterations;
      }
    together_ *= static_cast<double>(experiment.schemes.size());
    alone_ = static_cast<double>(isolated_.size()) * kIsolatedIterations + 1;  // + 1 so that `alone_` is never 0
    results_.name = experiment.name;
    results_.level = to_text(experiment.level);
    results_.cc = experiment.cc;
    results_.time_scale = experiment.time_scale;
    results_.rate_scale = experiment.rate_scale;
    results_.hosts = experiment.topology.hosts();
    results_.gpus_per_host = experiment.gpus_per_host;
    results_.oversubscription = experiment.topology.topology->oversubscription();
  }

  ClusterResults run() {
    measure_alone();
    complete_.resize(runs_);
    fractions_.resize(runs_);
    in_parallel(settings_.threads, runs_, [&](std::size_t i) { run_one(i); });
    if (done_ == 0) throw nothing_left(ended_);
    collect();
    return std::move(results_);
  }

 private:
  [[nodiscard]] const Scheme& scheme_of(std::size_t run) const { return experiment_.schemes[run / experiment_.seeds]; }
  [[nodiscard]] std::uint64_t seed_of(std::size_t run) const { return experiment_.seed + run % experiment_.seeds; }
  static RunError nothing_left(const std::string& why) {
    return RunError(fmt::format("{}; no run was complete, so no results are written", why));
  }
  void check_interrupted() const {
    if (!settings_.interrupted) return;
    if (std::string why = settings_.interrupted(); !why.empty()) throw Interrupted{std::move(why)};
  }

  void measure_alone() {
    std::vector<std::pair<const Kind, Nanos>*> kinds;
    kinds.reserve(isolated_.size());
    for (auto& entry : isolated_) kinds.push_back(&entry);
    std::size_t measured = 0;
    const auto tell = [&](std::size_t more) {
      if (!settings_.progress) return;
      const std::lock_guard lock(mutex_);
      measured += more;
      settings_.progress(static_cast<double>(measured) * kIsolatedIterations / (alone_ + together_),
                         fmt::format("{} of {} kinds of jobs measured alone", measured, kinds.size()));
    };
    tell(0);
    try {
      in_parallel(settings_.threads, kinds.size(), [&](std::size_t i) {
        check_interrupted();
        kinds[i]->second = isolated_period(experiment_, kinds[i]->first);
        tell(1);
      });
    } catch (const Interrupted& end) {
      throw nothing_left(end.why);
    }
  }

  void run_one(std::size_t number) {
    const std::function<void(double)> tick = [this, number](double fraction) {
      check_interrupted();
      if (!settings_.progress) return;
      const std::lock_guard lock(mutex_);
      fractions_[number] = fraction;
      const double share = std::accumulate(fractions_.begin(), fractions_.end(), 0.0) / static_cast<double>(runs_);
      const auto finished =
          std::ranges::count_if(fractions_, [](double fraction_of_run) { return fraction_of_run > 1 - 1e-9; });
      settings_.progress((alone_ + together_ * share) / (alone_ + together_),
                         fmt::format("{} of {} runs", finished, runs_));
    };
    try {
      check_interrupted();
      ClusterRun run = ClusterRunner(experiment_, scheme_of(number), seed_of(number), isolated_, tick).run();
      const std::lock_guard lock(mutex_);
      complete_[number] = std::move(run);
      const std::function<const ClusterResults&()> so_far = [this]() -> const ClusterResults& { return collect(); };
      if (++done_ < runs_ && settings_.finished) settings_.finished(so_far);
    } catch (const Interrupted& end) {  // the other runs end in check_interrupted(), too
      const std::lock_guard lock(mutex_);
      ended_ = end.why;
    }
  }

  /// Returns the results of all complete runs, in order. Call while `mutex_` is locked, or after all runs.
  const ClusterResults& collect() {
    results_.runs.clear();
    results_.unfinished.clear();
    for (std::size_t i = 0; i < runs_; ++i) {
      if (complete_[i])
        results_.runs.push_back(*complete_[i]);
      else
        results_.unfinished.push_back({scheme_of(i).name, seed_of(i)});
    }
    return results_;
  }

  const ClusterExperiment& experiment_;
  const ClusterRunSettings& settings_;
  const std::size_t runs_;
  std::map<Kind, Nanos> isolated_;
  double alone_ = 0;     ///< number of iterations to run in isolation, for progress displays
  double together_ = 0;  ///< number of iterations of all runs
  std::mutex mutex_;     ///< protects the fields below, and serialises callbacks
  std::vector<std::optional<ClusterRun>> complete_;
  std::vector<double> fractions_;
  std::size_t done_ = 0;
  std::string ended_;
  ClusterResults results_;
};

}  // namespace

ClusterResults run_cluster(const ClusterExperiment& experiment, const ClusterRunSettings& settings) {
  return Schemes(experiment, settings).run();
}

}  // namespace mltcp::experiment
