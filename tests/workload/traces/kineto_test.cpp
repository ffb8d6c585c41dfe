// Tests PyTorch profiler traces: sizes at every possible place, steps, and data that is left out or rejected.
#include "mltcp/lab/workload/traces/kineto_graph.h"

#include <string>
#include <vector>

#include "../../message_of.h"
#include "mltcp/lab/workload/graph_phases.h"

namespace mltcp::workload::kineto_test {
namespace {

std::string event(const std::string& cat, const std::string& name, const std::string& ts, const std::string& dur,
                  const std::string& args = "{}", int tid = 1) {
  return R"({"ph": "X", "cat": ")" + cat + R"(", "name": ")" + name + R"(", "pid": 1, "tid": )" + std::to_string(tid) +
         ", \"ts\": " + ts + ", \"dur\": " + dur + ", \"args\": " + args + "}";
}

std::string trace_of(const std::vector<std::string>& events, const std::string& more = "") {
  std::string text = R"({"schemaVersion": 1, "deviceProperties": [{"id": 0}], "distributedInfo": {"backend": "nccl",
    "rank": 3, "world_size": 4}, )" +
                     more + R"("traceEvents": [{"ph": "M", "name": "process_name"})";
  for (const std::string& one : events) text += ",\n" + one;
  return text + "]}";
}

const std::string step = event("user_annotation", "ProfilerStep#7", "1000", "1000");

/// A communication in the graph of one rank.
struct Communication {
  Nanos start;  ///< time since the start of its step
  Nanos length;
  Collective collective = Collective::none;
  Bytes size = 0;
  std::size_t workers = 0;
  Bytes sent = 0;
};
struct Step {
  std::string name;
  Nanos start;
  Nanos length;
  std::vector<Communication> communications;
};
struct Steps {
  std::vector<Step> steps;
  std::vector<std::string> warnings;
};

Steps parse_text(const std::string& text) {
  const ExecutionGraph graph = parse_trace_graph(text, "t.json", {.as_recorded = true});
  Steps result{{}, graph.warnings};
  std::erase_if(result.warnings, [](const std::string& one) { return one.ends_with("assuming neighbours"); });
  for (const auto& one : graph.steps) result.steps.push_back({one.name, one.start, one.length, {}});
  for (const RankGraph& rank : graph.ranks)
    for (const GraphNode& node : rank.nodes) {
      if (node.kind == GraphNode::Kind::compute) continue;
      Step& one = result.steps[node.step];
      Communication& communication = one.communications.emplace_back();
      communication.start = node.start - one.start;
      communication.length = node.length;
      communication.collective = node.collective;
      communication.size = node.bytes;
      communication.sent = node.kind == GraphNode::Kind::send ? node.bytes : 0;
      if (node.kind != GraphNode::Kind::collective) continue;
      communication.workers = graph.groups[node.group].size();
      communication.sent =
          bytes_sent(node.collective, node.bytes, static_cast<std::uint32_t>(communication.workers)).value();
    }
  return result;
}
Steps parse(const std::vector<std::string>& events) { return parse_text(trace_of(events)); }

std::string refusal(const std::string& text) {
  return refusal_of([&] { parse_text(text); }, "t.json: ");
}

