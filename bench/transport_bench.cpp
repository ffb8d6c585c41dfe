// Measures the cost of the transport over DPDK ring ports. One thread drives two shards, each with a ring port; the two
// ports are connected. All work for a packet counts, on both sides: building, headers and checksums, copy, ring,
// parsing, reassembly, and the acknowledgement. The bare ring loop (ring_loop_bench.cpp) runs for comparison.
//
// The cost per packet is the cost to send and acknowledge one data packet. The cost per message is measured with
// messages that share packets.
//
// The case `connections` sends the same messages on 1 to 20,000 connections, also with optional features off. `memory`
// measures the cost of memory lines that are not in the caches. `ping_pong` measures the round trip of a message and
// its answer. `two_shards` runs two pairs of shards on two cores. bench/stages counts instructions by stage.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <pthread.h>
#include <rte_lcore.h>
#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

#include "mltcp/base/random.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/port_io.h"
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

/// Two hosts that are connected by one wire.
struct Wire {
  Wire(std::uint32_t mtu, const dpdk::RingIoOptions& options, const std::string& name = "")
      : pool("bench" + name, 8191, mtu + 14),
        ab("ab" + name, 1024),
        ba("ba" + name, 1024),
        a("a" + name, Address::v4(0x0A010001, 4793), mtu, ba, ab, pool, options),
        b("b" + name, Address::v4(0x0A020001, 4793), mtu, ab, ba, pool, options) {}
  dpdk::PacketPool pool;
  dpdk::PacketRing ab;
  dpdk::PacketRing ba;
  dpdk::RingIo a;
  dpdk::RingIo b;
};

enum Options { plain = 0, integrity = 1, unpacked = 2, mltcp_job = 4, zero_copy = 8, no_checksums = 16 };

// Two bursts of messages and packets are in flight, so that packets stay in the cache as in a NIC at low load.
constexpr int kOutstanding = 64;
constexpr std::uint32_t kInFlight = 64;

/// Sends messages from `a` to `b`, which has the address `to`, for as long as the benchmark runs.
void exchange(benchmark::State& state, PacketIo& a, PacketIo& b, const Address& to) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto options = state.range(1);
  Shard sender(a, ShardConfig{});
  Shard receiver(b, ShardConfig{});
  ConnectionConfig config;
  config.full_integrity = (options & integrity) != 0;
  config.pack_messages = (options & unpacked) == 0;
  config.max_packets_in_flight = kInFlight;
  receiver.listen(config);
  const ConnectionId connection = sender.connect(to, config, Nanos(0));
  if ((options & mltcp_job) != 0) {
    JobConfig job;
    job.augmentation = cc::Augmentation::mltcp({});
    const JobId id = sender.add_job(job);
    if (!sender.attach(connection, id) || !sender.begin_iteration(id, Bytes{1} << 40)) {
      state.SkipWithError("the connection carries no job");
      return;
    }
  }
  std::vector<std::byte> out(bytes);
  std::vector<std::byte> in(bytes);
  for (int i = 0; i < kOutstanding; ++i) sender.send(connection, out, 0);

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
  // Opens the connection and lets its window grow. Other load on the machine lengthens the first round trips, and the
  // pacing rate depends on them.
  const Nanos give_up = eal->clock().now() + Nanos(10'000'000'000);
  constexpr std::uint64_t warm = 1000;
  const auto packets_sent = [&] { return sender.stats(connection).value_or(ConnectionStats{}).packets_sent; };
  for (int i = 0; i < 2000 || (packets_sent() < warm && eal->clock().now() < give_up); ++i) turn();
  const std::uint64_t packets_before = packets_sent();
  messages = 0;
  const double start = thread_nanos();
  for (auto _ : state)
    for (int i = 0; i < 16; ++i) turn();
  const double nanos = thread_nanos() - start;
  const auto packets = static_cast<double>(packets_sent() - packets_before);
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
  state.counters["lost"] = static_cast<double>(sender.stats(connection)->lost_packets);
}

