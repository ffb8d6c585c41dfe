// Measures the cost of congestion control per acknowledgement sample, for every built-in algorithm, without and with
// MLTCP. Each step does what a connection does: it counts the bytes of the job's iteration, computes the gains, passes
// the sample on, and reports congestion from time to time. MLTCP's part is the counting and the gains. Other benchmarks
// measure only this part, for each aggressiveness function. MLTCP adds less than this to the cost of an algorithm,
// because the CPU executes instructions of both at the same time. The last benchmark measures what policy `turns` adds
// while a burst does not wait: two packets sent, and the batch that acknowledges them.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string>

#include "mltcp/cc/augmentation.h"
#include "mltcp/cc/registry.h"
#include "mltcp/cc/turns.h"

namespace {

using namespace mltcp;

constexpr Bytes kPacketBytes = 1500;
constexpr Bytes kIterationBytes = 13'500'000;
constexpr std::uint64_t kSamplesPerRound = 64;
constexpr std::uint64_t kSamplesPerCongestion = 256;

/// The acknowledgements of a job that never stops sending. Each acknowledges two packets, and the round-trip times are
/// 20 to 35 us.
class Acknowledgements {
 public:
  Acknowledgements() {
    ack_.acked_bytes = 2 * kPacketBytes;
    ack_.acked_packets = 2;
    ack_.endpoint_delay = Nanos(2'000);
    ack_.hops = 2;
    ack_.min_rtt = Nanos(20'000);
    ack_.smoothed_rtt = Nanos(27'000);
    ack_.delivery_rate = Rate::from_gbps(100);
    ack_.bytes_in_flight_before = 100 * kPacketBytes;
    ack_.cwnd_limited = true;
  }
  const cc::AckSample& next() {
    ++count_;
    ack_.now += Nanos(240);
    ack_.round_count = count_ / kSamplesPerRound;
    ack_.latest_rtt = Nanos(20'000 + static_cast<std::int64_t>((count_ * 2'654'435'761U) >> 12 & 15) * 1'000);
    ack_.ce_bytes = congestion() ? kPacketBytes : 0;
    ack_.ce_packets = congestion() ? 1 : 0;
    return ack_;
  }
  [[nodiscard]] bool congestion() const { return count_ % kSamplesPerCongestion == 0; }
  cc::AckSample& sample() { return ack_; }

 private:
  std::uint64_t count_ = 0;
  cc::AckSample ack_;
};

cc::Augmentation iteration_aware(const cc::Aggressiveness& function) {
  cc::Augmentation augmentation = cc::Augmentation::mltcp(function);
  augmentation.tracker.begin_iteration(kIterationBytes);
  return augmentation;
}

void take_gains(cc::Augmentation& augmentation, cc::AckSample& ack) {
  augmentation.tracker.on_delivered(ack.acked_bytes);
  if (augmentation.tracker.bytes_sent() >= kIterationBytes) augmentation.tracker.begin_iteration(kIterationBytes);
  ack.gain = augmentation.gain();
  ack.decrease_gain = augmentation.decrease_gain();
}

/// The arguments of the benchmark are the index of the algorithm, and 1 with MLTCP or 0 without.
void algorithm(benchmark::State& state) {
  const cc::AlgorithmTable& table = *cc::algorithms()[static_cast<std::size_t>(state.range(0))];
  const bool with_mltcp = state.range(1) != 0;
  cc::Controller controller(table, {.max_packet_bytes = kPacketBytes, .max_rate = Rate::from_gbps(100)});
  cc::Augmentation augmentation = with_mltcp ? iteration_aware({}) : cc::Augmentation();
  Acknowledgements acks;
  for ([[maybe_unused]] auto _ : state) {
    const cc::AckSample& ack = acks.next();
    if (acks.congestion()) controller.on_congestion({ack.now, cc::CongestionEvent::Cause::ecn, 0});
    if (with_mltcp) take_gains(augmentation, acks.sample());
    controller.on_ack(ack);
    if (ack.now >= controller.output().timer) controller.on_timer(ack.now);
  }
  benchmark::DoNotOptimize(controller.output().cwnd_bytes);
}

cc::Aggressiveness function(std::int64_t which) {
  constexpr std::array<cc::Aggressiveness::Point, 4> points{{{0, 0.25}, {0.3, 0.5}, {0.7, 1.5}, {1, 2}}};
  constexpr std::array<const char*, 6> names{"F1", "F2", "F3", "F4", "F5", "F6"};
  return which == 0 ? cc::Aggressiveness::table(points)
                    : cc::Aggressiveness::named(names.at(static_cast<std::size_t>(which - 1)));
}

/// The argument of the benchmark is 1 to 6 for the functions F1 to F6, or 0 for a table of four points.
void gain(benchmark::State& state) {
  cc::Augmentation augmentation = iteration_aware(function(state.range(0)));
  cc::AckSample ack;
  ack.acked_bytes = 2 * kPacketBytes;
  for ([[maybe_unused]] auto _ : state) {
    take_gains(augmentation, ack);
    benchmark::DoNotOptimize(ack.gain);
    benchmark::DoNotOptimize(ack.decrease_gain);
  }
}
BENCHMARK(gain)->ArgName("F")->DenseRange(0, 6);

/// A job whose bursts take 1 ms of each 2 ms, at 100 Gbps. Only the first packets of a burst are a test.
void turns(benchmark::State& state) {
  constexpr Nanos batch(240);  // the time in which two packets leave
  constexpr Nanos pause(1'000'000);
  constexpr Bytes burst = 12'500'000;
  constexpr cc::TurnsParameters parameters;
  cc::Turns turns(true, Rate::from_gbps(100), parameters);
  cc::QueueSample sample{
      .now = Nanos(1), .delay = {}, .min_rtt = Nanos(20'000), .packets = 2, .packet_bytes = kPacketBytes};
  std::uint64_t iteration = 1;
  Bytes sent = 0;
  for ([[maybe_unused]] auto _ : state) {
    sample.now += batch;
    if (sent >= burst) {
      sample.now += pause;
      sent = 0;
      ++iteration;
    }
    benchmark::DoNotOptimize(turns.on_send(sample.now, iteration, burst, sent == 0));
    benchmark::DoNotOptimize(turns.on_send(sample.now, iteration, burst, false));
    turns.on_delivered(sample.now, kPacketBytes);
    turns.on_delivered(sample.now, kPacketBytes);
    benchmark::DoNotOptimize(turns.on_queue(sample));
    sent += 2 * kPacketBytes;
  }
}
BENCHMARK(turns);

}  // namespace

int main(int argc, char** argv) {
  const auto all = cc::algorithms();
  for (std::size_t i = 0; i < all.size(); ++i)
    benchmark::RegisterBenchmark(std::string(all[i]->name).c_str(), algorithm)
        ->ArgNames({"", "mltcp"})
        ->Args({static_cast<std::int64_t>(i), 0})
        ->Args({static_cast<std::int64_t>(i), 1});
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