TEST(Kineto, sizes__stand_in_the_kernel_of_a_newer_trace) {
  const Steps trace = parse({
      step,
      event(
          "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "1100.5", "50",
          R"({"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float"})"),
      event(
          "kernel", "ncclDevKernel_AllGather_RING_LL(x)", "1200", "50",
          R"({"Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 400, "Group size": 4, "dtype": "BFloat16"})"),
  });
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_EQ(trace.steps[0].length, Nanos(1'000'000));
  const auto& all = trace.steps[0].communications;
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].start, Nanos(100'500));
  EXPECT_EQ(all[0].length, Nanos(50'000));
  EXPECT_EQ(all[0].collective, Collective::all_reduce);
  EXPECT_EQ(all[0].sent, 4000u) << "2 (n-1)/n of 4000 bytes among 2";
  EXPECT_EQ(all[1].sent, 600u) << "3/4 of the 800 bytes that come out";
  EXPECT_THAT(trace.warnings,
              ElementsAre("t.json: the launch of 2 communications is not in it; their start is taken instead"));
}

TEST(Kineto, launches__by_the_driver_count_as_those_by_the_runtime) {
  const Steps trace = parse({
      step,
      event("user_annotation", "ProfilerStep#8", "2000", "1000"),
      event("user_annotation", "nccl:all_reduce", "1900", "50", R"({"Input Dims": [[100]], "Input type": ["float"]})",
            5),
      event("cuda_driver", "cuLaunchKernelEx", "1910", "5", R"({"correlation": 77})", 5),
      event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "2050", "30", R"({"correlation": 77})", 84),
  });
  ASSERT_EQ(trace.steps[0].communications.size(), 1u) << "of the step that launched it";
  EXPECT_EQ(trace.steps[0].communications[0].size, 400u);
}

TEST(Kineto, sizes__stand_around_the_launch_of_an_older_trace) {
  const Steps trace = parse({
      step,
      event("user_annotation", "nccl:all_to_all", "1010", "20", R"({"Input Dims": [[8, 16]], "Input type": ["float"]})",
            5),
      event("cuda_runtime", "cudaLaunchKernel", "1020", "5", R"({"correlation": 77})", 5),
      event("kernel", "ncclKernel_SendRecv_RING_SIMPLE(x)", "1050", "30", R"({"correlation": 77})", 84),
      // An annotation of another thread at the same time belongs to another operation.
      event("user_annotation", "nccl:all_reduce", "1010", "20", R"({"Input Dims": [[9999]], "Input type": ["float"]})",
            6),
      // The inputs are a list of tensors.
      event("user_annotation", "nccl:all_reduce", "1100", "20",
            R"({"Input Dims": [[100], [50]], "Input type": ["c10::Half", "double"]})", 5),
      event("cuda_runtime", "cudaLaunchKernel", "1110", "5", R"({"correlation": 78})", 5),
      event("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(x)", "1150", "30", R"({"correlation": 78})", 84),
      // An operation with sizes encloses an annotation without sizes.
      event("cpu_op", "record_param_comms", "1200", "50",
            R"({"Collective name": "reduce_scatter", "In msg nelems": 4, "dtype": "Int", "Group size": 2})", 5),
      event("user_annotation", "nccl:_reduce_scatter_base", "1205", "40", "{}", 5),
      event("cuda_runtime", "cudaLaunchKernel", "1210", "5", R"({"correlation": 79})", 5),
      event("kernel", "ncclKernel_ReduceScatter_RING_LL(x)", "1250", "30", R"({"correlation": 79})", 84),
  });
  const auto& all = trace.steps[0].communications;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].collective, Collective::all_to_all);
  EXPECT_EQ(all[0].size, 512u);
  EXPECT_EQ(all[0].workers, 4u) << "of the whole job";
  EXPECT_EQ(all[1].size, 600u);
  EXPECT_EQ(all[2].collective, Collective::reduce_scatter);
  EXPECT_EQ(all[2].size, 16u);
}

TEST(Kineto, sizes__of_inputs_are_of_those_with_a_shape_and_a_type) {
  const auto size = [](const std::string& dims, const std::string& types) {
    const Steps trace = parse({
        step,
        event("kernel", "ncclKernel_AllReduce(x)", "1100", "50",
              R"({"Group size": 2, "Input Dims": )" + dims + R"(, "Input type": )" + types + "}"),
    });
    return trace.steps[0].communications.empty() ? Bytes{0} : trace.steps[0].communications[0].size;
  };
  EXPECT_EQ(size("[[100], [50]]", R"(["float", "double"])"), 800u);
  EXPECT_EQ(size("[[100], [50]]", R"(["float"])"), 400u) << "fewer types than shapes";
  EXPECT_EQ(size("[[100]]", "[]"), 0u) << "no types";
  EXPECT_EQ(size("[[100]]", R"(["float", "double"])"), 400u) << "fewer shapes than types";
  EXPECT_EQ(size("[[100], [50]]", R"(["float", null])"), 400u) << "no type";
  EXPECT_EQ(size("[[100], [], 7, [\"x\"]]", R"(["float", "double", "double", "double"])"), 400u) << "no shape";
}

