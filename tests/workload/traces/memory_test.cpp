// Tests that the memory for a trace is counted while the trace is read, and that a reader's temporary memory is
// returned.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "../../matchers.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/workload/traces/kineto_graph.h"
#include "mltcp/lab/workload/traces/trace_formats.h"

namespace mltcp::workload::memory_test {
namespace {

using ::testing::Eq;

constexpr std::size_t kKiB = 1024;

struct Bounded {
  std::string said;
  std::size_t kept;  ///< bytes still in use after reading; all the given memory if reading failed
};
Bounded read_within(const TraceFormat& format, const std::string& text, std::size_t memory) {
  const auto budget = std::make_shared<TraceBudget>(memory);
  const auto input = memory_input(text, "t");
  input->share(budget);
  try {
    format.read(*input, {});
  } catch (const InputError& error) {
    return {error.what(), memory};
  }
  std::size_t left = 0;
  while (budget->take(kKiB)) left += kKiB;
  return {"no error", memory - left};
}

/// Expects that reading fails with `during` bytes of memory, and that at most `after` bytes remain in use after
/// successful reading.
void expect_bounded(const TraceFormat& format, const std::string& text, std::size_t during, std::size_t after) {
  EXPECT_THAT(read_within(format, text, during).said, HasSubstr("this trace and those before it need more"));
  const Bounded done = read_within(format, text, 16 * during);
  EXPECT_THAT(done.said, Eq("no error"));
  EXPECT_LE(done.kept, after);
}

TEST(TraceMemory, communicators__of_a_log_count) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format("n:1:1 [0] NCCL INFO ncclCommInitRank comm 0x{:016x} rank 0 nranks 2 commId 0x{:016x}\n", i, 7);
  text +=
      "n:1:8 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0 recvbuff 0 count 4 datatype 7 op 0 root 0 comm "
      "0x0000000000000000 [nranks=2] stream 0x5\n";
  expect_bounded(kNcclLogFormat, text, 300 * kKiB, 4 * kKiB);
  // Owners and streams count towards the memory limit.
  std::string owners;
  for (int i = 0; i < 1000; ++i)
    owners += fmt::format("n:{}:1 [0] NCCL INFO ncclCommInitRank comm 0x1 rank 0 nranks 2 commId 0x7\n", i);
  EXPECT_THAT(read_within(kNcclLogFormat, owners, 200 * kKiB).said, HasSubstr("need more than"));
}

TEST(TraceMemory, operations__of_the_inspector_count_until_they_are_nodes) {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += fmt::format(
        R"({{"header":{{"id":"0x7","rank":0,"n_ranks":2,"nnodes":1}},"coll_perf":{{"coll":"AllReduce","coll_sn":{},)"
        R"("coll_msg_size_bytes":4096,"coll_exec_time_us":9}}}})"
        "\n",
        i + 1);
  expect_bounded(kNcclInspectorFormat, text, 200 * kKiB, 180 * kKiB);
}

TEST(TraceMemory, groups__and_threads_of_a_profile_count) {
  const auto trace_of = [](int events, const auto& event) {
    std::string text = R"({"traceEvents":[)";
    for (int i = 0; i < events; ++i) text += (i == 0 ? "" : ",\n") + event(i);
    return text + "]}";
  };
  const std::string all = trace_of(100, [](int i) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":{},"dur":1,"args":{{)"
        R"("Collective name":"allreduce","In msg nelems":9,"Out msg nelems":9,"dtype":"Float","Group size":2,)"
        R"("Process Group Name":"{}","Process Group Ranks":"[0, 1]","stream":7,"correlation":{}}}}})",
        2 * i, std::string(2000, 'g') + std::to_string(i), i);
  });
  expect_bounded(kKinetoFormat, all, 400 * kKiB, 480 * kKiB);
  const std::string threads = trace_of(2000, [](int i) {
    return fmt::format(
        R"({{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":0,"tid":"t{}","ts":{},"dur":1,)"
        R"("args":{{"correlation":{}}}}})",
        i, i, i);
  });
  EXPECT_THAT(read_within(kKinetoFormat, threads, 100 * kKiB).said, HasSubstr("need more than"));
}

TEST(TraceMemory, layers__of_a_text_count_until_they_are_nodes) {
  std::string text = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 4\n1000\n";
  for (int i = 0; i < 1000; ++i) text += "q -1 5 ALLREDUCE 1 6 NONE 0 7 ALLREDUCE 9 1\n";
  expect_bounded(kAstraTextFormat, text, 15 * text.size(), 50 * text.size());
}

TEST(TraceMemory, nodes__of_pytorch_are_given_back) {
  constexpr std::size_t nodes = 4000;
  std::string text = R"({"schema": "1.1.0-chakra.0.0.4", "pid": 1, "nodes": [)";
  for (std::size_t i = 0; i < nodes; ++i)
    text += fmt::format(
        R"({}{{"id": {}, "name": "record_param_comms", "ctrl_deps": 1, "inputs": {{"values": )"
        R"([[[9, 9, 0, 50, 2, "cuda:1"]], {}, ["0", "default_pg"], 1, "allreduce"]}}, "outputs": {{"values": []}}}})",
        i == 0 ? "" : ",\n", i + 2, i);
  // Nodes and their dependencies remain in use.
  expect_bounded(kPytorchEt, text + "]}", nodes * 200, nodes * (sizeof(GraphNode) + 8) + 8 * kKiB);
}

TEST(TraceMemory, identifiers__of_chakra_are_given_back) {
  constexpr std::size_t nodes = 4000;
  std::string text = R"({"workload_graph": [)";
  for (std::size_t i = 0; i < nodes; ++i)
    text += fmt::format(R"({}{{"Id": {}, "Name": "n", "NodeType": 4, "data_deps": [{}], "runtime": 1}})",
                        i == 0 ? "" : ",\n", i + 1, i == 0 ? "" : std::to_string(i));
  expect_bounded(kChakraJson, text + "]}", nodes * (sizeof(GraphNode) + 8),
                 nodes * (sizeof(GraphNode) + sizeof(std::uint32_t)) + 4 * kKiB);
}

TEST(TraceMemory, triggers__of_flows_count) {
  std::string text = "Nodes 2\n";
  for (int i = 0; i < 1000; ++i)
    text += fmt::format("0->1 start 0 size 9 send_done_trigger {}\ntrigger id {} oneshot\n", i + 1, i + 1);
  expect_bounded(kHtsimFormat, text, 300 * kKiB, 200 * kKiB);
}

}  // namespace
}  // namespace mltcp::workload::memory_test
