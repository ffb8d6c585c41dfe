// Traces of PyTorch's profiler: sizes from every place that they may stand, steps, overlap, and what is refused.
#include "mltcp/workload/kineto.h"
#include "../temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "mltcp/base/error.h"
#include "traces.h"

namespace mltcp::workload::kineto_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

KinetoTrace parse(const std::vector<std::string>& events) { return parse_kineto(trace_of(events), "t.json"); }

std::string refusal(const std::string& text) {
  try {
    parse_kineto(text, "t.json");
  } catch (const InputError& error) {
    EXPECT_THAT(std::string(error.what()), AllOf(testing::StartsWith("t.json: "), HasSubstr("; ")));
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

TEST(Kineto, sizes__stand_in_the_kernel_of_a_newer_trace) {
  const KinetoTrace trace = parse({
      step,
      event(
          "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "1100.5", "50",
          R"({"Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float"})"),
      event(
          "kernel", "ncclDevKernel_AllGather_RING_LL(x)", "1200", "50",
          R"({"Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 400, "Group size": 4, "dtype": "BFloat16"})"),
      event(
          "kernel", "ncclDevKernel_SendRecv(x)", "1300", "50",
          R"({"Collective name": "send", "In msg nelems": 10, "Out msg nelems": 10, "Group size": 4, "dtype": "Long"})"),
      event(
          "kernel", "ncclDevKernel_SendRecv(x)", "1400", "50",
          R"({"Collective name": "recv", "In msg nelems": 10, "Out msg nelems": 10, "Group size": 4, "dtype": "Long"})"),
  });
  EXPECT_EQ(trace.rank, 3u);
  EXPECT_EQ(trace.workers, 4u);
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_EQ(trace.steps[0].length, Nanos(1'000'000));
  const auto& all = trace.steps[0].communications;
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].start, Nanos(100'500));
  EXPECT_EQ(all[0].length, Nanos(50'000));
  EXPECT_EQ(all[0].collective, Collective::all_reduce);
  EXPECT_EQ(sent_bytes(all[0], {}), 4000u) << "2 (n-1)/n of 4000 bytes among 2";
  EXPECT_EQ(sent_bytes(all[0], {.workers = 4}), 6000u);
  EXPECT_EQ(sent_bytes(all[1], {}), 600u) << "3/4 of the 800 bytes that come out";
  EXPECT_EQ(sent_bytes(all[2], {}), 80u);
  EXPECT_EQ(sent_bytes(all[3], {}), 0u);
  EXPECT_THAT(trace.warnings, IsEmpty());
}

TEST(Kineto, launches__by_the_driver_count_as_those_by_the_runtime) {
  const KinetoTrace trace = parse({
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
  const KinetoTrace trace = parse({
      step,
      event("user_annotation", "nccl:all_to_all", "1010", "20", R"({"Input Dims": [[8, 16]], "Input type": ["float"]})",
            5),
      event("cuda_runtime", "cudaLaunchKernel", "1020", "5", R"({"correlation": 77})", 5),
      event("kernel", "ncclKernel_SendRecv_RING_SIMPLE(x)", "1050", "30", R"({"correlation": 77})", 84),
      // Another thread's annotation at the same time is not this one's.
      event("user_annotation", "nccl:all_reduce", "1010", "20", R"({"Input Dims": [[9999]], "Input type": ["float"]})",
            6),
      // A list of tensors.
      event("user_annotation", "nccl:all_reduce", "1100", "20",
            R"({"Input Dims": [[100], [50]], "Input type": ["c10::Half", "double"]})", 5),
      event("cuda_runtime", "cudaLaunchKernel", "1110", "5", R"({"correlation": 78})", 5),
      event("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(x)", "1150", "30", R"({"correlation": 78})", 84),
      // An operation that tells, around an annotation that doesn't.
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
    const KinetoTrace trace = parse({
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
  const KinetoTrace trace = parse({
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
  const KinetoTrace trace = parse({
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
  const KinetoTrace trace = parse({
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
  EXPECT_EQ(trace.steps[1].start, Nanos(1'000'000));
  EXPECT_EQ(trace.steps[1].communications.size(), 1u);
  EXPECT_THAT(trace.warnings, ElementsAre("t.json: 2 communications lie outside all steps and are left out",
                                          "t.json: 1 communications whose size or kind is not told are left out"));
}

TEST(Kineto, phases__overlap_where_the_gpu_computes) {
  const std::string reduce =
      R"({"Collective name": "allreduce", "In msg nelems": 1000, "Group size": 2, "dtype": "Float"})";
  const KinetoTrace trace = parse({
      step,
      event("kernel", "gemm", "1000", "300"),
      event("kernel", "ncclKernel_AllReduce(x)", "1100", "100", reduce),
      event("kernel", "ncclKernel_AllReduce(x)", "1500", "100", reduce),
  });
  const std::vector<Phase> phases = to_phases(trace, trace.steps[0]);
  ASSERT_EQ(phases.size(), 5u);
  EXPECT_EQ(phases[0].compute, Nanos(100'000));
  EXPECT_EQ(phases[1].bytes, 4000u);
  EXPECT_TRUE(phases[1].overlap);
  EXPECT_EQ(phases[2].compute, Nanos(400'000)) << "from its start";
  EXPECT_FALSE(phases[3].overlap);
  EXPECT_EQ(phases[4].compute, Nanos(400'000)) << "from its end";
  const Job job = to_job(trace, "j", {.compute_scale = 2.0, .bytes_scale = 0.5});
  EXPECT_EQ(job.compute_per_iteration(), Nanos(1'800'000));
  EXPECT_EQ(job.bytes_per_iteration(), 4000u);
  EXPECT_THROW(to_job(trace, "j", {.bytes_scale = 0}), InputError);
  EXPECT_THROW(to_job(parse({step}), "j"), InputError) << "sends nothing";
}

TEST(Kineto, typical__is_the_step_of_median_length) {
  const KinetoTrace trace = parse({event("user_annotation", "ProfilerStep#1", "0", "900"),
                                   event("user_annotation", "ProfilerStep#2", "1000", "100"),
                                   event("user_annotation", "ProfilerStep#3", "2000", "500")});
  EXPECT_EQ(trace.typical().name, "ProfilerStep#3");
}

TEST(Kineto, malformed__is_refused_in_one_line) {
  EXPECT_THAT(refusal(""), HasSubstr("no JSON: parse error at line 1"));
  EXPECT_THAT(refusal("{\"traceEvents\": [{\"ph\": "), HasSubstr("no JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("there is no \"traceEvents\""));
  EXPECT_THAT(refusal("{}"), HasSubstr("there is no \"traceEvents\""));
  EXPECT_THAT(refusal("{\"traceEvents\": 3}"), HasSubstr("there is no \"ProfilerStep#\""));
  EXPECT_THAT(refusal(trace_of({})), HasSubstr("there is no \"ProfilerStep#\""));
  EXPECT_THAT(refusal(std::string(1000, '[')), HasSubstr("nested too deeply"));
  for (const std::string value : {"[],", "{\"x\":[]},", "0,"}) {
    std::string many;
    for (int i = 0; i < 1'100'000; ++i) many += value;
    many.pop_back();
    const std::string events = value[0] == '{' ? "[{\"x\":[" + many + "]}]" : "[" + many + "]";
    EXPECT_THAT(refusal("{\"traceEvents\":" + events + "}"), HasSubstr("an event has more than 1000000 values"));
    EXPECT_THAT(refusal("{\"other\":[" + many + "],\"traceEvents\":[]}"), HasSubstr("there is no \"ProfilerStep#\""));
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
  EXPECT_THAT(refusal(reduce(R"("In msg nelems": 1, "dtype": "Quux")")), HasSubstr("element type \"Quux\""));
  EXPECT_THAT(refusal(reduce(R"("In msg nelems": -1, "dtype": "Float")")), HasSubstr("\"In msg nelems\" is \"-1\""));
  EXPECT_THAT(refusal(reduce(R"("In msg nelems": 18446744073709551615, "dtype": "Float")")), HasSubstr("whole number"));
  EXPECT_THAT(refusal(reduce(R"("In msg nelems": 9223372036854775807, "dtype": "Float")")), HasSubstr("1 EB"));
  EXPECT_THAT(refusal(reduce(R"("Group size": 1e9)")), HasSubstr("\"Group size\""));
  EXPECT_THAT(refusal(reduce(R"("Input Dims": [[4, -1]], "Input type": ["float"])")), HasSubstr("Input Dims"));
}

// The trace of ResNet50 is of three steps on two GPUs: 25.6 million parameters in five buckets, four of them sent while
// the backward pass goes on, and the buffers of batch normalisation at the beginning.
TEST(Kineto, resnet50__is_what_it_should_be) {
  const auto packed = trace_folder() / "kineto" / "hta_nccl_data_resnet50_2xA100.json.gz";
  SKIP_WITHOUT(packed);
  const TemporaryFolder folder;
  const auto file = folder / "resnet50.json";
  ASSERT_EQ(std::system(("gzip -dc '" + packed.string() + "' > '" + file.string() + "'").c_str()), 0);
  const KinetoTrace trace = load_kineto(file);
  EXPECT_THAT(trace.warnings, IsEmpty());
  ASSERT_EQ(trace.steps.size(), 3u);
  for (const KinetoStep& one : trace.steps) {
    std::vector<Bytes> sizes;
    for (const auto& c : one.communications) sizes.push_back(c.size);
    EXPECT_THAT(sizes, ElementsAre(212'480, 424, 8'196'000, 31'502'336, 26'255'360, 26'550'272, 9'724'160));
    EXPECT_EQ(
        std::count_if(one.communications.begin(), one.communications.end(), [](const auto& c) { return c.overlaps; }),
        4);
  }
  EXPECT_EQ(trace.typical().name, "ProfilerStep#4");
  EXPECT_EQ(to_job(trace, "resnet50").bytes_per_iteration(), 102'441'032u);
}

TEST(Kineto, dlrm__is_what_it_should_be) {
  const auto packed = trace_folder() / "kineto" / "param_dlrm_kineto_8ranks.tar.gz";
  SKIP_WITHOUT(packed);
  const TemporaryFolder folder;
  ASSERT_EQ(std::system(("tar xzf '" + packed.string() + "' -C '" + folder.string() + "'").c_str()), 0);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "dlrm_kineto")) {
    if (!is_kineto(entry.path())) continue;
    ++files;
    const KinetoTrace trace = load_kineto(entry.path());
    EXPECT_EQ(trace.workers, 8u);
    ASSERT_EQ(trace.steps.size(), 1u);
    std::vector<Bytes> sizes;
    for (const auto& c : trace.steps[0].communications) sizes.push_back(c.size);
    EXPECT_THAT(sizes, ElementsAre(24'576, 192, 1536, 13'568, 1'576'964, 24'576, 448, 907'840));
    EXPECT_EQ(to_job(trace, "dlrm").bytes_per_iteration(), 4'405'583u);
  }
  EXPECT_EQ(files, 8u);
}

}  // namespace
}  // namespace mltcp::workload::kineto_test
