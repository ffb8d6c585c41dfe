// A port of an RDMA device as a host's datapath, one queue pair a shard; see register_datapath.h and verbs_name.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"
#include "mltcp/base/text.h"
#include "mltcp/base/thread_cpu.h"
#include "mltcp/base/time_source.h"
#include "mltcp/ethernet/ip_address.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/rdma/kernel_sockets.h"
#include "mltcp/rdma/register_datapath.h"
#include "mltcp/rdma/service.h"
#include "mltcp/rdma/ud_packet.h"
#include "mltcp/rdma/verbs_io.h"
#include "mltcp/rdma/verbs_name.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {
namespace {

constexpr std::uint32_t kMostSendDepth = 512;
constexpr std::uint32_t kLeastDepth = 64;
constexpr std::uint32_t kInlineBytes = 256;
constexpr std::uint32_t kPieces = 3;
/// Between the two readings that tell the TSC's speed: right to some millionths.
constexpr Nanos kCalibration{50'000'000};
/// The upper half of all keys is the kernel's (controlled Q_Keys).
constexpr std::uint32_t kKeyMask = 0x7FFFFFFF;

[[noreturn]] void refuse(const HostDatapathConfig& config, const std::string& why) {
  throw InputError(fmt::format("port {}: {}", in_quotes(config.device), why));
}

/// What can be told without the device.
VerbsName check_config(const HostDatapathConfig& config) {
  VerbsName name = parse_verbs_name(config.device);
  if (config.queues > 1)
    refuse(config, fmt::format("{} queues, but each shard has a queue pair of its own here; leave their number out",
                               config.queues));
  return name;
}

/// Where a host is: its GID and its address, which has the first UDP port.
struct Site {
  Gid gid;
  Network network = Network::roce_v4;
  Address address;
  std::uint32_t longest_message = 0;
};

/// Longest message for an IP packet of `mtu` bytes; 0: the device's.
std::uint32_t longest_message(const HostDatapathConfig& config, const DeviceFacts& facts, Network network) {
  if (config.mtu == 0) return facts.longest_message;
  const std::uint32_t overhead = network_overhead(network);
  if (config.mtu < kLeastMessage + overhead)
    refuse(config, fmt::format("an MTU of {} bytes; give {} to {}", config.mtu, kLeastMessage + overhead,
                               facts.longest_message + overhead));
  if (config.mtu > facts.longest_message + overhead)
    refuse(config, fmt::format("an MTU of {}, but the device sends messages of {} bytes, which makes {}; give that, or "
                               "raise the MTU of its interface, by which it takes 256, 512, 1024, 2048 or 4096",
                               config.mtu, facts.longest_message, facts.longest_message + overhead));
  return (config.mtu - overhead) / 4 * 4;
}

Site site_of(const HostDatapathConfig& config, const VerbsName& name, const DeviceFacts& facts,
             const HostPlace& place) {
  const std::uint32_t shards = std::max<std::uint32_t>(place.shards, 1);
  if (place.address.port == 0 || place.address.port + shards - 1 > 65535)
    throw InputError(fmt::format("UDP port {} for the first of {}: give 1 to {}", place.address.port,
                                 plural(shards, "shard"), 65536 - shards));
  if (!is_unspecified(place.gateway))
    refuse(config, fmt::format("the kernel finds the way here, and {} would not be asked; leave the gateway out, and "
                               "tell the kernel: ip route add default via {}",
                               ip_text(place.gateway), ip_text(place.gateway)));
  Site site;
  site.gid = choose_gid(facts, place.address, name.gid_index);
  site.network = network_of(facts, site.gid);
  site.address = site.gid.ip;
  site.address.port = place.address.port;
  site.longest_message = longest_message(config, facts, site.network);
  return site;
}

std::vector<std::unique_ptr<KernelSocket>> sockets_of(const Site& site, const DeviceFacts& facts,
                                                      std::uint32_t shards) {
  std::vector<std::unique_ptr<KernelSocket>> sockets;
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    Address address = asked_at(site.address, facts.is_infiniband);
    address.port = static_cast<std::uint16_t>(address.port + shard);
    sockets.push_back(std::make_unique<KernelSocket>(address, site.gid.interface));
  }
  return sockets;
}

