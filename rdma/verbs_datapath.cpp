// A port of an RDMA device as a host's datapath, with one datagram queue pair per shard; see register_datapath.h and
// verbs_name.h. raw_datapath.cpp is the datapath for Ethernet frames.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/system_random.h"
#include "mltcp/base/text.h"
#include "mltcp/base/thread_cpu.h"
#include "mltcp/base/time_source.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/host_setup.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/rdma/internal/raw_datapath.h"
#include "mltcp/rdma/kernel_routes.h"
#include "mltcp/rdma/kernel_sockets.h"
#include "mltcp/rdma/register_datapath.h"
#include "mltcp/rdma/service.h"
#include "mltcp/rdma/ud_packet.h"
#include "mltcp/rdma/verbs_io.h"
#include "mltcp/rdma/verbs_name.h"
#include "mltcp/transport/ethernet/ip_address.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {
namespace {

constexpr std::uint32_t kPieces = 3;
/// Minimum time between the two readings that calibrate the TSC. The result is then accurate to a few parts per
/// million.
constexpr Nanos kCalibration{50'000'000};
/// Excludes the highest bit of a key, because keys with that bit belong to the kernel (controlled Q_Keys).
constexpr std::uint32_t kKeyMask = 0x7FFFFFFF;

/// The GID and address of a host. The address contains the UDP port of shard 0.
struct Site {
  Gid gid;
  Network network = Network::roce_v4;
  Address address;
  std::uint32_t longest_message = 0;
};

/// Returns the maximum length of a message, in bytes, for IP packets of config.mtu bytes. If config.mtu is 0, returns
/// the device's maximum.
std::uint32_t longest_message(const HostDatapathConfig& config, const DeviceFacts& facts, Network network) {
  if (config.mtu == 0) return facts.longest_message;
  const std::uint32_t overhead = network_overhead(network);
  if (config.mtu < kMinMessage + overhead)
    refuse(config, fmt::format("an MTU of {} bytes; give {} to {}", config.mtu, kMinMessage + overhead,
                               facts.longest_message + overhead));
  if (config.mtu > facts.longest_message + overhead)
    refuse(config,
           fmt::format("an MTU of {}, but the device sends messages of {} bytes, which allows {}; give that, or raise "
                       "the MTU of its interface, from which follow messages of 256, 512, 1024, 2048 or 4096 bytes",
                       config.mtu, facts.longest_message, facts.longest_message + overhead));
  return (config.mtu - overhead) / 4 * 4;
}

Site site_of(const HostDatapathConfig& config, const VerbsName& name, const DeviceFacts& facts,
             const HostPlace& place) {
  check_place(config, place);
  Site site;
  site.gid = choose_gid(facts, place.address, name.gid_index);
  site.network = network_of(facts, site.gid);
  site.address = site.gid.ip;
  site.address.port = place.address.port;
  site.longest_message = longest_message(config, facts, site.network);
  return site;
}

/// Opens the sockets through which shards ask for queue pairs.
std::vector<std::unique_ptr<KernelSocket>> question_sockets(const Site& site, const DeviceFacts& facts,
                                                            std::uint32_t shards) {
  return sockets_of(asked_at(site.address, facts.is_infiniband), site.gid.interface, shards);
}

class VerbsDatapath final : public HostDatapath {
 public:
  VerbsDatapath(const HostDatapathConfig& config, std::unique_ptr<Device> device)
      : config_(config), name_(check_config(config)), device_(std::move(device)), time_(clock_) {
    // The type of network depends on the host's address. Until the address is known, assume RoCE over IPv4.
    site_.longest_message = longest_message(config_, device_->facts(), Network::roce_v4);
    keep_on_named_cpu(config);
  }
  ~VerbsDatapath() override {
    // The order matters: queue pairs use handles of the service, which uses the device.
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

  [[nodiscard]] std::string why_link_is_down() const override { return device_->why_down(); }
  [[nodiscard]] std::string why_silent(const Address& of) const override {
    if (std::string down = why_link_is_down(); !down.empty()) return down;
    for (const auto& io : ios_)
      if (const auto peer = io->narrow_peer(); peer && peer->ip == of.ip)
        return fmt::format(
            "messages of {} bytes are too long for {}; give all hosts the same MTU (--mtu, or that of "
            "their interfaces)",
            site_.longest_message, to_text(*peer));
    return {};
  }

  void take_place(const HostPlace& place) override {
    const DeviceFacts& facts = device_->facts();
    const Site site = site_of(config_, name_, facts, place);
    if (const std::string down = device_->why_down(); !down.empty()) throw RunError(down);
    // Calibrate the TSC, because the loop reads the time in each round.
    if (const Nanos since = clock_.now() - opened_; since < kCalibration) Clock::sleep(kCalibration - since);
    clock_.calibrate();
    auto sockets = question_sockets(site, facts, std::max<std::uint32_t>(place.shards, 1));
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
      io.send_depth = std::min(io.receive_depth, kMaxSendDepth);
      io.max_pieces = std::min(facts.max_pieces, kPieces);
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

void check(const HostDatapathConfig& config, const HostPlace& place) {
  const VerbsName name = check_config(config);
  named_cpu(config.cores);
  const auto device = open_device(name);
  if (name.is_raw) return check_raw(config, place, *device, *kernel_network());
  const Site site = site_of(config, name, device->facts(), place);
  if (const std::string down = device->why_down(); !down.empty()) throw InputError(down);
  // Binding sockets shows whether the UDP ports are free.
  question_sockets(site, device->facts(), std::max<std::uint32_t>(place.shards, 1));
}

std::uint16_t free_ports(const HostDatapathConfig& config, const HostPlace& place) {
  const VerbsName name = check_config(config);
  const auto device = open_device(name);
  HostPlace any = place;
  any.address.port = 1;
  const std::uint32_t shards = std::max<std::uint32_t>(place.shards, 1);
  if (name.is_raw) {
    const RawSite site = raw_site_of(config, any, *device, *kernel_network());
    return free_ports_at(site.address, site.interface.index, shards);
  }
  const Site site = site_of(config, name, device->facts(), any);
  return free_ports_at(asked_at(site.address, device->facts().is_infiniband), site.gid.interface, shards);
}

std::unique_ptr<HostDatapath> open(const HostDatapathConfig& config) {
  const VerbsName name = check_config(config);
  auto device = open_device(name);
  if (name.is_raw) return make_raw_datapath(config, std::move(device), kernel_network());
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
