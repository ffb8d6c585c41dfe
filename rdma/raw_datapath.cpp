// A port of an RDMA device as a host's datapath for Ethernet frames, with one queue pair per shard.
//
// The host uses an address of the kernel's interface. The kernel answers ARP and Neighbour Discovery for this address
// and finds the way to other hosts (kernel_routes.h). The device takes only the frames that its rules describe
// (ibv_create_flow(3)): UDP to the host's address and a shard's port. There is no rule for ARP, because a rule for ARP
// would take ARP replies away from the kernel. All other traffic on the interface would then be cut off.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/time_source.h"
#include "mltcp/rdma/internal/host_setup.h"
#include "mltcp/rdma/internal/raw_datapath.h"
#include "mltcp/rdma/kernel_sockets.h"
#include "mltcp/rdma/raw_io.h"
#include "mltcp/rdma/raw_service.h"
#include "mltcp/rdma/verbs_name.h"
#include "mltcp/transport/ethernet/ip_address.h"

namespace mltcp::rdma {
namespace {

constexpr std::uint32_t kShortestMtu = 576;
constexpr std::uint32_t kLongestMtu = 9000;
constexpr std::uint32_t kPieces = 2;  // a frame consists of headers and payload
/// Minimum time between the two readings that calibrate the TSC. The result is then accurate to a few parts per
/// million.
constexpr Nanos kCalibration{50'000'000};

/// Throws InputError if the device cannot send, receive or steer Ethernet frames.
void check_raw_packets(const HostDatapathConfig& config, Device& device) {
  const DeviceFacts& facts = device.facts();
  if (facts.is_infiniband)
    refuse(config, fmt::format("InfiniBand has no Ethernet frames; write {} to use its datagrams",
                               to_text({.device = facts.name, .port = facts.port})));
  const RawPackets found = device.try_raw_packets();
  if (found.why_not.empty()) return;
  refuse(config, fmt::format("the device has {}; {}", found.why_not,
                             found.lacks_right
                                 ? "run the program as root, or give it that (setcap cap_net_raw+ep PROGRAM)"
                                 : "use the NIC under DPDK (pci:ADDRESS), or its interface (af_xdp:IFACE, udp:)"));
}

std::uint32_t mtu_of(const HostDatapathConfig& config, const KernelInterface& interface) {
  if (config.mtu == 0) return std::clamp(interface.mtu, kShortestMtu, kLongestMtu);
  if (config.mtu < kShortestMtu || config.mtu > kLongestMtu)
    refuse(config, fmt::format("an MTU of {} bytes; give {} to {}", config.mtu, kShortestMtu, kLongestMtu));
  if (config.mtu > interface.mtu)
    refuse(config, fmt::format("an MTU of {0}, but {1} has {2}; set it: ip link set dev {1} mtu {0}", config.mtu,
                               interface.name, interface.mtu));
  return config.mtu;
}

class RawDatapath final : public HostDatapath {
 public:
  RawDatapath(const HostDatapathConfig& config, std::unique_ptr<Device> device, std::unique_ptr<KernelNetwork> network)
      : config_(config), device_(std::move(device)), network_(std::move(network)), time_(clock_) {
    check_config(config);
    check_raw_packets(config, *device_);
    // The host's address determines the interface. Until the address is known, use the first interface.
    const auto interfaces = network_->interfaces(device_->facts().interfaces);
    if (!interfaces.empty()) site_.interface = interfaces.front();
    site_.mtu = config.mtu != 0 ? config.mtu : mtu_of(config, site_.interface);
    keep_on_named_cpu(config);
  }
  ~RawDatapath() override {
    if (service_ != nullptr) service_->stop();
    ios_.clear();
    service_.reset();
  }

  [[nodiscard]] std::string description() const override {
    const DeviceFacts& facts = device_->facts();
    std::string text = fmt::format("verbs:{}:{}:raw: Ethernet frames on {}, MTU {}", facts.name, facts.port,
                                   site_.interface.name, site_.mtu);
    if (ios_.empty()) return text;
    return text + fmt::format(", checksums in {}, {}, up to {} bytes inline",
                              facts.has_frame_checksums && site_.address.is_v4() ? "the port" : "software",
                              plural(ios_.size(), "queue pair"), ios_.front()->queue_pair().inline_bytes);
  }
  [[nodiscard]] std::uint32_t mtu() const override { return site_.mtu; }
  [[nodiscard]] TimeSource& time() override { return time_; }
  [[nodiscard]] std::string why_link_is_down() const override {
    std::string why = device_->why_down();
    return why.empty() && service_ != nullptr ? service_->why_lost() : why;
  }