TEST(Kineto, sizes__of_what_goes_in_or_comes_out_need_not_tell_the_other) {
  const Steps trace = parse({
      step,
      event("kernel", "ncclKernel_AllGather(x)", "1100", "50",
            R"({"Collective name": "allgather", "In msg nelems": 10, "Group size": 2, "dtype": "Float"})"),
      event("kernel", "ncclKernel_AllGather(x)", "1200", "50",
            R"({"Collective name": "allgather", "Out msg nelems": 10, "Group size": 2, "dtype": "Float"})"),
      event("kernel", "ncclKernel_AllReduce(x)", "1300", "50", R"({"Collective name": "barrier", "Group size": 2})"),
  });
  const auto& all = trace.steps[0].communications;
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].size, 80u) << "of both";
  EXPECT_EQ(all[1].size, 40u);
  EXPECT_EQ(all[2].size, 0u) << "a barrier sends nothing";
}

TEST(Kineto, operations__that_communicate_nothing_are_not_looked_at) {
  const Steps trace = parse({
      step,
      event("cpu_op", "aten::add", "\"never\"", "50"),
      event("user_annotation", "record_param_comms", "1", "\"long\""),
      event("user_annotation", "nccl:all_reduce", "1010", "80", R"({"Input Dims": [[100]], "Input type": ["float"]})",
            5),
      event("cpu_op", "aten::add", "1020", "50", "{}", 5),
      event("cpu_op", "aten::mul", "1021", "50", "{}", 5),
      event("cpu_op", "aten::sub", "1022", "50", "{}", 5),
      event("cpu_op", "aten::div", "1023", "50", "{}", 5),
      event("cuda_runtime", "cudaLaunchKernel", "1030", "5", R"({"correlation": 77})", 5),
      event("kernel", "ncclKernel_AllReduce(x)", "1050", "30", R"({"correlation": 77})", 84),
  });
  ASSERT_EQ(trace.steps[0].communications.size(), 1u);
  EXPECT_EQ(trace.steps[0].communications[0].size, 400u);
}

TEST(Kineto, steps__have_the_communications_that_they_launched) {
  const std::string reduce =
      R"("Collective name": "allreduce", "In msg nelems": 10, "Group size": 2, "dtype": "Float")";
  const Steps trace = parse({
      event("user_annotation", "ProfilerStep#8", "2000", "500"),
      step,
      event("kernel", "ncclKernel_AllReduce(x)", "500", "1", "{" + reduce + "}"),
      event("cuda_runtime", "cudaLaunchKernel", "1990", "5", R"({"correlation": 1})"),
      event("kernel", "ncclKernel_AllReduce(x)", "2100", "1", "{\"correlation\": 1, " + reduce + "}"),
      event("kernel", "ncclKernel_AllReduce(x)", "2200", "1", "{" + reduce + "}"),
      event("kernel", "ncclKernel_AllReduce(x)", "2600", "1", "{" + reduce + "}"),
      event("kernel", "ncclKernel_AllReduce(x)", "2300", "1"),
  });
  ASSERT_EQ(trace.steps.size(), 2u);
  EXPECT_EQ(trace.steps[0].name, "ProfilerStep#7");
  ASSERT_EQ(trace.steps[0].communications.size(), 1u);
  EXPECT_EQ(trace.steps[0].communications[0].start, Nanos(1'100'000)) << "runs when the next step has begun";
  EXPECT_EQ(trace.steps[1].start, Nanos(1'101'000)) << "on the GPU, when that is over";
  EXPECT_EQ(trace.steps[1].communications.size(), 1u);
  EXPECT_THAT(trace.warnings, ElementsAre("t.json: 2 communications outside all steps: left out",
                                          "t.json: 1 communication without a size or kind: left out",
                                          "t.json: the launch of 4 communications is not in it; their start is "
                                          "taken instead"));
}

