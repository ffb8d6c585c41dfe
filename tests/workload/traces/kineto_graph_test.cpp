// Graphs of traces of PyTorch's profiler: that what is made of a trace takes as long as the trace did, and waits for what
// it waited for.
#include "mltcp/workload/traces/kineto_graph.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../traces.h"
#include "mltcp/base/error.h"

namespace mltcp::workload::kineto_graph_test {
namespace {

using namespace mltcp::literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = GraphNode::Kind;

/// Ends of a rank's nodes if every communication takes as long as recorded: computations one at a time, in order.
std::vector<Nanos> ends_of(const RankGraph& rank) {
  std::vector<Nanos> ends;
  Nanos computed;
  for (const GraphNode& node : rank.nodes) {
    Nanos start = node.kind == Kind::compute ? computed : Nanos(0);
    for (std::uint32_t i = 0; i < node.waits; ++i)
      start = std::max(start, ends[rank.waits[node.first_wait + i]]);
    ends.push_back(start + node.length);
    if (node.kind == Kind::compute) computed = ends.back();
  }
  return ends;
}

/// When each step ends then.
std::vector<Nanos> step_ends(const ExecutionGraph& graph, std::size_t rank) {
  std::vector<Nanos> ends(graph.steps.size());
  const std::vector<Nanos> all = ends_of(graph.ranks[rank]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Nanos& end = ends[graph.ranks[rank].nodes[i].step];
    end = std::max(end, all[i]);
  }
  return ends;
}

TEST(KinetoGraph, resnet50__is_what_it_should_be) {
  const auto file = trace_folder() / "kineto" / "hta_nccl_data_resnet50_2xA100.json.gz";
  SKIP_WITHOUT(file);
  const ExecutionGraph graph = read_traces(std::vector{file});
  for (const auto& w : graph.warnings) fmt::print("{}\n", w);
  ASSERT_EQ(graph.steps.size(), 3u);
  for (std::size_t r = 0; r < graph.ranks.size(); ++r) {
    const auto ends = ends_of(graph.ranks[r]);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const GraphNode& n = graph.ranks[r].nodes[i];
      std::string waits;
      for (std::uint32_t k = 0; k < n.waits; ++k) waits += fmt::format(" {}", graph.ranks[r].waits[n.first_wait + k]);
      fmt::print("{} {:>3} step {} {:<40} {:>12} {:>10} us  +{:>8} sim {:>8} waits{}\n", r, i, n.step, graph.names[n.name], n.bytes,
                 n.start.count / 1000, n.length.count / 1000, ends[i].count / 1000, waits);
    }
  }
  for (auto e : step_ends(graph, 0)) fmt::print("{}\n", e.count);
}

TEST(KinetoGraph, dlrm__joins_eight_ranks) {
  const auto file = trace_folder() / "kineto" / "param_dlrm_kineto_8ranks.tar.gz";
  SKIP_WITHOUT(file);
  const ExecutionGraph graph = read_traces(std::vector{file});
  for (const auto& w : graph.warnings) fmt::print("{}\n", w);
  fmt::print("{} ranks {} steps\n", graph.ranks.size(), graph.steps.size());
  for (std::size_t r = 0; r < 2; ++r) {
    const auto ends = ends_of(graph.ranks[r]);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const GraphNode& n = graph.ranks[r].nodes[i];
      std::string waits;
      for (std::uint32_t k = 0; k < n.waits; ++k) waits += fmt::format(" {}", graph.ranks[r].waits[n.first_wait + k]);
      fmt::print("{} {:>3} step {} {:<40} {:>12} {:>10} us  +{:>8} sim {:>8} waits{}\n", r, i, n.step, graph.names[n.name], n.bytes,
                 n.start.count / 1000, n.length.count / 1000, ends[i].count / 1000, waits);
    }
  }
}

}  // namespace
}  // namespace mltcp::workload::kineto_graph_test
