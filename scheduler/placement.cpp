// Tracks free slots and generates placements (see placement.h).
#include "mltcp/scheduler/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text.h"

namespace mltcp::scheduler {
namespace {

using Host = Topology::Host;

constexpr std::uint32_t kMaxCandidates = 1'000'000;

struct Rack {
  std::uint64_t free = 0;   ///< number of workers that fit in the rack
  std::uint64_t slots = 0;  ///< number of free slots on `hosts`
  std::vector<Host> hosts;  ///< hosts that can take a worker, in order of preference
};

class Generator {
 public:
  Generator(Cluster& cluster, const Occupancy& occupancy, const Demand& demand, std::uint32_t workers,
            const GeneratorOptions& options)
      : cluster_(cluster),
        occupancy_(occupancy),
        demand_(demand),
        workers_(workers),
        slots_(options.slots_per_worker),
        random_(options.seed) {
    const Topology& topology = cluster.topology();
    racks_.resize(topology.racks());
    for (Host host = 0; host < topology.hosts(); ++host) {
      if (free_places(host) == 0) continue;
      racks_[topology.rack(host)].hosts.push_back(host);
      racks_[topology.rack(host)].free += free_places(host);
      racks_[topology.rack(host)].slots += occupancy.free(host);
    }
    for (Rack& rack : racks_)
      std::ranges::stable_sort(rack.hosts, [&](Host a, Host b) {
        return slots_ > 0 ? occupancy.free(a) < occupancy.free(b) : occupancy.free(a) > occupancy.free(b);
      });
  }

  /// Returns the hosts of the variant number `variant`, chosen rack by rack. To use few racks, prefers racks that can
  /// hold all remaining workers, the fullest first. If no rack can hold them, prefers the rack with the most free
  /// slots. If `compatible` is true, a higher rack score has priority over free slots.
  std::vector<Host> by_racks(std::uint32_t variant, bool compatible) {
    if (compatible && rack_scores_.empty()) score_racks();
    std::vector<std::uint32_t> order;
    for (std::uint32_t rack = 0; rack < racks_.size(); ++rack)
      if (racks_[rack].free > 0) order.push_back(rack);
    std::vector<std::uint32_t> chosen;
    for (std::uint64_t left = workers_; left > 0;) {
      const auto preference = [&](std::uint32_t rack) {
        const auto capacity = static_cast<double>(racks_[rack].slots);
        const bool part = racks_[rack].free < left;
        return std::tuple(part, compatible ? -rack_scores_[rack] : 0, part ? -capacity : capacity, rack);
      };
      std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) { return preference(a) < preference(b); });
      // Each variant starts with a different rack, until all racks have been the first one once.
      const std::size_t pick = chosen.empty() ? variant % order.size() : 0;
      chosen.push_back(order[pick]);
      left -= std::min(left, racks_[order[pick]].free);
      order.erase(order.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    std::vector<Host> hosts;
    for (const std::uint32_t rack : chosen)
      for (const Host host : racks_[rack].hosts)
        hosts.insert(hosts.end(), std::min<std::size_t>(free_places(host), workers_ - hosts.size()), host);
    return hosts;
  }

  std::vector<Host> by_chance() {
    std::vector<Host> slots;
    for (Host host = 0; host < occupancy_.hosts(); ++host) slots.insert(slots.end(), free_places(host), host);
    for (std::uint32_t i = 0; i < workers_; ++i) std::swap(slots[i], slots[i + random_.below(slots.size() - i)]);
    slots.resize(workers_);
    const Topology& topology = cluster_.topology();
    std::ranges::sort(slots,
                      [&](Host a, Host b) { return std::pair(topology.rack(a), a) < std::pair(topology.rack(b), b); });
    return slots;
  }

 private:
  /// Returns how many workers of the job fit on the free slots of `host`.
  [[nodiscard]] std::uint32_t free_places(Host host) const {
    if (slots_ == 0) return occupancy_.free(host);
    return occupancy_.free(host) >= slots_ ? 1 : 0;
  }
  /// Sets the score of each rack to the minimum pair score of the new job with the jobs that send or receive across the
  /// boundary of the rack; 1 if there are no such jobs.
  void score_racks() {
    const Topology& topology = cluster_.topology();
    rack_scores_.assign(racks_.size(), 1);
    for (std::size_t i = 0; i < cluster_.jobs(); ++i) {
      const ClusterJob& job = cluster_.job(i);
      std::map<Rate, double> scores;
      for (const Flow& flow : job.flows) {
        if (topology.rack(flow.from) == topology.rack(flow.to)) continue;
        const std::vector<Topology::Link> path = flow.path.empty() ? topology.path(flow.from, flow.to, 0) : flow.path;
        const Rate capacity = topology.capacity(path[path.size() > 1 ? 1 : 0]);
        const auto [known, fresh] = scores.try_emplace(capacity);
        if (fresh) known->second = cluster_.pair_score(demand_, job.demand, capacity);
        const double score = known->second;
        for (const Host end : {flow.from, flow.to})
          rack_scores_[topology.rack(end)] = std::min(rack_scores_[topology.rack(end)], score);
      }
    }
  }

