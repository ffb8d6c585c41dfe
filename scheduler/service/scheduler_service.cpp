// Implements SchedulerService (see scheduler_service.h).
#include "mltcp/scheduler/service/scheduler_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/scheduler/placement.h"
#include "mltcp/scheduler/service/job_profile.h"
#include "mltcp/scheduler/service/journal.h"

namespace mltcp::service {
namespace {

using scheduler::Cluster;
using scheduler::ClusterJob;
using scheduler::ClusterSolution;
using Host = Topology::Host;

constexpr std::uint32_t kMaxSlotsPerHost = 1024;
constexpr std::uint32_t kMaxCandidates = 1000;
constexpr std::uint32_t kMaxJobs = 100'000;
constexpr std::int64_t kLatestEpoch = std::int64_t{1} << 62;
constexpr double kMaxBursts = 100'000;  // default of max_bursts; limits a search to about 1 s
constexpr double kCostSteps = 1e9;      // costs of placements are rounded to 1 / kCostSteps

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= kMaxIdBytes &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

void check(const ServiceOptions& options) {
  const auto range = [](std::string_view what, std::uint32_t value, std::uint32_t max) {
    if (value < 1 || value > max) throw InputError(fmt::format("{} is {}; give from 1 to {}", what, value, max));
  };
  range("slots_per_host", options.slots_per_host, kMaxSlotsPerHost);
  range("candidates", options.candidates, kMaxCandidates);
  range("max_jobs", options.max_jobs, kMaxJobs);
  if (options.epoch_unix_ns < 0 || options.epoch_unix_ns > kLatestEpoch)
    throw InputError(fmt::format("epoch_unix_ns is {}; give from 0 to {}", options.epoch_unix_ns, kLatestEpoch));
}

void check(const JobRequest& request) {
  if (!is_id(request.id))
    throw InputError(fmt::format("{} is no id of a job; give 1 to {} printable ASCII characters without spaces",
                                 in_quotes(request.id), kMaxIdBytes));
  const std::string job = fmt::format("job {}", in_quotes(request.id));
  if (request.name.size() > kMaxIdBytes || one_line(request.name) != request.name)
    throw InputError(fmt::format("{}: {} is no name; give at most {} bytes of printable UTF-8", job,
                                 in_quotes(request.name), kMaxIdBytes));
  if (request.workers < 1 || request.workers > kMaxWorkers)
    throw InputError(fmt::format("{}: it has {} workers; give 1 to {}", job, request.workers, kMaxWorkers));
  if (request.flows < 1 || request.flows > kMaxFlows)
    throw InputError(fmt::format("{}: it has {} flows; give 1 to {}", job, request.flows, kMaxFlows));
  try {
    scheduler::check(request.demand);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", job, error.what()));
  }
  if (request.demand.period < kShortestIteration)
    throw InputError(fmt::format("{}: an iteration takes {}; give one of {} ns or more, or join several into one", job,
                                 mltcp::to_text(request.demand.period), kShortestIteration.count));
  if (request.demand.bursts.size() > kMaxDemandBursts)
    throw InputError(fmt::format("{}: it has {} bursts; give at most {}, joining neighbours", job,
                                 request.demand.bursts.size(), kMaxDemandBursts));
  if (request.demand.bursts.empty())
    throw InputError(fmt::format("{}: it sends nothing; give it a profile that does", job));
}

std::string_view to_text(scheduler::PlacementKind kind) {
  using enum scheduler::PlacementKind;
  return word_of<scheduler::PlacementKind>(kind,
                                           {{locality, "locality"}, {compatible, "compatible"}, {random, "random"}});
}

/// Returns whether both plans have the same slots, or both have no slots for the same reason.
bool same_slots(const JobPlan& a, const JobPlan& b) {
  return a.slots == b.slots && a.reason == b.reason && a.slot_unix_ns == b.slot_unix_ns &&
         a.slot_period == b.slot_period && a.time_shift == b.time_shift;
}

std::string described(const JobPlan& plan) {
  if (!plan.slots) return fmt::format("no slots ({})", plan.reason);
  return fmt::format("shift {} of {}, score {:.3f}", mltcp::to_text(plan.time_shift), mltcp::to_text(plan.slot_period),
                     plan.score);
}

}  // namespace

class SchedulerService::Impl {
 public:
  Impl(Topology topology, ServiceOptions options)
      : options_((check(options), std::move(options))),
        names_(names_of(topology, options_)),
        cluster_(std::move(topology), bounded(options_.cluster)),
        journal_(options_.state, options_.epoch_unix_ns, [this](const std::string& line) { log(line); }) {
    for (Host host = 0; host < names_.size(); ++host)
      if (!host_of_.try_emplace(names_[host], host).second)
        throw InputError(fmt::format("two hosts are called {}; give each a name of its own", in_quotes(names_[host])));
    for (const StoredJob& job : journal_.state().jobs)
      for (const std::string& host : job.hosts)
        if (!host_of_.contains(host))
          throw InputError(
              fmt::format("job {} runs on host {}, which the topology lacks; add it to the topology, or give --state "
                          "another folder to begin without jobs",
                          in_quotes(job.request.id), in_quotes(host)));
    restore();
    running_ = plans_now();
    index_ = index_of(running_);
    revision_ = journal_.state().revision;
    notify_changed();
    if (!running_.empty()) log(fmt::format("{} restored, revision {}", plural(running_.size(), "job"), revision_));
  }

