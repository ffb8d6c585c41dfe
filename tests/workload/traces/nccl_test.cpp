// Tests the graphs of NCCL's logs and of the files of its Inspector.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "../../message_of.h"
#include "../graph_text.h"
#include "../traces.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload::nccl_test {
namespace {

using namespace mltcp::literals;
using Kind = GraphNode::Kind;

std::string call(int pid, int gpu, const std::string& name, int order, int count, int type, int root,
                 const std::string& comm, int ranks, const std::string& prefix = "", const std::string& more = "") {
  return fmt::format(
      "{}node1:{}:{} [{}] NCCL INFO {}: opCount {:x} sendbuff 0x7f0 recvbuff (nil) count {} datatype {} op 0 root {} "
      "comm {} [nranks={}] stream 0x55{}\n",
      prefix, pid, pid + 7, gpu, name, order, count, type, root, comm, ranks, more);
}
std::string init(int pid, int gpu, const std::string& comm, int rank, int ranks, const std::string& id) {
  return fmt::format(
      "node1:{}:{} [{}] NCCL INFO ncclCommInitRank comm {} rank {} nranks {} cudaDev {} nvmlDev {} busId 1a000 commId "
      "{} - Init COMPLETE\n",
      pid, pid, gpu, comm, rank, ranks, gpu, gpu, id);
}
ExecutionGraph read(const std::string& text) { return parse_trace_graph(text, "nccl.log"); }
std::string refusal(const std::string& text) {
  return refusal_of([&] { read(text); }, "nccl.log");
}

TEST(NcclLog, sizes__are_those_of_the_whole) {
  std::string text = "some program's own line\n";
  for (int rank = 0; rank < 4; ++rank) text += init(100 + rank, rank, "0xa", rank, 4, "0x77");
  for (int rank = 3; rank >= 0; --rank) {
    text += call(100 + rank, rank, "AllReduce", 1, 1000, 7, 0, "0xa", 4);
    text += call(100 + rank, rank, "AllGather", 2, 1000, 9, 0, "0xa", 4);
    text += call(100 + rank, rank, "ReduceScatter", 3, 1000, 6, 0, "0xa", 4);
    text += call(100 + rank, rank, "Broadcast", 4, 1000, 0, 2, "0xa", 4);
    text += call(100 + rank, rank, "AllReduce", 5, 0, 7, 0, "0xa", 4);
  }
  const ExecutionGraph graph = read(text);
  ASSERT_EQ(graph.ranks.size(), 4u);
  for (std::size_t rank = 0; rank < 4; ++rank)
    EXPECT_THAT(nodes_of(graph, rank),
                ElementsAre("all-reduce 4000 B", "all-gather 8000 B after 0", "reduce-scatter 8000 B after 1",
                            "broadcast 1000 B from 2 after 2", "all-reduce 0 B after 3"))
        << "those of a stream follow each other";
  EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("it has no times")));
}

TEST(NcclLog, groups__are_told_by_identifiers) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    text += init(100 + rank, rank, "0xa", rank, 4, "0x77");
    text += init(100 + rank, rank, "0xb", rank / 2, 2, rank % 2 == 0 ? "0x88" : "0x99");
    text += call(100 + rank, rank, "AllReduce", 1, 10, 7, 0, "0xb", 2);
  }
  const ExecutionGraph graph = read(text);
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("all-reduce 40 B of 0 2"));
  EXPECT_THAT(nodes_of(graph, 3), ElementsAre("all-reduce 40 B of 1 3"));
}

TEST(NcclLog, prefixes__of_launchers_and_ranks_of_newer_versions) {
  const std::string text =
      call(7, 0, "AllReduce", 1, 10, 7, 0, "0xa", 2, "[1,0]<stdout>:", " task 0 globalrank 1") +
      call(8, 1, "AllReduce", 1, 10, 7, 0, "0xb", 2, "(Worker pid=8, ip=10.0.0.1) ", " task 0 globalrank 0");
  const ExecutionGraph graph = read(text);
  ASSERT_EQ(graph.ranks.size(), 2u);
  EXPECT_EQ(graph.ranks[0].nodes.size(), 1u);
  // If the log names no ranks, the reader numbers the ranks.
  const ExecutionGraph numbered =
      read(call(7, 1, "AllReduce", 1, 10, 7, 0, "0xa", 2) + call(8, 0, "AllReduce", 1, 10, 7, 0, "0xb", 2));
  EXPECT_EQ(numbered.ranks.size(), 2u);
  EXPECT_THAT(numbered.warnings, Contains(HasSubstr("the log does not name all ranks")));
}