/// Sends messages of the given size with the given options, in packets of `mtu` bytes, between two ring hosts.
void transport(benchmark::State& state) {
  const auto options = state.range(1);
  Wire wire(static_cast<std::uint32_t>(state.range(2)),
            {(options & zero_copy) != 0 ? 1024U : 0U, (options & no_checksums) == 0});
  exchange(state, wire.a, wire.b, wire.b.address());
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

/// Measures the same as transport(), but between hosts on ports. This includes all work of PortIo, here on two
/// connected ring ports.
void ports(benchmark::State& state) {
  dpdk::PortConfig port{.device = "ring:left,to=right", .mtu = static_cast<std::uint32_t>(state.range(2))};
  const dpdk::Port left(*eal, port);
  port.device = "ring:right,to=left";
  const dpdk::Port right(*eal, port);
  dpdk::PortHostConfig host;
  host.zero_copy_from = (state.range(1) & zero_copy) != 0 ? 1024 : 0;
  host.address = Address::v4(0x0A010001, 4793);
  const dpdk::PortHost a(*eal, left, host);
  host.address = Address::v4(0x0A010002, 4793);
  const dpdk::PortHost b(*eal, right, host);
  exchange(state, a.io(), b.io(), host.address);
  a.io().release();
  b.io().release();
}
BENCHMARK(ports)
    ->ArgNames({"message", "options", "mtu"})
    ->Args({64, unpacked, 1500})
    ->Args({1400, unpacked, 1500})
    ->Args({1400, unpacked | zero_copy, 1500})
    ->Args({8'000'000, plain, 1500})
    ->Args({8'000'000, zero_copy, 1500})
    ->Args({8'000'000, plain, 9000})
    ->Args({8'000'000, zero_copy, 9000});

enum ConnectionOptions {
  own_credit = 1,   ///< credit is sent in separate packets
  at_once = 2,      ///< the poll() that receives a message also acknowledges it
  no_prefetch = 4,  ///< cache lines are not prefetched
  answered = 8,     ///< each message is answered by a message of the same length
  few_in_use = 16,  ///< messages use 64 of the connections, and 64 different ones after 4096 messages
};

/// Two shards with `count` connections between them. In total, 64 messages of 32 bytes are in flight. Each message uses
/// the next connection of a shuffled list and its own packet.
class ManyConnections {
 public:
  ManyConnections(std::uint32_t count, std::int64_t options, const std::string& name = "")
      : wire_(1500, {}, name),
        options_(options),
        count_(count),
        sender_(wire_.a, shards(count, options)),
        receiver_(wire_.b, shards(count, options)) {
    config_.pack_messages = false;
    config_.max_receives = config_.max_sends = 64;
    config_.credit_in_acks = (options & own_credit) == 0;
    config_.await_answer = (options & at_once) == 0;
    receiver_.listen(config_);
    ids_.reserve(count);
    const double before = heap();
    while (ids_.size() < count) {
      for (int i = 0; i < 32 && ids_.size() < count; ++i)
        ids_.push_back(sender_.connect(wire_.b.address(), config_, eal->clock().now()));
      turn();
    }
    while (connected_ < count) turn();
    opened_bytes = (heap() - before) / count;
    Random random(1);
    for (std::size_t i = ids_.size(); i > 1; --i) std::swap(ids_[i - 1], ids_[random.below(i)]);
    send(kOutstanding);
    while (messages < 2 * std::uint64_t{count} + 1000) turn();
    used_bytes = (heap() - before) / count;
    messages = 0;
  }

  void turn() {
    const Nanos now = eal->clock().now();
    sender_.poll(now);
    receiver_.poll(now);
    Completion done[64];
    while (const std::size_t taken = receiver_.take_completions(done))
      for (std::size_t i = 0; i < taken; ++i) {
        if (done[i].kind == Completion::Kind::accepted) {
          for (std::uint32_t n = buffers(); n > 0; --n) receiver_.receive(done[i].connection, in_, 0);
        } else if (done[i].kind == Completion::Kind::received) {
          receiver_.receive(done[i].connection, in_, 0);
          if ((options_ & answered) != 0) receiver_.send(done[i].connection, out_, 0);
        }
      }
    while (const std::size_t taken = sender_.take_completions(done)) {
      std::size_t finished = 0;
      for (std::size_t i = 0; i < taken; ++i) {
        if (done[i].kind == Completion::Kind::connected) {
          ++connected_;
          if ((options_ & answered) != 0)
            for (std::uint32_t n = buffers(); n > 0; --n) sender_.receive(done[i].connection, in_, 0);
        } else if (done[i].kind == Completion::Kind::received) {
          sender_.receive(done[i].connection, in_, 0);
          ++finished;
        } else if (done[i].kind == Completion::Kind::sent && (options_ & answered) == 0) {
          ++finished;
        }
      }
      messages += finished;
      send(finished);
    }
  }
  [[nodiscard]] std::uint64_t packets() const { return sender_.stats().packets_sent + receiver_.stats().packets_sent; }

  std::uint64_t messages = 0;  ///< number of finished messages; a message and its answer count as one
  double opened_bytes = 0;     ///< memory per connection after the handshake, in bytes at both ends together
  double used_bytes = 0;       ///< memory per connection after its first message, in bytes at both ends together

 private:
  static ShardConfig shards(std::uint32_t count, std::int64_t options) {
    ShardConfig config;
    config.max_connections = count;
    config.prefetch = (options & no_prefetch) == 0;
    return config;
  }
  static double heap() { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd); }
  [[nodiscard]] std::uint32_t buffers() const { return count_ == 1 ? 64 : 4; }

  void send(std::size_t number) {
    ConnectionId next[64];
    for (std::size_t i = 0; i < number; ++i) {
      if ((options_ & few_in_use) != 0) {
        next[i] = ids_[(sent_ / 4096 * kOutstanding + sent_ % kOutstanding) % ids_.size()];
        ++sent_;
      } else {
        next[i] = ids_[sent_];
        if (++sent_ == ids_.size()) sent_ = 0;
      }
    }
    if (count_ > 1) sender_.prefetch({next, number});
    for (std::size_t i = 0; i < number; ++i) sender_.send(next[i], out_, 0);
  }

  Wire wire_;
  std::int64_t options_;
  std::uint32_t count_;
  Shard sender_;
  Shard receiver_;
  ConnectionConfig config_;
  std::vector<std::byte> out_ = std::vector<std::byte>(32);
  std::vector<std::byte> in_ = std::vector<std::byte>(32);
  std::vector<ConnectionId> ids_;
  std::uint32_t connected_ = 0;
  std::size_t sent_ = 0;
};