  std::vector<RankedPlacement> rank(const JobRequest& request, std::uint32_t candidates) {
    check(request);
    if (candidates < 1 || candidates > kMaxCandidates)
      throw InputError(fmt::format("candidates is {}; give from 1 to {}", candidates, kMaxCandidates));
    const std::scoped_lock lock(work_);
    refresh();
    refuse_running(request.id);
    return ranked(request, generated(request, candidates));
  }

  std::vector<RankedPlacement> rank(const JobRequest& request,
                                    const std::vector<std::vector<std::string>>& placements) {
    check(request);
    if (placements.empty() || placements.size() > kMaxCandidates)
      throw InputError(fmt::format("there are {} placements; give from 1 to {}", placements.size(), kMaxCandidates));
    std::vector<Found> all;
    for (const std::vector<std::string>& hosts : placements) all.push_back({hosts_from(request, hosts), "given"});
    const std::scoped_lock lock(work_);
    refresh();
    refuse_running(request.id);
    return ranked(request, all);
  }

  Arrival arrive(const JobRequest& given, const std::vector<std::string>& hosts, Capacity capacity) {
    check(given);
    std::vector<Host> chosen = hosts.empty() ? std::vector<Host>() : hosts_from(given, hosts);
    JobRequest request = given;
    request.allowed_hosts.clear();
    request.max_per_host = 0;
    const std::scoped_lock lock(work_);
    refresh();
    if (const RunningJob* const known = find(request.id)) {
      if (known->request != request)
        throw Conflict(fmt::format("job {} runs already and differs from this one; give the new one another id",
                                   in_quotes(request.id)));
      if (!hosts.empty() && known->plan.hosts != hosts)
        throw Conflict(fmt::format("job {} runs already, on other hosts; let it depart first", in_quotes(request.id)));
      return {known->plan, {}, true};
    }
    if (running_.size() >= options_.max_jobs)
      throw Conflict(fmt::format("{} run, which is the limit; let one depart first", plural(running_.size(), "job")));
    if (hosts.empty())
      chosen = best(given);
    else if (capacity == Capacity::needed)
      check_capacity(request, chosen);
    JournalEvent event;
    event.revision = revision_ + 1;
    join(request, chosen);
    return commit(event, &request, chosen);
  }

  std::vector<JobPlan> depart(std::string_view id) {
    const std::scoped_lock lock(work_);
    refresh();
    if (find(id) == nullptr) throw_unknown(id);
    JournalEvent event;
    event.revision = revision_ + 1;
    event.departed.emplace_back(id);
    stale_ = true;
    cluster_.leave(id);
    return commit(event, nullptr, {}).moves;
  }

  std::string trouble() {
    const std::scoped_lock lock(work_);
    try {
      journal_.check_writable();
    } catch (const Unavailable& error) {
      return error.what();
    }
    return {};
  }

  JobPlan plan(std::string_view id) const {
    const std::scoped_lock lock(published_);
    if (const RunningJob* const job = find(id)) return job->plan;
    throw_unknown(id);
  }
  std::vector<RunningJob> jobs() const {
    const std::scoped_lock lock(published_);
    return running_;
  }
  std::vector<JobPlan> plans() const {
    const std::scoped_lock lock(published_);
    std::vector<JobPlan> all;
    all.reserve(running_.size());
    for (const RunningJob& job : running_) all.push_back(job.plan);
    return all;
  }
  std::uint64_t revision() const {
    const std::scoped_lock lock(published_);
    return revision_;
  }
  std::vector<std::uint32_t> free_slots() const {
    const std::scoped_lock lock(published_);
    std::vector<std::uint32_t> free(names_.size(), options_.slots_per_host);
    for (const RunningJob& job : running_)
      for (const std::string& name : job.plan.hosts)
        if (std::uint32_t& slots = free[host_of_.at(name)]; slots > 0) --slots;
    return free;
  }

