// Tests PyTorch's execution traces in both schemas, and PARAM's communication traces.

#include <string>
#include <vector>

#include "../../message_of.h"
#include "../graph_text.h"
#include "../phases.h"
#include "../traces.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload::pytorch_et_test {
namespace {

using Kind = GraphNode::Kind;

std::string refusal(const std::string& text, const std::string& name) {
  return refusal_of([&] { parse_trace_graph(text, name); }, name + ": ");
}

std::string newer(int id, const std::string& name, const std::string& values = "", const std::string& attributes = "",
                  const std::string& outputs = "") {
  return R"({"id": )" + std::to_string(id) + R"(, "name": ")" + name + R"(", "ctrl_deps": 1, "inputs": {"values": [)" +
         values + R"(], "shapes": [], "types": []}, "outputs": {"values": [)" + outputs +
         R"(], "shapes": [], "types": []}, "attrs": [)" + attributes + "]}";
}
std::string newer_trace(const std::vector<std::string>& nodes) {
  std::string text = R"({"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [)";
  for (std::size_t i = 0; i < nodes.size(); ++i) text += (i == 0 ? "" : ",\n") + nodes[i];
  return text + R"(], "finish_ts": 7})";
}
const std::string init = newer(
    2, "## process_group:init ##",
    R"("[{\"pg_name\": \"0\", \"ranks\": [], \"group_size\": 4}, {\"pg_name\": \"1\", \"ranks\": [1, 3], \"group_size\": 2}]")");

TEST(PytorchEt, communication__stands_in_the_order_of_ids_with_steps_and_groups) {
  const ExecutionGraph graph = parse_trace_graph(
      newer_trace({init,
                   newer(30, "record_param_comms",
                         R"([[9, 9, 0, 100, 4, "cuda:1"]], 6, ["1", "tp"], 0, "reduce_scatter", [], [], 0, 1, 2)"),
                   newer(20, "record_param_comms",
                         R"([[9, 9, 0, 50, 2, "cuda:1"]], 5, ["0", "default_pg"], 1, "allreduce", [], [], 0, 1, 4)"),
                   newer(21, "nccl:all_reduce", R"([9, 9, 0, 50, 2, "cuda:1"])"), newer(10, "ProfilerStep#4"),
                   newer(25, "ProfilerStep#5"), newer(26, "aten::add", R"([1, 2, 0, 5, 4, "cuda:1"])")}),
      "t.json.gz");
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(nodes_of(graph, 1), ElementsAre("all-reduce 100 B", "reduce-scatter 400 B of 1 3 step 1 after 0"))
      << "a step begins when the one before is done";
  EXPECT_EQ(nodes_of(graph, 0).back(), "reduce-scatter 400 B of 0 2 step 1 after 0");
  EXPECT_EQ(graph.steps[1].name, "ProfilerStep#5");
  EXPECT_THAT(graph.warnings, Contains("t.json.gz: this format has no times: computation is left out"));
}

TEST(PytorchEt, attributes__of_newer_traces_tell_more_than_tensors) {
  const auto attribute = [](const std::string& name, const std::string& value) {
    return R"({"name": ")" + name + R"(", "type": "x", "value": )" + value + "}";
  };
  const ExecutionGraph graph = parse_trace_graph(
      newer_trace(
          {init, newer(5, "record_param_comms", R"([], 5, ["0", "d"], 2, "_allgather_base", [], [])",
                       attribute("collective_name", "\"_allgather_base\"") + "," + attribute("dtype", "\"BFloat16\"") +
                           "," + attribute("in_msg_nelems", "10") + "," + attribute("out_msg_nelems", "40"))}),
      "t_2.json");
  EXPECT_EQ(graph.ranks[2].nodes.at(0).bytes, 80u);
}

TEST(PytorchEt, waits__and_messages_of_an_older_trace) {
  const std::string text = R"({"schema": "1.0.1", "nodes": [
    {"name": "record_param_comms", "id": 5, "parent": 1, "inputs": [[1, 1, 0, 8, 4, "cuda:3"], 12, 99, 3, "all_to_all", [], []], "outputs": []},
    {"name": "record_param_comms", "id": 6, "parent": 1, "inputs": [12, 99, 3, "wait", [], []], "outputs": []},
    {"name": "record_param_comms", "id": 7, "parent": 1, "inputs": [[1, 1, 0, 8, 4, "cuda:3"], 13, 99, 3, "allreduce", [], []], "outputs": []}]})";
  const ExecutionGraph graph = parse_trace_graph(text, "eg.json", {.ranks = 4});
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(nodes_of(graph, 3), ElementsAre("all-to-all 32 B", "all-reduce 32 B after 0"));
}

