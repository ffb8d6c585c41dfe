// Measures the cost of a packet on bare ring ports, on one core. Packets have 64 or 1400 bytes, bursts 1 or 32 packets,
// with and without a copy of the payload. The counters are nanoseconds and TSC cycles per packet. They use the thread's
// CPU time, so that other load on the machine does not count.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>

#include "mltcp/dpdk/eal.h"
#include "ring_loop.h"

namespace {

std::unique_ptr<mltcp::dpdk::Eal> eal;

double thread_nanos() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

template <bool copy>
void bare_ring(benchmark::State& state) {
  mltcp::bench::RingLoop loop(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  std::size_t packets = 0;
  const double start = thread_nanos();
  for ([[maybe_unused]] auto _ : state) packets += copy ? loop.round_with_copy() : loop.round();
  const double nanos = thread_nanos() - start;
  const auto count = static_cast<double>(packets);
  if (loop.buffers_in_use() != 0 || packets == 0) {
    state.SkipWithError("packets were lost");
    return;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.counters["ns/packet"] = nanos / count;
  state.counters["cycles/packet"] = nanos * 1e-9 * eal->clock().ticks_per_second() / count;
}

BENCHMARK(bare_ring<false>)->Name("bare_ring")->ArgNames({"bytes", "burst"})->ArgsProduct({{64, 1400}, {1, 32}});
BENCHMARK(bare_ring<true>)->Name("bare_ring_copy")->ArgNames({"bytes", "burst"})->ArgsProduct({{64, 1400}, {1, 32}});

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    eal = std::make_unique<mltcp::dpdk::Eal>(mltcp::dpdk::EalOptions{});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ring_loop_bench: %s\n", error.what());
    return 1;
  }
  benchmark::AddCustomContext("dpdk", eal->description());
  benchmark::RunSpecifiedBenchmarks();
  eal.reset();
  return 0;
}
