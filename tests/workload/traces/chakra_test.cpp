// Tests Chakra traces: differences between their producers, damaged files, and published samples.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../../temporary_folder.h"
#include "../graph_text.h"
#include "../traces.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/traces/read_traces.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload::chakra_test {
namespace {

using Kind = GraphNode::Kind;

/// These functions write the protobuf wire format without a library, so that the tests do not depend on the behaviour
/// of one library.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>((value & 0x7fU) | 0x80U);
  return bytes + static_cast<char>(value);
}
std::string number(std::uint32_t field, std::uint64_t value) { return varint(field << 3U) + varint(value); }
std::string bytes(std::uint32_t field, const std::string& value) {
  return varint(field << 3U | 2U) + varint(value.size()) + value;
}
std::string framed(const std::string& message) { return varint(message.size()) + message; }

enum Field : std::uint32_t { kId = 1, kName, kType, kControl, kData, kStart, kDuration, kAttribute = 10 };
std::string attribute(const std::string& name, std::uint32_t field, std::uint64_t value) {
  return bytes(kAttribute, bytes(1, name) + number(field, value));
}
std::string text_attribute(const std::string& name, const std::string& value) {
  return bytes(kAttribute, bytes(1, name) + bytes(29, value));
}
const std::string metadata = framed(bytes(1, "0.0.4"));

std::string compute(std::uint64_t id, std::uint64_t duration, const std::string& more = "") {
  return framed((id == 0 ? "" : number(kId, id)) + bytes(kName, "op" + std::to_string(id)) + number(kType, 4) +
                number(kDuration, duration) + more);
}
std::string collective(std::uint64_t id, std::uint64_t type, std::uint64_t size, const std::string& more = "") {
  return framed(number(kId, id) + bytes(kName, "coll" + std::to_string(id)) + number(kType, 7) +
                attribute("comm_type", 9, type) + attribute("comm_size", 13, size) + more);
}

ExecutionGraph parse(const std::string& text, const std::string& name = "t.0.et", std::uint32_t ranks = 2) {
  return parse_trace_graph(text, name, {.ranks = ranks});
}
std::string refusal(const std::string& text) {
  return refusal_of([&] { parse(text); }, "t.0.et: ");
}

TEST(Chakra, nodes__have_times_in_microseconds_and_wait_for_both_kinds_of_dependencies) {
  const ExecutionGraph graph = parse(metadata + compute(0, 5) + compute(7, 6) +
                                     collective(9, 0, 1000, number(kControl, 0) + bytes(kData, varint(7))) +
                                     compute(10, 1, number(kData, 9) + number(kData, 7)));
  ASSERT_EQ(graph.ranks.size(), 2u);
  EXPECT_THAT(nodes_of(graph, 0),
              ElementsAre("compute 5 us", "compute 6 us", "all-reduce 1000 B after 0 1", "compute 1 us after 1 2"));
  EXPECT_TRUE(graph.ranks[0].nodes[0].start.is_never());
  EXPECT_EQ(graph.names[graph.ranks[0].nodes[2].name], "coll9");
}

TEST(Chakra, types__of_communication_and_of_its_attributes_are_those_of_any_producer) {
  const auto of = [](const std::string& attributes) {
    const ExecutionGraph graph =
        parse(metadata + framed(number(kId, 1) + bytes(kName, "c") + number(kType, 7) + attributes));
    return nodes_of(graph, 0).at(0);
  };
  for (const std::uint32_t field : {7U, 9U, 11U, 13U, 27U}) {  // the types int32, int64, uint32, uint64 and bool
    EXPECT_EQ(of(attribute("comm_type", field, 0) + attribute("comm_size", 9, 8)), "all-reduce 8 B");
    EXPECT_EQ(of(attribute("comm_size", field, 1)), "all-reduce 1 B") << "a type of 0 may be left out";
  }
  EXPECT_EQ(of(attribute("comm_type", 15, 12) + attribute("comm_size", 17, 16)), "all-to-all 8 B")
      << "signed ones alternate";
  EXPECT_EQ(of(text_attribute("comm_type", "REDUCE_SCATTER") + attribute("comm_size", 9, 8)), "reduce-scatter 8 B");
  EXPECT_EQ(of(attribute("comm_type", 9, 2) + attribute("comm_size", 9, 8)), "all-gather 16 B") << "of both ranks";
  EXPECT_EQ(of(attribute("comm_type", 9, 9) + attribute("comm_size", 9, 8)), "all-reduce 0 B") << "a barrier";
  EXPECT_EQ(of(""), "compute 0 ns") << "of the host";
}

