// Hosts and a software switch in real time, connected by DPDK's rings, if this build has DPDK.
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/soak/internal/soak_network.h"
#if MLTCP_HAS_DPDK
#include <cmath>

#include "mltcp/dpdk/eal.h"
#include "mltcp/lab/realtime/ring_dumbbell.h"
#endif

namespace mltcp::experiment {

#if MLTCP_HAS_DPDK
namespace {

/// Hosts with even numbers are on the left side, hosts with odd numbers on the right side.
class RingNetwork final : public SoakNetwork {
 public:
  RingNetwork(const dpdk::Eal& eal, const fabric::DumbbellConfig& config) : network_(eal, config) {}
  [[nodiscard]] std::vector<Traffic::Place> places() override {
    std::vector<Traffic::Place> places;
    for (std::uint32_t i = 0; i < network_.pairs(); ++i)
      for (dpdk::RingHost* const host : {&network_.left(i), &network_.right(i)})
        places.push_back({host, host->address()});
    return places;
  }
  void run(Traffic& traffic, const std::function<bool()>& stop) override {
    for (std::uint32_t i = 0; i < network_.pairs(); ++i) {
      network_.attach(network_.left(i), traffic.pollable(2 * std::size_t{i}));
      network_.attach(network_.right(i), traffic.pollable(2 * std::size_t{i} + 1));
    }
    network_.run(Nanos::never(), stop);
  }
  [[nodiscard]] Nanos now() const override { return network_.now(); }

 private:
  realtime::RingDumbbell network_;
};

class RingNetworks final : public SoakNetworks {
 public:
  explicit RingNetworks(const std::string& cores) : eal_(options(cores)) {}
  std::unique_ptr<SoakNetwork> make(Random& random) override {
    return std::make_unique<RingNetwork>(eal_, config(1 + static_cast<std::uint32_t>(random.below(2)), random));
  }
  [[nodiscard]] bool real_time() const override { return true; }
  [[nodiscard]] bool two_sides() const override { return true; }

 private:
  static fabric::DumbbellConfig config(std::uint32_t pairs, Random& random) {
    const auto scale = [&](double min, double max) { return min * std::pow(max / min, random.uniform()); };
    fabric::DumbbellConfig config;
    config.pairs = pairs;
    config.bottleneck.rate = Rate(static_cast<std::uint64_t>(scale(100e6, 10e9)));
    config.bottleneck.delay = Nanos(static_cast<std::int64_t>(scale(1e3, 1e6)));
    config.bottleneck.buffer_bytes = static_cast<Bytes>(scale(30e3, 1e6));
    config.bottleneck.ecn = {.enabled = true,
                             .kmin_bytes = config.bottleneck.buffer_bytes / 4,
                             .kmax_bytes = config.bottleneck.buffer_bytes / 2};
    config.bottleneck.seed = random.next();
    config.reverse = config.bottleneck;
    return config;
  }
  static dpdk::EalOptions options(const std::string& cores) {
    Random random;
    fabric::DumbbellConfig largest = config(2, random);
    largest.bottleneck.rate = largest.reverse.rate = Rate(10'000'000'000);
    largest.bottleneck.delay = largest.reverse.delay = Nanos(1'000'000);
    largest.bottleneck.buffer_bytes = largest.reverse.buffer_bytes = 1'000'000;
    dpdk::EalOptions options;
    options.cores = cores;
    // A network is destroyed before the next network is made, but the freed memory is fragmented. So the limit is twice
    // the memory of the largest network.
    options.memory_mb = 2 * realtime::RingDumbbell::memory_mb(largest);
    return options;
  }
  dpdk::Eal eal_;
};

}  // namespace
#endif

std::unique_ptr<SoakNetworks> make_ring_networks([[maybe_unused]] const std::string& cores) {
#if MLTCP_HAS_DPDK
  return std::make_unique<RingNetworks>(cores);
#else
  throw RunError("built without DPDK, so there is no datapath \"ring\"; build with -DMLTCP_DPDK=ON, or use sim or udp");
#endif
}

}  // namespace mltcp::experiment