TEST(NcclLog, messages__of_a_group_run_at_once) {
  std::string text;
  for (int rank = 0; rank < 2; ++rank) text += init(100 + rank, rank, "0xa", rank, 2, "0x77");
  for (int rank = 0; rank < 2; ++rank) {
    text += call(100 + rank, rank, "Send", 4, 10, 7, 1 - rank, "0xa", 2);
    text += call(100 + rank, rank, "Recv", 4, 10, 7, 1 - rank, "0xa", 2);
    text += call(100 + rank, rank, "AllReduce", 5, 10, 7, 0, "0xa", 2);
  }
  const ExecutionGraph graph = read(text);
  ASSERT_EQ(graph.ranks.size(), 2u);
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("send 40 B to 1", "receive 40 B from 1", "all-reduce 40 B after 0 1"));
}

TEST(NcclLog, calls__are_paired_by_their_counts_where_a_line_is_missing) {
  std::string both;
  for (int rank = 0; rank < 2; ++rank) both += init(100 + rank, rank, "0xa", rank, 2, "0x77");
  std::string text = both;
  for (int rank = 0; rank < 2; ++rank)
    for (int order = 0; order < 4; ++order)
      if (rank == 0 || order != 1)
        text += call(100 + rank, rank, "AllReduce", order, 1000 * (order + 1), 7, 0, "0xa", 2);
  const ExecutionGraph graph = read(text);
  EXPECT_THAT(bytes_of(graph.ranks[0]), ElementsAre(4000, 12000, 16000));
  EXPECT_THAT(bytes_of(graph.ranks[1]), ElementsAre(4000, 12000, 16000));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("1 collective that other ranks of the group do not run")));
  EXPECT_THAT(graph.warnings, Not(Contains(HasSubstr("different bytes"))));
  // Calls of one group have the same number. Their order determines their position in the group.
  text = both;
  for (int rank = 0; rank < 2; ++rank)
    for (const int order : {0, 1, 1, 1, 2})
      if (rank == 0 || order != 0)
        text += call(100 + rank, rank, "AllReduce", order, 100 * (order + 1), 7, 0, "0xa", 2);
  EXPECT_THAT(bytes_of(read(text).ranks[1]), ElementsAre(800, 800, 800, 1200));
}

TEST(NcclLog, counts__of_communicators_with_messages_are_not_compared) {
  std::string text;
  for (int rank = 0; rank < 3; ++rank) text += init(100 + rank, rank, "0xa", rank, 3, "0x77");
  text += call(100, 0, "AllReduce", 0, 1000, 7, 0, "0xa", 3) + call(100, 0, "Send", 1, 50, 7, 1, "0xa", 3) +
          call(100, 0, "AllReduce", 2, 2000, 7, 0, "0xa", 3);
  text += call(101, 1, "AllReduce", 0, 1000, 7, 0, "0xa", 3) + call(101, 1, "Recv", 1, 50, 7, 0, "0xa", 3) +
          call(101, 1, "AllReduce", 2, 2000, 7, 0, "0xa", 3);
  text += call(102, 2, "AllReduce", 0, 1000, 7, 0, "0xa", 3) + call(102, 2, "AllReduce", 1, 2000, 7, 0, "0xa", 3);
  const ExecutionGraph graph = read(text);
  const std::vector<std::vector<Bytes>> sizes{{4000, 200, 8000}, {4000, 200, 8000}, {4000, 8000}};
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(bytes_of(graph.ranks[rank]), sizes[rank]) << rank;
}