  void take_place(const HostPlace& place) override {
    const DeviceFacts& facts = device_->facts();
    const RawSite site = raw_site_of(config_, place, *device_, *network_);
    if (const std::string down = device_->why_down(); !down.empty()) throw RunError(down);
    // Calibrate the TSC, because the loop reads the time in each round.
    if (const Nanos since = clock_.now() - opened_; since < kCalibration) Clock::sleep(kCalibration - since);
    clock_.calibrate();
    // Claim the UDP ports before the device takes their frames. Otherwise the device could take frames away from
    // another program.
    auto sockets = sockets_of(site.address, site.interface.index, std::max<std::uint32_t>(place.shards, 1));
    auto service = std::make_unique<RawService>(*device_, network_->routes_of(site.interface, site.address),
                                                static_cast<std::uint16_t>(sockets.size()));
    std::vector<std::unique_ptr<RawIo>> ios;
    for (std::uint16_t shard = 0; shard < sockets.size(); ++shard) {
      RawIoConfig io;
      io.address = site.address;
      io.address.port = static_cast<std::uint16_t>(io.address.port + shard);
      io.mac = site.interface.mac;
      io.mtu = site.mtu;
      io.receive_depth = depth_for(config_, facts);
      io.send_depth = std::min(io.receive_depth, kMaxSendDepth);
      io.max_pieces = std::min(facts.max_pieces, kPieces);
      io.inline_bytes = kInlineBytes;
      io.has_checksums = facts.has_frame_checksums;
      ios.push_back(std::make_unique<RawIo>(*device_, clock_, io));
      ios.back()->attach(*service, service->mailbox(shard));
    }
    service->start();
    sockets_ = std::move(sockets);
    service_ = std::move(service);
    ios_ = std::move(ios);
    site_ = site;
    dma_ = {device_.get()};
  }
  [[nodiscard]] std::uint16_t shards() const override { return static_cast<std::uint16_t>(ios_.size()); }
  [[nodiscard]] PacketIo& io(std::uint16_t shard) override { return *ios_.at(shard); }
  bool resolve(std::uint16_t shard, const Address& destination) override {
    return ios_.at(shard)->resolve(destination);
  }

  [[nodiscard]] DatapathLosses losses() const override {
    DatapathLosses losses;
    for (const auto& io : ios_) {
      const RawIoCounters& counters = io->counters();
      losses.errors += counters.receive_errors + counters.send_errors;
      losses.rejected += std::accumulate(counters.rejected.begin(), counters.rejected.end(), counters.over_long);
      losses.unsent += counters.unsendable + counters.no_route + counters.waiting_full + counters.unreachable;
    }
    return losses;
  }
  [[nodiscard]] std::span<DmaDevice* const> dma_devices() override { return dma_; }

 private:
  const HostDatapathConfig config_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<KernelNetwork> network_;
  Clock clock_;
  const Nanos opened_ = monotonic_now();
  SystemTime time_;
  RawSite site_;
  std::vector<std::unique_ptr<KernelSocket>> sockets_;  ///< claim the UDP ports, but receive nothing
  std::unique_ptr<RawService> service_;
  std::vector<std::unique_ptr<RawIo>> ios_;
  std::array<DmaDevice*, 1> dma_{};
};

}  // namespace

RawPlace choose_interface(const std::string& label, const DeviceFacts& facts, const Address& wanted,
                          KernelNetwork& network) {
  const auto refuse_it = [&](const std::string& what) { throw InputError(fmt::format("{}: {}", label, what)); };
  const bool is_any = is_unspecified(wanted);
  std::vector<std::string> texts;
  std::string vlan;
  std::string name = "IFACE";
  std::optional<RawPlace> chosen;
  for (const KernelInterface& one : network.interfaces(facts.interfaces)) {
    if (!one.is_ethernet) continue;
    name = one.name;
    for (const Address& address : one.addresses) {
      const bool is_wanted = is_any ? address.is_v4() == wanted.is_v4() : address.ip == wanted.ip;
      if (one.is_vlan) {
        if (is_wanted) vlan = one.name;
        continue;
      }
      texts.push_back(fmt::format("{} {}", one.name, ip_text(address)));
      // Prefer other addresses to link-local ones, which cannot reach hosts through routers.
      if (is_wanted && (!chosen || (is_link_local(chosen->address) && !is_link_local(address))))
        chosen = RawPlace{one, address};
    }
  }
  const std::string has = texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
  if (chosen) return *chosen;
  if (name == "IFACE")
    refuse_it(
        "the kernel has no Ethernet interface on that port; load its driver (for mlx5: mlx5_core, with Ethernet)");
  if (!vlan.empty())
    refuse_it(
        fmt::format("{} belongs to a VLAN, whose frames have a tag, but frames here have none; give the host an "
                    "address of the port's own interface, or use af_xdp:, af_packet: or udp: of {}",
                    vlan, vlan));
  if (is_any)
    refuse_it(fmt::format("its interface has no IPv{} address, but {}; give it one: ip addr add {} dev {}",
                          wanted.is_v4() ? 4 : 6, has, wanted.is_v4() ? "10.0.0.1/24" : "fd00::1/64", name));
  refuse_it(
      fmt::format("none of its interface's addresses is {0}, but {1}; give the host one that it has, or add it: "
                  "ip addr add {0}/{2} dev {3}",
                  ip_text(wanted), has, wanted.is_v4() ? 24 : 64, name));
  return {};
}

RawSite raw_site_of(const HostDatapathConfig& config, const HostPlace& place, Device& device, KernelNetwork& network) {
  check_place(config, place);
  const RawPlace chosen =
      choose_interface(fmt::format("port {}", in_quotes(config.device)), device.facts(), place.address, network);
  RawSite site;
  site.interface = chosen.interface;
  site.address = chosen.address;
  site.address.port = place.address.port;
  site.mtu = mtu_of(config, chosen.interface);
  return site;
}

void check_raw(const HostDatapathConfig& config, const HostPlace& place, Device& device, KernelNetwork& network) {
  check_raw_packets(config, device);
  const RawSite site = raw_site_of(config, place, device, network);
  if (const std::string down = device.why_down(); !down.empty()) throw InputError(down);
  // Binding sockets shows whether the UDP ports are free.
  sockets_of(site.address, site.interface.index, std::max<std::uint32_t>(place.shards, 1));
}

std::unique_ptr<HostDatapath> make_raw_datapath(const HostDatapathConfig& config, std::unique_ptr<Device> device,
                                                std::unique_ptr<KernelNetwork> network) {
  return std::make_unique<RawDatapath>(config, std::move(device), std::move(network));
}

}  // namespace mltcp::rdma