void connections(benchmark::State& state) {
  ManyConnections many(static_cast<std::uint32_t>(state.range(0)), state.range(1));
  const std::uint64_t packets_before = many.packets();
  CALLGRIND_START_INSTRUMENTATION;
  const double start = thread_nanos();
  for (auto _ : state)
    for (int i = 0; i < 16; ++i) many.turn();
  const double nanos = thread_nanos() - start;
  CALLGRIND_STOP_INSTRUMENTATION;
  const auto messages = static_cast<double>(many.messages);
  state.SetItemsProcessed(static_cast<std::int64_t>(many.messages));
  state.counters["packets/message"] = static_cast<double>(many.packets() - packets_before) / messages;
  state.counters["ns/message"] = nanos / messages;
  state.counters["cycles/message"] = nanos * 1e-9 * eal->clock().ticks_per_second() / messages;
  // A case runs several times with more and more iterations, and callgrind counts all runs together.
  static std::uint64_t counted = 0;
  counted += many.messages;
  state.counters["messages"] = messages;
  state.counters["counted_messages"] = static_cast<double>(counted);
  state.counters["bytes/opened"] = many.opened_bytes;
  state.counters["bytes/used"] = many.used_bytes;
}
BENCHMARK(connections)
    ->ArgNames({"", "options"})
    ->ArgsProduct({{1, 100, 1000, 20'000}, {0, own_credit | at_once | no_prefetch}})
    ->Args({20'000, no_prefetch})
    ->Args({20'000, own_credit | at_once})
    ->Args({20'000, at_once})
    ->ArgsProduct({{1, 100, 1000, 20'000}, {answered, answered | own_credit | at_once | no_prefetch}})
    ->Args({20'000, few_in_use})
    ->Args({20'000, few_in_use | answered});

/// Measures the cost of reading memory lines. Either each read waits for the previous one, which returns its address,
/// or 32 lines are prefetched before the first is read.
void memory(benchmark::State& state) {
  const auto lines = static_cast<std::size_t>(state.range(0)) * (1U << 20) / 64;
  const bool burst = state.range(1) != 0;
  struct alignas(64) Line {
    std::uint32_t next;
  };
  std::vector<Line> chain(lines);
  std::vector<std::uint32_t> order(lines);
  for (std::uint32_t i = 0; i < lines; ++i) order[i] = i;
  Random random(1);
  for (std::size_t i = lines; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (std::size_t i = 0; i < lines; ++i) chain[order[i]].next = order[(i + 1) % lines];
  std::uint32_t at = 0;
  std::size_t place = 0;
  std::uint64_t read = 0;
  const double start = thread_nanos();
  for (auto _ : state) {
    for (int n = 0; n < 1024; n += 32) {
      if (burst) {
        if (place + 32 > lines) place = 0;
        for (std::size_t i = place; i < place + 32; ++i) __builtin_prefetch(&chain[order[i]]);
        for (std::size_t i = place; i < place + 32; ++i) at ^= chain[order[i]].next;
        place += 32;
      } else {
        for (int i = 0; i < 32; ++i) at = chain[at].next;
      }
    }
    read += 1024;
    benchmark::DoNotOptimize(at);
  }
  const double nanos = thread_nanos() - start;
  state.counters["cycles/line"] = nanos * 1e-9 * eal->clock().ticks_per_second() / static_cast<double>(read);
}
BENCHMARK(memory)->ArgNames({"MiB", "burst"})->ArgsProduct({{1, 4, 48, 76}, {0, 1}});

/// Measures round-trip times of one message of 32 bytes and its answer. One thread polls both ends in turn. Each time
/// begins with send() at one end, and ends when this end has received the answer.
void ping_pong(benchmark::State& state) {
  Wire wire(1500, {0, state.range(0) == 0});
  Shard a(wire.a, ShardConfig{});
  Shard b(wire.b, ShardConfig{});
  b.listen({});
  const ConnectionId id = a.connect(wire.b.address(), {}, eal->clock().now());
  ConnectionId peer = 0;
  std::vector<std::byte> out(32);
  std::vector<std::byte> in(32);
  Completion done[16];
  bool there = false;
  const auto turn = [&] {
    a.poll(eal->clock().now());
    b.poll(eal->clock().now());
    for (std::size_t i = 0, taken = b.take_completions(done); i < taken; ++i) {
      if (done[i].kind == Completion::Kind::accepted)
        for (int n = 0; n < 4; ++n) b.receive(peer = done[i].connection, in, 0);
      if (done[i].kind != Completion::Kind::received) continue;
      b.receive(peer, in, 0);
      b.send(peer, out, 0);
    }
    for (std::size_t i = 0, taken = a.take_completions(done); i < taken; ++i)
      there = there || done[i].kind == Completion::Kind::received;
  };
  while (peer == 0) turn();
  std::vector<std::uint32_t> trips;
  trips.reserve(20'000'000);
  const auto trip = [&] {
    a.receive(id, in, 0);
    const Nanos start = eal->clock().now();
    a.send(id, out, 0);
    for (there = false; !there;) turn();
    return static_cast<std::uint32_t>((eal->clock().now() - start).count);
  };
  for (int i = 0; i < 10'000; ++i) trip();
  const std::uint64_t packets_before = a.stats().packets_sent + b.stats().packets_sent;
  const double begin = thread_nanos();
  for (auto _ : state) trips.push_back(trip());
  const double nanos = thread_nanos() - begin;
  const auto count = static_cast<double>(trips.size());
  std::sort(trips.begin(), trips.end());
  const auto quantile = [&](double q) { return static_cast<double>(trips[static_cast<std::size_t>(q * (count - 1))]); };
  state.counters["p50_ns"] = quantile(0.5);
  state.counters["p99_ns"] = quantile(0.99);
  state.counters["p99.9_ns"] = quantile(0.999);
  state.counters["cycles/trip"] = nanos * 1e-9 * eal->clock().ticks_per_second() / count;
  state.counters["packets/trip"] =
      static_cast<double>(a.stats().packets_sent + b.stats().packets_sent - packets_before) / count;
}
BENCHMARK(ping_pong)->ArgNames({"no_checksums"})->Arg(0)->Arg(1);

/// Measures two threads on two cores, each with its own pair of shards and its own rings. For comparison, first
/// measures one thread in isolation on each of the two cores. Counts messages per second of each thread's processor
/// time, so that other load on the machine has little effect.
void two_shards(benchmark::State& state) {
  const std::vector<unsigned> cpus = dpdk::usable_cpus();
  if (cpus.size() < 2) {
    state.SkipWithError("needs two CPUs, and may use one");
    return;
  }
  constexpr int turns = 20'000;
  const auto run = [&](unsigned cpu, const char* name, std::barrier<>& together, double& rate) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    rte_thread_register();  // gives the thread a cache of the packet pool
    {
      ManyConnections one(1, 0, name);
      for (int i = 0; i < turns / 10; ++i) one.turn();
      together.arrive_and_wait();
      one.messages = 0;
      const double start = thread_nanos();
      for (int i = 0; i < turns; ++i) one.turn();
      rate = static_cast<double>(one.messages) / (thread_nanos() - start) * 1e9;
    }
    rte_thread_unregister();
  };
  std::vector<double> ratios;
  double together = 0;
  for (auto _ : state) {
    double alone[2] = {};
    for (int i = 0; i < 2; ++i) {
      std::barrier<> start(1);
      std::thread(run, cpus[static_cast<std::size_t>(i)], "0", std::ref(start), std::ref(alone[i])).join();
    }
    double rates[2] = {};
    std::barrier<> start(2);
    std::thread first(run, cpus[0], "1", std::ref(start), std::ref(rates[0]));
    std::thread second(run, cpus[1], "2", std::ref(start), std::ref(rates[1]));
    first.join();
    second.join();
    together += rates[0] + rates[1];
    ratios.push_back((rates[0] + rates[1]) / ((alone[0] + alone[1]) / 2));
  }
  std::sort(ratios.begin(), ratios.end());
  state.counters["x_of_one"] = ratios[ratios.size() / 2];  // the median of the ratios
  state.counters["least"] = ratios.front();
  state.counters["most"] = ratios.back();
  state.counters["messages/s"] = together / static_cast<double>(state.iterations());
}
BENCHMARK(two_shards)->Iterations(9)->Unit(benchmark::kMillisecond);

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