/// The arguments of an all-reduce of 4000 bytes between 2 ranks.
const std::string reduced =
    R"("Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float")";

TEST(Kineto, names__of_kernels_are_those_of_any_library) {
  for (const std::string name :
       {"ncclDevKernel_Generic_4(x)", "nccldevkernel_allreduce_sum_f32_ring_ll", "rcclDevKernel(x)",
        "mscclKernel_Sum_float_Simple_false(ncclDevComm*, mscclAlgo*)", "oneccl_allreduce_kernel",
        "hcom_allReduce__123_0_1", "void one_shot_all_reduce_kernel<float>(x)", "anything that has arguments"}) {
    const Steps trace = parse({step, event("kernel", name, "1100", "50", "{" + reduced + "}")});
    ASSERT_EQ(trace.steps[0].communications.size(), 1u) << name;
    EXPECT_EQ(trace.steps[0].communications[0].sent, 4000u) << name;
  }
  // Without arguments, a communication is recognised by its name and counted, but left out.
  const Steps trace = parse({step, event("kernel", "mscclKernel_Sum(x)", "1100", "50"),
                             event("kernel", "hcom_allReduce__1", "1200", "50"),
                             event("kernel", "triton_poi_fused_all_reduce_0", "1300", "50"),
                             event("kernel", "void at::reduce_kernel<ncclBfloat16>(x)", "1400", "50"),
                             event("kernel", "void c10d::checkForNaN<float>(x)", "1500", "5", "{" + reduced + "}")});
  EXPECT_THAT(trace.steps[0].communications, IsEmpty());
  EXPECT_THAT(trace.warnings, Contains("t.json: 2 communications without a size or kind: left out"));
}

TEST(Kineto, reductions_to_one_rank__gathers_and_scatters_are_taken_as_others) {
  const auto of = [](const std::string& name, const std::string& sizes) {
    const Steps trace = parse(
        {step, event("kernel", "ncclDevKernel_Reduce_Sum_f32_RING_LL(x)", "1100", "50",
                     R"({"Group size": 4, "dtype": "Float", "Collective name": ")" + name + "\", " + sizes + "}")});
    EXPECT_EQ(trace.steps[0].communications.size(), 1u);
    EXPECT_THAT(trace.warnings,
                Contains(HasSubstr("t.json: " + std::string(name.ends_with("er") ? "gathers" : "red"))));
    return trace.steps[0].communications.at(0);
  };
  for (const std::string name : {"reduce", "_reduce_oop"}) {
    const auto reduce = of(name, R"("In msg nelems": 100, "Out msg nelems": 100)");
    EXPECT_EQ(reduce.collective, Collective::broadcast);
    EXPECT_EQ(reduce.sent, 400u);
  }
  // In a gather, all ranks send to one rank. In a scatter, one rank sends to all.
  EXPECT_EQ(of("gather", R"("In msg nelems": 100, "Out msg nelems": 400)").sent, 1200u);
  EXPECT_EQ(of("scatter", R"("In msg nelems": 400, "Out msg nelems": 100)").sent, 1200u);
}

