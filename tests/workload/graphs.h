// Helper that builds small recorded graphs for tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/lab/workload/execution_graph.h"

namespace mltcp::workload {

/// Builds a graph node by node. Times that the test does not give are unknown.
class SmallGraph {
 public:
  using Waits = std::vector<std::uint32_t>;

  explicit SmallGraph(std::uint32_t ranks) {
    graph_.format = "test";
    graph_.sources = {"test.et"};
    graph_.ranks.resize(ranks);
    graph_.steps.push_back({"", Nanos::never(), Nanos()});
    std::vector<std::uint32_t> all;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) all.push_back(rank);
    graph_.groups.push_back(all);
    graph_.lanes = {"stream"};
  }

  /// Adds or changes a step. Nodes added from now on belong to this step.
  SmallGraph& step(std::uint32_t number, Nanos start = Nanos::never(), Nanos length = {}) {
    step_ = number;
    while (graph_.steps.size() <= number) graph_.steps.push_back({"", Nanos::never(), Nanos()});
    graph_.steps[number].start = start;
    graph_.steps[number].length = length;
    return *this;
  }
  std::uint32_t group(std::vector<std::uint32_t> ranks) {
    graph_.groups.push_back(std::move(ranks));
    return static_cast<std::uint32_t>(graph_.groups.size() - 1);
  }

  std::uint32_t compute(std::uint32_t rank, Nanos length, const Waits& waits = {}, Nanos start = Nanos::never()) {
    GraphNode node;
    node.length = length;
    node.start = start;
    return add(rank, node, waits, "compute");
  }
  std::uint32_t collective(std::uint32_t rank, Collective kind, Bytes bytes, const Waits& waits = {},
                           std::uint32_t group = 0, Nanos start = Nanos::never(), Nanos length = {},
                           std::uint32_t root = 0) {
    GraphNode node;
    node.kind = GraphNode::Kind::collective;
    node.collective = kind;
    node.bytes = bytes;
    node.group = group;
    node.start = start;
    node.length = length;
    node.peer = root;
    return add(rank, node, waits, std::string(name(kind)));
  }
  std::uint32_t send(std::uint32_t rank, std::uint32_t to, Bytes bytes, std::uint64_t tag = 0,
                     const Waits& waits = {}) {
    return message(GraphNode::Kind::send, rank, to, bytes, tag, waits);
  }
  std::uint32_t receive(std::uint32_t rank, std::uint32_t from, Bytes bytes, std::uint64_t tag = 0,
                        const Waits& waits = {}) {
    return message(GraphNode::Kind::receive, rank, from, bytes, tag, waits);
  }

  ExecutionGraph& graph() { return graph_; }

 private:
  std::uint32_t message(GraphNode::Kind kind, std::uint32_t rank, std::uint32_t peer, Bytes bytes, std::uint64_t tag,
                        const Waits& waits) {
    GraphNode node;
    node.kind = kind;
    node.peer = peer;
    node.bytes = bytes;
    node.tag = tag;
    node.start = Nanos::never();
    return add(rank, node, waits, kind == GraphNode::Kind::send ? "send" : "receive");
  }
  std::uint32_t add(std::uint32_t rank, GraphNode node, const Waits& waits, const std::string& called) {
    const auto known = std::find(graph_.names.begin(), graph_.names.end(), called);
    node.name = static_cast<std::uint32_t>(known - graph_.names.begin());
    if (known == graph_.names.end()) graph_.names.push_back(called);
    RankGraph& of_rank = graph_.ranks[rank];
    node.step = step_;
    node.first_wait = static_cast<std::uint32_t>(of_rank.waits.size());
    node.waits = static_cast<std::uint32_t>(waits.size());
    of_rank.waits.insert(of_rank.waits.end(), waits.begin(), waits.end());
    of_rank.nodes.push_back(node);
    return static_cast<std::uint32_t>(of_rank.nodes.size() - 1);
  }

  ExecutionGraph graph_;
  std::uint32_t step_ = 0;
};

}  // namespace mltcp::workload
