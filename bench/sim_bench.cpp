// Measures the speed of the simulator in packet-hops per second of processor time, with real shards. The networks are a
// dumbbell, with virtual and with real payloads, and a leaf-spine network with each kind of queue. A hop is one packet
// that leaves one link. On the dumbbell, data and acknowledgements take two hops each.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <vector>

#include "mltcp/lab/sim/dumbbell.h"
#include "mltcp/lab/sim/switched_network.h"
#include "mltcp/transport/shard.h"

namespace {

using namespace mltcp;
using namespace mltcp::literals;

constexpr Bytes kMessageBytes = 1 << 20;

/// A sender that always has four messages in flight.
struct Sender final : Pollable {
  Sender(PacketIo& io, const Address& peer, bool real) : shard(io, {.seed = 1}), data(real ? kMessageBytes : 0) {
    connection = shard.connect(peer, ConnectionConfig{}, Nanos(0));
    for (int i = 0; i < 4; ++i) post();
  }
  void post() {
    if (data.empty())
      shard.send_virtual(connection, kMessageBytes, 0);
    else
      shard.send(connection, data, 0);
  }
  Nanos poll(Nanos now) override {
    Nanos next = shard.poll(now);
    std::array<Completion, 8> done;
    while (const std::size_t count = shard.take_completions(done)) {
      for (std::size_t i = 0; i < count; ++i)
        if (done[i].kind == Completion::Kind::sent) post();
      next = shard.poll(now);
    }
    return next;
  }
  Shard shard;
  std::vector<std::byte> data;
  ConnectionId connection = 0;
};

struct Receiver final : Pollable {
  Receiver(PacketIo& io, bool real) : shard(io, {.seed = 1}), data(real ? kMessageBytes : 0) {
    shard.listen(ConnectionConfig{});
  }
  void post(ConnectionId connection) {
    if (data.empty())
      shard.receive_virtual(connection, kMessageBytes, 0);
    else
      shard.receive(connection, data, 0);
  }
  Nanos poll(Nanos now) override {
    Nanos next = shard.poll(now);
    std::array<Completion, 8> done;
    while (const std::size_t count = shard.take_completions(done)) {
      for (std::size_t i = 0; i < count; ++i)
        for (int n = done[i].kind == Completion::Kind::accepted ? 8 : 1; n > 0; --n) post(done[i].connection);
      next = shard.poll(now);
    }
    return next;
  }
  Shard shard;
  std::vector<std::byte> data;
};

void dumbbell(benchmark::State& state) {
  const auto pairs = static_cast<std::uint32_t>(state.range(0));
  const bool real = state.range(1) != 0;
  fabric::DumbbellConfig config;
  config.pairs = pairs;
  config.bottleneck.rate = Rate::from_gbps(10);
  config.bottleneck.delay = 10_us;
  config.bottleneck.buffer_bytes = 250'000;
  config.reverse = config.bottleneck;
  config.access_delay = 10_us;
  sim::DumbbellOptions options;
  options.virtual_payload = !real;
  sim::Dumbbell network(config, options);
  std::vector<std::unique_ptr<Pollable>> hosts;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    hosts.push_back(std::make_unique<Receiver>(network.right(i), real));
    network.attach(network.right(i), *hosts.back());
    hosts.push_back(std::make_unique<Sender>(network.left(i), network.right(i).address(), real));
    network.attach(network.left(i), *hosts.back());
  }
  network.run_until(10_ms);
  const std::uint64_t before = network.counters().packet_hops;
  for (auto _ : state) network.run_until(network.now() + 10_ms);
  const auto hops = static_cast<double>(network.counters().packet_hops - before);
  state.counters["hops/s"] = benchmark::Counter(hops, benchmark::Counter::kIsRate);
  state.counters["per hop"] = benchmark::Counter(hops, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
/// Measures 16 hosts under four leaves with two spines at 100 Gbps, with jumbo frames. Each host sends to a host under
/// the next leaf.
void leaf_spine(benchmark::State& state) {
  fabric::SwitchedNetworkConfig config;
  const LeafSpineShape shape{4, 2, 4, Rate::from_gbps(100), {}, 1_us};
  config.topology = std::make_shared<const Topology>(Topology::leaf_spine(shape));
  config.mtu = 9000;
  if (state.range(0) >= 1) config.classes = 8;
  if (state.range(0) >= 2) config.memory.bytes = 16'000'000;
  if (state.range(0) >= 3) config.memory.pfc = {true, 100'000, 50'000};
  sim::SwitchedNetworkOptions options;
  options.virtual_payload = true;
  sim::SwitchedNetwork network(config, options);
  std::vector<std::unique_ptr<Pollable>> ends;
  for (std::uint32_t i = 0; i < config.hosts(); ++i) {
    sim::Host& to = network.add_port((i + shape.hosts_per_leaf) % config.hosts(), 2);
    sim::Host& from = network.add_port(i, 1);
    ends.push_back(std::make_unique<Receiver>(to, false));
    network.attach(to, *ends.back());
    ends.push_back(std::make_unique<Sender>(from, to.address(), false));
    network.attach(from, *ends.back());
  }
  network.run_until(2_ms);
  const std::uint64_t before = network.counters().packet_hops;
  for (auto _ : state) network.run_until(network.now() + 1_ms);
  const auto hops = static_cast<double>(network.counters().packet_hops - before);
  state.counters["hops/s"] = benchmark::Counter(hops, benchmark::Counter::kIsRate);
  state.counters["per hop"] = benchmark::Counter(hops, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
// The value 0 of `queues` means FIFO queues. Value 1 adds priorities, value 2 also shared memory, and value 3 also PFC.
BENCHMARK(leaf_spine)->ArgName("queues")->DenseRange(0, 3);

BENCHMARK(dumbbell)->ArgNames({"jobs", "real_payload"})->Args({1, 0})->Args({2, 0})->Args({2, 1})->Args({32, 0});

}  // namespace