TEST(Chakra, times__that_can_not_be_are_refused_or_left_out) {
  EXPECT_THAT(refusal(metadata + compute(1, 1ULL << 62)), HasSubstr("node 1: it lasts "));
  const auto micros = static_cast<std::uint64_t>(kLongestTrace.count) / 1000;
  EXPECT_THAT(refusal(metadata + compute(1, micros + 1)), HasSubstr("longer than any"));
  EXPECT_THAT(refusal(metadata + compute(1, micros) + compute(2, 1)), HasSubstr("last more than 115 days in all"));
  const std::uint64_t now = 1'700'000'000'000'000;  // microseconds since 1970
  const ExecutionGraph graph =
      parse(metadata + compute(1, 5, number(kStart, now)) + compute(2, 5, number(kStart, now + 9)));
  EXPECT_EQ(graph.ranks[0].nodes[1].start, Nanos(9000));
  EXPECT_THAT(parse(metadata + compute(1, 5, number(kStart, now)) + compute(2, 5, number(kStart, 1ULL << 60))).warnings,
              Contains(HasSubstr("1 start after the year 2096: left out")));
  const auto json = [](const std::string& time) {
    return parse_trace_graph(R"({"id": 1, "name": "c", "type": "COMP_NODE", "durationMicros": )" + time + "}",
                             "t.0.json");
  };
  EXPECT_EQ(json("2.6").ranks[0].nodes[0].length, Nanos(3000));
  for (const std::string time : {"-1", "NaN", "Infinity", "1e300", "\"x\""})
    EXPECT_THROW(json(time), InputError) << time;
}

TEST(Chakra, tables_of_numbers__are_none) {
  const TemporaryFolder folder;
  for (const std::string text : {"5\n0 1 3 100 2000\n", "2\n", "\n\n\n1 2 3\n", "12 34\n56 78\n"}) {
    std::ofstream(folder / "flow.txt") << text;
    EXPECT_EQ(format_of(folder / "flow.txt"), nullptr) << text;
    EXPECT_THAT(refusal_of([&] { read_traces(std::vector{folder / "flow.txt"}); }),
                HasSubstr("flow.txt: it is numbers in columns and begins with \""));
  }
}

TEST(Chakra, collectives__that_there_are_none_of_are_taken_as_others_with_a_warning) {
  const ExecutionGraph graph = parse(metadata + collective(1, 1, 8) + collective(2, 3, 8) + collective(3, 77, 8));
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("broadcast 8 B from 0", "all-to-all 8 B", "all-reduce 8 B"));
  EXPECT_THAT(graph.warnings, Contains("t.0.et: 1 reduce: taken as a broadcast, backwards"));
  EXPECT_THAT(graph.warnings, Contains("t.0.et: node 3: comm_type 77 is unknown; it is taken as an all-reduce"));
}

TEST(Chakra, times__are_nanoseconds_where_the_text_format_was_converted) {
  const std::string text = framed(bytes(2, bytes(1, "input_file") + bytes(29, "HYBRID_DLRM 3\n4\n")));
  EXPECT_EQ(parse(text + compute(1, 5)).ranks[0].nodes[0].length, Nanos(5));
  const ExecutionGraph graph = parse(metadata + framed(number(kId, 1) + bytes(kName, "COMP_NODE_conv1_BWD_IG") +
                                                       number(kType, 4) + number(kDuration, 5)));
  EXPECT_EQ(graph.ranks[0].nodes[0].length, Nanos(5));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("taken as nanoseconds")));
}