  const Topology& topology() const { return cluster_.topology(); }
  const std::vector<std::string>& host_names() const { return names_; }
  Host find_host(std::string_view name) const {
    const auto found = host_of_.find(name);
    if (found != host_of_.end()) return found->second;
    // A hint is not worth a search of very many names.
    constexpr std::size_t max_compared = 10'000;
    const auto meant = names_.size() <= max_compared ? nearest(name, names_) : std::nullopt;
    throw InputError(fmt::format("no host is called {}; {}", in_quotes(name),
                                 meant ? fmt::format("did you mean {}?", in_quotes(*meant))
                                       : fmt::format("give one of the topology's {}, such as {}",
                                                     plural(names_.size(), "host"), in_quotes(names_.front()))));
  }
  std::string link_name(Topology::Link link) const {
    const Topology& known = topology();
    const auto name = [&](Topology::Node node) { return known.is_host(node) ? names_[node] : known.node_name(node); };
    const std::string own = fmt::format("{} -> {}", known.node_name(known.from(link)), known.node_name(known.to(link)));
    // If the topology has given the link a name, this name is used.
    if (const std::string given = known.link_name(link); given != own) return given;
    return fmt::format("{} -> {}", name(known.from(link)), name(known.to(link)));
  }
  std::uint32_t slots_per_host() const { return options_.slots_per_host; }
  std::int64_t epoch_unix_ns() const { return journal_.state().epoch_unix_ns; }

  /// Calls `work` and adds its time to the counters of `kind`, unless `work` throws or `is_done` returns false for the
  /// result of `work`.
  template <typename Work, typename IsDone>
  auto timed(Planning kind, Work work, IsDone is_done) {
    const Nanos begun = options_.clock();
    auto result = work();
    const Nanos took = options_.clock() - begun;
    if (is_done(result)) {
      const std::lock_guard lock(published_);
      PlanningStats& stats = planning_[static_cast<std::size_t>(kind)];
      ++stats.done;
      stats.took += took;
      stats.longest = std::max(stats.longest, took);
    }
    return result;
  }
  PlanningStats planning(Planning kind) const {
    const std::lock_guard lock(published_);
    return planning_[static_cast<std::size_t>(kind)];
  }

 private:
  static scheduler::ClusterOptions bounded(scheduler::ClusterOptions options) {
    if (options.max_bursts == 0) options.max_bursts = kMaxBursts;
    return options;
  }
  static std::vector<std::string> names_of(const Topology& topology, const ServiceOptions& options) {
    if (!options.host_names.empty()) {
      if (options.host_names.size() != topology.hosts())
        throw InputError(fmt::format("there are {} names and the topology has {} hosts; give one name for each",
                                     options.host_names.size(), topology.hosts()));
      return options.host_names;
    }
    std::vector<std::string> names;
    for (Host host = 0; host < topology.hosts(); ++host) names.push_back(topology.host_name(host));
    return names;
  }
  [[noreturn]] static void throw_unknown(std::string_view id) {
    throw NotFound(fmt::format("no job {} runs; GET /v1/jobs lists those that do", in_quotes(id)));
  }

  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }

  // ---- The cluster; with work_ held ----

  ClusterJob cluster_job(const JobRequest& request, std::span<const Host> hosts) const {
    ClusterJob job{request.id, request.demand, scheduler::ring(hosts)};
    for (scheduler::Burst& burst : job.demand.bursts)
      burst.rate = Rate(std::max<std::uint64_t>(1, burst.rate.bits_per_second / request.flows));
    for (scheduler::Flow& flow : job.flows) flow.multiplicity = request.flows;
    return job;
  }
  std::vector<Host> hosts_of(const std::vector<std::string>& hosts) const {
    std::vector<Host> result;
    result.reserve(hosts.size());
    for (const std::string& name : hosts) result.push_back(find_host(name));
    return result;
  }
  std::vector<Host> hosts_from(const JobRequest& request, const std::vector<std::string>& hosts) const {
    if (hosts.size() != request.workers)
      throw InputError(fmt::format("job {}: {} named for {}; name the host of every worker", in_quotes(request.id),
                                   plural(hosts.size(), "host"), plural(request.workers, "worker")));
    return hosts_of(hosts);
  }

