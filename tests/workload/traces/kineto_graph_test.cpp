// Tests the graphs of PyTorch profiler traces: they take as long as the trace and have its dependencies.
#include "mltcp/lab/workload/traces/kineto_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../graph_text.h"
#include "../traces.h"
#include "mltcp/lab/workload/graph_phases.h"

namespace mltcp::workload::kineto_graph_test {
namespace {

using namespace mltcp::literals;
using Kind = GraphNode::Kind;

/// Returns the times at which a rank's nodes end, if every communication takes its recorded time and computations run
/// in order, one at a time.
std::vector<Nanos> ends_of(const RankGraph& rank) {
  std::vector<Nanos> ends;
  Nanos computed;
  for (const GraphNode& node : rank.nodes) {
    Nanos start = node.kind == Kind::compute ? computed : Nanos(0);
    for (std::uint32_t i = 0; i < node.waits; ++i) start = std::max(start, ends[rank.waits[node.first_wait + i]]);
    ends.push_back(start + node.length);
    if (node.kind == Kind::compute) computed = ends.back();
  }
  return ends;
}

/// Returns the end of each step of a rank, from the times of ends_of().
std::vector<Nanos> step_ends(const ExecutionGraph& graph, std::size_t rank) {
  std::vector<Nanos> ends(graph.steps.size());
  const std::vector<Nanos> all = ends_of(graph.ranks[rank]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Nanos& end = ends[graph.ranks[rank].nodes[i].step];
    end = std::max(end, all[i]);
  }
  return ends;
}

std::string kernel(const std::string& name, std::int64_t start, int length, int correlation, int stream,
                   const std::string& more = "", const std::string& category = "kernel") {
  return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"device":0,)"
                     R"("stream":{},"correlation":{}{}}}}})",
                     category, name, stream, start, length, stream, correlation, more);
}
std::string reduce(std::int64_t start, int length, int correlation, int elements, const std::string& ranks = "[0, 1]") {
  return kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", start, length, correlation, 40,
                fmt::format(R"(,"Collective name":"allreduce","In msg nelems":{},"Out msg nelems":{},"Group size":2,)"
                            R"("dtype":"Float","Process Group Name":"0","Process Group Ranks":"{}")",
                            elements, elements, ranks));
}
std::string host(const std::string& name, int start, int length, int correlation, int thread = 1) {
  return fmt::format(R"({{"ph":"X","cat":"cuda_runtime","name":"{}","pid":9,"tid":{},"ts":{},"dur":{},)"
                     R"("args":{{"correlation":{}}}}})",
                     name, thread, start, length, correlation);
}
std::string step(int number, int start, int length) {
  return fmt::format(
      R"({{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","pid":9,"tid":1,"ts":{},"dur":{}}})", number,
      start, length);
}
std::string trace_of(const std::vector<std::string>& events, int rank = 0, int world = 2) {
  return fmt::format(R"({{"distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},"traceEvents":[{}]}})", rank,
                     world, fmt::join(events, ",\n"));
}
ExecutionGraph graph_of(const std::vector<std::string>& events) {
  return parse_trace_graph(trace_of(events), "t.json");
}
std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_trace_graph(text, "t.json"); }, "t.json");
}

// A kernel has waited for a communication if the kernel is launched during the communication and begins after it.
TEST(KinetoGraph, waiting__is_no_computation) {
  const ExecutionGraph graph =
      graph_of({step(1, 1000, 1000), host("cudaLaunchKernel", 1000, 5, 1), kernel("gemm", 1010, 190, 1, 7),
                host("cudaLaunchKernel", 1190, 5, 2), reduce(1200, 300, 2, 1000), host("cudaLaunchKernel", 1210, 5, 3),
                kernel("adam", 1502, 98, 3, 7)});
  ASSERT_EQ(graph.ranks.size(), 2u);
  // The computations are: 200 us before the communication, 20 us in which the host launches and a kernel begins, and
  // 500 us from the end of the communication to the end of the step.
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("compute 200 us", "all-reduce 4000 B for 300 us after 0",
                                              "compute 20 us after 0", "compute 500 us after 1 2"));
  EXPECT_THAT(step_ends(graph, 0), ElementsAre(1000_us));
}