TEST(Chakra, operations_of_the_host__take_no_time_beside_a_device) {
  const std::string host = attribute("is_cpu_op", 27, 1);
  const ExecutionGraph both = parse(metadata + compute(1, 5, host) + compute(2, 7));
  EXPECT_THAT(nodes_of(both, 0), ElementsAre("compute 0 ns", "compute 7 us"));
  EXPECT_THAT(both.warnings, Contains(HasSubstr("1 operation of the host, 5 us in all")));
  EXPECT_EQ(parse(metadata + compute(1, 5, host)).ranks[0].nodes[0].length, Nanos(5000));
  const ExecutionGraph launched =
      parse(metadata + compute(1, 5, host) + compute(2, 7) + collective(3, 0, 64, number(kData, 1)) + compute(4, 7));
  EXPECT_THAT(waits_of(launched.ranks[0], 2), ElementsAre(0, 1)) << "as a stream of PyTorch's waits";
}

TEST(Chakra, messages__have_peers_and_tags) {
  const auto message = [](std::uint64_t id, std::uint64_t type, const std::string& peer, std::uint64_t rank) {
    return framed(number(kId, id) + bytes(kName, "m") + number(kType, type) + attribute("comm_size", 9, 64) +
                  attribute(peer, 7, rank) + attribute("comm_tag", 7, 3));
  };
  const ExecutionGraph graph =
      parse(metadata + message(1, 5, "comm_dst", 1) + message(2, 6, "comm_src", 2), "t.0.et", 3);
  ASSERT_EQ(graph.ranks.size(), 3u) << "a ring";
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("send 64 B to 1 tag 3", "receive 64 B from 2 tag 3"));
  EXPECT_EQ(nodes_of(graph, 2)[0], "send 64 B to 0 tag 3");
}

std::string message_of(std::uint64_t id, bool send, std::uint64_t from, std::uint64_t to) {
  return framed(number(kId, id) + bytes(kName, "m") + number(kType, send ? 5 : 6) + attribute("comm_size", 9, 64) +
                attribute("comm_src", 7, from) + attribute("comm_dst", 7, to));
}

TEST(Chakra, rank__is_that_which_messages_come_from_and_go_to) {
  const std::string text = metadata + message_of(1, true, 3, 2) + message_of(2, false, 2, 3);
  const ExecutionGraph graph = parse_trace_graph(text, "t.et", {.ranks = 4, .alike = false});
  EXPECT_THAT(graph.recorded_ranks, ElementsAre(3));
  EXPECT_EQ(
      refusal(text),
      "t.0.et: node 1 is of rank 3, the file's name says 0; rename the file, so that its name ends with its rank");
  EXPECT_EQ(refusal(metadata + message_of(1, true, 0, 2) + message_of(2, false, 2, 3)),
            "t.0.et: node 1 is of rank 0, node 2 of rank 3; give a file for each rank");
}

TEST(Chakra, times__that_are_too_large_in_nanoseconds_are_not_known) {
  const ExecutionGraph graph = parse(metadata + compute(1, 5, number(kStart, 50'000'000'000'000'000)));
  EXPECT_TRUE(graph.ranks[0].nodes[0].start.is_never());
}

// The ids are multiples of a hash table's numbers of buckets, so that a hash table would degrade to a list.
TEST(Chakra, ids__may_be_any) {
  std::string text = metadata;
  constexpr std::uint64_t step = 85'229ULL * 172'933;
  constexpr std::uint64_t count = 150'000;
  for (std::uint64_t i = count; i > 0; --i) text += compute(i * step, 1, i > 1 ? number(kData, (i - 1) * step) : "");
  const ExecutionGraph graph = parse(text);
  ASSERT_EQ(graph.ranks[0].nodes.size(), count);
  EXPECT_THAT(waits_of(graph.ranks[0], count - 1), ElementsAre(count - 2)) << "in order of what they wait for";
}

TEST(Chakra, order__is_that_of_dependencies_and_a_circle_is_refused) {
  const ExecutionGraph control = parse(metadata + compute(1, 5, number(kData, 2)) + compute(2, 6, number(kControl, 1)));
  EXPECT_EQ(control.ranks[0].nodes[0].length, Nanos(6000));
  EXPECT_THAT(control.warnings, Contains(HasSubstr("ctrl_deps are left out")));
  const ExecutionGraph graph = parse(metadata + compute(1, 5, number(kData, 2)) + compute(2, 6));
  EXPECT_EQ(graph.ranks[0].nodes[0].length, Nanos(6000));
  EXPECT_THAT(refusal(metadata + compute(1, 5, number(kData, 2)) + compute(2, 6, number(kData, 1))),
              HasSubstr("wait for each other"));
  EXPECT_THAT(parse(metadata + compute(1, 5, number(kData, 3))).warnings,
              Contains("t.0.et: 1 dependency on nodes that are not in the file: left out"));
}

TEST(Chakra, damage__is_one_line_with_the_place) {
  const std::string whole = metadata + compute(1, 5) + compute(2, 6);
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 3)), HasSubstr("message 3: it is cut off in a message of"));
  EXPECT_THAT(refusal(whole + std::string(11, '\xff')), HasSubstr("message 4: the length of a message is wrong"));
  EXPECT_THAT(refusal(whole + "\x80"), HasSubstr("cut off in a message's length"));
  EXPECT_THAT(refusal(whole + framed("\x08")), HasSubstr("it is not a node"));
  EXPECT_THAT(refusal(whole + compute(2, 6)), HasSubstr("node 3: id 2 is given twice"));
  EXPECT_THAT(refusal(metadata + compute(1, ~std::uint64_t{0})), HasSubstr("longer than any"));
  EXPECT_THAT(refusal(metadata + collective(1, 0, ~std::uint64_t{0})), HasSubstr("comm_size -1 is out of range"));
  EXPECT_THAT(
      refusal(metadata + framed(number(kId, 1) + bytes(kName, "m") + number(kType, 5) + attribute("comm_size", 9, 64))),
      HasSubstr("comm_dst is missing"));
  EXPECT_THAT(refusal(metadata), HasSubstr("it has no nodes"));
}

