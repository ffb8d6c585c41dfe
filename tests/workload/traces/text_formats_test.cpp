// Tests text traces: htsim's connection matrices, AICB's CSV, and the 12 columns of ASTRA-sim 1.0 with LIBRA's files.
// Also tests that each file in the folder of published traces is read or rejected with a reason.
#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../../temporary_folder.h"
#include "../graph_text.h"
#include "../traces.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/workload/traces/libra.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload::text_formats_test {
namespace {

using namespace mltcp::literals;
using Kind = GraphNode::Kind;

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_trace_graph(text, "t.txt"); }, "t.txt");
}
Bytes sent(const ExecutionGraph& graph) {
  Bytes all = 0;
  for (const RankGraph& rank : graph.ranks)
    for (const GraphNode& node : rank.nodes) all += node.kind == Kind::send ? node.bytes : 0;
  return all;
}

TEST(Htsim, flows__are_messages_at_their_starts) {
  const ExecutionGraph graph = parse_trace_graph(
      "# a comment\nNodes 4\nConnections 3\n0->1 start 2000000 size 1000\n0->2 id 7 start 1000000 size 500\n"
      "3->0 start 0 size 250 prio 2\n",
      "t.cm");
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_EQ(sent(graph), 1750u);
  EXPECT_THAT(nodes_of(graph, 0),
              ElementsAre("receive 250 B from 3 tag 2", "compute 1 us", "send 500 B to 2 tag 1 after 1",
                          "compute 1 us after 1", "send 1000 B to 1 after 3"))
      << "starts are in picoseconds, one after the other";
  EXPECT_THAT(nodes_of(graph, 3), ElementsAre("send 250 B to 0 tag 2", "compute 2 us")) << "until the last start";
}

TEST(Htsim, triggers__start_what_waits_for_them) {
  const ExecutionGraph graph = parse_trace_graph(
      "Nodes 3\nConnections 4\nTriggers 2\n0->1 id 1 start 0 size 10 recv_done_trigger 1\n1->2 id 2 trigger 1 size 20 "
      "send_done_trigger 2\n0->2 id 3 start 0 size 30 send_done_trigger 2\n2->0 id 4 trigger 2 size 40\n"
      "trigger id 1 oneshot\ntrigger id 2 barrier count 2\n",
      "t.cm");
  ASSERT_EQ(graph.ranks.size(), 3u);
  EXPECT_THAT(nodes_of(graph, 1), ElementsAre("receive 10 B from 0", "send 20 B to 2 tag 1 after 0",
                                              "send 1 B to 2 tag 4294967296 after 1"));
  // The barrier triggers a flow of node 2 and waits for flows of nodes 0 and 1. So nodes 0 and 1 each send one byte to
  // node 2.
  EXPECT_EQ(sent(graph), 102u);
  EXPECT_THAT(nodes_of(graph, 2), Contains("send 40 B to 0 tag 3 after 2 3"));
}

TEST(Htsim, malformed__is_refused_with_its_line) {
  const std::string head = "Nodes 4\nConnections 1\n";
  EXPECT_THAT(refusal(head + "0->4 start 0 size 1\n"), AllOf(StartsWith("t.txt:3: "), HasSubstr("from 0 to 3")));
  EXPECT_THAT(refusal(head + "0->1 start 0\n"), HasSubstr("no size"));
  for (const std::string time : {"inf", "nan", "-1", "1e20", "1e999"})
    EXPECT_THAT(refusal(head + "0->1 start " + time + " size 1\n"), HasSubstr("not a number of picoseconds")) << time;
  EXPECT_THAT(refusal(head + "0->1 size 5\n"), HasSubstr("neither start nor trigger"));
  EXPECT_THAT(refusal(head + "1->1 start 0 size 5\n"), HasSubstr("to itself"));
  EXPECT_THAT(refusal(head), HasSubstr("1 connections are announced and 0 follow"));
  EXPECT_THAT(refusal(head + "0->1 trigger 1 size 5\n"), HasSubstr("trigger 1 is named, but not described"));
  EXPECT_THAT(refusal("Nodes 4\nConnections 2\n0->1 trigger 1 size 5 send_done_trigger 2\n1->0 trigger 2 size 5 "
                      "send_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n"),
              HasSubstr("in a circle"));
  EXPECT_THAT(refusal("Nodes 99999999999\n"), HasSubstr("not a whole number"));
}

