// Hosts on datapaths that are opened by name (transport/host_datapath.h), in real time. The datapaths are the kernel's
// UDP sockets over the loopback, opened for each round, or the user's ports, opened once.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <thread>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/host_datapaths.h"
#include "mltcp/lab/experiment/soak/internal/soak_network.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/poll_loop.h"
#include "mltcp/transport/udp_port.h"

namespace mltcp::experiment {
namespace {

struct Site {
  std::shared_ptr<HostDatapath> datapath;
  Address address;
};

/// Opens a site on the first free UDP port, or on the default port if the datapath cannot find a free one.
Site open_site(const HostDatapathConfig& config, HostPlace place) {
  const std::uint16_t free = free_host_ports(config, place);
  place.address.port = free == 0 ? kDefaultUdpPort : free;
  check_host_datapath(config, place);
  Site site{open_host_datapath(config), place.address};
  site.datapath->take_place(place);
  return site;
}

class HostNetwork final : public SoakNetwork {
 public:
  explicit HostNetwork(std::vector<Site> sites) : sites_(std::move(sites)), began_(time().now()) {}
  [[nodiscard]] std::vector<Traffic::Place> places() override {
    std::vector<Traffic::Place> places;
    for (const Site& site : sites_) places.push_back({&site.datapath->io(0), site.address});
    return places;
  }
  void run(Traffic& traffic, const std::function<bool()>& stop) override {
    PollLoop loop(time(), Idle::sleep);
    for (std::size_t i = 0; i < sites_.size(); ++i) loop.attach(traffic.io(i), traffic.pollable(i));
    loop.run(Nanos::never(), stop);
  }
  [[nodiscard]] Nanos now() const override { return time().now() - began_; }
  [[nodiscard]] std::string why_silent() const override {
    for (const Site& site : sites_)
      for (const Site& other : sites_) {
        if (&site == &other) continue;
        if (std::string why = site.datapath->why_silent(other.address); !why.empty()) return why;
      }
    return {};
  }

 private:
  [[nodiscard]] TimeSource& time() const { return sites_.front().datapath->time(); }

  std::vector<Site> sites_;
  Nanos began_;
};

class UdpNetworks final : public SoakNetworks {
 public:
  UdpNetworks() { register_datapaths_once(); }
  std::unique_ptr<SoakNetwork> make(Random& random) override {
    const std::uint64_t hosts = 2 + random.below(3);
    const HostDatapathConfig config{.device = "udp:lo", .mtu = random.below(2) == 0 ? 1500U : 9000U, .sleeps = true};
    std::vector<Site> sites;
    for (std::uint64_t i = 0; i < hosts; ++i)
      sites.push_back(open_site(config, {.address = Address::v4(0x7F000001, 0), .prefix_bits = 8}));
    return std::make_unique<HostNetwork>(std::move(sites));
  }
  [[nodiscard]] bool real_time() const override { return true; }
};

class PortNetworks final : public SoakNetworks {
 public:
  explicit PortNetworks(const std::vector<SoakPort>& ports) {
    register_datapaths_once();
    if (ports.size() < 2)
      throw InputError(fmt::format("{}; give --port and --ip twice or more",
                                   ports.empty() ? "no port is given" : "one port has no peer"));
    for (const SoakPort& port : ports) {
      const AddressPrefix own = AddressPrefix::parse(port.ip);
      sites_.push_back(
          open_site({.device = port.device, .sleeps = true}, {.address = own.address, .prefix_bits = own.bits}));
    }
    for (const Site& from : sites_)
      for (const Site& to : sites_)
        if (&from != &to) expect_reachable(from, to);
  }
  std::unique_ptr<SoakNetwork> make(Random& /*random*/) override { return std::make_unique<HostNetwork>(sites_); }
  [[nodiscard]] bool real_time() const override { return true; }

 private:
  /// Throws if `from` cannot resolve the address of `to`.
  void expect_reachable(const Site& from, const Site& to) {
    if (from.address.is_v4() != to.address.is_v4() || from.address == to.address)
      throw InputError(
          fmt::format("{} and {} cannot exchange packets; give each port its own address, all of the same IP version",
                      to_text(from.address), to_text(to.address)));
    constexpr Nanos patience{5'000'000'000};
    TimeSource& time = from.datapath->time();
    for (const Nanos end = time.now() + patience; !from.datapath->resolve(0, to.address); receive_and_drop()) {
      if (time.now() < end) continue;
      const std::string why = from.datapath->why_silent(to.address);
      throw RunError(fmt::format(
          "{} did not find {} within {:.0f} s: {}", to_text(from.address), to_text(to.address), patience.seconds(),
          why.empty() ? "no host answers for its address; check that the ports are connected, and on the same network"
                      : why));
    }
  }
  /// Polls the datapaths, so that they answer requests for their addresses.
  void receive_and_drop() {
    std::array<RxPacket, 32> packets;
    for (const Site& site : sites_) site.datapath->io(0).receive(packets);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::vector<Site> sites_;
};

}  // namespace

std::unique_ptr<SoakNetworks> make_udp_networks() { return std::make_unique<UdpNetworks>(); }
std::unique_ptr<SoakNetworks> make_port_networks(const std::vector<SoakPort>& ports) {
  return std::make_unique<PortNetworks>(ports);
}

}  // namespace mltcp::experiment
