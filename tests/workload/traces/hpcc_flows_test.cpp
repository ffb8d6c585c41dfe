// Tests flow files of HPCC's simulator, and of simulators based on ns-3 that derive from it.

#include <string>
#include <vector>

#include "../../message_of.h"
#include "../graph_text.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload::hpcc_flows_test {
namespace {

using namespace mltcp::literals;
using Kind = GraphNode::Kind;

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_trace_graph(text, "flow.txt"); }, "flow.txt");
}

TEST(HpccFlows, flows__are_messages_at_their_starts) {
  const ExecutionGraph graph = parse_trace_graph(
      "3\n0 1 3 100 2000 2.000000000\n4 1 3 100 500 2.0005\r\n0 4 3 101 700 2.00000025\n", "flow.txt");
  EXPECT_EQ(graph.format, "HPCC flows");
  ASSERT_EQ(graph.ranks.size(), 5u);
  // Times are relative to the first flow in the trace. A rank computes between the starts of its flows, whether it
  // sends or receives them.
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("send 2000 B to 1", "compute 250 ns", "send 700 B to 4 tag 1 after 1",
                                              "compute 499.75 us after 1"));
  EXPECT_THAT(nodes_of(graph, 4), ElementsAre("compute 250 ns", "receive 700 B from 0 tag 1 after 0",
                                              "compute 499.75 us after 0", "send 500 B to 1 tag 2 after 2"));
  EXPECT_EQ(graph.ranks[1].nodes.size(), 3u);
  EXPECT_TRUE(graph.ranks[2].nodes.empty());
}

TEST(HpccFlows, starts__are_those_of_the_trace_on_all_ranks) {
  const ExecutionGraph graph =
      parse_trace_graph("3\n0 1 3 100 1000000 2.0\n1 2 3 100 2000000 2.001\n2 0 3 100 500000 2.002\n", "flow.txt");
  const ExecutionGraph matrix = parse_trace_graph(
      "Nodes 3\nConnections 3\n0->1 start 0 size 1000000\n1->2 start 1000000000 size 2000000\n"
      "2->0 start 2000000000 size 500000\n",
      "t.cm");
  const std::vector<Nanos> lengths{2_ms, 2_ms, 2_ms + 40_us};
  const std::vector<Nanos> communicates{80_us, 160_us, 40_us};  // the transmission times at 100 Gbps
  for (const ExecutionGraph* one : {&graph, &matrix})
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const GraphSummary summary = summarise(*one, {.rank = rank});
      ASSERT_EQ(summary.steps.size(), 1u);
      EXPECT_EQ(summary.steps[0].length, lengths[rank]) << one->format << rank;
      EXPECT_EQ(summary.steps[0].communicate, communicates[rank]) << one->format << rank;
    }
}

TEST(HpccFlows, malformed__is_refused_with_its_line) {
  EXPECT_THAT(refusal("2\n0 1 3 100 2000 2.0\n"), HasSubstr("2 flows are announced and 1 follow"));
  EXPECT_THAT(refusal("1\n0 1 3 100 2000 2.0\n1 0 3 100 9 2.0\n"), HasSubstr("1 flows are announced and 2 follow"));
  EXPECT_THAT(refusal("1\n0 0 3 100 2000 2.0\n"), AllOf(StartsWith("flow.txt:2: "), HasSubstr("to itself")));
  // An older format has columns for the number of packets, the start and the end.
  EXPECT_THAT(refusal("1\n0 1 3 2000 2.0 9.5\n"), HasSubstr("\"2.0\" of the bytes is not a whole number"));
  EXPECT_THAT(refusal("1\n0 1 3 100 2000 2.0 9.5\n"), HasSubstr("more columns than 6"));
  EXPECT_THAT(refusal("1\n0 1 3 100 0 2.0\n"), HasSubstr("from 1 to"));
  EXPECT_THAT(refusal("1\n0 1 3 100 5 nan\n"), HasSubstr("is not a number of seconds"));
  EXPECT_THAT(refusal("1\n0 99999999 3 100 5 2\n"), HasSubstr("from 0 to 999999"));
  EXPECT_THAT(refusal("1\n0 1 3 100 5 2\n0 1\n"), HasSubstr("fewer columns than 6"));
}

}  // namespace
}  // namespace mltcp::workload::hpcc_flows_test
