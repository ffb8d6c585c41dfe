// Tests dumps of PyTorch's Flight Recorder, in JSON and as pickles. The reader accepts only plain data in a pickle.

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../../temporary_folder.h"
#include "../graph_text.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload::flight_recorder_test {
namespace {

using namespace mltcp::literals;
using nlohmann::json;
using Kind = GraphNode::Kind;

constexpr std::int64_t kClock = 1'724'781'437'000'000'000;

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}
void pickle(const json& value, std::string& to) {
  if (value.is_object()) {
    to += "}(";
    for (const auto& [key, member] : value.items()) pickle(json(key), to), pickle(member, to);
    to += "u";
  } else if (value.is_array()) {
    to += "](";
    for (const json& item : value) pickle(item, to);
    to += "e";
  } else if (value.is_string()) {
    to += "X" + little(value.get<std::string>().size(), 4) + value.get<std::string>();
  } else if (value.is_boolean()) {
    to += value.get<bool>() ? '\x88' : '\x89';
  } else if (value.is_number_float()) {
    std::string bytes = little(std::bit_cast<std::uint64_t>(value.get<double>()), 8);
    to += "G" + std::string(bytes.rbegin(), bytes.rend());
  } else if (value.is_number()) {
    to += "\x8a\x08" + little(static_cast<std::uint64_t>(value.get<std::int64_t>()), 8);
  } else {
    to += "N";
  }
}
/// Returns a value as a pickle in PyTorch's format.
std::string pickled(const json& value) {
  std::string text = "\x80\x02";
  pickle(value, text);
  return text + ".";
}

/// Builds the dump of one rank. The clock of its calls begins at kClock.
class Dump {
 public:
  explicit Dump(json groups = {{"0", "[0, 1, 2, 3]"}, {"1", "[1, 3]"}}) {
    for (const auto& [name, ranks] : groups.items())
      dump_["pg_config"][name] = {{"name", name}, {"desc", name == "0" ? "default_pg" : "undefined"}, {"ranks", ranks}};
    dump_["version"] = "2.10";
    dump_["entries"] = json::array();
  }
  /// Adds a call that follows the previous call after the time `after`. `in` and `out` are the numbers of elements of
  /// its input and output tensors; 0 if there is no tensor.
  json& add(const std::string& name, std::int64_t in, std::int64_t out, Nanos after = Nanos(0),
            const std::string& group = "0") {
    now_ += after.count;
    const bool message = name.find("send") != std::string::npos || name.find("recv") != std::string::npos;
    if (name != "nccl:coalesced") ++(message ? messages_ : collectives_)[group];
    json entry = {{"record_id", record_++},         {"process_group", {group, "d"}},
                  {"profiling_name", name},         {"collective_seq_id", collectives_[group]},
                  {"p2p_seq_id", messages_[group]}, {"is_p2p", message},
                  {"time_created_ns", now_},        {"state", "completed"}};
    const auto tensors = [](std::int64_t size) { return size == 0 ? json::array() : json{{size}}; };
    entry["input_sizes"] = tensors(in);
    entry["output_sizes"] = tensors(out);
    entry["input_dtypes"] = entry["output_dtypes"] = {"Float"};
    dump_["entries"].push_back(entry);
    return dump_["entries"].back();
  }
  [[nodiscard]] std::string text() const { return dump_.dump(); }
  [[nodiscard]] std::string pickle() const { return pickled(dump_); }
  json& entries() { return dump_["entries"]; }

 private:
  json dump_;
  std::int64_t now_ = kClock;
  int record_ = 0;
  std::map<std::string, int> collectives_;
  std::map<std::string, int> messages_;
};

ExecutionGraph graph_of(const std::string& text, const std::string& name = "nccl_trace_rank_1",
                        const TraceOptions& options = {.as_recorded = true}) {
  return parse_trace_graph(text, name, options);
}
std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_trace_graph(text, "nccl_trace_rank_0"); }, "nccl_trace_rank_0: ");
}

