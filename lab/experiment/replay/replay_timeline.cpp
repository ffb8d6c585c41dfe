// Chrome traces of replays (see replay_timeline.h).
#include "mltcp/lab/experiment/replay/replay_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "mltcp/lab/experiment/replay/replay_summary.h"

namespace mltcp::experiment {
namespace {

using workload::GraphNode;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Drawing {
 public:
  void process(std::uint32_t pid, const std::string& name) {
    next();
    text_ += fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}}}}},)"
                         "\n"
                         R"({{"name":"process_sort_index","ph":"M","pid":{},"args":{{"sort_index":{}}}}})",
                         pid, json_text(name), pid, pid);
  }
  void thread(std::uint32_t pid, std::uint32_t tid, std::string_view name) {
    next();
    text_ += fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", pid, tid,
                         json_text(name));
  }
  void event(std::uint32_t pid, const GraphNode& node, std::string_view name, Nanos begin, Nanos length) {
    next();
    constexpr std::string_view kinds[] = {"compute", "collective", "send", "receive"};
    text_ += fmt::format(R"({{"name":{},"cat":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}{}}})",
                         json_text(name), kinds[static_cast<std::size_t>(node.kind)], pid, node.lane, micros(begin),
                         micros(length), node.bytes > 0 ? fmt::format(R"(,"args":{{"bytes":{}}})", node.bytes) : "");
  }
  std::string take() { return R"({"displayTimeUnit":"ms","traceEvents":[)" + text_ + "\n]}\n"; }

 private:
  static double micros(Nanos time) { return static_cast<double>(time.count) / 1e3; }
  void next() {
    if (!text_.empty()) text_ += ',';
    text_ += '\n';
  }
  std::string text_;
};

std::string_view name_of(const workload::ExecutionGraph& graph, const GraphNode& node) {
  return node.name < graph.names.size() ? std::string_view(graph.names[node.name]) : std::string_view();
}

}  // namespace

std::string replay_timeline(std::span<const DrawnReplay> jobs) {
  Drawing drawing;
  std::uint32_t pid = 0;
  for (const DrawnReplay& job : jobs) {
    const auto& [graph, programs, result] = job;
    const std::size_t iterations = iterations_with_times(*programs, *result);
    std::vector<NodeTimes> times;
    if (iterations > 0) times = node_times(*graph, *programs, *result, iterations - 1);
    const auto replayed = [&](const GraphNode& node) {
      return node.step >= programs->first_step && node.step <= programs->last_step;
    };
    Nanos recorded_from = graph->steps[programs->first_step].start;
    Nanos replayed_from = Nanos::never();
    for (std::size_t program = 0; program < programs->ranks.size(); ++program) {
      const workload::RankGraph& of_rank = graph->ranks[programs->graph_rank[program]];
      for (std::size_t i = 0; i < of_rank.nodes.size(); ++i) {
        if (!replayed(of_rank.nodes[i])) continue;
        recorded_from = std::min(recorded_from, of_rank.nodes[i].start);
        if (!times.empty()) replayed_from = std::min(replayed_from, times[program][i].from);
      }
    }
    for (std::size_t program = 0; program < programs->ranks.size(); ++program) {
      const std::uint32_t rank = programs->graph_rank[program];
      const workload::RankGraph& of_rank = graph->ranks[rank];
      const std::uint32_t recorded_pid = pid++;
      const std::uint32_t replayed_pid = pid++;
      drawing.process(recorded_pid, fmt::format("{} recorded: rank {}", result->name, rank));
      drawing.process(replayed_pid, fmt::format("{} replayed: rank {}", result->name, rank));
      std::set<std::uint32_t> lanes;
      for (std::size_t i = 0; i < of_rank.nodes.size(); ++i) {
        const GraphNode& node = of_rank.nodes[i];
        if (!replayed(node)) continue;
        lanes.insert(node.lane);
        if (!node.start.is_never())
          drawing.event(recorded_pid, node, name_of(*graph, node), node.start - recorded_from, node.length);
        if (times.empty() || times[program][i].to.is_never()) continue;
        const TimeSpan& span = times[program][i];
        drawing.event(replayed_pid, node, name_of(*graph, node), span.from - replayed_from, span.to - span.from);
      }
      for (const std::uint32_t lane : lanes)
        for (const std::uint32_t process : {recorded_pid, replayed_pid})
          if (lane < graph->lanes.size()) drawing.thread(process, lane, graph->lanes[lane]);
    }
  }
  return drawing.take();
}

}  // namespace mltcp::experiment