const std::string aicb_head =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n";
std::string aicb_row(const std::string& type, const std::string& group, int size, int bytes, const std::string& stage,
                     const std::string& time = "None") {
  return fmt::format("CommType.{},CommGroup.{},{},{},{},None,None,,{},None,None,1\n", type, group, size, bytes, stage,
                     time);
}

TEST(Aicb, groups__are_those_of_megatron) {
  const std::string text = "[rank0 ~ rank7]\n" + aicb_head + aicb_row("all_reduce", "dp_group", 2, 8, "init.setup") +
                           "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n" +
                           aicb_row("all_reduce", "tp_group", 4, 1000, "forward") +
                           aicb_row("computation", "all", 1, 0, "forward", "5000") +
                           aicb_row("reduce_scatter", "dp_group", 2, 4000, "step") +
                           "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n";
  const ExecutionGraph graph = parse_trace_graph(text, "t.csv");
  ASSERT_EQ(graph.ranks.size(), 8u);
  EXPECT_EQ(graph.steps.size(), 1u);
  EXPECT_THAT(nodes_of(graph, 5), ElementsAre("all-reduce 1000 B of 4 5 6 7", "compute 5 us after 0",
                                              "reduce-scatter 4000 B of 1 5 after 1"));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("taken as nanoseconds")));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("1 line before the first iteration: left out")));
}

TEST(Aicb, malformed__is_refused_with_its_line) {
  EXPECT_THAT(refusal(aicb_head + "CommType.all_reduce,CommGroup.tp_group,2\n"),
              AllOf(StartsWith("t.txt:2: "), HasSubstr("3 columns where 12 are expected")));
  EXPECT_THAT(refusal(aicb_head + aicb_row("all_odd", "tp_group", 2, 8, "f")), HasSubstr("comm_type: \"all_odd\""));
  EXPECT_THAT(refusal(aicb_head + aicb_row("all_reduce", "odd_group", 2, 8, "f")), HasSubstr("odd_group"));
  EXPECT_THAT(refusal(aicb_head + aicb_row("all_reduce", "tp_group", 2, -8, "f")), HasSubstr("msg_size: \"-8\""));
  EXPECT_THAT(refusal("[rank0 ~ rank6]\n" + aicb_head + aicb_row("all_reduce", "tp_group", 2, 8, "f")),
              HasSubstr("7 ranks are not"));
  EXPECT_THAT(refusal(aicb_head), HasSubstr("there is no communication in it"));
  for (const std::string time : {"inf", "nan", "-1", "1e17"})
    EXPECT_THAT(refusal(aicb_head + aicb_row("computation", "all", 1, 0, "f", time)), HasSubstr("is not a time"))
        << time;
  EXPECT_THAT(refusal(aicb_head + aicb_row("computation", "all", 1, 0, "f", "1e12") +
                      aicb_row("all_reduce", "tp_group", 2, 8, "f", "1")),
              HasSubstr("an _elapsed_time of 1000000000000 is longer than 115 days"))
      << "it is of milliseconds";
}

const std::string astra =
    "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 6\n2\n"
    "qkv -1 5000 ALLREDUCE 1000 6000 NONE 0 7000 ALLREDUCE 9000 10\n"
    "mlp -1 8000 NONE 0 9000 NONE 0 4000 ALLREDUCE 6000 10\n";