TEST(NcclLog, malformed__is_refused_or_left_out) {
  EXPECT_THAT(refusal("node1:7:7 [0] NCCL INFO Bootstrap : Using eth0\n"), HasSubstr("NCCL_DEBUG_SUBSYS=INIT,COLL"));
  const std::string good = call(7, 0, "AllReduce", 1, 10, 7, 0, "0xa", 2);
  EXPECT_THAT(refusal(call(7, 0, "AllReduce", 1, 10, 12, 0, "0xa", 2)),
              AllOf(StartsWith("nccl.log:1: "), HasSubstr("data type 12")));
  const ExecutionGraph graph = read(good + good.substr(0, 90) + "\n" + good);
  EXPECT_THAT(graph.warnings,
              Contains(HasSubstr("1 line is cut off, or another program's text is in it: left out (line 2)")));
  EXPECT_EQ(graph.ranks[0].nodes.size(), 2u);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST(NcclLog, spellings__of_hosts_devices_and_ranks_are_one) {
  std::string plain;
  for (int rank = 0; rank < 2; ++rank) plain += init(100 + rank, rank, "0xa", rank, 2, "0x77");
  for (int rank = 0; rank < 2; ++rank)
    for (int order = 0; order < 3; ++order) plain += call(100 + rank, rank, "AllReduce", order, 50, 7, 0, "0xa", 2);
  const std::string info = " NCCL INFO ";
  for (const std::string& text :
       {plain, replaced(plain, info, info + "[3] "), replaced(plain, "node1:", "<host>:"),
        replaced(plain, "node1:", "[1,0]<stdout>:<host>:"), replaced(plain, "[0]" + info, "[-1]" + info),
        replaced(plain, info + "ncclCommInitRank", info + "[Rank 0] ncclCommInitRankConfig"),
        replaced(plain, info + "ncclCommInitRank ", info), replaced(plain, "node1:", "[2025-03-01 12:00:00] node1:"),
        replaced(plain, "node1:", "0: node1:")}) {
    const ExecutionGraph graph = read(text);
    EXPECT_EQ(graph.ranks.size(), 2u) << text;
    EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("it has no times"))) << text;
    for (std::uint32_t rank = 0; rank < graph.ranks.size(); ++rank)
      EXPECT_THAT(bytes_of(graph.ranks[rank]), ElementsAre(200, 200, 200)) << text;
  }
}

TEST(NcclLog, lines__that_are_written_into_another_are_told_of) {
  std::string text;
  for (int rank = 0; rank < 2; ++rank) text += init(100 + rank, rank, "0xa", rank, 2, "0x77");
  const std::string torn = call(100, 0, "AllReduce", 0, 50, 7, 0, "0xa", 2);
  const std::size_t head = torn.find("AllReduce");
  text += torn.substr(0, head) + call(101, 1, "AllReduce", 0, 50, 7, 0, "0xa", 2) + torn.substr(head);
  for (int rank = 0; rank < 2; ++rank) text += call(100 + rank, rank, "AllReduce", 1, 70, 7, 0, "0xa", 2);
  const ExecutionGraph graph = read(text);
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("1 line is mixed with another line, both left out (line 3)")));
  EXPECT_THAT(graph.warnings, Not(Contains(HasSubstr("an unknown kind"))));
  for (std::uint32_t rank = 0; rank < 2; ++rank) EXPECT_THAT(bytes_of(graph.ranks[rank]), ElementsAre(280)) << rank;
}

TEST(NcclLog, communicators__of_one_rank_only_are_said_to_be) {
  EXPECT_THAT(refusal(call(7, 0, "AllReduce", 1, 10, 7, 0, "0xa", 1)), HasSubstr("all communicators have one rank"));
  EXPECT_THAT(refusal(init(7, 0, "0xa", 0, 1, "0x7") + call(7, 0, "AllReduce", 1, 10, 7, 0, "0xa", 1)),
              HasSubstr("all communicators have one rank"));
}

/// Returns a line in the format of NCCL 2.21 (with commId), 2.23 (without commId and without a count), 2.25 (with
/// splitCount) or 2.28 (with childCount).
std::string split(int pid, const std::string& comm, int rank, int ranks, int color, const std::string& count,
                  const std::string& id, const std::string& parent = "0xa") {
  return fmt::format(
      "node1:{}:{} [{}] NCCL INFO ncclCommSplit comm {} rank {} nranks {} cudaDev 0 nvmlDev 0 busId 1a000 parent {} "
      "{}color {} key {}{} - Init COMPLETE\n",
      pid, pid, pid - 100, comm, rank, ranks, parent, count, color, rank, id);
}