std::uint32_t depth_for(const HostDatapathConfig& config, const DeviceFacts& facts) {
  const std::uint32_t most = std::min(facts.most_requests, facts.most_completions);
  if (most < kLeastDepth)
    refuse(config, fmt::format("its queues hold {} requests; {} is the least", most, kLeastDepth));
  return std::clamp(config.queue_packets, kLeastDepth, most);
}

class VerbsDatapath final : public HostDatapath {
 public:
  VerbsDatapath(const HostDatapathConfig& config, std::unique_ptr<Device> device)
      : config_(config), name_(check_config(config)), device_(std::move(device)), time_(clock_) {
    // The address decides; until then, as over IPv4.
    site_.longest_message = longest_message(config_, device_->facts(), Network::roce_v4);
    const int cpu = named_cpu(config.cores);
    if (cpu < 0) return;
    if (const int error = keep_thread_on(static_cast<unsigned>(cpu)); error != 0)
      throw RunError(fmt::format("this thread can't be kept on CPU {} ({}); leave it out", cpu, std::strerror(error)));
  }
  ~VerbsDatapath() override {
    // Queue pairs use the handles of the service, which uses the device.
    if (service_ != nullptr) service_->stop();
    ios_.clear();
    service_.reset();
  }

  [[nodiscard]] std::string description() const override {
    const DeviceFacts& facts = device_->facts();
    std::string text = fmt::format("verbs:{}:{}: {}, messages of {} bytes, MTU {}", facts.name, facts.port,
                                   facts.is_infiniband ? "InfiniBand, no ECN" : "RoCEv2", site_.longest_message, mtu());
    if (ios_.empty()) return text;
    return text + fmt::format(", GID {}, {}, up to {} bytes inline", site_.gid.index, plural(ios_.size(), "queue pair"),
                              ios_.front()->queue_pair().inline_bytes);
  }
  [[nodiscard]] std::uint32_t mtu() const override { return site_.longest_message + network_overhead(site_.network); }
  [[nodiscard]] TimeSource& time() override { return time_; }

  [[nodiscard]] std::string why_link_is_down() const override {
    for (const auto& io : ios_)
      if (const auto peer = io->narrow_peer())
        return fmt::format(
            "messages of {} bytes are too long for {}; give all hosts the same MTU (--mtu, or that of "
            "their interfaces)",
            site_.longest_message, to_text(*peer));
    return device_->why_down();
  }

  void take_place(const HostPlace& place) override {
    const DeviceFacts& facts = device_->facts();
    const Site site = site_of(config_, name_, facts, place);
    if (const std::string down = device_->why_down(); !down.empty()) throw RunError(down);
    // What is read each round shall be the TSC.
    if (const Nanos since = clock_.now() - opened_; since < kCalibration) Clock::sleep(kCalibration - since);
    clock_.calibrate();
    auto sockets = sockets_of(site, facts, std::max<std::uint32_t>(place.shards, 1));
    std::vector<std::unique_ptr<VerbsIo>> ios;
    std::vector<RemoteQueue> queues;
    SystemRandom random;
    for (std::uint16_t shard = 0; shard < sockets.size(); ++shard) {
      VerbsIoConfig io;
      io.address = site.address;
      io.address.port = static_cast<std::uint16_t>(io.address.port + shard);
      io.network = site.network;
      io.longest_message = site.longest_message;
      io.receive_depth = depth_for(config_, facts);
      io.send_depth = std::min(io.receive_depth, kMostSendDepth);
      io.most_pieces = std::min(facts.most_pieces, kPieces);
      io.key = std::max<std::uint32_t>(static_cast<std::uint32_t>(random.next()) & kKeyMask, 1);
      io.inline_bytes = kInlineBytes;
      ios.push_back(std::make_unique<VerbsIo>(*device_, clock_, io));
      queues.push_back(ios.back()->own_queue());
    }
    device_->watch(site.gid);
    auto service =
        std::make_unique<Service>(*device_, ServiceConfig{.gid = site.gid, .queues = queues}, std::move(sockets));
    for (std::uint16_t shard = 0; shard < ios.size(); ++shard) ios[shard]->attach(*service, service->mailbox(shard));
    service->start();
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
    losses.rejected = device_->wrong_keys();
    for (const auto& io : ios_) {
      const VerbsIoCounters& counters = io->counters();
      losses.errors += counters.receive_errors + counters.send_errors;
      losses.rejected += counters.no_header + counters.bad_header + counters.not_for_us + counters.over_long;
      losses.unsent +=
          counters.unsendable + counters.too_long + counters.no_route + counters.waiting_full + counters.unreachable;
    }
    return losses;
  }
  [[nodiscard]] std::span<DmaDevice* const> dma_devices() override { return dma_; }

