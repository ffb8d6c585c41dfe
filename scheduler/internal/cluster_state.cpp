// Routes jobs, finds the links that they share, and creates questions for the solver (see cluster_state.h).
#include "mltcp/scheduler/internal/cluster_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "mltcp/base/error.h"
#include "mltcp/base/fingerprint.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text.h"
#include "mltcp/scheduler/internal/solving.h"

namespace mltcp::scheduler {
namespace {

constexpr std::uint32_t kMaxFlows = 1U << 16;  // maximum of Flow::multiplicity

/// Hash of the name of a job (FNV-1a). It makes the paths of a job independent of the order of the jobs.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
  return hash;
}

}  // namespace

std::string identity_of(const Demand& demand) {
  std::string text;
  append_to_key(text, demand.period.count);
  for (const Burst& burst : demand.bursts) {
    append_to_key(text, burst.from.count);
    append_to_key(text, burst.to.count);
    append_to_key(text, static_cast<std::int64_t>(burst.rate.bits_per_second));
  }
  return Fingerprint().add(text).text();
}

void append_to_key(std::string& key, std::int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

Slots slots_with(std::span<const Nanos> periods, std::span<const Nanos> slot_periods, const SolveOptions& options) {
  Slots slots;
  slots.perimeter = Nanos(1);
  for (const Nanos period : slot_periods) slots.perimeter.count = std::lcm(slots.perimeter.count, period.count);
  for (std::size_t i = 0; i < periods.size(); ++i) {
    slots.repetitions.push_back(static_cast<std::uint32_t>(slots.perimeter.count / slot_periods[i].count));
    slots.periods.push_back(slot_periods[i]);
    slots.stretch = std::max(slots.stretch, slot_periods[i].seconds() / periods[i].seconds() - 1);
  }
  slots.exact = slots.stretch == 0;
  slots.within_limit = slots.stretch <= options.max_stretch + options.slack + 1e-9;
  return slots;
}

RoutedJob::RoutedJob(ClusterJob given, const Topology& topology, std::uint64_t routing_seed) : job(std::move(given)) {
  try {
    route(topology, routing_seed);
  } catch (const InputError& error) {
    throw InputError(fmt::format("job {}: {}", in_quotes(job.name), error.what()));
  }
}

void RoutedJob::route(const Topology& topology, std::uint64_t routing_seed) {
  check(job.demand);
  identity = identity_of(job.demand);
  peak = scheduler::peak(job.demand);
  const std::uint64_t key = Random::stream(routing_seed, hash_of(job.name)).next();
  std::vector<Topology::Link> crossed;
  for (const Flow& flow : job.flows) {
    if (flow.multiplicity == 0 || flow.multiplicity > kMaxFlows)
      throw InputError(fmt::format("{} flows from host {} to host {}; give 1 to {}", flow.multiplicity, flow.from,
                                   flow.to, kMaxFlows));
    if (!flow.path.empty()) topology.check_path(flow.from, flow.to, flow.path);
    for (std::uint32_t i = 0; i < flow.multiplicity; ++i) {
      // The number is unique for each flow, because host numbers have at most 20 bits.
      const std::uint64_t number = std::uint64_t{flow.from} << 36U | std::uint64_t{flow.to} << 16U | i;
      const std::vector<Topology::Link> path =
          flow.path.empty() ? topology.path(flow.from, flow.to, Random::stream(key, number).next()) : flow.path;
      crossed.insert(crossed.end(), path.begin(), path.end());
    }
  }
  std::ranges::sort(crossed);
  for (const Topology::Link link : crossed) {
    if (uses.empty() || uses.back().first != link) uses.emplace_back(link, 0);
    ++uses.back().second;
    if (Uint128{peak.bits_per_second} * uses.back().second > kHighestRate.bits_per_second)
      throw InputError(fmt::format("its flows ask for more than {} of link {}; give fewer flows or a lower rate",
                                   to_text(kHighestRate), in_quotes(topology.link_name(link))));
  }
}

ClusterState::ClusterState(std::vector<const RoutedJob*> given, const Topology& topology) : jobs(std::move(given)) {
  std::vector<std::pair<Topology::Link, LinkUse>> uses;
  std::vector<Rate> peaks;
  for (std::uint32_t job = 0; job < jobs.size(); ++job) {
    for (const auto& [link, flows] : jobs[job]->uses) uses.push_back({link, {job, flows}});
    peaks.push_back(jobs[job]->peak);
  }
  std::ranges::sort(uses);
  for (std::size_t i = 0, next = 0; i < uses.size(); i = next) {
    const Topology::Link link = uses[i].first;
    while (next < uses.size() && uses[next].first == link) ++next;
    if (next - i < 2) continue;
    UsedLink& used = links.emplace_back(UsedLink{link, topology.capacity(link), {}});
    for (std::size_t k = i; k < next; ++k) used.uses.push_back(uses[k].second);
  }
  graph = affinity_graph(links, peaks);
  slot_periods.resize(jobs.size());
}

std::vector<Nanos> ClusterState::periods(const AffinityGraph::Component& component) const {
  std::vector<Nanos> result;
  for (const std::uint32_t job : component.jobs) result.push_back(jobs[job]->period());
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

Slots ClusterState::slots(const std::vector<std::uint32_t>& of_jobs, const SolveOptions& options) const {
  std::vector<Nanos> own;
  std::vector<Nanos> slots;
  for (const std::uint32_t job : of_jobs) {
    own.push_back(jobs[job]->period());
    slots.push_back(slot_periods[job]);
  }
  return slots_with(own, slots, options);
}

std::string too_many_bursts(const ClusterState& state, const AffinityGraph::Component& component, double max) {
  Nanos longest;
  for (const std::uint32_t job : component.jobs) longest = std::max(longest, state.jobs[job]->period());
  for (const std::uint32_t group : component.groups) {
    for (const std::uint32_t vertex : state.graph.groups[group].vertices) {
      double bursts = 0;
      for (const LinkUse& use : state.graph.vertices[vertex].uses) {
        const RoutedJob& job = *state.jobs[use.job];
        bursts += static_cast<double>(job.job.demand.bursts.size()) * longest.seconds() / job.period().seconds();
      }
      if (bursts > max)
        return fmt::format(
            "jobs on links of job {} would have {:.0f} bursts in an iteration of {}, more than {:.0f}; let "
            "jobs whose periods differ less share links",
            in_quotes(state.jobs[state.graph.vertices[vertex].uses.front().job]->job.name), bursts, to_text(longest),
            max);
    }
  }
  return {};
}

Question::Question(const ClusterState& state, const std::vector<std::uint32_t>& some_vertices) {
  const AffinityGraph& graph = state.graph;
  // The number of flows of each job on the first of its links, to order the jobs. For a question with one link, this
  // order makes keys of equal problems equal.
  std::map<std::uint32_t, std::uint32_t> flows;
  std::size_t weight = 0;
  for (const std::uint32_t vertex : some_vertices) {
    for (const LinkUse& use : graph.vertices[vertex].uses) flows.emplace(use.job, use.flows);
    weight = std::gcd(weight, graph.vertices[vertex].links.size());
  }
  for (const auto& [job, count] : flows) jobs.push_back(job);
  const auto order = [&](std::uint32_t job) {
    const RoutedJob& routed = *state.jobs[job];
    return std::tie(state.slot_periods[job], routed.identity, flows[job], routed.job.name);
  };
  std::ranges::sort(jobs, [&](std::uint32_t a, std::uint32_t b) { return order(a) < order(b); });
  std::unordered_map<std::uint32_t, std::uint32_t> index;
  for (const std::uint32_t job : jobs) {
    index.emplace(job, index.size());
    append_to_key(key, state.slot_periods[job].count);
    key += state.jobs[job]->identity;
  }
  std::vector<std::pair<std::string, std::uint32_t>> ordered;
  for (const std::uint32_t vertex : some_vertices) {
    std::string text;
    append_to_key(text, static_cast<std::int64_t>(graph.vertices[vertex].capacity.bits_per_second));
    std::vector<LinkUse> uses = graph.vertices[vertex].uses;
    append_to_key(text, static_cast<std::int64_t>(uses.size()));
    for (LinkUse& use : uses) use.job = index[use.job];
    std::ranges::sort(uses);
    for (const LinkUse& use : uses) append_to_key(text, std::int64_t{use.job} << 32 | use.flows);
    ordered.emplace_back(std::move(text), vertex);
  }
  std::ranges::sort(ordered);
  for (const auto& [text, vertex] : ordered) {
    for (std::size_t i = 0; i < graph.vertices[vertex].links.size() / weight; ++i) {
      key += text;
      vertices.push_back(vertex);
    }
  }
  links_per_vertex = static_cast<double>(weight);
  for (const std::uint32_t vertex : vertices) {
    std::int64_t perimeter = 1;
    double all_steps = 0;
    double steps_of_slots = 0;
    for (const LinkUse& use : graph.vertices[vertex].uses)
      perimeter = std::lcm(perimeter, state.slot_periods[use.job].count);
    for (const LinkUse& use : graph.vertices[vertex].uses) {
      const double steps = 2 * static_cast<double>(state.jobs[use.job]->job.demand.bursts.size());
      steps_of_slots += steps;
      const std::int64_t repetitions = perimeter / state.slot_periods[use.job].count;
      all_steps += steps * static_cast<double>(repetitions);
    }
    // This check precedes every solver, because a solver would allocate too much memory.
    if (all_steps > 2 * internal::kMaxBursts)
      throw InputError(fmt::format(
          "the perimeter of {} of jobs that share a link, {} among them, holds {:.0f} bursts, more than {:.0f}; let "
          "jobs "
          "whose periods differ less share links",
          to_text(Nanos(perimeter)), in_quotes(state.jobs[graph.vertices[vertex].uses.front().job]->job.name),
          all_steps / 2, internal::kMaxBursts));
    meetings += all_steps * steps_of_slots;
  }
}

void Question::begin_with(const std::vector<std::optional<Nanos>>& shifts) {
  for (const std::uint32_t job : jobs) {
    start.push_back(shifts[job].value_or(Nanos(-1)));
    append_to_key(key, start.back().count);
  }
}

Problem Question::problem(const ClusterState& state) const {
  Problem problem;
  std::unordered_map<std::uint32_t, std::uint32_t> index;
  for (const std::uint32_t job : jobs) {
    index.emplace(job, problem.jobs.size());
    problem.jobs.push_back({fmt::format("{}", problem.jobs.size()), state.jobs[job]->period(), {}});
  }
  for (const std::uint32_t v : vertices) {
    const AffinityGraph::Vertex& vertex = state.graph.vertices[v];
    Problem::Link link{fmt::format("{}", problem.links.size()), vertex.capacity, {}};
    for (const LinkUse& use : vertex.uses)
      link.uses.push_back({index[use.job], multiplied(state.jobs[use.job]->job.demand, use.flows)});
    std::ranges::sort(link.uses, [](const auto& a, const auto& b) { return a.job < b.job; });
    problem.links.push_back(std::move(link));
  }
  return problem;
}

std::size_t Question::place(std::uint32_t vertex) const {
  return static_cast<std::size_t>(std::ranges::find(vertices, vertex) - vertices.begin());
}

}  // namespace mltcp::scheduler