TEST(AstraText, ranks__are_alike_and_in_groups) {
  const ExecutionGraph graph = parse_trace_graph(astra, "t.txt");
  ASSERT_EQ(graph.ranks.size(), 6u);
  Nanos computed;
  std::vector<std::string> communications;
  for (std::size_t i = 0; const std::string& text : nodes_of(graph, 3)) {
    const GraphNode& node = graph.ranks[3].nodes[i++];
    if (node.kind == Kind::compute)
      computed += node.length;
    else
      communications.push_back(text.substr(0, text.find(" after")));
  }
  EXPECT_EQ(computed, Nanos(5000 + 6000 + 7000 + 8000 + 9000 + 4000 + 2 * 10));
  EXPECT_THAT(communications,
              ElementsAre("all-reduce 1000 B of 2 3", "all-reduce 6000 B of 1 3 5", "all-reduce 9000 B of 1 3 5"));
}

TEST(AstraText, collectives__that_cross_the_network_are_chosen) {
  const auto bytes = [](const std::string& text, TraceOptions options) {
    const ExecutionGraph graph = parse_trace_graph(text, "t.txt", options);
    return std::pair(bytes_of(graph.ranks[0]), graph.warnings);
  };
  TraceOptions options;
  options.network = std::nullopt;
  const auto [weights, warnings] = bytes(astra, options);
  EXPECT_THAT(weights, ElementsAre(6000, 9000));
  EXPECT_THAT(warnings, Contains(HasSubstr("left out: 1 collective in which a rank sends 1.000 kB, of other passes")));
  const std::string activations = "MODEL model_parallel_NPU_group: 8\n1\na -1 500 ALLREDUCE 1600 1 NONE 0 1 NONE 0 1\n";
  EXPECT_THAT(bytes(activations, options).first, ElementsAre(1600)) << "there is nothing else";
  options.network = Network::weight_gradient;
  EXPECT_THAT(bytes(activations, options).first, IsEmpty()) << "asked for";
  options.network = std::nullopt;
  options.model_ranks = 2;
  EXPECT_THAT(bytes(astra, options).first, ElementsAre(1000, 6000, 9000)) << "LIBRA tells the other groups, too";
}

TEST(AstraText, headers__of_which_all_ranks_are_one_group) {
  for (const std::string header : {"MODEL", "DISTRIBUTED_INFERENCE"}) {
    const std::string text = header + "\n2\nl0 -1 10 ALLREDUCE 1000000 10 ALLREDUCE 1000000 10 NONE 0 9\n" +
                             "l1 -1 10 ALLREDUCE 1000000 10 ALLREDUCE 1000000 10 NONE 0 9\n";
    for (const auto& network : {std::optional<Network>(), std::optional(Network::all)}) {
      const ExecutionGraph graph = parse_trace_graph(text, "t.txt", {.ranks = 8, .network = network});
      ASSERT_EQ(graph.ranks.size(), 8u);
      std::size_t reduced = 0;
      for (const GraphNode& node : graph.ranks[5].nodes) {
        if (node.kind != Kind::collective) continue;
        ++reduced;
        EXPECT_EQ(graph.groups[node.group].size(), 8u);
        EXPECT_EQ(node.bytes, 1'000'000u);
      }
      EXPECT_EQ(reduced, header == "MODEL" ? 4u : 2u) << "the forward pass, and that of input gradients";
      EXPECT_THAT(graph.warnings, IsEmpty());
    }
    EXPECT_THAT(parse_trace_graph(text, "t.txt").warnings,
                Contains(HasSubstr("the trace does not state how many ranks share a layer: assuming 2")));
  }
}