TEST(FlightRecorder, sizes__are_those_of_each_kind_in_json_and_in_a_pickle) {
  Dump dump;
  dump.add("nccl:all_reduce", 10, 10);
  dump.add("nccl:_all_gather_base", 10, 40);
  dump.add("nccl:all_gather", 10, 0);  // the dump has no output size, so it follows from the 4 ranks
  dump.add("nccl:_reduce_scatter_base", 40, 10);
  dump.add("nccl:all_to_all", 40, 44);
  dump.add("nccl:broadcast", 7, 7);
  dump.add("nccl:all_reduce_barrier", 1, 1);
  dump.add("nccl:gather", 10, 0);
  dump.add("nccl:reduce", 5, 5);
  dump.add("nccl:all_reduce", 3, 3)["input_dtypes"] = {"BFloat16"};
  dump.entries().back()["output_dtypes"] = {"BFloat16"};
  json& several = dump.add("nccl:allreduce_coalesced", 0, 0);
  several["input_sizes"] = several["output_sizes"] = {{2, 3}, json::array(), {4}};
  several["input_dtypes"] = several["output_dtypes"] = {"Float", "Double", "Half"};
  for (const std::string& text : {dump.text(), dump.pickle()}) {
    const ExecutionGraph graph = graph_of(text);
    ASSERT_EQ(graph.ranks.size(), 4u);
    EXPECT_THAT(nodes_of(graph, 1),
                ElementsAre("all-reduce 40 B", "all-gather 160 B", "all-gather 160 B", "reduce-scatter 160 B",
                            "all-to-all 160 B", "broadcast 28 B from 0", "all-reduce 0 B", "all-to-all 160 B",
                            "broadcast 20 B from 0", "all-reduce 6 B", "all-reduce 40 B"));
    EXPECT_THAT(graph.warnings, AllOf(Contains(HasSubstr("does not name the root of 2 broadcasts")),
                                      Contains(HasSubstr("1 reduce: taken as a broadcast")),
                                      Contains(HasSubstr("1 gather: taken as an all-to-all"))));
  }
}

TEST(FlightRecorder, ranks__are_joined_by_the_numbers_of_their_collectives) {
  const TemporaryFolder folder;
  for (int rank = 0; rank < 4; ++rank) {
    Dump dump({{"0", "[0, 1, 2, 3]"}, {"1", rank % 2 == 0 ? "[0, 2]" : "[1, 3]"}});
    for (int i = 0; i < 5; ++i) {
      dump.add("nccl:all_reduce", 100 + i, 100 + i);
      dump.add("nccl:_reduce_scatter_base", 10, 5, 0_ns, "1");
    }
    // The ring buffer of rank 2 has lost its first four entries.
    if (rank == 2) dump.entries().erase(dump.entries().begin(), dump.entries().begin() + 4);
    folder.write(fmt::format("comm_lib_trace_rank_{}", rank), rank == 0 ? dump.pickle() : dump.text());
  }
  const ExecutionGraph graph = read_traces(std::vector<std::filesystem::path>{folder.path()});
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(bytes_of(graph.ranks[0]), ElementsAre(408u, 40u, 412u, 40u, 416u, 40u));
  EXPECT_THAT(bytes_of(graph.ranks[1]), ElementsAre(40u, 40u, 408u, 40u, 412u, 40u, 416u, 40u));
  EXPECT_THAT(nodes_of(graph, 3), Contains(HasSubstr("reduce-scatter 40 B of 1 3")));
  EXPECT_THAT(
      graph.warnings,
      Contains(HasSubstr("_2: 4 operations before the first one: missing, since the buffer keeps only the last")));
}

TEST(FlightRecorder, messages__are_between_ranks_of_the_job_and_launched_together) {
  Dump dump({{"0", "[0, 1, 2, 3, 4, 5, 6, 7]"}, {"pp", "[2, 6]"}});
  dump.add("nccl:send 0->1", 100, 0, 0_ns, "pp");
  dump.add("nccl:recv 0<-1", 0, 50, 0_ns, "pp")["p2p_seq_id"] = 1;
  dump.add("nccl:coalesced", 0, 0, 0_ns, "pp")["is_p2p"] = true;
  dump.entries().back()["p2p_seq_id"] = 1;
  dump.add("nccl:send 1->0", 9, 0, 0_ns, "pp");
  // The file name does not contain the rank, so the ranks of the sends determine it.
  const ExecutionGraph graph = graph_of(dump.text(), "dump");
  ASSERT_EQ(graph.ranks.size(), 8u);
  EXPECT_THAT(nodes_of(graph, 2), ElementsAre("send 400 B to 6", "receive 200 B from 6"));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("1 message whose ends are not known, or are not of this rank")));
  EXPECT_THAT(graph.warnings, Not(Contains(HasSubstr("coalesced"))));
}

