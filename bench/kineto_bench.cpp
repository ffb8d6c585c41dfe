// Measures the speed of the reader of PyTorch profiler traces, in processor time. The program reads a trace that it
// makes in memory, or a given file.
//
//   build/bin/kineto_bench [MB [FILE]]     makes a trace of this size; also writes it to FILE
//   build/bin/kineto_bench FILE            reads this trace; also prints the peak memory
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace {

/// Returns a trace in the profiler's format. A step has 200 operations of the host, 200 kernels with their launches,
/// and 5 all-reduces.
std::string make(std::size_t bytes) {
  std::string text = R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},)"
                     "\n  \"traceEvents\": [\n  {\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1}";
  double now = 4458676524670.5;
  int correlation = 1;
  for (int step = 1; text.size() < bytes; ++step) {
    text += fmt::format(
        ",\n  {{\n    \"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#{}\", "
        "\"pid\": 2910249, \"tid\": 2910249,\n    \"ts\": {:.3f}, \"dur\": 20000.0\n  }}",
        step, now);
    for (int i = 0; i < 200; ++i, ++correlation) {
      const double at = now + 10 + i * 90;
      text += fmt::format(
          ",\n  {{\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::convolution_backward\", "
          "\"pid\": 2910249, \"tid\": 2919752,\n    \"ts\": {:.3f}, \"dur\": 40.123,\n    \"args\": {{\n"
          "      \"External id\": {},\"Record function id\": {}, \"Ev Idx\": {}, \"Input Dims\": [[32, 64, "
          "56, 56], [64, 64, 3, 3], []], \"Input type\": [\"float\", \"float\", \"Scalar\"]\n    }}\n  }}",
          at, correlation, correlation, correlation);
      text += fmt::format(
          ",\n  {{\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": "
          "2910249, \"tid\": 2919752,\n    \"ts\": {:.3f}, \"dur\": 5.25,\n    \"args\": {{\n      "
          "\"External id\": {}, \"cbid\": 211, \"correlation\": {}\n    }}\n  }}",
          at + 20, correlation, correlation);
      const bool communicates = i % 40 == 39;
      text += fmt::format(
          ",\n  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{}\", \"pid\": 0, \"tid\": {},\n    \"ts\": "
          "{:.3f}, "
          "\"dur\": {},\n    \"args\": {{\n      \"External id\": {}, \"queued\": 0, \"device\": 0, \"context\": 1, "
          "\"stream\": {}, \"correlation\": {}, \"registers per thread\": 96, \"shared memory\": 87568,\n      "
          "\"blocks "
          "per SM\": 0.074074, \"warps per SM\": 1.259259, \"grid\": [8, 1, 1], \"block\": [544, 1, 1], \"est. "
          "achieved "
          "occupancy %\": 0{}\n    }}\n  }}",
          communicates ? "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"
                       : "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float, float)",
          communicates ? 40 : 7, at + 30, communicates ? "70.5" : "60.25", correlation, communicates ? 40 : 7,
          correlation,
          communicates
              ? ", \"Collective name\": \"allreduce\", \"In msg nelems\": 2049000, \"Out msg nelems\": 2049000, "
                "\"Group size\": 8, \"dtype\": \"Float\", \"Process Group Name\": \"0\", \"Process Group Ranks\": "
                "\"[0, 1, 2, 3, 4, 5, 6, 7]\""
              : "");
    }
    now += 20000;
  }
  return text + "\n  ]\n}\n";
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "200";
  mltcp::workload::TraceOptions options;
  options.as_recorded = true;
  if (std::filesystem::exists(what)) {
    const std::clock_t begin = std::clock();
    const auto graph = mltcp::workload::read_traces(std::vector{std::filesystem::path(what)}, options);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("{}: {} steps, {} nodes, {:.1f} MB of the file in {:.2f} s: {:.0f} MB/s; at most {} MB of memory\n",
               what, graph.steps.size(), graph.ranks[0].nodes.size(),
               static_cast<double>(std::filesystem::file_size(what)) / 1e6, seconds,
               static_cast<double>(std::filesystem::file_size(what)) / 1e6 / seconds, usage.ru_maxrss / 1000);
    return 0;
  }
  const std::string text = make(std::strtoull(what.c_str(), nullptr, 10) * 1'000'000);
  for (int round = 0; round < 3; ++round) {
    const std::clock_t begin = std::clock();
    const auto graph = mltcp::workload::parse_trace_graph(text, "made.json", options);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    fmt::print("{:.0f} MB, {} steps, {} nodes in {:.2f} s: {:.0f} MB/s\n", static_cast<double>(text.size()) / 1e6,
               graph.steps.size(), graph.ranks[0].nodes.size(), seconds,
               static_cast<double>(text.size()) / 1e6 / seconds);
  }
  if (argc > 2) {
    if (std::FILE* file = std::fopen(argv[2], "w")) {
      std::fwrite(text.data(), 1, text.size(), file);
      std::fclose(file);
    }
  }
  return 0;
} catch (const mltcp::InputError& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 2;
}