TEST(TextFormats, ranks__that_are_not_used_are_not_made) {
  const std::string aicb = "[rank0 ~ rank7]\n" + aicb_head + aicb_row("all_reduce", "tp_group", 4, 1000, "forward") +
                           aicb_row("reduce_scatter", "dp_group", 2, 4000, "step");
  for (const auto& [text, ranks] : {std::pair{aicb, 8U}, {astra, 6U}}) {
    for (const std::uint32_t rank : {0U, 5U}) {
      const ExecutionGraph graph = parse_trace_graph(text, "t.txt", {.as_recorded = true, .rank = rank});
      const ExecutionGraph all = parse_trace_graph(text, "t.txt");
      ASSERT_EQ(graph.ranks.size(), ranks);
      EXPECT_EQ(nodes_of(graph, rank), nodes_of(all, rank));
      EXPECT_THAT(graph.ranks[rank == 0 ? 1 : 0].nodes, IsEmpty());
    }
  }
}

TEST(AstraText, headers__that_are_not_known_are_told_what_is_near) {
  const std::string layers = "\n1\nl0 -1 10 NONE 0 10 NONE 0 10 ALLREDUCE 8 9\n";
  EXPECT_THAT(
      refusal("DATA_REORDER" + layers),
      AllOf(StartsWith("t.txt:1: "), HasSubstr("\"DATA_REORDER\" is not known; write DATA if its training loop will "
                                               "do; begin the file with one of DATA, MODEL, ")));
  EXPECT_THAT(refusal("TENSOR" + layers), HasSubstr("\"TENSOR\" is not known; begin the file with one of DATA, "));
}

TEST(AstraText, times__that_can_not_be_are_refused) {
  const std::string max = std::to_string(kLongestTrace.count);
  const std::string text = "DATA\n2\nl0 -1 " + max + " NONE 0 10 NONE 0 10 ALLREDUCE 8 9\n" + "l1 -1 " + max +
                           " NONE 0 10 NONE 0 10 ALLREDUCE 8 9\n";
  EXPECT_THAT(refusal(text), HasSubstr("and the rank's in all more than 115 days"));
  EXPECT_THAT(refusal("DATA\n1\nl0 -1 inf NONE 0 10 NONE 0 10 ALLREDUCE 8 9\n"),
              HasSubstr("\"inf\" is not a whole number"));
}

TEST(AstraText, sizes__without_a_header_are_told_or_guessed) {
  const std::string bare = "qkv -1 5000 ALLREDUCE 1000 6000 NONE 0 7000 ALLREDUCE 9000 10\n";
  const ExecutionGraph guessed = parse_trace_graph(bare, "t.txt");
  EXPECT_EQ(guessed.ranks.size(), 2u);
  EXPECT_THAT(guessed.warnings,
              AllOf(Contains(HasSubstr("the size of tensor-parallel groups")), Contains(HasSubstr("assuming 2"))));
  EXPECT_EQ(parse_trace_graph(bare, "t.txt", {.ranks = 8}).ranks.size(), 8u);
  // LIBRA describes the communicator in a file in the same folder.
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return folder / name;
  };
  const auto workload = write("w.txt", bare);
  const auto communicator =
      write("c.yml", "# groups\nForward: [ 2, -1 ]\nInputGrad: [ 2, -1 ]\nWeightGrad: [ -1, 3 ]\n");
  const ExecutionGraph graph = read_traces(std::vector{workload, communicator});
  EXPECT_EQ(graph.ranks.size(), 6u);
  EXPECT_THAT(graph.warnings, IsEmpty());
  EXPECT_THAT(read_traces(std::vector{workload}).warnings,
              Contains(HasSubstr("also give a communicator file of LIBRA: mltcp inspect " + workload.string() + " " +
                                 communicator.string())));
  EXPECT_THAT(refusal_of([&] { read_traces(std::vector{communicator}); }),
              HasSubstr("give it together with the workload"));
}