TEST(NcclLog, splits__tell_the_ranks_of_what_they_make) {
  const auto groups = [](const auto& made) {
    std::string text;
    for (int rank = 0; rank < 4; ++rank) text += init(100 + rank, rank, "0xa", rank, 4, "0x77");
    for (int rank = 0; rank < 4; ++rank) text += made(rank);
    for (int rank = 0; rank < 4; ++rank)
      for (const std::string comm : {"0xb", "0xc"}) text += call(100 + rank, rank, "AllReduce", 1, 10, 7, 0, comm, 2);
    const ExecutionGraph graph = read(text);
    EXPECT_EQ(graph.ranks.size(), 4u);
    std::vector<std::vector<std::uint32_t>> all;
    for (const GraphNode& node : graph.ranks[3].nodes) all.push_back(graph.groups[node.group]);
    EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("it has no times")));
    return all;
  };
  // The ranks are split once by the last bit of their number and once by the first bit.
  for (const std::string count : {"", "splitCount ", "childCount "})
    EXPECT_THAT(groups([&](int rank) {
                  const auto number = [&](int n) { return count.empty() ? count : fmt::format("{}{} ", count, n); };
                  return split(100 + rank, "0xb", rank / 2, 2, rank % 2, number(1), "") +
                         split(100 + rank, "0xc", rank % 2, 2, rank / 2, number(2), "");
                }),
                ElementsAre(ElementsAre(1, 3), ElementsAre(2, 3)))
        << count;
  EXPECT_THAT(groups([](int rank) {
                return split(100 + rank, "0xb", rank / 2, 2, rank % 2, "", fmt::format(" commId 0x8{}", rank % 2)) +
                       split(100 + rank, "0xc", rank % 2, 2, rank / 2, "", fmt::format(" commId 0x9{}", rank / 2));
              }),
              ElementsAre(ElementsAre(1, 3), ElementsAre(2, 3)));
}

TEST(NcclLog, pointers__that_are_used_again_are_other_communicators) {
  std::string text;
  for (int rank = 0; rank < 4; ++rank) {
    text += init(100 + rank, rank, "0xa", rank, 4, "0x77");
    text += init(100 + rank, rank, "0xb", rank / 2, 2, rank % 2 == 0 ? "0x88" : "0x99");
    text += call(100 + rank, rank, "AllReduce", 1, 10, 7, 0, "0xb", 2);
    text += fmt::format(
        "node1:{0}:{0} [{1}] NCCL INFO comm 0xb rank {2} nranks 2 cudaDev 0 busId 1a000 - Destroy COMPLETE\n",
        100 + rank, rank, rank / 2);
    text += init(100 + rank, rank, "0xb", rank % 2, 2, rank < 2 ? "0xaa" : "0xbb");
    text += call(100 + rank, rank, "AllReduce", 1, 20, 7, 0, "0xb", 2);
  }
  const ExecutionGraph graph = read(text);
  EXPECT_THAT(nodes_of(graph, 3), ElementsAre("all-reduce 40 B of 1 3", "all-reduce 80 B of 2 3 after 0"));
}

TEST(NcclLog, gathers_and_scatters__are_taken_as_exchanges) {
  std::string text;
  for (int rank = 0; rank < 2; ++rank) text += init(100 + rank, rank, "0xa", rank, 2, "0x77");
  for (int rank = 0; rank < 2; ++rank)
    for (const std::string name : {"Gather", "Scatter", "Twist"})
      text += call(100 + rank, rank, name, name == "Gather" ? 0 : 1, 10, 7, 0, "0xa", 2);
  const ExecutionGraph graph = read(text);
  EXPECT_THAT(nodes_of(graph, 1), ElementsAre("all-to-all 80 B", "all-to-all 80 B after 0"));
  EXPECT_THAT(graph.warnings, AllOf(Contains(HasSubstr("4 gathers or scatters: taken as all-to-all")),
                                    Contains(HasSubstr("2 calls of an unknown kind (\"Twist\"): left out"))));
}