TEST(Kineto, host__tells_what_no_kernel_does) {
  // With Gloo on CPUs, one thread records the operation, and another thread performs it.
  const Steps trace = parse({
      step,
      event("cpu_op", "record_param_comms", "1100", "30", "{" + reduced + "}"),
      event("user_annotation", "gloo:all_reduce", "1110", "400", R"({"Input Dims": [[1000]], "Input type": ["float"]})",
            5),
      event("cpu_op", "record_param_comms", "1200", "90", R"({"Collective name": "barrier", "Group size": 2})"),
      event("cpu_op", "record_param_comms", "1210", "30", "{" + reduced + "}"),
      event("cpu_op", "record_param_comms", "1300", "30",
            R"({"Collective name": "wait", "In msg nelems": 0, "dtype": "Byte"})"),
      event("cpu_op", "record_param_comms", "1400", "30",
            R"({"Collective name": "odd", "In msg nelems": 7, "dtype": "Byte"})"),
  });
  ASSERT_EQ(trace.steps[0].communications.size(), 2u) << "the barrier is not what it does";
  EXPECT_EQ(trace.steps[0].communications[0].sent, 4000u);
  EXPECT_EQ(trace.steps[0].communications[1].sent, 0u);
  EXPECT_THAT(trace.warnings, ElementsAre("t.json: no kernels communicate: using 3 communications that the host "
                                          "recorded instead, whose durations are unknown",
                                          "t.json: 1 communication without a size or kind: left out"));
  const Steps annotated = parse({step,
                                 event("user_annotation", "hccl:all_reduce", "1110", "400",
                                       R"({"Input Dims": [[1000]], "Input type": ["float"]})"),
                                 event("user_annotation", "my:all_reduce", "1600", "40",
                                       R"({"Input Dims": [[1000]], "Input type": ["float"]})")});
  ASSERT_EQ(annotated.steps[0].communications.size(), 1u);
  EXPECT_EQ(annotated.steps[0].communications[0].size, 4000u);
}

TEST(Kineto, host__warns_of_what_has_no_kernel) {
  const Steps trace = parse({
      step,
      event("cpu_op", "record_param_comms", "1100", "30", "{" + reduced + "}"),
      event("cuda_runtime", "cudaLaunchKernel", "1110", "5", R"({"correlation": 1})"),
      event("kernel", "ncclDevKernel_AllReduce(x)", "1200", "50", "{\"correlation\": 1, " + reduced + "}"),
      event("cpu_op", "record_param_comms", "1300", "30", "{" + reduced + "}"),
      event("cpu_op", "record_param_comms", "1400", "30", "{" + reduced + "}"),
      // This kernel was launched after its operation had ended.
      event("cuda_runtime", "cudaLaunchKernel", "1440", "5", R"({"correlation": 2})"),
      event("kernel", "ncclDevKernel_AllReduce(x)", "1500", "50", "{\"correlation\": 2, " + reduced + "}"),
  });
  EXPECT_EQ(trace.steps[0].communications.size(), 2u);
  EXPECT_THAT(trace.warnings, ElementsAre("t.json: 1 communication of the host without a kernel: left out"));
}

