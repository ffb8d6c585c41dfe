// Traces with bytes changed, left out and put in at random: each one becomes a graph that check() takes, or one line.
// The target `traces` of tests/fuzz does the same without an end.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload::damage_test {
namespace {

struct Seed {
  std::string name;
  std::string text;
};

std::string chakra() {
  const auto varint = [](std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>((value & 0x7fU) | 0x80U);
    return bytes + static_cast<char>(value);
  };
  const auto number = [&](std::uint32_t field, std::uint64_t value) { return varint(field << 3U) + varint(value); };
  const auto bytes = [&](std::uint32_t field, const std::string& value) {
    return varint(field << 3U | 2U) + varint(value.size()) + value;
  };
  const auto attribute = [&](const std::string& key, std::uint64_t value) {
    return bytes(10, bytes(1, key) + number(9, value));
  };
  std::string trace = varint(7) + bytes(1, "0.0.4");
  for (std::uint64_t i = 0; i < 6; ++i) {
    std::string node = number(1, i) + bytes(2, "node") + number(3, i < 2 ? 4 : 3 + i) + number(7, 5);
    if (i > 0) node += bytes(5, varint(i - 1));
    if (i >= 2)
      node +=
          attribute("comm_size", 64) + attribute("comm_type", i) + attribute("comm_dst", 1) + attribute("comm_src", 1);
    trace += varint(node.size()) + node;
  }
  return trace;
}

std::vector<Seed> seeds() {
  return {
      {"t.0.et", chakra()},
      {"t.0.json",
       R"({"workload_graph": [{"Id": 1, "Name": "a", "NodeType": 4, "ctrlDeps": [], "data_deps": [], "runtime": 9},
          {"Id": 2, "Name": "c", "NodeType": 7, "data_deps": [1], "comm_type": 0, "comm_size": 100}], "ngpus": 8})"},
      {"t.1.json", R"({"id": "1", "name": "a", "type": "COMP_NODE", "durationMicros": "5"}
          {"id": "2", "name": "b", "type": "COMM_COLL_NODE", "dataDeps": ["1"], "attr": [{"name": "comm_size", "int64Val": "8"}]})"},
      {"e.json", R"({"schema": "1.0.2", "nodes": [
          {"id": 2, "name": "## process_group:init ##", "inputs": {"values": ["[{\"pg_name\": \"0\", \"ranks\": [0, 1], \"group_size\": 2}]"]}},
          {"id": 3, "name": "ProfilerStep#1", "inputs": {"values": []}},
          {"id": 5, "name": "record_param_comms", "inputs": {"values": [[1, 1, 0, 8, 4, "cuda"], 12, ["0", "d"], 0, "allreduce", [], []]}},
          {"id": 6, "name": "record_param_comms", "inputs": {"values": [12, ["0", "d"], 0, "wait", [], []]}}]})"},
      {"rank0.json", R"([{"comms": "init", "pg_id": 1, "global_ranks": [0, 2], "world_size": 2},
          {"comms": "all_reduce", "in_msg_size": 10, "dtype": "float", "pg_id": 1, "world_size": 2, "req": 1, "startTime_ns": 10},
          {"comms": "wait", "req": 1, "startTime_ns": 20}, {"comms": "send", "in_msg_size": 4, "dtype": "int", "dst_rank": 1},
          {"comms": "recv", "out_msg_size": 4, "dtype": "int", "src_rank": 1, "markers": ["## step 4 ##"]}])"},
  };
}

std::string changed(std::string text, Random& random) {
  const std::uint64_t changes = 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = random.below(text.size());
    switch (random.below(6)) {
      case 0:
        text[at] = static_cast<char>(random.next());
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text.erase(at, 1 + random.below(20));
        break;
      case 4:
        text.insert(at, text.substr(random.below(text.size()), random.below(40)));
        break;
      default:
        text.insert(at, std::string(1 + random.below(18), '9'));
    }
  }
  return text;
}

TEST(Damage, changed_traces__become_a_graph_or_one_line) {
  Random random(21);
  std::size_t read = 0;
  for (int round = 0; round < 3000; ++round)
    for (const Seed& seed : seeds()) {
      const std::string text = changed(seed.text, random);
      try {
        const ExecutionGraph graph = parse_trace_graph(text, seed.name);
        ASSERT_NO_THROW(check(graph));
        if (!graph.ranks[0].nodes.empty()) {
          ASSERT_GE(summarise(graph).steps.size(), 1u);
        }
        ++read;
      } catch (const InputError& error) {
        const std::string why = error.what();
        ASSERT_EQ(why.find('\n'), std::string::npos) << why;
        ASSERT_NE(why.find("; "), std::string::npos) << why;
      }
    }
  EXPECT_GT(read, 1000u) << "not all are refused";
}

}  // namespace
}  // namespace mltcp::workload::damage_test