 private:
  const HostDatapathConfig config_;
  const VerbsName name_;
  const std::unique_ptr<Device> device_;
  Clock clock_;
  const Nanos opened_ = monotonic_now();
  SystemTime time_;
  Site site_;
  std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<VerbsIo>> ios_;
  std::array<DmaDevice*, 1> dma_{};
};

/// Frames by raw-packet queue pairs: what the device has of them, and what carries frames instead.
[[noreturn]] void refuse_raw(const HostDatapathConfig& config, Device& device) {
  const RawPackets found = device.try_raw_packets();
  const std::string has = found.why_not.empty() ? "the device has raw-packet queue pairs with flow steering, but"
                                                : fmt::format("the device has {}, and", found.why_not);
  refuse(config,
         fmt::format("{} no port here sends frames by them; use the NIC under DPDK (pci:ADDRESS, which leaves it "
                     "to the kernel's driver for mlx4 and mlx5), or its interface (af_xdp:IFACE)",
                     has));
}

void check(const HostDatapathConfig& config, const HostPlace& place) {
  const VerbsName name = check_config(config);
  named_cpu(config.cores);
  const auto device = open_device(name);
  if (name.is_raw) refuse_raw(config, *device);
  const Site site = site_of(config, name, device->facts(), place);
  if (const std::string down = device->why_down(); !down.empty()) throw InputError(down);
  // That a UDP port is taken is told by binding to it.
  sockets_of(site, device->facts(), std::max<std::uint32_t>(place.shards, 1));
}

/// The kernel chooses the first; those behind it are free or not.
std::uint16_t free_ports(const HostDatapathConfig& config, const HostPlace& place) {
  constexpr int kTries = 256;
  const std::uint32_t shards = std::max<std::uint32_t>(place.shards, 1);
  const VerbsName name = check_config(config);
  const auto device = open_device(name);
  if (name.is_raw) refuse_raw(config, *device);
  HostPlace any = place;
  any.address.port = 1;
  Site site = site_of(config, name, device->facts(), any);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const KernelSocket first(
        [&] {
          Address address = asked_at(site.address, device->facts().is_infiniband);
          address.port = 0;
          return address;
        }(),
        site.gid.interface);
    if (first.port() + shards - 1 > 65'535) continue;
    if (shards == 1) return first.port();
    site.address.port = static_cast<std::uint16_t>(first.port() + 1);
    try {
      sockets_of(site, device->facts(), shards - 1);
      return first.port();
    } catch (const InputError&) {  // one of them is taken
    }
  }
  throw RunError(fmt::format("{} has no {} in a row that are free; take fewer shards, or give the first port yourself",
                             ip_text(site.address), plural(shards, "UDP port")));
}

std::unique_ptr<HostDatapath> open(const HostDatapathConfig& config) {
  const VerbsName name = check_config(config);
  auto device = open_device(name);
  if (name.is_raw) refuse_raw(config, *device);
  return make_datapath(config, std::move(device));
}

}  // namespace

std::unique_ptr<HostDatapath> make_datapath(const HostDatapathConfig& config, std::unique_ptr<Device> device) {
  return std::make_unique<VerbsDatapath>(config, std::move(device));
}

void register_datapath() {
  register_host_datapath({.name = "rdma",
                          .forms = kVerbsForms,
                          .takes = is_verbs_name,
                          .check = check,
                          .open = open,
                          .free_ports = free_ports});
}

}  // namespace mltcp::rdma