std::string record(int rank, int number, const std::string& name, int size, const std::string& more = "") {
  return fmt::format(R"({{"header":{{"id":"0xc0","rank":{},"n_ranks":2,"nnodes":1}},"metadata":{{"hostname":"h",)"
                     R"("pid":{}}},"coll_perf":{{"coll":"{}","coll_sn":{},"coll_msg_size_bytes":{},)"
                     R"("coll_exec_time_us":50{}}}}})",
                     rank, 100 + rank, name, number, size, more);
}
std::string at(int start) {
  return fmt::format(R"(,"event_trace_ts":{{"coll_start_ts":{},"kernel_events":[{{"kernel_start_ts":{}}}]}})",
                     1'700'000'000 + start - 3, 1'700'000'000 + start);
}

TEST(NcclInspector, operations__have_lengths_and_with_starts_computation_between) {
  std::string text;
  for (int rank = 0; rank < 2; ++rank)
    text += record(rank, 2, "ReduceScatter", 1000, at(200)) + "\n" + record(rank, 1, "AllReduce", 1000, at(100)) + "\n";
  const ExecutionGraph graph = parse_trace_graph(text, "i.json");
  ASSERT_EQ(graph.ranks.size(), 2u);
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("all-reduce 1000 B for 50 us", "compute 50 us after 0",
                                              "reduce-scatter 2000 B for 50 us after 0 1"))
      << "the Inspector's size is of what a rank keeps";
  EXPECT_THAT(graph.warnings, IsEmpty());
}

TEST(NcclInspector, starts__that_can_not_be_are_placed_by_number) {
  const auto at = [](std::int64_t start) {
    return fmt::format(R"(,"event_trace_ts":{{"coll_start_ts":{},"kernel_events":[{{"kernel_start_ts":{}}}]}})",
                       1'700'000'000'000'000 + start - 3, 1'700'000'000'000'000 + start);
  };
  const std::string zero = R"(,"event_trace_ts":{"coll_start_ts":0,"kernel_events":[{"kernel_start_ts":0}]})";
  const std::string early = R"(,"event_trace_ts":{"coll_start_ts":7})";
  std::string text;
  for (int rank = 0; rank < 2; ++rank)
    text += record(rank, 1, "AllReduce", 10, at(100)) + record(rank, 2, "AllReduce", 20, zero) +
            record(rank, 3, "AllReduce", 30, early) + record(rank, 4, "AllReduce", 40, at(400)) +
            record(rank, 5, "AllReduce", 50, at(500));
  const ExecutionGraph graph = parse_trace_graph(text, "i.json", {.as_recorded = true});
  std::vector<std::int64_t> starts;
  for (const GraphNode& node : graph.ranks[1].nodes)
    if (node.kind == Kind::collective) starts.push_back(node.start.count / 1000);
  EXPECT_THAT(starts, ElementsAre(0, 50, 100, 300, 400)) << "each of 50 us";
  EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("4 operations have no start, or one far from all others")));
  EXPECT_THAT(refusal_of([&] { parse_trace_graph(record(0, 1, "AllReduce", 10, "0000000000000"), "i.json"); }),
              HasSubstr("\"coll_exec_time_us\" is "));
}

TEST(NcclInspector, bandwidths__of_what_took_no_time_are_infinite) {
  const std::string more = R"(,"coll_algobw_gbs":inf,"coll_busbw_gbs":-nan,"note":"inf \" nan")";
  const ExecutionGraph graph =
      parse_trace_graph(record(0, 1, "AllReduce", 10, more) + record(1, 1, "AllReduce", 10, more), "i.json");
  ASSERT_EQ(graph.ranks.size(), 2u);
  EXPECT_EQ(graph.ranks[0].nodes[0].bytes, 10u);
  EXPECT_THROW(parse_trace_graph(replaced(record(0, 1, "AllReduce", 10), "us\":50", "us\":inf"), "i.json"), InputError);
}

TEST(NcclInspector, communicators__of_one_rank_only_are_said_to_be) {
  EXPECT_THAT(refusal_of([&] {
                parse_trace_graph(replaced(record(0, 1, "AllReduce", 10), "\"n_ranks\":2", "\"n_ranks\":1"), "i.json");
              }),
              HasSubstr("i.json: all communicators have one rank"));
}

