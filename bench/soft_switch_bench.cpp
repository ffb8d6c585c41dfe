// Measures the cost of a frame in the software switch. The switch receives the frame from a ring port, parses it,
// learns its source address, queues it, and sends it to a second ring port. The argument is the frame's size in bytes.
// The counters are nanoseconds and TSC cycles per frame. They use the CPU time that the thread spends in the switch, so
// that other load and the creation of frames do not count.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <memory>
#include <utility>

#include "mltcp/dpdk/ring_port.h"
#include "mltcp/lab/realtime/soft_switch.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace {

using namespace mltcp;

constexpr std::uint16_t kBurst = 32;

std::unique_ptr<dpdk::Eal> eal;

double thread_nanos() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct End {
  End(const std::string& name, const dpdk::PacketPool& pool)
      : to_switch(name + "s", 1024),
        to_host(name + "h", 1024),
        bridge(name + "b", to_switch, to_host, pool),
        host(name + "e", to_host, to_switch, pool) {}
  dpdk::PacketRing to_switch;
  dpdk::PacketRing to_host;
  dpdk::RingPort bridge;
  dpdk::RingPort host;
};

void forward(benchmark::State& state) {
  static int instances = 0;
  const std::string name = fmt::format("b{}", instances++);
  const dpdk::PacketPool pool(name, 8192, 2000);
  End from(name + "0", pool);
  End to(name + "1", pool);
  // The rate never limits the switch, because a frame takes at most 1 ns at this rate.
  fabric::SwitchPortConfig port;
  port.output.rate = Rate(100'000'000'000'000);
  realtime::SoftSwitch bridge(*eal, {{from.bridge.id(), 1514, port, nullptr}, {to.bridge.id(), 1514, port, nullptr}});

  const auto bytes = static_cast<std::uint16_t>(state.range(0));
  encap::Headers headers;
  headers.source_mac = {2, 0, 0, 0, 0, 1};
  headers.destination_mac = {2, 0, 0, 0, 0, 2};
  headers.source = Address::v4(0x0A000001, 1);
  headers.destination = Address::v4(0x0A000002, 2);
  headers.ecn = Ecn::ect0;
  std::array<std::byte, encap::kIpv4OverheadBytes> header{};
  encap::write_headers(headers, bytes - header.size(), 0, header.data());
  // The switch first learns the receiver's address, so that it does not flood frames.
  std::array<rte_mbuf*, kBurst> frames{};
  const auto make = [&](std::uint16_t count, bool back) {
    rte_pktmbuf_alloc_bulk(pool.get(), frames.data(), count);
    for (std::uint16_t i = 0; i < count; ++i) {
      auto* const data = rte_pktmbuf_mtod(frames[i], std::byte*);
      std::memcpy(data, header.data(), header.size());
      if (back) std::swap(data[5], data[11]);
      frames[i]->data_len = bytes;
      frames[i]->pkt_len = bytes;
    }
  };
  std::int64_t ns = 0;
  make(1, true);
  rte_eth_tx_burst(to.host.id(), 0, frames.data(), 1);
  bridge.step(Nanos(++ns));
  double spent = 0;
  std::uint64_t passed = 0;
  for ([[maybe_unused]] auto _ : state) {
    make(kBurst, false);
    rte_eth_tx_burst(from.host.id(), 0, frames.data(), kBurst);
    ns += 1000;
    const double begun = thread_nanos();
    bridge.step(Nanos(ns));
    bridge.step(Nanos(ns + 500));
    spent += thread_nanos() - begun;
    const std::uint16_t count = rte_eth_rx_burst(to.host.id(), 0, frames.data(), kBurst);
    rte_pktmbuf_free_bulk(frames.data(), count);
    passed += count;
  }
  if (passed != static_cast<std::uint64_t>(state.iterations()) * kBurst) state.SkipWithError("frames were lost");
  state.SetItemsProcessed(static_cast<std::int64_t>(passed));
  state.counters["ns/frame"] = spent / static_cast<double>(passed);
  state.counters["cycles/frame"] = spent * 1e-9 * eal->clock().ticks_per_second() / static_cast<double>(passed);
}
BENCHMARK(forward)->Arg(64)->Arg(1500);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  try {
    eal = std::make_unique<dpdk::Eal>(dpdk::EalOptions{});
    benchmark::RunSpecifiedBenchmarks();
    eal.reset();
  } catch (const std::exception& error) {
    fmt::print(stderr, "soft_switch_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
