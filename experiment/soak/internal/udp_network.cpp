// Hosts on the kernel's UDP sockets, over the loopback, in real time.
#include "mltcp/experiment/backends/host_datapaths.h"
#include "mltcp/experiment/soak/internal/soak_network.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/poll_loop.h"

namespace mltcp::experiment {
namespace {

class UdpNetwork final : public SoakNetwork {
 public:
  explicit UdpNetwork(std::uint64_t hosts, std::uint32_t mtu) {
    const HostDatapathConfig config{.device = "udp:lo", .mtu = mtu, .sleeps = true};
    for (std::uint64_t i = 0; i < hosts; ++i) {
      HostPlace place;
      place.address = Address::v4(0x7F000001, 0);
      place.address.port = free_host_ports(config, place);
      datapaths_.push_back(open_host_datapath(config));
      datapaths_.back()->take_place(place);
      addresses_.push_back(place.address);
    }
    began_ = datapaths_.front()->time().now();
  }
  [[nodiscard]] std::vector<Traffic::Place> places() override {
    std::vector<Traffic::Place> places;
    for (std::size_t i = 0; i < datapaths_.size(); ++i) places.push_back({&datapaths_[i]->io(0), addresses_[i]});
    return places;
  }
  void run(Traffic& traffic, const std::function<bool()>& stop) override {
    PollLoop loop(datapaths_.front()->time(), Idle::sleep);
    for (std::size_t i = 0; i < datapaths_.size(); ++i) loop.attach(traffic.io(i), traffic.pollable(i));
    loop.run(Nanos::never(), stop);
  }
  [[nodiscard]] Nanos now() const override { return datapaths_.front()->time().now() - began_; }

 private:
  std::vector<std::unique_ptr<HostDatapath>> datapaths_;
  std::vector<Address> addresses_;
  Nanos began_;
};

class UdpNetworks final : public SoakNetworks {
 public:
  UdpNetworks() { register_datapaths_once(); }
  std::unique_ptr<SoakNetwork> make(Random& random) override {
    return std::make_unique<UdpNetwork>(2 + random.below(3), random.below(2) == 0 ? 1500 : 9000);
  }
  [[nodiscard]] bool real_time() const override { return true; }
};

}  // namespace

std::unique_ptr<SoakNetworks> make_udp_networks() { return std::make_unique<UdpNetworks>(); }

}  // namespace mltcp::experiment
