// Tests traces in which random bytes are changed, removed or inserted. Each trace must give a graph that check()
// accepts, or an error message of one line. The target `traces` in tests/fuzz does the same without end.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "../../damaged.h"
#include "mltcp/base/error.h"
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
      node += attribute("comm_size", 64) + attribute("comm_type", i) + attribute("comm_dst", i == 3 ? 0 : 1) +
              attribute("comm_src", i == 3 ? 1 : 0);
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
      {"t.cm",
       "Nodes 3\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 10 recv_done_trigger 1\n1->2 trigger 1 size 20\n"
       "trigger id 1 oneshot\n"},
      {"t.csv",
       "[rank0 ~ rank3]\n"
       "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
       "CommType.all_reduce,CommGroup.tp_group,2,1000,forward,None,None,,None,None,None,1\n"
       "CommType.all_gather,CommGroup.dp_group,2,1000,step,None,None,,2.5,None,None,1\n"},
      {"t.txt",
       "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 6\n2\n"
       "qkv -1 5000 ALLREDUCE 1000 6000 NONE 0 7000 ALLREDUCE 9000 10\n"
       "mlp -1 8000 NONE 0 9000 NONE 0 4000 ALLREDUCE 6000 10\n"},
      {"nccl.log",
       "h:7:8 [0] NCCL INFO comm 0xa rank 0 nranks 2 cudaDev 0 commId 0x7 - Init COMPLETE\nh:7:8 [0] NCCL INFO "
       "AllGather: opCount 1 sendbuff 0x1 recvbuff 0x2 count 10 datatype 7 op 0 root 0 comm 0xa [nranks=2] stream "
       "0x1\n"},
      {"i.json",
       R"({"header":{"id":"0x1","rank":0,"n_ranks":2},"metadata":{"hostname":"h","pid":1},"coll_perf":{"coll":"AllReduce",)"
       R"("coll_sn":1,"coll_msg_size_bytes":64,"coll_exec_time_us":5,"event_trace_ts":{"coll_start_ts":5}}})"},
      {"k.json",
       R"({"distributedInfo":{"rank":0,"world_size":2,"pg_config":[{"pg_name":"0","ranks":[0,1]}]},"traceEvents":[)"
       R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":1,"ts":1000,"dur":1000},)"
       R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":1,"ts":1050,"dur":5,"args":{"correlation":2}},)"
       R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1100.5,"dur":5,"args":{"correlation":2,"stream":7}},)"
       R"({"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce","pid":0,"tid":40,"ts":1100,"dur":50,"args":)"
       R"({"Group size":2,"Input Dims":[[100],[2,3]],"Input type":["float","double"],"Process Group Name":"0",)"
       R"("Process Group Ranks":"[0, 1]"}}]})"},
  };
}

TEST(Damage, changed_traces__become_a_graph_or_one_line) {
  Random random(21);
  // number of traces that were read and that were rejected, by seed text
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
  for (const Seed& seed : seeds()) EXPECT_NO_THROW(parse_trace_graph(seed.text, seed.name)) << seed.text;
  for (int round = 0; round < 3000; ++round)
    for (const Seed& seed : seeds()) {
      const std::string text = damaged(seed.text, random);
      try {
        const ExecutionGraph graph = parse_trace_graph(text, seed.name);
        ASSERT_NO_THROW(check(graph));
        if (!graph.ranks[0].nodes.empty()) {
          ASSERT_GE(summarise(graph).steps.size(), 1u);
        }
        ++counts[seed.text].first;
      } catch (const InputError& error) {
        ++counts[seed.text].second;
        const std::string why = error.what();
        ASSERT_EQ(why.find('\n'), std::string::npos) << why;
        ASSERT_NE(why.find("; "), std::string::npos) << why;
      }
    }
  for (const auto& [text, count] : counts) {
    EXPECT_GT(count.first, 10u) << text;
    EXPECT_GT(count.second, 50u) << text;
  }
}

}  // namespace
}  // namespace mltcp::workload::damage_test