TEST(FlightRecorder, coalesced__without_its_parts_is_counted) {
  Dump dump;
  dump.add("nccl:all_reduce", 10, 10);
  dump.add("nccl:coalesced", 0, 0)["collective_seq_id"] = 2;
  const ExecutionGraph graph = graph_of(dump.text());
  EXPECT_THAT(bytes_of(graph.ranks[1]), ElementsAre(40u));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("1 coalesced operation without its operations: left out")));
}

TEST(FlightRecorder, parts__of_what_was_coalesced_end_when_it_does) {
  Dump dump;
  const auto batch = [&](const char* state, Nanos after, const std::string& group) {
    for (const char* name : {"nccl:send 1->2", "nccl:recv 1<-0", "nccl:coalesced"}) {
      json& entry = dump.add(name, 10, 10, name[5] == 's' ? after : 0_ns, group);
      entry["is_p2p"] = true;
      entry["p2p_seq_id"] = 1;
      entry["state"] = name[5] == 'c' ? state : "scheduled";
      if (name[5] == 'c') entry["input_sizes"] = entry["output_sizes"] = json::array();
    }
  };
  batch("completed", 0_ns, "0");
  dump.entries().back()["duration_ms"] = 5.0;
  dump.add("nccl:all_reduce", 10, 10, 6_ms)["duration_ms"] = 1.0;
  const ExecutionGraph graph = graph_of(dump.text());
  EXPECT_THAT(graph.warnings, IsEmpty());
  EXPECT_THAT(nodes_of(graph, 1), ElementsAre("send 40 B to 2", "receive 40 B from 0 for 5 ms",
                                              "compute 1 ms after 0 1", "all-reduce 40 B for 1 ms after 2"));
  EXPECT_EQ(graph.ranks[1].nodes[2].start, 5_ms);
  // A coalesced batch that has not ended counts as one operation. Parts without a coalesced entry after them would
  // count separately.
  dump.add("nccl:all_reduce", 10, 10)["state"] = "scheduled";
  dump.add("nccl:all_reduce", 10, 10, 0_ns, "1")["state"] = "started";
  batch("started", 0_ns, "0");
  EXPECT_THAT(graph_of(dump.text()).warnings,
              Contains(HasSubstr("3 operations had not ended at the time of the dump (2 started, 1 only scheduled; the "
                                 "first is \"nccl:all_reduce\", record 4)")));
}

TEST(FlightRecorder, durations__leave_computation_between) {
  Dump dump;
  dump.add("nccl:all_reduce", 10, 10)["duration_ms"] = 4.0;
  // This operation was created while the previous one ran, so it begins when the previous one has ended.
  dump.add("nccl:all_reduce", 11, 11, 1_ms)["duration_ms"] = 2.0;
  dump.add("nccl:all_reduce", 12, 12, 19_ms)["duration_ms"] = 1.0;
  const ExecutionGraph graph = graph_of(dump.pickle());
  EXPECT_THAT(nodes_of(graph, 1), ElementsAre("all-reduce 40 B for 4 ms", "all-reduce 44 B for 2 ms",
                                              "compute 14 ms after 1", "all-reduce 48 B for 1 ms after 2"))
      << "computation waits for the last of a group";
  std::vector<Nanos> starts;
  for (const GraphNode& node : graph.ranks[1].nodes) starts.push_back(node.start);
  EXPECT_THAT(starts, ElementsAre(0_ns, 4_ms, 6_ms, 20_ms));
  EXPECT_THAT(graph.warnings, IsEmpty());
}

TEST(FlightRecorder, calls__without_durations_go_on_beside_the_next_computation) {
  Dump dump;
  for (int i = 0; i < 3; ++i) dump.add("nccl:all_reduce", 10 + i, 10 + i, 5_ms);
  const ExecutionGraph graph = graph_of(dump.text());
  EXPECT_THAT(nodes_of(graph, 1), ElementsAre("all-reduce 40 B", "compute 5 ms", "all-reduce 44 B after 1",
                                              "compute 5 ms after 0 1", "all-reduce 48 B after 3"));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("it has no durations (TORCH_NCCL_ENABLE_TIMING=1 records them)")));
}

TEST(FlightRecorder, an_iteration__is_found_by_repetition) {
  Dump dump;
  for (int step = 0; step < 6; ++step)
    for (int bucket = 0; bucket < 3; ++bucket) dump.add("nccl:all_reduce", 1000 + bucket, 1000 + bucket, 10_ms);
  const GraphSummary summary = summarise(graph_of(dump.pickle()), {.rank = 1});
  EXPECT_EQ(summary.steps.at(summary.typical).length, 30_ms);
  // Each bucket contributes 2 (n-1)/n times its size.
  EXPECT_EQ(summary.steps.at(summary.typical).sent, 6000u + 6006u + 6012u);
}