  /// Restores the cluster from the journal if an earlier event failed or could not be written.
  void refresh() {
    if (stale_) restore();
  }
  void restore() {
    std::vector<scheduler::PlacedJob> jobs;
    for (const StoredJob& job : journal_.state().jobs)
      jobs.push_back({cluster_job(job.request, hosts_of(job.hosts)), job.slot_period, job.time_shift});
    try {
      cluster_.restore(std::move(jobs));
    } catch (const InputError& error) {
      throw InputError(
          fmt::format("the jobs that ran can't be restored on this topology: {}; give the topology that they "
                      "ran on, or give --state another folder to begin without jobs",
                      error.what()));
    }
    stale_ = false;
  }

  void join(const JobRequest& request, std::span<const Host> hosts) {
    stale_ = true;
    try {
      cluster_.join(cluster_job(request, hosts));
    } catch (const InputError& error) {
      // The request itself is valid. So the cause of the error is a conflict with other jobs. join() has changed
      // nothing.
      stale_ = false;
      throw Conflict(error.what());
    }
  }

  static JournalEvent::Change change_of(const JobPlan& plan) {
    return {plan.id, plan.slot_period, plan.time_shift, plan.slots, plan.reason};
  }

  /// Writes an event with the jobs that have gained or lost slots because the service was restarted with another
  /// topology or other options.
  void notify_changed() {
    JournalEvent event;
    event.revision = revision_ + 1;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      JobPlan& plan = running_[i].plan;
      const StoredJob& stored = journal_.state().jobs[i];
      if (stored.slots == plan.slots && stored.reason == plan.reason) continue;
      plan.revision = event.revision;
      event.changed.push_back(change_of(plan));
    }
    if (event.changed.empty()) return;
    try {
      journal_.append(event);
    } catch (const Unavailable& error) {
      throw RunError(error.what());
    }
    revision_ = event.revision;
  }

  /// Completes a change of the cluster: writes the event to the journal, then publishes the new plans.
  Arrival commit(JournalEvent& event, const JobRequest* arrived, std::span<const Host> hosts) {
    const ClusterSolution& solution = cluster_.solution();
    Arrival result;
    if (arrived != nullptr) {
      const auto solved = std::ranges::find(solution.jobs, arrived->id, &ClusterSolution::SolvedJob::name);
      StoredJob job;
      job.request = *arrived;
      for (const Host host : hosts) job.hosts.push_back(names_[host]);
      job.number = next_number();
      job.slot_period = solved->slot_period;
      job.time_shift = solved->time_shift;
      job.revision = event.revision;
      event.arrived.push_back(std::move(job));
    }
    std::unordered_map<std::string_view, const JobPlan*> before;
    for (const RunningJob& job : running_) before[job.request.id] = &job.plan;
    std::vector<RunningJob> next = running_;
    if (!event.departed.empty())
      std::erase_if(next, [&](const RunningJob& job) { return job.request.id == event.departed.front(); });
    for (const StoredJob& job : event.arrived) next.push_back(running_job(job));
    fill_plans(next);
    for (RunningJob& job : next) {
      const auto known = before.find(job.request.id);
      if (known != before.end() && same_slots(*known->second, job.plan)) continue;
      job.plan.revision = event.revision;
      if (known == before.end()) continue;
      event.changed.push_back(change_of(job.plan));
      result.moves.push_back(job.plan);
    }
    for (StoredJob& job : event.arrived) {
      job.slots = next.back().plan.slots;
      job.reason = next.back().plan.reason;
    }
    journal_.append(event);
    stale_ = false;
    if (arrived != nullptr) result.plan = next.back().plan;
    auto index = index_of(next);
    {
      const std::scoped_lock lock(published_);
      running_ = std::move(next);
      index_ = std::move(index);
      revision_ = event.revision;
    }
    for (const std::string& id : event.departed) log(fmt::format("depart {}: revision {}", id, event.revision));
    if (arrived != nullptr)
      log(fmt::format("arrive {}: number {}, {} on {}, {}, revision {}", result.plan.id, result.plan.number,
                      plural(arrived->workers, "worker"), some_of(result.plan.hosts), described(result.plan),
                      event.revision));
    for (const JobPlan& plan : result.moves)
      log(fmt::format("plan {}: {}, revision {}", plan.id, described(plan), plan.revision));
    return result;
  }
  static std::string some_of(const std::vector<std::string>& hosts) {
    constexpr std::size_t max_shown = 4;
    std::string text;
    for (std::size_t i = 0; i < std::min(hosts.size(), max_shown); ++i) text += (i == 0 ? "" : ",") + hosts[i];
    if (hosts.size() > max_shown) text += fmt::format(" and {} more", hosts.size() - max_shown);
    return text;
  }

  std::uint32_t next_number() const {
    std::set<std::uint32_t> taken;
    for (const RunningJob& job : running_) taken.insert(job.plan.number);
    // A number is reused as late as possible, because packets of its previous job may still be in transit.
    std::uint32_t number = journal_.state().last_number;
    do number = number == std::numeric_limits<std::uint32_t>::max() ? 1 : number + 1;
    while (taken.contains(number));
    return number;
  }

  // ---- Plans ----

  RunningJob running_job(const StoredJob& stored) const {
    RunningJob job{stored.request, {}};
    job.plan.id = stored.request.id;
    job.plan.number = stored.number;
    job.plan.hosts = stored.hosts;
    job.plan.first_send = stored.request.demand.bursts.front().from;
    job.plan.revision = stored.revision;
    return job;
  }
  std::vector<RunningJob> plans_now() const {
    std::vector<RunningJob> jobs;
    for (const StoredJob& job : journal_.state().jobs) jobs.push_back(running_job(job));
    fill_plans(jobs);
    return jobs;
  }

  /// Gives slots to competing jobs if all links of their component reach the minimum score. With lower scores,
  /// iterations would be longer than their slots. A job that misses its slot loses a whole period, so sharing by
  /// congestion control costs less than slots. `jobs` must be the jobs of the solution, in any order.
  void fill_plans(std::vector<RunningJob>& jobs) const {
    const ClusterSolution& solution = cluster_.solution();
    const double min = options_.cluster.min_score;
    struct OnLinks {
      double sum = 0;
      std::size_t links = 0;
    };
    std::vector<OnLinks> of_job(solution.jobs.size());
    std::vector<std::string> unfit(solution.components.size());
    for (std::size_t i = 0; i < unfit.size(); ++i)
      if (!solution.components[i].within_limit)
        unfit[i] =
            fmt::format("slots that go together would be {:.1f}% longer than an iteration of a job that it meets",
                        solution.components[i].stretch * 100);
    for (const ClusterSolution::Link& link : solution.links) {
      if (!link.competed) continue;
      for (const scheduler::LinkUse& use : link.uses) {
        of_job[use.job].sum += link.solution.score;
        ++of_job[use.job].links;
      }
      if (link.solution.score < min && unfit[link.component].empty())
        unfit[link.component] = fmt::format("jobs collide in the best slots, too: link {} scores {:.3f}, below {}",
                                            link_name(link.link), link.solution.score, min);
    }
    std::unordered_map<std::string_view, std::size_t> place;
    for (std::size_t i = 0; i < solution.jobs.size(); ++i) place[solution.jobs[i].name] = i;
    for (RunningJob& job : jobs) {
      JobPlan& plan = job.plan;
      const std::size_t at = place.at(job.request.id);
      const ClusterSolution::SolvedJob& solved = solution.jobs[at];
      plan.slot_period = solved.slot_period;
      plan.time_shift = solved.time_shift;
      plan.slot_unix_ns = journal_.state().epoch_unix_ns + plan.time_shift.count + plan.first_send.count;
      const OnLinks& links = of_job[at];
      plan.score = links.links > 0 ? links.sum / static_cast<double>(links.links) : 1;
      plan.reason =
          links.links == 0 ? "it shares no link with another job that the two could overfill" : unfit[solved.component];
      plan.slots = plan.reason.empty();
    }
  }

  const RunningJob* find(std::string_view id) const {
    const auto found = index_.find(id);
    return found == index_.end() ? nullptr : &running_[found->second];
  }
  static std::map<std::string, std::size_t, std::less<>> index_of(const std::vector<RunningJob>& jobs) {
    std::map<std::string, std::size_t, std::less<>> index;
    for (std::size_t i = 0; i < jobs.size(); ++i) index[jobs[i].request.id] = i;
    return index;
  }

  // ---- Placements; with work_ held ----

  void refuse_running(const std::string& id) const {
    if (find(id) != nullptr)
      throw Conflict(fmt::format("job {} runs already; GET /v1/jobs/ID/plan shows where", in_quotes(id)));
  }

  std::vector<std::uint32_t> used() const {
    std::vector<std::uint32_t> slots(names_.size());
    for (const RunningJob& job : running_)
      for (const std::string& name : job.plan.hosts) ++slots[host_of_.at(name)];
    return slots;
  }
  void check_capacity(const JobRequest& request, std::span<const Host> hosts) const {
    std::vector<std::uint32_t> slots = used();
    for (const Host host : hosts)
      if (++slots[host] > options_.slots_per_host)
        throw Conflict(
            fmt::format("job {}: host {} has no room for that many workers, with {} for each host; name another "
                        "one, or wait for a job there to depart",
                        in_quotes(request.id), in_quotes(names_[host]), plural(options_.slots_per_host, "slot")));
  }

  /// Hosts for the workers of a job, and the kind of placement.
  struct Found {
    std::vector<Host> hosts;
    std::string_view kind;
  };

  std::vector<Found> generated(const JobRequest& request, std::uint32_t candidates) {
    scheduler::Occupancy occupancy(static_cast<std::uint32_t>(names_.size()), options_.slots_per_host);
    const std::vector<std::uint32_t> slots = used();
    std::vector<bool> allowed(names_.size(), request.allowed_hosts.empty());
    for (const std::string& name : request.allowed_hosts) allowed[find_host(name)] = true;
    std::vector<Host> taken;
    for (Host host = 0; host < names_.size(); ++host) {
      const std::uint32_t all = options_.slots_per_host;
      std::uint32_t free = allowed[host] ? all - std::min(all, slots[host]) : 0;
      if (request.max_per_host > 0) free = std::min(free, request.max_per_host);
      taken.insert(taken.end(), all - free, host);
    }
    if (!taken.empty()) occupancy.take("others", taken);
    if (occupancy.free() < request.workers)
      throw Conflict(
          fmt::format("job {} has {} and there is room for {}; wait for a job to depart, or allow more hosts",
                      in_quotes(request.id), plural(request.workers, "worker"), occupancy.free()));
    scheduler::GeneratorOptions how;
    how.candidates = candidates;
    std::vector<Found> found;
    for (scheduler::WorkerPlacement& placement :
         scheduler::generate_placements(cluster_, occupancy, cluster_job(request, {}).demand, request.workers, how))
      found.push_back({std::move(placement.workers), to_text(placement.kind)});
    return found;
  }

  std::vector<RankedPlacement> ranked(const JobRequest& request, const std::vector<Found>& placements) {
    std::vector<scheduler::Candidate> candidates;
    for (const Found& placement : placements) candidates.push_back({{cluster_job(request, placement.hosts)}});
    std::vector<scheduler::RankedCandidate> scores;
    try {
      scores = cluster_.rank(candidates);
    } catch (const InputError& error) {
      throw Conflict(error.what());
    }
    // Restores the order of generation, so that the first of equally good placements is chosen. Placements on few racks
    // come first.
    std::ranges::sort(scores, [](const auto& a, const auto& b) { return a.candidate < b.candidate; });
    std::vector<RankedPlacement> result;
    std::string discarded;
    for (const scheduler::RankedCandidate& score : scores) {
      if (score.discarded) {
        discarded = score.reason;
        continue;
      }
      RankedPlacement one;
      for (const Host host : placements[score.candidate].hosts) one.hosts.push_back(names_[host]);
      one.kind = placements[score.candidate].kind;
      one.score = score.score;
      one.upper_bound = score.upper_bound;
      one.optimal = score.optimal;
      try {
        add_preview(cluster_.preview(candidates[score.candidate].jobs.front()), one);
      } catch (const InputError& error) {
        discarded = error.what();
        continue;
      }
      result.push_back(std::move(one));
    }
    if (result.empty()) throw Conflict(fmt::format("job {} can't be placed: {}", in_quotes(request.id), discarded));
    std::ranges::stable_sort(result, [](const RankedPlacement& a, const RankedPlacement& b) {
      return std::llround((a.excess + a.stretch) * kCostSteps) < std::llround((b.excess + b.stretch) * kCostSteps);
    });
    return result;
  }

  void add_preview(const scheduler::Preview& preview, RankedPlacement& one) const {
    const ClusterSolution& solution = preview.solution;
    const auto added = static_cast<std::uint32_t>(solution.jobs.size() - 1);
    for (const ClusterSolution::Link& link : solution.links) {
      one.excess += 1 - link.solution.score;
      const bool own = link.competed &&
                       std::ranges::any_of(link.uses, [&](const scheduler::LinkUse& use) { return use.job == added; });
      if (!own || (one.worst_link && link.solution.score >= one.worst_link->score)) continue;
      one.worst_link = {link_name(link.link), link.solution.score};
    }
    for (const ClusterSolution::SolvedJob& job : solution.jobs)
      one.stretch += job.slot_period.seconds() / job.period.seconds() - 1;
    one.own_score = preview.joined.score;
    one.time_shift = preview.joined.time_shift;
    one.slot_period = preview.joined.slot_period;
    one.moves = static_cast<std::uint32_t>(preview.joined.moves.size());
  }

  std::vector<Host> best(const JobRequest& request) {
    return hosts_of(ranked(request, generated(request, options_.candidates)).front().hosts);
  }

  const ServiceOptions options_;
  const std::vector<std::string> names_;
  std::map<std::string, Host, std::less<>> host_of_;

  /// Locked while the cluster is used or changed. Lock it before `published_`.
  std::mutex work_;
  Cluster cluster_;
  Journal journal_;
  bool stale_ = false;  ///< true if the cluster may differ from the journal

  /// Locked only to read or replace the published plans. A writer must lock both mutexes, so either mutex is sufficient
  /// to read.
  mutable std::mutex published_;
  std::vector<RunningJob> running_;                        ///< in the order of arrival
  std::map<std::string, std::size_t, std::less<>> index_;  ///< index in running_ by job id
  std::uint64_t revision_ = 0;
  std::array<PlanningStats, 3> planning_;
};