TEST(KinetoGraph, waiting__of_the_host_counts) {
  const std::vector<std::string> events{step(1, 1000, 1000),
                                        host("cudaLaunchKernel", 1190, 5, 2),
                                        reduce(1200, 300, 2, 1000),
                                        host("cudaStreamSynchronize", 1220, 290, 9),
                                        host("cudaLaunchKernel", 1700, 5, 3),
                                        kernel("adam", 1710, 90, 3, 7)};
  const ExecutionGraph graph = graph_of(events);
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("compute 200 us", "all-reduce 4000 B for 300 us after 0",
                                              "compute 20 us after 0", "compute 500 us after 1 2"));
}

// The GPU idles because the host is slow. The next kernel begins after the communication only by chance.
TEST(KinetoGraph, computation__launched_later_was_not_held_up) {
  const ExecutionGraph graph =
      graph_of({step(1, 1000, 1000), host("cudaLaunchKernel", 1190, 5, 2), reduce(1200, 300, 2, 1000),
                host("cudaLaunchKernel", 1497, 5, 3), kernel("adam", 1503, 90, 3, 7)});
  EXPECT_EQ(nodes_of(graph, 0).at(2), "compute 800 us after 0");
}

// The second communication was launched during the first one. It waits only for computations launched before it.
TEST(KinetoGraph, communication__queued_behind_another_is_ready_before) {
  const ExecutionGraph graph = graph_of(
      {step(1, 1000, 1000), host("cudaLaunchKernel", 1090, 5, 2), reduce(1100, 300, 2, 1000),
       host("cudaLaunchKernel", 1100, 5, 3), kernel("gemm", 1110, 40, 3, 7), host("cudaLaunchKernel", 1140, 5, 4),
       reduce(1402, 100, 4, 500), host("cudaLaunchKernel", 1150, 5, 5), kernel("gemm", 1160, 600, 5, 7)});
  EXPECT_THAT(nodes_of(graph, 0),
              ElementsAre("compute 100 us", "all-reduce 4000 B for 300 us after 0", "compute 60 us after 0",
                          "all-reduce 2000 B for 100 us after 1 2", "compute 840 us after 2"))
      << "60 us: to the end of the kernel launched before, and 10 us";
}

TEST(KinetoGraph, steps__wait_for_what_the_one_before_has_communicated) {
  const ExecutionGraph graph =
      graph_of({step(1, 1000, 990), step(2, 2000, 1000), host("cudaLaunchKernel", 1490, 5, 2),
                reduce(1500, 300, 2, 1000), host("cudaLaunchKernel", 2490, 5, 3), reduce(2500, 300, 3, 1000)});
  ASSERT_EQ(graph.steps.size(), 2u);
  EXPECT_EQ(graph.steps[0].name, "ProfilerStep#1");
  EXPECT_EQ(graph.steps[0].length, 990_us);
  EXPECT_EQ(graph.steps[1].start, 1000_us);
  ASSERT_EQ(graph.ranks[0].nodes.size(), 6u);
  EXPECT_EQ(nodes_of(graph, 0)[3], "compute 500 us step 1 after 1 2");
  EXPECT_THAT(step_ends(graph, 0), ElementsAre(1000_us, 2000_us));
}

