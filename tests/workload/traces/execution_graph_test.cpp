// Tests which graphs check() accepts and which it rejects.
#include "mltcp/lab/workload/execution_graph.h"

#include <string>

#include "../../message_of.h"

namespace mltcp::workload::execution_graph_test {
namespace {

using Kind = GraphNode::Kind;

/// Returns a graph of two ranks. Each rank has a computation and then an all-reduce. Rank 0 also sends a message to
/// rank 1.
ExecutionGraph pair() {
  ExecutionGraph graph;
  graph.format = "test";
  graph.sources = {"a.et"};
  graph.names = {"compute", "reduce", "activations"};
  graph.lanes = {"stream"};
  graph.steps.push_back({"", Nanos::never(), Nanos(0)});
  graph.groups = {{0, 1}};
  graph.ranks.resize(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    GraphNode compute;
    compute.length = Nanos(1000);
    GraphNode reduce;
    reduce.kind = Kind::collective;
    reduce.collective = Collective::all_reduce;
    reduce.name = 1;
    reduce.bytes = 4096;
    reduce.waits = 1;
    GraphNode message;
    message.kind = rank == 0 ? Kind::send : Kind::receive;
    message.name = 2;
    message.peer = 1 - rank;
    message.bytes = 100;
    message.tag = 7;
    message.first_wait = 1;
    message.waits = 1;
    graph.ranks[rank].nodes = {compute, reduce, message};
    graph.ranks[rank].waits = {0, 1};
  }
  return graph;
}

std::string refusal(const ExecutionGraph& graph) {
  return refusal_of([&] { check(graph); }, "a.et: ");
}

TEST(ExecutionGraph, check__takes_a_graph_that_comes_to_an_end) { EXPECT_NO_THROW(check(pair())); }

TEST(ExecutionGraph, check__refuses_what_points_nowhere) {
  const auto changed = [](const auto& change) {
    ExecutionGraph graph = pair();
    change(graph);
    return refusal(graph);
  };
  EXPECT_THAT(changed([](auto& g) { g.ranks.clear(); }), HasSubstr("no ranks"));
  EXPECT_THAT(changed([](auto& g) { g.steps.clear(); }), HasSubstr("no steps"));
  EXPECT_THAT(changed([](auto& g) { g.groups = {{1, 0}}; }), HasSubstr("ascending"));
  EXPECT_THAT(changed([](auto& g) { g.groups = {{0, 2}}; }), HasSubstr("ascending"));
  EXPECT_THAT(changed([](auto& g) { g.groups.push_back({0, 1}); }), HasSubstr("twice"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[1].nodes[0].name = 3; }), HasSubstr("node 0 of rank 1: its name"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[1].nodes[0].lane = 1; }), HasSubstr("lane"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[1].nodes[0].step = 1; }), HasSubstr("step"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[0].waits[1] = 2; }), HasSubstr("waits for itself"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[0].nodes[2].waits = 2; }), HasSubstr("does not exist"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[0].nodes[1].group = 1; }), HasSubstr("its group"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[0].nodes[2].peer = 2; }), HasSubstr("does not exist"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[0].nodes[2].peer = 0; }), HasSubstr("does not exist"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[0].nodes[2].bytes = 0; }), HasSubstr("without bytes"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[0].nodes[0].length = Nanos(-1); }), HasSubstr("negative"));
  EXPECT_THAT(changed([](auto& g) { g.ranks[0].nodes[0].collective = Collective::all_reduce; }), HasSubstr("kind"));
  EXPECT_THAT(changed([](auto& g) { g.recorded_ranks = {4}; }), HasSubstr("recorded numbers"));
}

TEST(ExecutionGraph, check__wants_ranks_of_a_group_to_agree) {
  ExecutionGraph graph = pair();
  graph.ranks[1].nodes[1].bytes = 4095;
  EXPECT_THAT(refusal(graph),
              HasSubstr("all-reduce of 4096 bytes, does not fit \"reduce\" of rank 1, all-reduce of 4095"));
  graph = pair();
  graph.ranks[1].nodes[1].collective = Collective::all_gather;
  EXPECT_THAT(refusal(graph), HasSubstr("all-gather"));
  graph = pair();
  graph.ranks[1].nodes[1].kind = Kind::compute;
  graph.ranks[1].nodes[1].collective = Collective::none;
  EXPECT_THAT(refusal(graph), HasSubstr("rank 0 runs 1 collective with its group, and rank 1 runs 0"));
}

TEST(ExecutionGraph, check__wants_both_ends_of_a_message) {
  ExecutionGraph graph = pair();
  graph.ranks[1].nodes[2].tag = 8;
  EXPECT_THAT(refusal(graph), HasSubstr("rank 0 sends 1 message of tag 7 to rank 1, which receives 0"));
  graph = pair();
  graph.ranks[1].nodes[2].bytes = 99;
  EXPECT_THAT(refusal(graph), HasSubstr("is of 100 bytes"));
}

TEST(ExecutionGraph, check__names_two_nodes_that_wait_for_each_other) {
  // Each rank sends only after it has received, so that the ranks wait for each other.
  ExecutionGraph graph = pair();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    auto& nodes = graph.ranks[rank].nodes;
    nodes[1] = nodes[2];
    nodes[1].kind = Kind::receive;
    nodes[1].waits = 0;
    nodes[2].kind = Kind::send;
  }
  EXPECT_THAT(refusal(graph), HasSubstr("wait for each other"));
  graph.ranks[0].nodes[2].waits = 0;
  EXPECT_NO_THROW(check(graph));
}

}  // namespace
}  // namespace mltcp::workload::execution_graph_test