TEST(Chakra, communications__without_a_size_are_counted_and_are_no_barriers) {
  const auto untold = [](const std::string& count) { return "t.0.et: " + count + " without a size or kind: left out"; };
  const auto node = [](std::uint64_t id, std::uint64_t type, const std::string& attributes) {
    return framed(number(kId, id) + bytes(kName, "n") + number(kType, type) + number(kDuration, 3) + attributes);
  };
  const ExecutionGraph graph =
      parse(metadata + compute(1, 5) + collective(2, 0, 1000, number(kData, 1)) + node(3, 7, number(kData, 2)) +
            node(4, 7, number(kData, 3) + attribute("comm_type", 9, 2)) +
            node(5, 5, number(kData, 4) + attribute("comm_dst", 9, 1)) + node(6, 6, number(kData, 5)));
  EXPECT_THAT(graph.warnings, Contains(untold("4 communications")));
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("compute 5 us", "all-reduce 1000 B after 0", "compute 3 us after 1",
                                              "compute 3 us after 2", "compute 3 us after 3", "compute 3 us after 4"));
  // A barrier is recognised by its kind and needs no size.
  const ExecutionGraph barrier = parse(metadata + collective(1, 0, 8) + node(2, 7, attribute("comm_type", 9, 9)));
  EXPECT_EQ(barrier.ranks[0].nodes[1].kind, Kind::collective);
  EXPECT_THAT(barrier.warnings, Not(Contains(HasSubstr("left out"))));
  // The host's operation that launched a kernel is not counted as a communication, unless the trace has no kernels.
  const std::string host = node(2, 7, attribute("is_cpu_op", 27, 1));
  EXPECT_THAT(parse(metadata + collective(1, 0, 8) + host).warnings, Not(Contains(HasSubstr("left out"))));
  EXPECT_THAT(parse(metadata + compute(1, 5) + host).warnings, Contains(untold("1 communication")));
  EXPECT_THAT(
      parse(metadata + collective(1, 0, 0) + node(2, 5, attribute("comm_size", 9, 0))).warnings,
      Contains("t.0.et: 2 communications of 0 bytes: collectives are taken as barriers, messages are left out"));
}

TEST(Chakra, groups__are_those_whose_files_name_them) {
  const ExecutionGraph graph = parse(metadata + collective(1, 0, 8, text_attribute("pg_name", "1")) +
                                         collective(2, 0, 8, text_attribute("pg_name", "0")),
                                     "t.0.et", 4);
  EXPECT_THAT(graph.groups, ElementsAre(ElementsAre(0, 1, 2, 3))) << "one file: the whole job";
}

