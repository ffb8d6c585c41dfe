// Comparison of a replayed trace with its recording (see replay_summary.h).
#include "mltcp/lab/experiment/replay/replay_summary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace mltcp::experiment {
namespace {

using workload::ExecutionGraph;
using workload::GraphNode;
using workload::GraphPrograms;
using workload::kNoNode;
using workload::Operation;
using workload::RankGraph;
using workload::RankProgram;

std::size_t operations_of(const GraphPrograms& programs, std::size_t program) {
  return programs.ranks[program].operations.size();
}

/// Returns the spans of one rank's operations in one iteration.
std::span<const TimeSpan> spans_of(const GraphPrograms& programs, const JobResult& result, std::size_t program,
                                   std::size_t iteration) {
  const std::size_t each = operations_of(programs, program);
  return std::span(result.timelines[program]).subspan(iteration * each, each);
}

/// Sums of errors and lengths over the collectives of one kind.
struct Sum {
  /// Group of a collective, and its number among the rank's collectives of this group.
  std::set<std::pair<std::uint32_t, std::uint64_t>> instances;
  Bytes bytes = 0;
  double recorded_ns = 0;
  double replayed_ns = 0;
  double error = 0;
  std::uint64_t compared = 0;
  std::uint64_t measured = 0;
};

void add_collectives(const ExecutionGraph& graph, const GraphPrograms& programs, const std::vector<NodeTimes>& times,
                     std::map<workload::Collective, Sum>& sums) {
  for (std::size_t program = 0; program < programs.ranks.size(); ++program) {
    const RankGraph& of_rank = graph.ranks[programs.graph_rank[program]];
    std::map<std::uint32_t, std::uint64_t> number;
    for (std::uint32_t i = 0; i < of_rank.nodes.size(); ++i) {
      const GraphNode& node = of_rank.nodes[i];
      if (node.kind != GraphNode::Kind::collective) continue;
      const std::uint64_t own = number[node.group]++;
      if (times[program][i].from.is_never()) continue;
      Sum& sum = sums[node.collective];
      if (sum.instances.emplace(node.group, own).second) sum.bytes += node.bytes;
      const auto replayed = static_cast<double>((times[program][i].to - times[program][i].from).count);
      sum.replayed_ns += replayed;
      ++sum.measured;
      if (node.start.is_never() || node.length.count <= 0) continue;
      const auto recorded = static_cast<double>(node.length.count);
      sum.recorded_ns += recorded;
      sum.error += std::abs(replayed - recorded) / recorded;
      ++sum.compared;
    }
  }
}

/// Returns the length of a step, as given by the trace. If the trace gives no length, returns the time from the start
/// of the step's first node to the end of its last node. Returns 0 if neither is known. Differences between the ranks'
/// clocks are subtracted.
Nanos recorded_length(const ExecutionGraph& graph, const GraphPrograms& programs, std::uint32_t step) {
  Nanos first = Nanos::never();
  Nanos corrected_first = Nanos::never();
  Nanos last(std::numeric_limits<std::int64_t>::min());
  Nanos corrected_last = last;
  for (std::size_t program = 0; program < programs.graph_rank.size(); ++program) {
    const Nanos error = programs.clock_error[program];
    for (const GraphNode& node : graph.ranks[programs.graph_rank[program]].nodes) {
      if (node.step != step || node.start.is_never()) continue;
      first = std::min(first, node.start);
      last = std::max(last, node.start + node.length);
      corrected_first = std::min(corrected_first, node.start - error);
      corrected_last = std::max(corrected_last, node.start + node.length - error);
    }
  }
  const Nanos stated = graph.steps[step].length;
  if (first.is_never()) return stated;
  const Nanos corrected = corrected_last - corrected_first;
  return stated.count > 0 ? std::max(stated - (last - first) + corrected, Nanos()) : corrected;
}

}  // namespace

std::size_t iterations_with_times(const GraphPrograms& programs, const JobResult& result) {
  if (result.timelines.size() != programs.ranks.size()) return 0;
  std::size_t min = SIZE_MAX;
  for (std::size_t program = 0; program < programs.ranks.size(); ++program)
    if (operations_of(programs, program) > 0)
      min = std::min(min, result.timelines[program].size() / operations_of(programs, program));
  return min == SIZE_MAX ? 0 : min;
}