TEST(AstraText, jobs__of_millions_of_nodes_are_cut_down_to_the_ranks_that_reduce_gradients) {
  std::string text = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 2048\n600\n";
  for (int layer = 0; layer < 600; ++layer)
    text +=
        fmt::format("l{} -1 5 ALLREDUCE 1000 6 ALLREDUCE 1000 7 {} 9000 0\n", layer, layer == 0 ? "ALLREDUCE" : "NONE");
  const ExecutionGraph graph = parse_trace_graph(text, "w.txt");
  EXPECT_EQ(graph.ranks.size(), 1024u);
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("of 2048 ranks, the 1024 that reduce gradients together are kept")));
  // All computation time remains, between the remaining collectives.
  Nanos computed;
  for (const GraphNode& node : graph.ranks[0].nodes) computed += node.length;
  EXPECT_EQ(computed, Nanos(600 * (5 + 6 + 7)));
  EXPECT_LE(graph.ranks[0].nodes.size(), 3u);
}

TEST(Libra, files__of_a_folder_are_used_and_those_that_are_not_are_told_of) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  const auto refused = [&]() -> std::string { return refusal_of([&] { read_traces(std::vector{folder.path()}); }); };
  const std::string communicator = "Forward: [ 2, -1 ]\nInputGrad: [ 2, -1 ]\nWeightGrad: [ -1, 3 ]\n";
  write("w.txt", "qkv -1 5000 ALLREDUCE 1000 6000 NONE 0 7000 ALLREDUCE 9000 10\n");
  write("c.yml", communicator);
  const ExecutionGraph graph = read_traces(std::vector{folder.path()});
  EXPECT_EQ(graph.ranks.size(), 6u);
  EXPECT_THAT(graph.warnings, IsEmpty());
  write("d.yaml", "Forward: [ 2, -1 ]\nInputGrad: [ 2, -1 ]\nWeightGrad: [ -1, 4 ]\n");
  EXPECT_THAT(refused(), HasSubstr("d.yaml: it states 4 ranks, but another file of LIBRA states 3; keep one of them"));
  std::filesystem::remove(folder / "d.yaml");
  std::filesystem::rename(folder / "c.yml", folder / "c.conf");
  EXPECT_THAT(read_traces(std::vector{folder.path()}).warnings,
              Contains(HasSubstr("c.conf: it describes the job for LIBRA or ASTRA-sim, and is not used")));
}

TEST(AstraSim, files__beside_chakras_traces_tell_ranks_and_groups) {
  const auto trace = [](const std::string& group) {
    return R"({"id": )" + group +
           R"(, "name": "c", "type": "COMM_COLL_NODE", "comm_type": 0, "comm_size": 1000, "pg_name": ")" + group +
           "\"}\n";
  };
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) { std::ofstream(folder / name) << text; };
  const auto read = [&] { return read_traces(std::vector{folder.path()}); };
  for (int rank = 0; rank < 4; ++rank) write(fmt::format("t.{}.json", rank), trace("1") + trace("0"));
  write("network.yml",
        "# two dimensions\ntopology: [ Ring, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 50.0, 25.0 ]  # GB/s\n"
        "latency: [ 500.0, 1000.0 ]  # ns\n");
  write("comm_group.json", "{\n  \"1\": [0, 2, 4, 6],\n  \"2\": [1, 3, 5, 7]\n}\n");
  const ExecutionGraph graph = read_traces(std::vector{folder.path()}, {.as_recorded = true});
  ASSERT_EQ(graph.ranks.size(), 8u);
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("all-reduce 1000 B of 0 2 4 6", "all-reduce 1000 B"))
      << "group 0 is that of all ranks";
  EXPECT_THAT(graph.warnings, IsEmpty());
  const auto refused = [&](const std::string& groups) -> std::string {
    write("comm_group.json", groups);
    return refusal_of([&] { read(); });
  };
  EXPECT_THAT(refused("{\"1\": [0, 0]}"), HasSubstr("comm_group.json: group \"1\" has a rank twice; "));
  EXPECT_THAT(refused("{\"1\": [0, -1]}"), HasSubstr("group \"1\" has an element that is not a rank; "));
  EXPECT_THAT(refused("{\"1\": [0"), HasSubstr("cut off"));
  EXPECT_THAT(refused("{\"1\": [" + std::string(100, '[')), HasSubstr("nests more than"));
  for (const std::string alone : {"network.yml", "comm_group.json"}) {
    write("comm_group.json", "{\"1\": [0, 1]}");
    EXPECT_THAT(refusal_of([&] { read_traces(std::vector{folder / alone}); }),
                HasAll(alone, "give it together with the workload"));
  }
}