TEST(FlightRecorder, what_it_lacks__is_told_with_a_count) {
  Dump dump;
  dump.add("nccl:all_reduce", 10, 10);
  dump.add("nccl:all_to_all", 0, 0);
  dump.add("nccl:no_such_thing", 1, 1);
  dump.add("nccl:all_reduce", 10, 10)["state"] = "started";
  dump.add("nccl:all_reduce", 10, 10)["state"] = "scheduled";
  dump.entries()[3]["time_created_ns"] = 0;
  const ExecutionGraph graph = graph_of(dump.text());
  EXPECT_THAT(graph.warnings,
              AllOf(Contains(HasSubstr("1 call of \"nccl:all_to_all\" without sizes: left out")),
                    Contains(HasSubstr("\"nccl:no_such_thing\" is not a known operation: 1 left out")),
                    Contains(HasSubstr("2 operations had not ended at the time of the dump (1 started, 1 only "
                                       "scheduled; the first is \"nccl:all_reduce\", record 3): the job may hang")),
                    Contains(HasSubstr("its times are missing or out of range: computation is left out"))));
  EXPECT_EQ(graph.ranks[1].nodes.size(), 3u);
}

TEST(FlightRecorder, older_versions__have_other_names_and_no_types) {
  const std::string text = R"({"version": "1.5", "entries": [
    {"record_id": 0, "pg_id": 0, "process_group": "0", "seq_id": 1, "profiling_name": "nccl:all_reduce",
     "time_created_ns": 1724781437000000000, "input_sizes": [[3, 4]], "output_sizes": [[3, 4]]}]})";
  const ExecutionGraph graph = graph_of(text, "nccl_trace_rank_1", {.ranks = 4, .as_recorded = true});
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(bytes_of(graph.ranks[1]), ElementsAre(48u));
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("2 sizes of an unknown type: assuming four bytes an element")));
}

TEST(FlightRecorder, malformed__is_one_line) {
  Dump dump;
  EXPECT_THAT(refusal(dump.text()), HasSubstr("it has no entries; set TORCH_FR_BUFFER_SIZE"));
  dump.add("nccl:all_reduce", -1, 1);
  EXPECT_THAT(refusal(dump.text()), HasSubstr("has an element that is not a size"));
  dump.entries()[0]["input_sizes"] = {{1LL << 40, 1LL << 40, 1LL << 40}};
  EXPECT_THAT(refusal(dump.pickle()), HasSubstr("element 1: \"input_sizes\" is of more than"));
  dump.entries()[0] = {{"a", 1}};
  EXPECT_THAT(refusal(dump.pickle()), HasSubstr("it has no \"profiling_name\""));
  dump.entries()[0] = {{"profiling_name", "nccl:send 1"}, {"input_sizes", {{1}}}};
  EXPECT_THAT(refusal(dump.text()), HasSubstr("\"nccl:send 1\" does not name two ranks"));
  const std::string whole = Dump().pickle();
  for (std::size_t size = 45; size < whole.size(); size += 7)
    EXPECT_THAT(refusal(whole.substr(0, size)), HasSubstr("cut off"));
}

TEST(FlightRecorder, what_is_kept__counts) {
  Dump dump;
  for (int i = 0; i < 1000; ++i) dump.add("nccl:all_reduce", 10, 10);
  for (const std::string& text : {dump.text(), dump.pickle()}) {
    const auto input = memory_input(text, "t");
    input->share(std::make_shared<TraceBudget>(std::size_t{100} << 10U));
    EXPECT_THROW(kFlightRecorder.read(*input, {}), InputError);
  }
}