// An all-gather of different sizes consists of one broadcast per rank. Both ways to record it give the same result.
TEST(Kineto, kernels__of_one_operation_communicate_it_once) {
  const Steps trace = parse({
      step,
      event("cpu_op", "record_param_comms", "1100", "90", "{" + reduced + "}"),
      event("cuda_runtime", "cudaLaunchKernel", "1110", "5", R"({"correlation": 1})"),
      event("cuda_runtime", "cudaLaunchKernel", "1120", "5", R"({"correlation": 2})"),
      event("cuda_runtime", "cudaLaunchKernel", "1200", "5", R"({"correlation": 3})"),
      event("kernel", "ncclDevKernel_Broadcast(x)", "1200", "50", "{\"correlation\": 1, " + reduced + "}"),
      event("kernel", "ncclDevKernel_Broadcast(x)", "1260", "50", "{\"correlation\": 2, " + reduced + "}"),
      event("kernel", "ncclDevKernel_Broadcast(x)", "1400", "50", "{\"correlation\": 3, " + reduced + "}"),
  });
  ASSERT_EQ(trace.steps[0].communications.size(), 2u);
  EXPECT_EQ(trace.steps[0].communications[0].length, Nanos(110'000));
}

TEST(Kineto, groups__are_launched_by_the_kernel_behind_them) {
  const auto operation = [](const std::string& at, const std::string& args) {
    return event("cpu_op", "record_param_comms", at, "5", "{" + args + "}");
  };
  const Steps trace = parse({
      step,
      operation("1100", reduced),
      operation("1110", reduced),
      event("user_annotation", "nccl:coalesced", "1120", "20"),
      event("cuda_runtime", "cudaLaunchKernel", "1125", "5", R"({"correlation": 1})"),
      event("cuda_runtime", "cudaLaunchKernel", "1130", "5", R"({"correlation": 2})"),
      event("kernel", "ncclDevKernel_Generic(x)", "1200", "50", R"({"correlation": 1})"),
      event("kernel", "ncclDevKernel_Generic(x)", "1260", "50", R"({"correlation": 2})"),
      // The trace does not describe the kernels of a CUDA graph, and operations recorded earlier do not belong to them.
      operation("1300", reduced),
      event("cuda_runtime", "cudaGraphLaunch", "1320", "5", R"({"correlation": 3})"),
      event("kernel", "ncclDevKernel_AllReduce(x)", "1400", "50", R"({"correlation": 3})"),
      event("kernel", "ncclDevKernel_AllReduce(x)", "1500", "50", R"({"correlation": 3})"),
  });
  ASSERT_EQ(trace.steps[0].communications.size(), 2u);
  EXPECT_EQ(trace.steps[0].communications[1].length, Nanos(110'000)) << "of both kernels";
  EXPECT_THAT(trace.warnings, ElementsAre("t.json: 2 communications without a size or kind: left out",
                                          "t.json: 1 communication of the host without a kernel: left out"));
}

TEST(Kineto, launches__of_other_devices_count) {
  for (const auto& [category, call] : {std::pair{"cuda_runtime", "hipExtModuleLaunchKernel"},
                                       {"xpu_runtime", "urEnqueueKernelLaunch"},
                                       {"privateuse1_driver", "launch"},
                                       {"Runtime", "cudaLaunchKernel"}}) {
    const Steps trace = parse({
        step,
        event("user_annotation", "ProfilerStep#8", "2000", "1000"),
        event(category, call, "1900", "5", R"({"correlation": 1})"),
        event("kernel", "ncclDevKernel_AllReduce(x)", "2100", "50", "{\"correlation\": 1, " + reduced + "}"),
    });
    EXPECT_EQ(trace.steps[0].communications.size(), 1u) << category;
    EXPECT_THAT(trace.warnings, IsEmpty());
  }
}

TEST(Kineto, numbers__that_are_none_are_skipped_wherever_they_stand) {
  const std::string kernel = event(
      "kernel", "ncclDevKernel_AllReduce(x)", "1100", "50",
      R"({"a":inf, "b": -inf,"c": nan, "d": -nan, "e": [nan ,inf], "f": Infinity, "g": NaN, "h": null, "i": -1, )" +
          reduced + "}");
  // The reader skips numbers such as inf and nan even where two pieces of the file meet.
  constexpr std::size_t piece = 65'536;
  for (std::size_t cut = 0; cut < 24; ++cut) {
    std::string text = trace_of({step, ""});
    text.resize(text.size() - 2);
    const std::size_t at = kernel.find("\"b\": ");
    text += std::string(piece - text.size() - at - cut, ' ') + kernel + "]}";
    const Steps trace = parse_text(text);
    ASSERT_EQ(trace.steps[0].communications.size(), 1u) << cut;
    EXPECT_EQ(trace.steps[0].communications[0].size, 4000u) << cut;
  }
  for (const std::string wrong : {"info", "nano", "nil", "in", "-", "-i"})
    EXPECT_THAT(refusal("{\"traceEvents\": [], \"x\": " + wrong + "}"), HasSubstr("not JSON")) << wrong;
}

TEST(Kineto, times__that_cannot_be_leave_their_events_out) {
  const std::vector<std::string> good{
      event("user_annotation", "ProfilerStep#1", "1700000000000000", "1000"),
      event("cuda_runtime", "cudaLaunchKernel", "1700000000000010", "5", R"({"correlation": 1})"),
      event("kernel", "ncclDevKernel_AllReduce(x)", "1700000000000100", "50", "{\"correlation\": 1, " + reduced + "}"),
      event("user_annotation", "ProfilerStep#2", "1700000000001000", "1000")};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> events = good;
    events.insert(events.end(), more.begin(), more.end());
    const Steps trace = parse(events);
    EXPECT_EQ(trace.steps.size(), 2u);
    EXPECT_EQ(trace.steps[0].length, Nanos(1'000'000));
    EXPECT_EQ(trace.steps[0].communications.size(), 1u);
    EXPECT_EQ(trace.warnings.size(), 1u);
    return trace.warnings.empty() ? "" : trace.warnings.front();
  };
  EXPECT_THAT(with({event("user_annotation", "ProfilerStep#3", "0", "0.000"),
                    event("cuda_runtime", "cudaLaunchKernel", "0.000", "0.000", R"({"correlation": 7})"),
                    event("kernel", "ncclDevKernel_AllReduce(x)", "0", "0", "{\"correlation\": 7, " + reduced + "}")}),
              HasSubstr("3 events at time 0 without a duration left out"));
  EXPECT_THAT(with({event("user_annotation", "ProfilerStep#3", "1700000000003000", "0")}),
              HasSubstr("1 step that took no time left out"));
  // The times are from another clock or invalid.
  for (const std::string at : {"0", "4458676524670.5", "1699996399999999", "1700003700000000", "2999999999999999"})
    EXPECT_THAT(with({event("kernel", "gemm", at, "10"), event("user_annotation", "ProfilerStep#0", at, "10")}),
                HasSubstr("2 events left out, hours from the others"))
        << at;
  for (const std::string length : {"999999999999999", "61000000"})
    EXPECT_THAT(with({event("kernel", "gemm", "1700000000000500", length),
                      event("user_annotation", "ProfilerStep#3", "1700000000003000", length)}),
                HasSubstr("2 events left out, hours from the others or longer than all of them"));
  // If the call that launched a kernel is left out, the kernel counts as launched after the previous kernel.
  EXPECT_THAT(with({event("cuda_runtime", "cudaLaunchKernel", "5", "5", R"({"correlation": 2})"),
                    event("cuda_runtime", "cudaLaunchKernel", "1700000000000020", "5", R"({"correlation": 3})"),
                    event("kernel", "gemm", "1700000000000500", "9", R"({"correlation": 2})")}),
              HasSubstr("1 event left out, hours"));
  // A kernel may take up to a minute. A trace may take hours if each hour has events.
  EXPECT_THAT(parse({step, event("kernel", "ncclDevKernel_AllReduce(x)", "1100", "59000000", "{" + reduced + "}")})
                  .steps[0]
                  .communications.size(),
              1u);
  EXPECT_THAT(refusal(trace_of({event("user_annotation", "ProfilerStep#1", "0", "0")})), HasSubstr("ProfilerStep#"));
}

TEST(Kineto, steps__are_as_long_as_the_gpu_needs) {
  std::vector<std::string> events{event("kernel", "gemm", "900", "3050", R"({"correlation": 1})")};
  for (int i = 0; i < 3; ++i) {  // the GPU is 3 ms behind, and needs 2 ms for the work that the host launches in 1 ms
    const auto at = [&](int us) { return std::to_string(1000 + i * 1000 + us); };
    const std::string number = R"({"correlation": )" + std::to_string(i + 2);
    events.push_back(event("user_annotation", "ProfilerStep#" + std::to_string(i), at(0), "990"));
    events.push_back(event("cuda_runtime", "cudaLaunchKernel", at(100), "5", number + "}"));
    events.push_back(
        event("kernel", "ncclDevKernel_AllReduce(x)", at(3000 + i * 1000), "2000", number + ", " + reduced + "}"));
  }
  const Steps trace = parse(events);
  for (const Step& one : trace.steps) {
    ASSERT_EQ(one.communications.size(), 1u);
    EXPECT_NEAR(one.length.millis(), 2, 0.06);
    EXPECT_GE(one.communications[0].start, Nanos(0));
  }
  EXPECT_EQ(trace.steps[1].length, Nanos(2'000'000));
}

TEST(Kineto, malformed__is_refused_in_one_line) {
  EXPECT_THAT(refusal("{\"traceEvents\": [{\"ph\": "), HasSubstr("not JSON"));
  EXPECT_THAT(refusal("{\"traceEvents\": 3}"), HasSubstr("neither \"ProfilerStep#\" nor kernels"));
  EXPECT_THAT(refusal(trace_of({})), HasSubstr("neither \"ProfilerStep#\" nor kernels"));
  EXPECT_THAT(refusal("{\"traceEvents\": " + std::string(1000, '[')), HasSubstr("nested too deeply"));
  for (const std::string value : {"[],", "{\"x\":[]},", "0,"}) {
    std::string many;
    for (int i = 0; i < 1'100'000; ++i) many += value;
    many.pop_back();
    const std::string events = value[0] == '{' ? "[{\"x\":[" + many + "]}]" : "[" + many + "]";
    EXPECT_THAT(refusal("{\"traceEvents\":" + events + "}"), HasSubstr("an event has more than 1000000 values"));
    EXPECT_THAT(refusal("{\"traceEvents\":[],\"other\":[" + many + "]}"),
                HasSubstr("neither \"ProfilerStep#\" nor kernels"));
  }
  EXPECT_THAT(refusal("{\"traceEvents\": [1e999]}"), HasSubstr("number is out of range"));
  EXPECT_THAT(refusal(trace_of({event("user_annotation", "ProfilerStep#1", "\"x\"", "1")})),
              HasSubstr("has no \"ts\""));
  EXPECT_THAT(refusal(trace_of({event("user_annotation", "ProfilerStep#1", "-1", "1")})), HasSubstr("has no \"ts\""));
  EXPECT_THAT(refusal(trace_of({event("user_annotation", "ProfilerStep#1", "1", "1e300")})),
              HasSubstr("has no \"dur\""));
  EXPECT_THAT(refusal(trace_of({event("kernel", "gemm\\n", "1", "18446744073709551615")})), HasSubstr("\"gemm?\""));
  const auto reduce = [](const std::string& args) {
    return trace_of({step, event("kernel", "ncclKernel_AllReduce(x)", "1100", "1", "{" + args + "}")});
  };
  EXPECT_THAT(refusal(reduce(R"("In msg nelems": -1, "dtype": "Float")")), HasSubstr("\"In msg nelems\" is \"-1\""));
  EXPECT_THAT(refusal(reduce(R"("In msg nelems": 18446744073709551615, "dtype": "Float")")), HasSubstr("whole number"));
  EXPECT_THAT(refusal(reduce(R"("In msg nelems": 9223372036854775807, "dtype": "Float")")), HasSubstr("1 EB"));
  EXPECT_THAT(refusal(reduce(R"("Group size": 1e9)")), HasSubstr("\"Group size\""));
  EXPECT_THAT(refusal(reduce(R"("Input Dims": [[4, -1]], "Input type": ["float"])")), HasSubstr("Input Dims"));
}

}  // namespace
}  // namespace mltcp::workload::kineto_test