std::vector<NodeTimes> node_times(const ExecutionGraph& graph, const GraphPrograms& programs, const JobResult& result,
                                  std::size_t iteration) {
  std::vector<NodeTimes> all;
  for (std::size_t program = 0; program < programs.ranks.size(); ++program) {
    const RankGraph& of_rank = graph.ranks[programs.graph_rank[program]];
    NodeTimes& times = all.emplace_back(of_rank.nodes.size(), TimeSpan{Nanos::never(), Nanos::never()});
    const std::span<const TimeSpan> spans = spans_of(programs, result, program, iteration);
    Nanos first = Nanos::never();
    std::vector<Nanos> ends(of_rank.nodes.size(), Nanos::never());
    std::vector<Nanos> sent = ends;  // end times of the sends of collectives
    for (std::size_t i = 0; i < spans.size(); ++i) {
      first = std::min(first, spans[i].from);
      const std::uint32_t node = programs.node_of[program][i];
      if (node == kNoNode) continue;
      const Operation& operation = programs.ranks[program].operations[i];
      // A collective ends when its rank has received everything; its sends may still be under way.
      const bool trails =
          operation.kind == Operation::Kind::send && of_rank.nodes[node].kind == GraphNode::Kind::collective;
      Nanos& end = (trails ? sent : ends)[node];
      end = end.is_never() ? spans[i].to : std::max(end, spans[i].to);
      // A receive without dependencies is posted at the start of the iteration, long before its node begins.
      if (operation.kind == Operation::Kind::receive && operation.waits == 0) continue;
      times[node].from = std::min(times[node].from, spans[i].from);
    }
    for (std::uint32_t i = 0; i < of_rank.nodes.size(); ++i) {
      if (ends[i].is_never()) ends[i] = sent[i];
      if (ends[i].is_never()) continue;
      times[i].to = ends[i];
      if (!times[i].from.is_never()) continue;
      Nanos ready = first;
      for (std::uint32_t k = 0; k < of_rank.nodes[i].waits; ++k) {
        const Nanos end = ends[of_rank.waits[of_rank.nodes[i].first_wait + k]];
        if (!end.is_never()) ready = std::max(ready, end);
      }
      times[i].from = std::min(ready, ends[i]);
    }
  }
  return all;
}

ReplayResult summarize_replay(const ExecutionGraph& graph, const GraphPrograms& programs, const JobResult& result) {
  ReplayResult replay;
  replay.format = graph.format;
  replay.sources = graph.sources;
  replay.simplified = graph.warnings;
  replay.simplified.insert(replay.simplified.end(), programs.warnings.begin(), programs.warnings.end());
  const std::size_t iterations = iterations_with_times(programs, result);
  const std::size_t steps = programs.last_step - programs.first_step + 1;
  if (iterations == 0) {
    // A single step lasts for the whole iteration.
    if (steps > 1 || result.iterations.empty()) return replay;
    replay.steps.push_back({graph.steps[programs.first_step].name,
                            recorded_length(graph, programs, programs.first_step),
                            iteration_stats(result.iterations).mean});
    return replay;
  }
  std::vector<double> lengths(steps);
  std::map<workload::Collective, Sum> sums;
  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    const std::vector<NodeTimes> times = node_times(graph, programs, result, iteration);
    Nanos begin = Nanos::never();
    std::vector<Nanos> ends(steps);
    for (std::size_t program = 0; program < programs.ranks.size(); ++program) {
      for (const TimeSpan& span : spans_of(programs, result, program, iteration)) {
        begin = std::min(begin, span.from);
        ends.back() = std::max(ends.back(), span.to);
      }
      const RankGraph& of_rank = graph.ranks[programs.graph_rank[program]];
      for (std::size_t i = 0; i < of_rank.nodes.size(); ++i) {
        if (times[program][i].to.is_never()) continue;
        Nanos& end = ends[of_rank.nodes[i].step - programs.first_step];
        end = std::max(end, times[program][i].to);
      }
    }
    Nanos before = begin;
    for (std::size_t step = 0; step < steps; ++step) {
      const Nanos end = std::max(before, ends[step]);
      lengths[step] += static_cast<double>((end - before).count);
      before = end;
    }
    add_collectives(graph, programs, times, sums);
  }
  for (std::size_t step = 0; step < steps; ++step) {
    const auto number = static_cast<std::uint32_t>(programs.first_step + step);
    replay.steps.push_back({graph.steps[number].name, recorded_length(graph, programs, number),
                            Nanos(std::llround(lengths[step] / static_cast<double>(iterations)))});
  }
  for (const auto& [kind, sum] : sums) {
    ReplayResult::Collective& of = replay.collectives.emplace_back();
    of.name = workload::name(kind);
    of.count = sum.instances.size();
    of.bytes = sum.bytes;
    of.replayed = Nanos(std::llround(sum.replayed_ns / static_cast<double>(sum.measured)));
    if (sum.compared == 0) continue;
    of.recorded = Nanos(std::llround(sum.recorded_ns / static_cast<double>(sum.compared)));
    of.mean_error = sum.error / static_cast<double>(sum.compared);
  }
  return replay;
}

}  // namespace mltcp::experiment