TEST(Pickle, instructions_that_import_or_call__are_refused) {
  const std::string head = "\x80\x02}X" + little(9, 4) + "pg_config";
  EXPECT_THAT(refusal(head + "cos\nsystem\n(X" + little(2, 4) + "lstRs."),
              HasSubstr("the pickle imports or calls something (instruction 0x63), which is not allowed"));
  EXPECT_THAT(refusal(head + "X" + little(2, 4) + "osX" + little(6, 4) + "system\x93."), HasSubstr("instruction 0x93"));
  for (const char* operation : {"R", "b", "i", "o", "\x81", "\x92", "P", "Q", "\x82"})
    EXPECT_THAT(refusal(head + operation + ")."), HasSubstr("imports or calls something"));
  // The call may be at any position, even if nothing else shows that Flight Recorder has written the file.
  const std::string calls = "imports or calls something";
  EXPECT_THAT(refusal("\x80\x02}X" + little(1, 4) + "acos\nsystem\n(X" + little(2, 4) + "lstRs."), HasSubstr(calls));
  EXPECT_THAT(refusal("\x80\x02"
                      "cos\nsystem\n(X" +
                      little(2, 4) + "lstR."),
              HasSubstr(calls));
  EXPECT_THAT(refusal("\x80\x02]X" + little(1, 4) + "aa."), HasSubstr("a Python pickle"));
  EXPECT_THAT(refusal(head + "\xff."), HasSubstr("0xff is not an instruction for dicts"));
  EXPECT_THAT(refusal(head + "s."), HasSubstr("has no operand"));
  EXPECT_THAT(refusal(head + "e."), HasSubstr("a mark is missing"));
  EXPECT_THAT(refusal(head + "h\x07."), HasSubstr("a value is used before it is defined"));
  EXPECT_THAT(refusal(head + "r\xff\xff\xff\xff."), HasSubstr("a number of a value is out of range"));
  EXPECT_THAT(refusal(head + "\x8d" + little(1ULL << 60, 8) + "x"), HasSubstr("a text is too long"));
  EXPECT_THAT(refusal(head + "X" + little(0xfffffff0, 4) + "x"), HasSubstr("cut off"));
  EXPECT_THAT(refusal(head + "0."), HasSubstr("no entries"));
  EXPECT_THAT(refusal(head + "."), HasSubstr("it is not a dict"));
}

/// Returns a pickle of {"pg_config": {}, "entries": ...}. `entries` are the pickle instructions that create the
/// entries.
std::string bomb(const std::string& entries) {
  return "\x80\x02}X" + little(9, 4) + "pg_config}sX" + little(7, 4) + "entries" + entries + "s.";
}

TEST(Pickle, bombs__of_shared_values_do_not_unfold) {
  // A list of ten references to a list of ten references, and so on.
  std::string list = "](" + std::string(10, 'N') + "eq\x01";
  for (char i = 1; i < 12; ++i) {
    list += "0](";
    for (int n = 0; n < 10; ++n) list += std::string("h") + i;
    list += std::string("eq") + static_cast<char>(i + 1);
  }
  EXPECT_THAT(refusal(bomb("](}X" + little(1, 4) + "a" + list + "se")),
              HasSubstr("unfolds to more than the file holds"));
  // A list that contains itself.
  EXPECT_THAT(refusal(bomb("](}X" + little(1, 4) + "a]q\x01h\x01" + "ase")),
              AnyOf(HasSubstr("unfolds to more"), HasSubstr("nested more than")));
  // A list that contains the same entry a thousand times.
  std::string many = "](}q\x01X" + little(14, 4) + "profiling_nameX" + little(12, 4) + "nccl:barriers";
  for (int i = 0; i < 1000; ++i) many += "h\x01";
  EXPECT_THAT(refusal(bomb(many + "e")), HasSubstr("element 2 is given twice"));
  EXPECT_THAT(refusal(bomb("](}X" + little(1, 4) + "a" + std::string(1000, ']') + std::string(999, 'a') + "se")),
              HasSubstr("nested more than"));
}

TEST(Pickle, newer_protocols__frame_and_number_as_they_go) {
  const auto word = [](const std::string& text) { return "\x8c" + little(text.size(), 1) + text + "\x94"; };
  const std::string body = "}\x94(" + word("pg_config") + "}\x94" + word("entries") + "]\x94}\x94(" +
                           word("profiling_name") + word("nccl:all_reduce") + word("input_sizes") + "]\x94]\x94" +
                           "K\x07" + "aa" + word("input_dtypes") + "]\x94" + word("Half") + "a" + "u" + "a" + "u.";
  const ExecutionGraph graph =
      graph_of("\x80\x04\x95" + little(body.size(), 8) + body, "rank_0", {.ranks = 2, .as_recorded = true});
  EXPECT_THAT(bytes_of(graph.ranks[0]), ElementsAre(14u));
}

}  // namespace
}  // namespace mltcp::workload::flight_recorder_test