namespace {

constexpr auto kAlways = [](const auto& /*result*/) { return true; };

}  // namespace

SchedulerService::SchedulerService(Topology topology, ServiceOptions options)
    : impl_(std::make_unique<Impl>(std::move(topology), std::move(options))) {}
SchedulerService::~SchedulerService() = default;

std::vector<RankedPlacement> SchedulerService::rank(const JobRequest& request, std::uint32_t candidates) const {
  return impl_->timed(
      Planning::rank, [&] { return impl_->rank(request, candidates); }, kAlways);
}
std::vector<RankedPlacement> SchedulerService::rank(const JobRequest& request,
                                                    const std::vector<std::vector<std::string>>& placements) const {
  return impl_->timed(
      Planning::rank, [&] { return impl_->rank(request, placements); }, kAlways);
}
Arrival SchedulerService::arrive(const JobRequest& request, const std::vector<std::string>& hosts, Capacity capacity) {
  return impl_->timed(
      Planning::arrive, [&] { return impl_->arrive(request, hosts, capacity); },
      [](const Arrival& arrival) { return !arrival.known; });
}
std::vector<JobPlan> SchedulerService::depart(std::string_view id) {
  return impl_->timed(
      Planning::depart, [&] { return impl_->depart(id); }, kAlways);
}
PlanningStats SchedulerService::planning(Planning kind) const { return impl_->planning(kind); }
std::string SchedulerService::trouble() { return impl_->trouble(); }
JobPlan SchedulerService::plan(std::string_view id) const { return impl_->plan(id); }
std::vector<RunningJob> SchedulerService::jobs() const { return impl_->jobs(); }
std::vector<JobPlan> SchedulerService::plans() const { return impl_->plans(); }
std::uint64_t SchedulerService::revision() const { return impl_->revision(); }
std::vector<std::uint32_t> SchedulerService::free_slots() const { return impl_->free_slots(); }
const Topology& SchedulerService::topology() const { return impl_->topology(); }
const std::vector<std::string>& SchedulerService::host_names() const { return impl_->host_names(); }
Topology::Host SchedulerService::find_host(std::string_view name) const { return impl_->find_host(name); }
std::string SchedulerService::link_name(Topology::Link link) const { return impl_->link_name(link); }
std::uint32_t SchedulerService::slots_per_host() const { return impl_->slots_per_host(); }
std::int64_t SchedulerService::epoch_unix_ns() const { return impl_->epoch_unix_ns(); }

}  // namespace mltcp::service