TEST(PytorchEt, damage__is_one_line_with_the_place) {
  const std::string whole = newer_trace({init, newer(3, "a")});
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 30), "t.json"), HasSubstr("cut off"));
  EXPECT_THAT(refusal(R"({"schema": "1.0.1", "nodes": []})", "t.json"), HasSubstr("it has no nodes"));
  EXPECT_THAT(refusal(R"({"schema": "1.0.1", "nodes": [{"name": "a"}]})", "t.json"),
              HasSubstr("element 1, byte 30: it has no id"));
}

TEST(PytorchEt, samples__of_others_are_read) {
  const std::filesystem::path folder = trace_folder() / "pytorch_et";
  SKIP_WITHOUT(folder);
  const std::vector<std::filesystem::path> resnet{folder / "param_resnet_2gpu_et.json.gz"};
  const ExecutionGraph two = read_traces(resnet);
  ASSERT_EQ(two.ranks.size(), 2u);
  ASSERT_EQ(two.steps.size(), 3u);
  std::vector<Bytes> buckets;
  for (const GraphNode& node : two.ranks[0].nodes)
    if (node.step == 1 && node.collective == Collective::all_reduce) buckets.push_back(node.bytes);
  EXPECT_THAT(buckets, ElementsAre(8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160));
  const std::vector<std::filesystem::path> dlrm{folder / "param_dlrm_pytorch_et_8ranks.tar.gz"};
  const ExecutionGraph eight = read_traces(dlrm);
  ASSERT_EQ(eight.ranks.size(), 8u);
  for (const RankGraph& rank : eight.ranks) EXPECT_EQ(rank.nodes.size(), 8u);
  const std::vector<std::filesystem::path> gathers{folder / "mlcommons_1.0.2-chakra.0.0.4.tgz"};
  const ExecutionGraph pair = read_traces(gathers);
  ASSERT_EQ(pair.ranks.size(), 2u);
  EXPECT_EQ(pair.ranks[0].nodes.size(), 10u);
  EXPECT_EQ(pair.ranks[0].nodes[0].bytes, 8u) << "of both";
}

TEST(Param, entries__have_sizes_groups_waits_steps_and_times) {
  const ExecutionGraph graph = parse_trace_graph(R"([
    {"comms": "init", "pg_id": 1, "global_ranks": [0, 2], "world_size": 2},
    {"comms": "all_reduce", "in_msg_size": 10, "out_msg_size": 10, "dtype": "float", "pg_id": 0, "world_size": 4, "req": 1,
     "startTime_ns": 1000, "markers": ["## step 1 ##"]},
    {"comms": "all_gather", "in_msg_size": 10, "out_msg_size": 20, "dtype": "half", "pg_id": 1, "world_size": 2, "req": 2,
     "startTime_ns": 1500, "markers": ["## step 1 ##"]},
    {"comms": "wait", "req": 1, "pg_id": 0, "world_size": 4, "startTime_ns": 1700},
    {"comms": "broadcast", "in_msg_size": 1, "out_msg_size": 1, "dtype": "Byte", "root": 2, "pg_id": 1, "world_size": 2,
     "req": 3, "startTime_ns": 9000, "markers": ["## step 2 ##"]},
    {"compute": "gemm", "mm_dim": 5}])",
                                                 "rank0.json");
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("all-reduce 40 B", "compute 500 ns", "all-gather 40 B of 0 2 after 1",
                                              "compute 200 ns after 1", "compute 7.3 us step 1 after 0 2 3",
                                              "broadcast 1 B of 0 2 from 2 step 1 after 4"))
      << "the last computation is behind the wait";
  EXPECT_EQ(graph.steps[1].name, "## step 2 ##");
  EXPECT_THAT(
      graph.warnings,
      AllOf(Contains("rank0.json: 1 computation without times: left out"),
            Contains("rank0.json: 7.3 us after waits are counted as computation: the waiting time is not recorded")));
}