TEST(NcclInspector, operations__are_paired_by_their_numbers_where_one_is_missing) {
  const std::string text = record(0, 1, "AllReduce", 10) + record(0, 2, "AllReduce", 20) +
                           record(0, 3, "AllReduce", 30) + record(1, 2, "AllReduce", 20) +
                           record(1, 3, "AllReduce", 30);
  const ExecutionGraph graph = parse_trace_graph(text, "i.json");
  EXPECT_THAT(nodes_of(graph, 0),
              ElementsAre("compute 0 ns", "all-reduce 20 B for 50 us after 0", "all-reduce 30 B for 50 us after 1"));
  EXPECT_EQ(graph.ranks[0].nodes[2].tag, 0u);
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("1 collective that other ranks of the group do not run")));
  EXPECT_THAT(graph.warnings, Not(Contains(HasSubstr("different bytes"))));
}

TEST(NcclInspector, markers__stand_before_what_they_describe) {
  std::string text;
  for (int rank = 0; rank < 2; ++rank) {
    text += fmt::format(R"({{"header":{{"id":"0xc0","rank":{},"n_ranks":2}},"metadata":{{"hostname":"h","pid":{}}},)"
                        R"("dump_stats":{{"coll_records":2}}}})",
                        rank, rank);
    text += R"({"coll_perf":{"coll":"AllReduce","coll_sn":7,"coll_msg_size_bytes":64,"coll_exec_time_us":5}})";
    text += fmt::format(R"({{"p2p_perf":{{"p2p":"{}","p2p_sn":1,"p2p_peer":{},"p2p_msg_size_bytes":32}}}})",
                        rank == 0 ? "Send" : "Recv", 1 - rank);
    text += R"({"coll_perf":{"coll":"AllReduce","coll_sn":9,"coll_msg_size_bytes":64,"coll_exec_time_us":5}})";
  }
  const ExecutionGraph graph = parse_trace_graph(text, "i.json");
  ASSERT_EQ(graph.ranks.size(), 2u);
  EXPECT_THAT(nodes_of(graph, 1), ElementsAre("all-reduce 64 B for 5 us", "receive 32 B from 0 after 0",
                                              "all-reduce 64 B for 5 us after 1"));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("2 operations between those that are there are missing")));
}

TEST(NcclInspector, malformed__is_refused_in_one_line) {
  const auto refused = [](const std::string& text) -> std::string {
    return refusal_of([&] { parse_trace_graph(text, "i.json"); });
  };
  EXPECT_THAT(refused(R"({"coll_perf":{}})"), HasSubstr("i.json: object 1 (byte 0): there is no \"header\" before it"));
  EXPECT_THAT(refused(R"({"header":{"rank":2,"n_ranks":2},"coll_perf":{}})"), HasSubstr("\"rank\" below \"n_ranks\""));
  EXPECT_THAT(refused(R"({"coll_perf":x})"), HasSubstr("it is not JSON"));
  EXPECT_THAT(refused(R"({"coll_perf":)" + std::string(100, '[')), HasSubstr("there is no \"coll_perf\""));
  EXPECT_THAT(refused(record(0, 1, "AllReduce", -5)), HasSubstr("\"coll_msg_size_bytes\" is \"-5\""));
  const std::string two = record(0, 1, "AllReduce", 5) + record(1, 1, "AllReduce", 5);
  EXPECT_THAT(parse_trace_graph(two + two.substr(0, 50), "i.json").warnings,
              Contains(HasSubstr("it ends in the middle of object 3")));
}

TEST(NcclInspector, example__of_its_page_is_read) {
  const auto file = trace_folder() / "nccl_inspector" / "readme_example.json";
  SKIP_WITHOUT(file);
  const ExecutionGraph graph = read_traces(std::vector{file});
  ASSERT_EQ(graph.ranks.size(), 8u) << "one of eight stands for all";
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("all-reduce 17179869184 B for 61.974 ms"));
}

}  // namespace
}  // namespace mltcp::workload::nccl_test