  Cluster& cluster_;
  const Occupancy& occupancy_;
  const Demand& demand_;
  std::uint32_t workers_;
  std::uint32_t slots_;  ///< GeneratorOptions::slots_per_worker
  Random random_;
  std::vector<Rack> racks_;
  std::vector<double> rack_scores_;
};

}  // namespace

Occupancy::Occupancy(std::uint32_t hosts, std::uint32_t slots_per_host, bool share_hosts)
    : slots_per_host_(slots_per_host), share_hosts_(share_hosts), used_(hosts) {
  if (hosts == 0 || slots_per_host == 0)
    throw InputError(
        fmt::format("{} hosts with {} slots each hold no job; give 1 or more of both", hosts, slots_per_host));
}

std::uint64_t Occupancy::free() const {
  std::uint64_t sum = 0;
  for (Host host = 0; host < hosts(); ++host) sum += free(host);
  return sum;
}

std::uint32_t Occupancy::free_places(std::uint32_t slots) const {
  std::uint32_t count = 0;
  for (Host host = 0; host < hosts(); ++host)
    if (free(host) >= slots) ++count;
  return count;
}

void Occupancy::take(const std::string& job, std::span<const Host> workers) {
  if (jobs_.contains(job))
    throw InputError(fmt::format("job {} has slots already; release them first", in_quotes(job)));
  if (workers.empty()) throw InputError(fmt::format("job {} has no workers; give it one or more", in_quotes(job)));
  std::map<Host, std::uint32_t> wanted;
  for (const Host host : workers) {
    if (host >= hosts())
      throw InputError(
          fmt::format("job {}: there is no host {}; the cluster has hosts 0 to {}", in_quotes(job), host, hosts() - 1));
    if (++wanted[host] > free(host))
      throw InputError(fmt::format("job {}: host {} has room for {} of its workers, not for more; choose another",
                                   in_quotes(job), host, free(host)));
  }
  for (const auto& [host, count] : wanted) used_[host] += count;
  jobs_.emplace(job, std::vector(workers.begin(), workers.end()));
}

void Occupancy::release(const std::string& job) {
  const auto taken = jobs_.find(job);
  if (taken == jobs_.end()) throw InputError(fmt::format("job {} has no slots to release", in_quotes(job)));
  for (const Host host : taken->second) --used_[host];
  jobs_.erase(taken);
}

std::vector<WorkerPlacement> generate_placements(Cluster& cluster, const Occupancy& occupancy, const Demand& demand,
                                                 std::uint32_t workers, const GeneratorOptions& options) {
  if (occupancy.hosts() != cluster.topology().hosts())
    throw InputError(fmt::format("slots are given for {} hosts, and the network has {}; give the slots of each host",
                                 occupancy.hosts(), cluster.topology().hosts()));
  if (workers == 0) throw InputError("a job has no workers; give it one or more");
  const std::uint32_t slots = options.slots_per_worker;
  if (slots > 0 && workers > occupancy.free_places(slots))
    throw InputError(fmt::format(
        "a job needs {} hosts with {} free slots each and there are {}; wait for others to leave, or make it smaller",
        workers, slots, occupancy.free_places(slots)));
  if (const std::uint64_t free = occupancy.free(); workers > free)
    throw InputError(fmt::format("a job needs {} slots and {} are free; wait for others to leave, or make it smaller",
                                 workers, free));
  std::vector<PlacementKind> kinds;
  for (const auto& [wanted, kind] :
       {std::pair{options.locality, PlacementKind::locality}, std::pair{options.compatible, PlacementKind::compatible},
        std::pair{options.random, PlacementKind::random}})
    if (wanted) kinds.push_back(kind);
  if (kinds.empty() || options.candidates == 0)
    throw InputError("no candidates are asked for; ask for one or more, of one kind at least");

  if (options.candidates > kMaxCandidates)
    throw InputError(
        fmt::format("{} candidates are asked for; ask for at most {}", options.candidates, kMaxCandidates));
  check(demand);
  Generator generator(cluster, occupancy, demand, workers, options);
  std::vector<WorkerPlacement> placements;
  std::set<std::vector<Host>> known;
  // The number of tries is limited, because a nearly full cluster has few distinct placements.
  const std::uint32_t tries = 4 * options.candidates;
  for (std::uint32_t variant = 0; variant < tries && placements.size() < options.candidates; ++variant) {
    for (const PlacementKind kind : kinds) {
      if (placements.size() == options.candidates) break;
      std::vector<Host> hosts = kind == PlacementKind::random
                                    ? generator.by_chance()
                                    : generator.by_racks(variant, kind == PlacementKind::compatible);
      if (known.insert(hosts).second) placements.push_back({kind, std::move(hosts)});
    }
  }
  return placements;
}

}  // namespace mltcp::scheduler