TEST(Param, communications__overlap_until_they_are_waited_for) {
  // Every 32 ms, 4 MB are reduced during 30 ms of computation. Another 2 ms of computation wait for the reduction.
  std::string text;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::string end = R"(, "markers": ["iteration )" + std::to_string(i) + R"("]})";
    const auto at = [&](std::int64_t ms) {
      return R"(, "startTime_ns": )" + std::to_string(1'700'000'000'000'000'000 + (32 * i + ms) * 1'000'000);
    };
    text += (i == 0 ? "[" : ",") +
            (R"({"comms": "all_reduce", "in_msg_size": 1000000, "dtype": "float", "world_size": 2, "req": )" +
             std::to_string(i)) +
            at(0) + end + R"(,{"comms": "wait", "req": )" + std::to_string(i) + at(30) + end;
  }
  const GraphSummary summary = summarise(parse_trace_graph(text + "]", "rank0.json"));
  ASSERT_EQ(summary.steps.size(), 4u);
  EXPECT_EQ(summary.steps[1].length, Nanos(32'000'000));
  EXPECT_EQ(summary.steps[1].compute, Nanos(32'000'000));
  EXPECT_EQ(summary.steps[1].both, Nanos(320'000)) << "at 100 Gbps";
  EXPECT_THAT(phases_of(summary.phases), ElementsAre("compute 2 ms", "send 4000000 B beside", "compute 30 ms"));
}

TEST(Param, communications__without_a_size_are_counted) {
  const ExecutionGraph graph = parse_trace_graph(R"([{"comms": "all_reduce", "dtype": "float", "world_size": 2},
 {"comms": "send", "dst_rank": 1, "dtype": "float"}, {"comms": "barrier", "world_size": 2},
 {"comms": "all_to_allv", "in_msg_size": 0, "out_msg_size": 0, "dtype": "float", "world_size": 2}])",
                                                 "t_rank0.json", {.ranks = 2});
  ASSERT_EQ(graph.ranks[0].nodes.size(), 2u);
  EXPECT_THAT(
      graph.warnings,
      AllOf(Contains("t_rank0.json: 2 communications without a size or kind: left out"),
            Contains(
                "t_rank0.json: 1 communication of 0 bytes: collectives are taken as barriers, messages are left out")));
}

TEST(Param, times__that_can_not_be_are_left_out_or_refused) {
  const auto entry = [](const std::string& time) {
    return R"({"comms": "all_reduce", "in_msg_size": 1, "dtype": "int", "world_size": 2, "startTime_ns": )" + time +
           "}";
  };
  for (const std::string time : {"0", "-5", "Infinity", "NaN", "1e300", "\"soon\"", "5e18"}) {
    const ExecutionGraph graph = parse_trace_graph(
        "[" + entry("1700000000000000000") + "," + entry(time) + "," + entry("1700000000000000900") + "]", "r0.json");
    EXPECT_THAT(graph.warnings, Contains(HasSubstr("1 entry has a startTime_ns that is not a time"))) << time;
    EXPECT_EQ(graph.ranks[0].nodes.size(), 4u) << time;
    EXPECT_EQ(graph.ranks[0].nodes[2].length, Nanos(900)) << time;
  }
  EXPECT_THAT(refusal("[" + entry("5") + "," + entry("1700000000000000000") + "]", "r.json"),
              HasSubstr("nothing happens for 16"));
}

TEST(Param, damage__is_one_line_with_the_place) {
  const auto trace = [](const std::string& rest) {
    return R"([{"comms": "all_reduce", "in_msg_size": 1, "dtype": "int", "startTime_ns": 100}, {)" + rest + "}]";
  };
  EXPECT_THAT(refusal(trace(R"("comms": "wait", "startTime_ns": 90)"), "r.json"),
              HasSubstr("element 2, byte 81: time runs backwards, from 100 to 90 ns"));
  EXPECT_THAT(refusal(trace(R"("comms": "all_reduce", "in_msg_size": -1)"), "r.json"), HasSubstr("is negative"));
  EXPECT_THAT(refusal(trace(R"("x": 1)"), "r.json"), HasSubstr("neither"));
  EXPECT_THAT(refusal(trace(R"("comms": "send", "in_msg_size": 1)"), "r.json"), HasSubstr("other rank of a message"));
  EXPECT_THAT(refusal(R"([{"comms": "all_reduce"}, )", "r.json"), HasSubstr("cut off"));
  const ExecutionGraph graph = parse_trace_graph(trace(R"("comms": "quantum_leap")"), "r.json");
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("\"quantum_leap\" is not a known collective: 1 left out")));
}

}  // namespace
}  // namespace mltcp::workload::pytorch_et_test