/// Returns the events of five steps. In each step of 16 ms, the host launches two computations of 5 ms and an
/// all-reduce of 10 ms. The GPU begins `behind` ms later and needs 20 ms per step.
std::vector<std::string> steps_behind(int behind) {
  std::vector<std::string> events;
  for (int i = 0; i * 5 < behind; ++i) events.push_back(kernel("gemm", i * 5000, 4990, 1 + i, 7));
  for (int i = 0; i < 5; ++i) {
    const int host_at = i * 16'000;
    const int at = behind * 1000 + i * 20'000;
    const int number = 1000 + i * 3;
    events.push_back(step(i, host_at, 15'990));
    for (int n = 0; n < 2; ++n) {
      events.push_back(host("cudaLaunchKernel", host_at + 50 + n * 50, 10, number + n));
      events.push_back(kernel("gemm", std::max(at + n * 5010, host_at + 60), 5000, number + n, 7));
    }
    events.push_back(host("cudaLaunchKernelExC", host_at + 300, 10, number + 2));
    events.push_back(reduce(at + 10'020, 9960, number + 2, 1'000'000));
  }
  return events;
}

TEST(KinetoGraph, steps__have_what_was_launched_in_them_however_late_the_gpu_is) {
  for (const int behind : {0, 30, 100}) {
    SCOPED_TRACE(behind);
    const GraphSummary summary = summarise(graph_of(steps_behind(behind)));
    ASSERT_EQ(summary.steps.size(), 5u);
    for (const auto& one : summary.steps) {
      EXPECT_EQ(one.communications, 1u);
      EXPECT_EQ(one.sent, 4'000'000u);
      EXPECT_NEAR(one.length.millis(), 20, 0.1);
      EXPECT_NEAR(one.communicate.millis(), 9.96, 0.001);
    }
    ASSERT_EQ(summary.phases.size(), 2u);
    EXPECT_NEAR(summary.phases[0].compute.millis(), 10, 0.1);
    EXPECT_EQ(summary.phases[1].bytes, 4'000'000u);
    EXPECT_EQ(summary.steps[4].compute, summary.steps[3].compute) << "of the last, nothing is held up but its end";
    EXPECT_EQ(summary.warnings.size(), 1u) << "of the rank that there is no trace of";
  }
}

// When the recording ends, the GPU has run nothing or little of the last steps.
TEST(KinetoGraph, steps__that_the_gpu_had_not_begun_are_left_out) {
  std::vector<std::string> events;
  for (const std::string& event : steps_behind(30)) {
    const std::size_t at = event.find("\"ts\":");
    if (event.find("\"kernel\"") == std::string::npos || std::stoi(event.substr(at + 5)) < 75'000)
      events.push_back(event);
  }
  const GraphSummary summary = summarise(graph_of(events));
  ASSERT_EQ(summary.steps.size(), 3u);
  EXPECT_EQ(summary.steps[summary.typical].sent, 4'000'000u);
  EXPECT_NEAR(summary.steps[summary.typical].length.millis(), 20, 0.1);
  EXPECT_THAT(summary.warnings,
              Contains("t.json: 2 steps that the GPU had not begun when the recording ended: left out"));
}

// The last all-reduce of a step begins when the first kernel of the next step already runs. It still belongs to its own
// step.
TEST(KinetoGraph, steps__that_overlap_on_the_gpu_keep_their_communications) {
  std::vector<std::string> events;
  for (int i = 0; i < 4; ++i) {
    const int at = 1000 + i * 1000;
    events.push_back(step(i, at, 990));
    events.push_back(host("cudaLaunchKernel", at + 10, 5, 10 * i + 1));
    events.push_back(kernel("gemm", at + 20, 700, 10 * i + 1, 7));
    events.push_back(host("cudaLaunchKernel", at + 100, 5, 10 * i + 2));
    events.push_back(reduce(at + 1050 - i, 500, 10 * i + 2, 1000 + i));
  }
  const ExecutionGraph graph = graph_of(events);
  const GraphSummary summary = summarise(graph);
  ASSERT_EQ(summary.steps.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(summary.steps[i].sent, 4000 + 4 * i);
  for (std::uint32_t i = 1; i < 4; ++i) EXPECT_NEAR(summary.steps[i].length.millis(), 1, 0.01);
}

// NCCL launches kernels with a call that some profilers do not record. The kernel's correlation number is between those
// of the recorded launches before and after it.
TEST(KinetoGraph, launches__that_were_not_recorded_lie_between_others) {
  const ExecutionGraph graph = graph_of({step(1, 1000, 990), step(2, 2000, 990), host("cudaLaunchKernel", 1100, 5, 11),
                                         kernel("gemm", 1110, 1500, 11, 7), reduce(2600, 90, 12, 1000),
                                         host("cudaLaunchKernel", 2100, 5, 13), kernel("gemm", 2710, 10, 13, 7)});
  ASSERT_EQ(graph.ranks[0].nodes.size(), 4u);
  EXPECT_EQ(graph.ranks[0].nodes[1].kind, Kind::collective);
  EXPECT_EQ(graph.ranks[0].nodes[1].step, 0u);
  EXPECT_THAT(graph.warnings,
              Contains("t.json: the launch of 1 communication is not in it; the launch before each is taken instead"));
}

TEST(KinetoGraph, clocks__of_host_and_gpu_that_differ_are_set) {
  // in microseconds; a difference of more than an hour cannot be a delay
  for (const std::int64_t behind : {-5000LL, 4'000'000'000LL}) {
    SCOPED_TRACE(behind);
    std::vector<std::string> events;
    for (int i = 0; i < 3; ++i) {
      const int at = 10'000 + i * 1000;
      events.push_back(step(i, at, 1000));
      events.push_back(host("cudaLaunchKernel", at + 10, 5, 10 * i + 1));
      events.push_back(kernel("gemm", at + 20 + behind, 300, 10 * i + 1, 7));
      events.push_back(host("cudaLaunchKernel", at + 100, 5, 10 * i + 2));
      events.push_back(reduce(at + 320 + behind, 500, 10 * i + 2, 1000));
    }
    const GraphSummary summary = summarise(graph_of(events));
    EXPECT_THAT(summary.warnings,
                Contains(HasSubstr("the clocks of host and GPU differ, so the GPU's times are moved")));
    for (const auto& one : summary.steps) {
      EXPECT_EQ(one.sent, 4000u);
      EXPECT_EQ(one.length, 1_ms);
      EXPECT_EQ(one.communicate, 500_us);
    }
  }
}

TEST(KinetoGraph, groups__of_messages_go_on_together) {
  const auto operation = [](int at, const std::string& what, const std::string& peer) {
    return fmt::format(
        R"({{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":1,"ts":{},"dur":20,"args":{{)"
        R"("Collective name":"{}","In msg nelems":1000000,"Out msg nelems":1000000,"Group size":2,"dtype":"BFloat16",)"
        R"("Process Group Name":"0","Process Group Ranks":"[0, 1]","{}":1}}}})",
        at, what, peer);
  };
  // Tests the current format of PyTorch, and the format before version 2.0.
  for (const bool marked : {true, false}) {
    std::vector<std::string> events;
    for (int i = 0; i < 2; ++i) {
      const int at = 1000 + i * 1000;
      events.push_back(step(i, at, 990));
      events.push_back(operation(at + 100, "send", "Dst Rank"));
      events.push_back(operation(at + 130, "recv", "Src Rank"));
      if (marked)
        events.push_back(fmt::format(
            R"({{"ph":"X","cat":"user_annotation","name":"nccl:coalesced","pid":9,"tid":1,"ts":{},"dur":0.1}})",
            at + 160));
      events.push_back(host("cudaLaunchKernelExC", at + 170, 5, 10 * i + 1));
      events.push_back(kernel("ncclDevKernel_SendRecv(x)", at + 200, 300, 10 * i + 1, 40));
    }
    TraceOptions options;
    options.as_recorded = true;
    const ExecutionGraph graph = parse_trace_graph(trace_of(events), "t.json", options);
    EXPECT_THAT(graph.warnings, IsEmpty());
    // A message does not wait for the other message of its group. The next group waits for both.
    EXPECT_THAT(nodes_of(graph, 0),
                ElementsAre("compute 200 us", "send 2000000 B to 1 for 300 us after 0",
                            "receive 2000000 B from 1 for 300 us after 0", "compute 800 us after 0",
                            "compute 200 us step 1 after 1 2 3", "send 2000000 B to 1 for 300 us step 1 after 1 2 4",
                            "receive 2000000 B from 1 for 300 us step 1 after 1 2 4", "compute 790 us step 1 after 4"));
    const GraphSummary summary = summarise(graph);
    EXPECT_EQ(summary.steps[1].sent, 2'000'000u);
    EXPECT_EQ(summary.steps[1].communications, 2u);
  }
}

TEST(KinetoGraph, groups__of_many_messages_wait_for_each_other_once) {
  constexpr int messages = 40;
  std::vector<std::string> events{step(0, 1000, 3000)};
  for (int i = 0; i < 2; ++i) {
    const int at = 1100 + i * 400;
    for (int message = 0; message < messages; ++message)
      events.push_back(fmt::format(
          R"({{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":1,"ts":{},"dur":1,"args":{{)"
          R"("Collective name":"send","In msg nelems":1000,"Out msg nelems":1000,"Group size":2,"dtype":"Float",)"
          R"("Process Group Name":"0","Process Group Ranks":"[0, 1]","Dst Rank":1}}}})",
          at + message));
    events.push_back(fmt::format(
        R"({{"ph":"X","cat":"user_annotation","name":"nccl:coalesced","pid":9,"tid":1,"ts":{},"dur":0.1}})", at + 60));
    events.push_back(host("cudaLaunchKernelExC", at + 70, 5, i + 1));
    events.push_back(kernel("ncclDevKernel_SendRecv(x)", at + 100, 300, i + 1, 40));
  }
  TraceOptions options;
  options.as_recorded = true;
  const ExecutionGraph graph = parse_trace_graph(trace_of(events), "t.json", options);
  const RankGraph& rank = graph.ranks[0];
  std::vector<std::size_t> sends;
  for (std::size_t i = 0; i < rank.nodes.size(); ++i)
    if (rank.nodes[i].kind == Kind::send) sends.push_back(i);
  ASSERT_EQ(sends.size(), 2u * messages);
  const std::size_t joint = sends[messages] - 1;
  EXPECT_EQ(rank.nodes[joint].length, 0_ns);
  EXPECT_THAT(waits_of(rank, joint), testing::ElementsAreArray(sends.begin(), sends.begin() + messages));
  EXPECT_THAT(waits_of(rank, sends.back()), Contains(joint));
  EXPECT_LT(rank.waits.size(), 8u * messages);
}

TEST(KinetoGraph, wait_calls__are_matched_in_the_order_of_launches) {
  const auto launch = [](int at, int correlation) {
    return std::vector<std::string>{
        fmt::format(R"({{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":1,"ts":{},"dur":40}})", at),
        host("cudaStreamWaitEvent", at + 5, 1, 0), host("cudaLaunchKernel", at + 20, 5, correlation)};
  };
  std::vector<std::string> events{step(1, 1000, 1000)};
  for (const auto& [at, correlation] : {std::pair{1080, 2}, {1280, 3}})
    for (const std::string& event : launch(at, correlation)) events.push_back(event);
  events.push_back(reduce(1110, 90, 2, 1000));
  events.push_back(reduce(1310, 90, 3, 2000));
  // Work.wait() is called for the first communication and then for the second one, long after both have ended.
  for (const auto& [at, correlation] : {std::pair{1500, 4}, {1700, 5}}) {
    events.push_back(host("cudaStreamWaitEvent", at, 1, 0));
    events.push_back(host("cudaLaunchKernel", at + 10, 5, correlation));
    events.push_back(kernel("copy", at + 20, 30, correlation, 7));
  }
  const std::vector<std::string> nodes = nodes_of(graph_of(events), 0);
  ASSERT_EQ(nodes.size(), 7u);
  EXPECT_EQ(nodes[5], "compute 200 us after 1 4");
  EXPECT_THAT(nodes[6], EndsWith(" after 3 5"));
}

TEST(KinetoGraph, stream_waits__that_were_recorded_count_instead) {
  const std::string wait =
      R"({"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":7,"ts":1600,"dur":0,"args":{"stream":7,)"
      R"("correlation":8,"wait_on_stream":40,"wait_on_cuda_event_record_corr_id":5}})";
  const ExecutionGraph graph =
      graph_of({step(1, 1000, 1000), host("cudaLaunchKernel", 1090, 5, 2), reduce(1100, 90, 2, 1000), wait,
                host("cudaLaunchKernel", 1690, 5, 9), kernel("adam", 1700, 30, 9, 7)});
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("compute 100 us", "all-reduce 4000 B for 90 us after 0",
                                              "compute 600 us after 0", "compute 300 us after 1 2"));
}

TEST(KinetoGraph, messages__have_their_other_end) {
  const auto message = [](const std::string& what, const std::string& peer, int start) {
    return kernel("ncclDevKernel_SendRecv(x)", start, 10, start, 41,
                  fmt::format(R"(,"Collective name":"{}","In msg nelems":10,"Out msg nelems":10,"Group size":2,)"
                              R"("dtype":"Float","{}")",
                              what, peer));
  };
  const std::string sender = trace_of({step(1, 1000, 1000), message("send", R"(Dst Rank":1,"x":")", 1100)}, 0);
  TraceOptions options;
  options.as_recorded = true;
  const ExecutionGraph graph = parse_trace_graph(sender, "t.json", options);
  EXPECT_EQ(nodes_of(graph, 0).at(1), "send 40 B to 1 for 10 us after 0");
}

TEST(KinetoGraph, malformed__is_refused_in_one_line) {
  const std::string good = trace_of({step(1, 1000, 1000), reduce(1100, 10, 2, 1000)});
  EXPECT_THAT(refusal(good.substr(0, good.size() - 40)), HasSubstr("it ends in the middle, after 2 events"));
  EXPECT_THAT(refusal(trace_of({step(1, 1000, 1000), reduce(1100, -10, 2, 1000)})),
              HasAll("event 2 (byte ", "but \"-10\""));
  EXPECT_THAT(refusal(trace_of({step(1, 1000, 50000), step(2, 20000, 50000)})),
              HasSubstr("\"ProfilerStep#2\" begins 31.000 ms before \"ProfilerStep#1\" ends"));
  EXPECT_THAT(refusal(R"({"traceEvents":[]})"), HasSubstr("neither \"ProfilerStep#\" nor kernels"));
}

TEST(KinetoGraph, beginning__may_be_long) {
  std::string ranks;
  for (int i = 0; i < 20'000; ++i) ranks += fmt::format("{}{}", i == 0 ? "" : ", ", i);
  const std::string text =
      R"({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2, "pg_config": [{"pg_name": "9", "ranks": [)" +
      ranks + R"(]}]}, "traceEvents": [)" + step(1, 1000, 1000) + "," + reduce(1100, 10, 2, 1000) + "]}";
  ASSERT_GT(text.size(), 100'000u);
  EXPECT_EQ(parse_trace_graph(text, "t.json").ranks.size(), 2u);
}

TEST(KinetoGraph, warnings__say_what_was_left_out_or_guessed) {
  const ExecutionGraph graph = graph_of({step(1, 1000, 1000), reduce(1100, 10, 7, 1000), reduce(5000, 10, 8, 1000),
                                         kernel("ncclDevKernel_Odd(x)", 1200, 10, 9, 40), reduce(1000, 10, 2, 1000),
                                         host("cudaLaunchKernel", 1400, 5, 5), kernel("gemm", 1300, 10, 5, 7)});
  EXPECT_THAT(graph.warnings,
              AllOf(Contains("t.json: 1 communication outside all steps: left out"),
                    Contains("t.json: 1 communication without a size or kind: left out"),
                    Contains("t.json: 1 communication launched before the recording: left out"),
                    Contains("t.json: the launch of 3 communications is not in it; their start is taken instead"),
                    Contains(HasSubstr("1 kernels begin before they are launched"))));
  EXPECT_THAT(
      graph_of({step(1, 1000, 1000),
                kernel("ncclDevKernel_Broadcast(x)", 1100, 10, 2, 40,
                       R"(,"Collective name":"broadcast","In msg nelems":8,"Group size":2,"dtype":"Float")"),
                kernel("ncclDevKernel_AllReduce(x)", 1200, 10, 3, 40,
                       R"(,"Collective name":"allreduce","In msg nelems":8,"Group size":2,"dtype":"Quux")")})
          .warnings,
      AllOf(Contains("t.json: the trace does not name the root of 1 broadcasts: assuming the first rank of each group"),
            Contains(HasSubstr("the element type \"Quux\" is not known"))));
  const ExecutionGraph unmarked = graph_of({reduce(1100, 10, 2, 1000)});
  EXPECT_EQ(unmarked.steps.size(), 1u);
  EXPECT_THAT(unmarked.warnings, Contains(HasSubstr("there is no \"ProfilerStep#\"")));
}

// The trace has three steps on two GPUs. The host is too slow to keep the GPUs busy. At its start, each step sends the
// buffers of batch normalisation. Each step reduces five buckets of gradients, four of them during the backward pass.
TEST(KinetoGraph, resnet50__is_what_it_should_be) {
  const auto file = trace_folder() / "kineto" / "hta_nccl_data_resnet50_2xA100.json.gz";
  SKIP_WITHOUT(file);
  const ExecutionGraph graph = read_traces(std::vector{file});
  ASSERT_EQ(graph.ranks.size(), 2u);
  ASSERT_EQ(graph.steps.size(), 3u);
  std::vector<std::string> lengths;
  for (const auto& one : graph.steps) lengths.push_back(fmt::format("{:.1f}", one.length.millis()));
  EXPECT_THAT(lengths, ElementsAre("222.4", "219.7", "224.9"));
  const RankGraph& rank = graph.ranks[0];
  for (std::uint32_t number = 0; number < 3; ++number) {
    std::vector<Bytes> reduced;
    std::vector<Bytes> sent;
    std::size_t hidden = 0;  // number of buckets for which no computation waited
    for (const GraphNode& node : rank.nodes) {
      if (node.kind != Kind::collective || node.step != number) continue;
      (node.collective == Collective::all_reduce ? reduced : sent).push_back(node.bytes);
      if (node.collective != Collective::all_reduce) continue;
      for (const GraphNode& other : rank.nodes)
        if (other.kind == Kind::compute && other.start <= node.start && other.start + other.length > node.start)
          ++hidden;
    }
    EXPECT_THAT(reduced, ElementsAre(8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160));
    EXPECT_THAT(sent, ElementsAre(212'480, 424));
    EXPECT_EQ(hidden, 5u) << "computation goes on when each begins";
  }
  EXPECT_EQ(to_job(summarise(graph), "job").bytes_per_iteration(), 102'441'032u);
  // If every communication takes its recorded time, each step takes its recorded time.
  const auto ends = step_ends(graph, 0);
  for (std::size_t i = 0; i < 3; ++i) {
    const Nanos recorded = graph.steps[i].start + graph.steps[i].length - graph.steps[0].start;
    EXPECT_NEAR(ends[i].millis(), recorded.millis(), 0.1);
  }
  // At the end of the backward pass, gradients are copied from the buckets. These copies wait for the reductions, at
  // least for the last one, which follows all others.
  for (std::uint32_t number = 0; number < 3; ++number) {
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < rank.nodes.size(); ++i)
      if (rank.nodes[i].collective == Collective::all_reduce && rank.nodes[i].step == number) last = i;
    bool waited = false;
    for (std::uint32_t i = last; i < rank.nodes.size(); ++i) {
      const auto waits = waits_of(rank, i);
      waited |= rank.nodes[i].kind == Kind::compute && rank.nodes[i].step == number &&
                std::find(waits.begin(), waits.end(), last) != waits.end();
    }
    EXPECT_TRUE(waited) << "step " << number;
  }
}

TEST(KinetoGraph, dlrm__joins_eight_ranks) {
  const auto file = trace_folder() / "kineto" / "param_dlrm_kineto_8ranks.tar.gz";
  SKIP_WITHOUT(file);
  const ExecutionGraph graph = read_traces(std::vector{file});
  EXPECT_THAT(graph.warnings, IsEmpty());
  ASSERT_EQ(graph.ranks.size(), 8u);
  ASSERT_EQ(graph.steps.size(), 1u);
  for (std::size_t r = 0; r < 8; ++r) {
    EXPECT_THAT(bytes_of(graph.ranks[r]), ElementsAre(24'576, 192, 1536, 13'568, 1'576'964, 24'576, 448, 907'840));
    EXPECT_EQ(to_job(summarise(graph, {.rank = static_cast<std::uint32_t>(r)}), "job").bytes_per_iteration(),
              4'405'583u);
  }
  EXPECT_NEAR(step_ends(graph, 0)[0].millis(), 14.455, 0.1);
  EXPECT_NEAR(step_ends(graph, 1)[0].millis(), 19.901, 0.1);
}

}  // namespace
}  // namespace mltcp::workload::kineto_graph_test
