// Cost of the transport over DPDK ring ports: two shards in one thread, each with a ring port, wired to each other.
// Everything a packet causes counts, on both sides: build, headers and checksums, copy, ring, parse, reassemble,
// acknowledge, process the acknowledgement. The bare ring loop (ring_loop_bench.cpp) is run beside it.
//
// Per packet: one data packet sent and acknowledged. Per message: the same for messages that share packets.
#include <benchmark/benchmark.h>

#include <malloc.h>

#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <vector>

#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/ring_io.h"
#include "mltcp/transport/shard.h"
#include "ring_loop.h"

namespace {

using namespace mltcp;

std::unique_ptr<dpdk::Eal> eal;

double thread_nanos() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

/// Two hosts on one wire.
struct Wire {
  Wire(std::uint32_t mtu, const dpdk::RingIoOptions& options)
      : pool("bench", 8191, mtu + 14),
        ab("ab", 1024),
        ba("ba", 1024),
        a("a", Address::v4(0x0A010001, 4793), mtu, ba, ab, pool, options),
        b("b", Address::v4(0x0A020001, 4793), mtu, ab, ba, pool, options) {}
  dpdk::PacketPool pool;
  dpdk::PacketRing ab;
  dpdk::PacketRing ba;
  dpdk::RingIo a;
  dpdk::RingIo b;
};

enum Options { plain = 0, integrity = 1, unpacked = 2, mltcp_job = 4, zero_copy = 8, no_checksums = 16 };

// Two bursts, so that packets stay in the cache as in a NIC at low load.
constexpr int outstanding = 64;
constexpr std::uint32_t in_flight = 64;

/// Messages of `bytes` flow for as long as the benchmark runs, in packets of `mtu`.
void transport(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto options = state.range(1);
  const auto mtu = static_cast<std::uint32_t>(state.range(2));
  Wire wire(mtu, {(options & zero_copy) != 0 ? 1024U : 0U, (options & no_checksums) == 0});
  Shard sender(wire.a, ShardConfig{});
  Shard receiver(wire.b, ShardConfig{});
  ConnectionConfig config;
  config.full_integrity = (options & integrity) != 0;
  config.pack_messages = (options & unpacked) == 0;
  config.max_packets_in_flight = in_flight;
  receiver.listen(config);
  const ConnectionId connection = sender.connect(wire.b.address(), config, Nanos(0));
  if ((options & mltcp_job) != 0) {
    JobConfig job;
    job.augmentation = cc::Augmentation::mltcp({});
    const JobId id = sender.add_job(job);
    sender.attach(connection, id);
    sender.begin_iteration(id, Bytes{1} << 40);
  }
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  for (int i = 0; i < outstanding; ++i) sender.send(connection, out, 0);

  std::uint64_t messages = 0;
  Completion done[64];
  const auto turn = [&] {
    const Nanos now = eal->clock().now();
    sender.poll(now);
    receiver.poll(now);
    while (const std::size_t count = receiver.take_completions(done))
      for (std::size_t i = 0; i < count; ++i)
        for (int n = done[i].kind == Completion::Kind::accepted ? 1024 : 1; n > 0; --n)
          receiver.receive(done[i].connection, in, 0);
    while (const std::size_t count = sender.take_completions(done))
      for (std::size_t i = 0; i < count; ++i)
        if (done[i].kind == Completion::Kind::sent) {
          ++messages;
          sender.send(connection, out, 0);
        }
  };
  for (int i = 0; i < 2000; ++i) turn();  // handshake, window
  const std::uint64_t packets_before = sender.stats(connection).packets_sent;
  messages = 0;
  const double start = thread_nanos();
  for (auto _ : state)
    for (int i = 0; i < 16; ++i) turn();
  const double nanos = thread_nanos() - start;
  const auto packets = static_cast<double>(sender.stats(connection).packets_sent - packets_before);
  if (packets == 0) {
    state.SkipWithError("nothing came through");
    return;
  }
  const double cycles = nanos * 1e-9 * eal->clock().ticks_per_second();
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.counters["ns/packet"] = nanos / packets;
  state.counters["cycles/packet"] = cycles / packets;
  state.counters["cycles/message"] = cycles / static_cast<double>(messages);
  state.counters["Gbit/s"] = static_cast<double>(messages * bytes) * 8 / nanos;
  state.counters["lost"] = static_cast<double>(sender.stats(connection).lost_packets);
}
BENCHMARK(transport)
    ->ArgNames({"message", "options", "mtu"})
    ->Args({32, plain, 1500})
    ->Args({32, mltcp_job, 1500})
    ->Args({64, unpacked, 1500})
    ->Args({64, unpacked | mltcp_job, 1500})
    ->Args({1400, unpacked, 1500})
    ->Args({1400, unpacked | mltcp_job, 1500})
    ->Args({1400, unpacked | integrity, 1500})
    ->Args({1 << 20, plain, 1500})
    ->Args({8'000'000, plain, 9000})
    ->Args({8'000'000, zero_copy, 9000})
    ->Args({8'000'000, no_checksums, 9000})
    ->Args({8'000'000, zero_copy | no_checksums, 9000});

/// Messages of 32 bytes, as many as above at once, each on the next one of many connections. Beside it the memory that
/// a connection takes, at both ends together: after the handshake, and when each has carried a message.
void connections(benchmark::State& state) {
  const auto count = static_cast<std::uint32_t>(state.range(0));
  Wire wire(1500, {});
  ShardConfig shards;
  shards.max_connections = count;
  Shard sender(wire.a, shards);
  Shard receiver(wire.b, shards);
  ConnectionConfig config;
  config.pack_messages = false;
  config.max_receives = config.max_sends = 64;
  receiver.listen(config);
  std::vector<std::byte> out(32);
  std::vector<std::byte> in(32);
  std::vector<ConnectionId> ids;
  ids.reserve(count);
  std::uint64_t messages = 0;
  std::uint32_t connected = 0;
  std::size_t next = 0;
  const auto send = [&] {
    sender.send(ids[next], out, 0);
    if (++next == ids.size()) next = 0;
  };
  const auto turn = [&] {
    const Nanos now = eal->clock().now();
    sender.poll(now);
    receiver.poll(now);
    Completion done[64];
    while (const std::size_t taken = receiver.take_completions(done))
      for (std::size_t i = 0; i < taken; ++i)
        for (std::uint32_t n = done[i].kind == Completion::Kind::accepted ? (count == 1 ? 64 : 4) : 1; n > 0; --n)
          receiver.receive(done[i].connection, in, 0);
    while (const std::size_t taken = sender.take_completions(done))
      for (std::size_t i = 0; i < taken; ++i) {
        if (done[i].kind == Completion::Kind::connected) ++connected;
        if (done[i].kind != Completion::Kind::sent) continue;
        ++messages;
        send();
      }
  };
  const auto heap = [] { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd); };
  const double before = heap();
  while (ids.size() < count) {
    for (int i = 0; i < 32 && ids.size() < count; ++i)
      ids.push_back(sender.connect(wire.b.address(), config, eal->clock().now()));
    turn();
  }
  while (connected < count) turn();
  const double opened = heap();
  for (int i = 0; i < outstanding; ++i) send();
  while (messages < 2 * std::uint64_t{count} + 1000) turn();
  const double used = heap();
  messages = 0;
  const auto packets = [&] { return sender.stats().packets_sent + receiver.stats().packets_sent; };
  const std::uint64_t packets_before = packets();
  const double start = thread_nanos();
  for (auto _ : state)
    for (int i = 0; i < 16; ++i) turn();
  const double nanos = thread_nanos() - start;
  state.SetItemsProcessed(static_cast<std::int64_t>(messages));
  state.counters["packets/message"] = static_cast<double>(packets() - packets_before) / static_cast<double>(messages);
  state.counters["ns/message"] = nanos / static_cast<double>(messages);
  state.counters["cycles/message"] = nanos * 1e-9 * eal->clock().ticks_per_second() / static_cast<double>(messages);
  state.counters["bytes/opened"] = (opened - before) / count;
  state.counters["bytes/used"] = (used - before) / count;
}
BENCHMARK(connections)->Arg(1)->Arg(1000)->Arg(20'000);

void bare_ring(benchmark::State& state) {
  bench::RingLoop loop(static_cast<std::size_t>(state.range(0)), 32);
  std::size_t packets = 0;
  const double start = thread_nanos();
  for (auto _ : state) packets += loop.round_with_copy();
  const double nanos = thread_nanos() - start;
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.counters["ns/packet"] = nanos / static_cast<double>(packets);
  state.counters["cycles/packet"] = nanos * 1e-9 * eal->clock().ticks_per_second() / static_cast<double>(packets);
}
BENCHMARK(bare_ring)->ArgNames({"bytes"})->Arg(64)->Arg(1400)->Arg(9000);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    eal = std::make_unique<dpdk::Eal>(dpdk::EalOptions{});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "transport_bench: %s\n", error.what());
    return 1;
  }
  benchmark::AddCustomContext("dpdk", eal->description());
  benchmark::RunSpecifiedBenchmarks();
  eal.reset();
  return 0;
}