TEST(Libra, files__are_understood) {
  const LibraFile communicator =
      parse_libra("Forward: [ 16, 8, -1 ]\nInputGrad: [ 16, 8, -1 ]\nWeightGrad: [ -1, -1, 32 ]\n", "c.yml");
  EXPECT_EQ(communicator.model, 128u);
  EXPECT_EQ(communicator.data, 32u);
  const LibraFile network = parse_libra("Topology: [ Ring, Switch ]\nNpusCount: [ 16, 32 ]\n", "n.yml");
  EXPECT_EQ(network.kind, LibraFile::Kind::network);
  EXPECT_EQ(network.ranks, 512u);
  EXPECT_EQ(parse_libra("InterPod:\n  Link: 7.8\n", "x.yml").kind, LibraFile::Kind::costs);
  const auto refused = [](const std::string& text) -> std::string {
    return refusal_of([&] { parse_libra(text, "c.yml"); });
  };
  EXPECT_THAT(refused("Forward: [ 0 ]\nWeightGrad: [ 2 ]\n"), HasSubstr("c.yml:1: 0 of \"Forward\""));
  EXPECT_THAT(refused("Forward: [ x ]\nWeightGrad: [ 2 ]\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(refused("Forward: [ 2 ]\n"), HasSubstr("there is no \"WeightGrad\""));
  EXPECT_THAT(refused("Forward: [ 2\n"), HasSubstr("no YAML"));
  EXPECT_THAT(refused("Forward: " + std::string(10'000, '[')), HasSubstr("nested deeply"));
  EXPECT_THAT(refused("Forward: &a [ 1 ]\nWeightGrad: *a\n"), HasSubstr("it has an alias (*NAME)"));
}

TEST(TextFormats, published__are_read_or_refused_for_a_reason) {
  const auto folder = trace_folder();
  SKIP_WITHOUT(folder / "htsim");
  const auto ranks_of = [](const std::vector<std::filesystem::path>& paths) { return read_traces(paths).ranks.size(); };
  EXPECT_EQ(ranks_of({folder / "htsim" / "incast.cm"}), 16u);
  EXPECT_EQ(ranks_of({folder / "htsim" / "perm_16n_16c_2MB.cm"}), 16u);
  EXPECT_EQ(ranks_of({folder / "aicb" / "L7B-M1-C04_physical.csv"}), 128u);
  EXPECT_EQ(ranks_of({folder / "libra" / "GPT_3.txt", folder / "libra" / "communicator_GPT_3_3d.yml"}), 4096u);
  EXPECT_EQ(ranks_of({folder / "simai" / "microAllReduce.txt"}), 8u);
  const auto refused = [&](const std::filesystem::path& path) -> std::string {
    return refusal_of([&] { read_traces(std::vector{path}); });
  };
  EXPECT_THAT(refused(folder / "htsim" / "validate.txt"), HasSubstr("which is not a known trace format"));
  EXPECT_THAT(refused(folder / "simai" / "busbw.yaml"), HasSubstr("which is not a known trace format"));
  EXPECT_THAT(refused(folder / "libra" / "3d_network.yml"), HasSubstr("give it together with the workload"));
  EXPECT_THAT(refused(folder / "alibaba" / "job_1_norm.csv"), HasSubstr("which is not a known trace format"));
}

}  // namespace
}  // namespace mltcp::workload::text_formats_test
