// Hosts around one switch, in virtual time.
#include <cmath>

#include "mltcp/lab/experiment/soak/internal/soak_network.h"
#include "mltcp/lab/sim/network.h"

namespace mltcp::experiment {
namespace {

class SimNetwork final : public SoakNetwork {
 public:
  explicit SimNetwork(Random& random) : network_(options(random)) {
    const auto scale = [&](double min, double max) { return min * std::pow(max / min, random.uniform()); };
    const std::uint64_t count = 2 + random.below(3);
    fabric::LinkConfig link;
    link.rate = Rate(static_cast<std::uint64_t>(scale(100e6, 100e9)));
    link.delay = Nanos(static_cast<std::int64_t>(scale(500, 5e6)));
    link.buffer_bytes = static_cast<Bytes>(scale(20e3, 2e6));
    if (random.below(2) == 0) {
      link.ecn.enabled = true;
      link.ecn.kmin_bytes = link.buffer_bytes / 8;
      link.ecn.kmax_bytes = link.ecn.kmin_bytes * (1 + random.below(3));
    }
    const sim::Network::Switch middle = network_.add_switch();
    for (std::uint64_t i = 0; i < count; ++i) {
      sim::Host& host = network_.add_host(Address::v4(static_cast<std::uint32_t>(0x0A000001 + i), 4793));
      hosts_.push_back(&host);
      link.seed = random.next();
      network_.connect(host, middle, link);
      const sim::Network::Switch edge = network_.add_switch();
      network_.route(middle, host, network_.add_link(edge, link));
      network_.route_to_host(edge, host);
    }
  }
  [[nodiscard]] std::vector<Traffic::Place> places() override {
    std::vector<Traffic::Place> places;
    for (sim::Host* const host : hosts_) places.push_back({host, host->address()});
    return places;
  }
  void run(Traffic& traffic, const std::function<bool()>& stop) override {
    for (std::size_t i = 0; i < hosts_.size(); ++i) network_.attach(*hosts_[i], traffic.pollable(i));
    network_.run(Nanos::never(), stop);
  }
  [[nodiscard]] Nanos now() const override { return network_.now(); }

 private:
  static sim::NetworkOptions options(Random& random) {
    sim::NetworkOptions options;
    options.mtu = random.below(3) == 0 ? 9000 : 1500;
    options.transmit_queue_packets = static_cast<std::uint32_t>(32 << random.below(6));
    return options;
  }

  sim::Network network_;
  std::vector<sim::Host*> hosts_;
};

class SimNetworks final : public SoakNetworks {
 public:
  std::unique_ptr<SoakNetwork> make(Random& random) override { return std::make_unique<SimNetwork>(random); }
  [[nodiscard]] bool real_time() const override { return false; }
};

}  // namespace

std::unique_ptr<SoakNetworks> make_sim_networks() { return std::make_unique<SimNetworks>(); }

}  // namespace mltcp::experiment