TEST(Chakra, json__as_protobuf_converts_it_and_as_a_list) {
  const ExecutionGraph objects = parse(R"({"version": "0.0.4"}
{"id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "5", "attr": [{"name": "is_cpu_op", "boolVal": false}]}
{"id": "2", "name": "b", "type": "COMM_COLL_NODE", "dataDeps": ["1"],
 "attr": [{"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "int64Val": "1024"}]})",
                                       "t.0.json");
  EXPECT_THAT(nodes_of(objects, 0), ElementsAre("compute 5 us", "all-reduce 1024 B after 0"));
  EXPECT_THAT(objects.warnings, testing::Each(HasSubstr("is used for")));
  const ExecutionGraph list = parse(
      R"({"workload_graph": [{"Id": 4, "Name": "a", "NodeType": 4, "ctrlDeps": [], "data_deps": [], "runtime": 9,
      "is_cpu_op": false}], "ngpus": 3})",
      "t.1.json");
  EXPECT_EQ(list.ranks.size(), 3u);
  EXPECT_EQ(list.ranks[1].nodes[0].length, Nanos(9000));
}

TEST(Chakra, json__that_is_damaged_is_one_line_with_the_place) {
  const std::string whole = R"({"workload_graph": [{"Id": 4, "Name": "a", "NodeType": 4, "runtime": 9}]})";
  for (std::size_t size = 20; size < whole.size(); ++size) {
    const std::string why = refusal(whole.substr(0, size));
    EXPECT_THAT(why, AnyOf(HasSubstr("byte"), HasSubstr("no nodes"))) << size;
  }
  EXPECT_THAT(refusal(R"({"workload_graph": [{"Id": -4, "Name": "a"}]})"),
              HasSubstr("element 1, byte 20: id is not a number"));
  EXPECT_THAT(refusal(R"({"workload_graph": [{"Id": 4, "Name": "a", "runtime": -1}]})"),
              HasSubstr("runtime is not a duration"));
  EXPECT_THAT(refusal(R"({"workload_graph": [{"Id": 4 "Name": "a"}]})"), HasSubstr("this is not JSON"));
  EXPECT_THAT(refusal(R"({"workload_graph": [)" + std::string(100, '[')), HasSubstr("nested more than 64 deep"));
}

TEST(Chakra, samples__of_others_are_read) {
  const std::filesystem::path folder = trace_folder() / "chakra";
  SKIP_WITHOUT(folder);
  const auto file = [&](const std::string& name) { return folder / name; };
  std::vector<std::filesystem::path> ranks;
  for (int i = 0; i < 4; ++i) ranks.push_back(file("astrasim_all_reduce_4npus_1MB." + std::to_string(i) + ".et"));
  const ExecutionGraph four = read_traces(ranks);
  ASSERT_EQ(four.ranks.size(), 4u);
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_THAT(nodes_of(four, rank), ElementsAre("all-reduce 1048576 B"));
  EXPECT_THAT(four.warnings, IsEmpty());
  // The traces cover two of the eight ranks of a ring.
  ranks = {file("astrasim_custom_ring_allreduce_8npus_1MB.0.et"),
           file("astrasim_custom_ring_allreduce_8npus_1MB.1.et")};
  const ExecutionGraph ring = read_traces(ranks);
  ASSERT_EQ(ring.ranks.size(), 8u);
  Bytes sent = 0;
  for (const GraphNode& node : ring.ranks[5].nodes) sent += node.kind == Kind::send ? node.bytes : 0;
  EXPECT_EQ(sent, 2 * 7 * 1048576u / 8) << "2 (n-1)/n S";
  const std::vector<std::filesystem::path> feeder{file("mlcommons_feeder_tests_trace.tar.gz")};
  const ExecutionGraph resnet = read_traces(feeder, {.ranks = 8});
  EXPECT_EQ(resnet.ranks.size(), 8u);
  EXPECT_EQ(resnet.ranks[0].nodes.size(), 3664u);
  const std::vector<std::filesystem::path> json{file("mlcommons_small_chakra.0.json")};
  EXPECT_EQ(read_traces(json).ranks.size(), 8u);
}

}  // namespace
}  // namespace mltcp::workload::chakra_test
