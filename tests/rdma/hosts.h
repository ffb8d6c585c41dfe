// Test hosts on emulated devices: VerbsHost sends UD datagrams, RawHost sends Ethernet frames.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fake_device.h"
#include "mltcp/rdma/internal/make_datapath.h"
#include "mltcp/rdma/internal/raw_datapath.h"
#include "mltcp/rdma/kernel_routes.h"
#include "mltcp/rdma/raw_io.h"
#include "mltcp/rdma/verbs_io.h"
#include "mltcp/transport/host_datapath.h"
#include "packet_texts.h"

namespace mltcp::rdma {

inline constexpr std::uint16_t kVerbsPort = 27610;
inline constexpr std::uint16_t kRawPort = 27810;

/// A host at a loopback address with its own emulated device.
struct VerbsHost {
  VerbsHost(FakeFabric& fabric, const std::string& ip, HostDatapathConfig config = {}, std::uint16_t shards = 1,
            std::uint32_t longest = 1024) {
    config.device = "verbs:fake0";
    auto made = std::make_unique<FakeDevice>(fabric, ip, longest);
    device = made.get();
    datapath = make_datapath(config, std::move(made));
    HostPlace place;
    place.address = Address::parse(ip);
    place.address.port = kVerbsPort;
    place.shards = shards;
    datapath->take_place(place);
    address = place.address;
  }
  VerbsIo& io(std::uint16_t shard = 0) { return dynamic_cast<VerbsIo&>(datapath->io(shard)); }
  FakeQueuePair& pair(std::size_t shard = 0) { return *device->pairs[shard]; }

  FakeDevice* device;
  std::unique_ptr<HostDatapath> datapath;
  Address address;
};

inline constexpr std::uint32_t kInterface = 7;

/// The neighbour table that the kernels of all hosts share.
struct Segment {
  std::mutex mutex;
  std::map<std::array<std::uint8_t, 16>, KernelRoutes::Way> ways;
  std::uint64_t questions = 0;
  /// If set, a lookup that may ask returns the state "asked". From then on, lookups that may not ask return the
  /// address.
  bool answers_late = false;

  void set(const Address& ip, const KernelRoutes::Way& way) {
    const std::lock_guard lock(mutex);
    ways[ip.ip] = way;
  }
};

class FakeRoutes final : public KernelRoutes {
 public:
  FakeRoutes(Segment& segment, const std::string& lost) : segment_(segment), lost_(lost) {}
  Way find(const Address& destination, bool may_ask) override {
    const std::lock_guard lock(segment_.mutex);
    const auto found = segment_.ways.find(destination.ip);
    if (found == segment_.ways.end()) return {};
    if (may_ask) ++segment_.questions;
    if (found->second.state == KernelRoutes::State::known && segment_.answers_late) {
      if (!may_ask && asked_) return found->second;
      asked_ = asked_ || may_ask;
      return may_ask ? Way{KernelRoutes::State::asked, {}} : Way{};
    }
    return found->second;
  }
  [[nodiscard]] int event_file() const override { return -1; }
  void take_events() override {}
  [[nodiscard]] std::string why_lost() const override { return lost_; }

 private:
  Segment& segment_;
  std::string lost_;
  bool asked_ = false;
};

class FakeNetwork final : public KernelNetwork {
 public:
  FakeNetwork(Segment& segment, std::vector<KernelInterface> all) : segment_(segment), all_(std::move(all)) {}
  std::vector<KernelInterface> interfaces(std::span<const std::uint32_t> indices) override {
    std::vector<KernelInterface> some;
    for (const KernelInterface& one : all_)
      if (std::count(indices.begin(), indices.end(), one.index) != 0) some.push_back(one);
    return some;
  }
  std::unique_ptr<KernelRoutes> routes_of(const KernelInterface&, const Address&) override {
    return std::make_unique<FakeRoutes>(segment_, lost);
  }
  std::string lost;

 private:
  Segment& segment_;
  std::vector<KernelInterface> all_;
};

inline encap::MacAddress mac_of(std::uint8_t last) { return {0x02, 0, 0, 0, 0, last}; }

inline KernelInterface interface_of(const std::string& ip, std::uint8_t last, std::uint32_t mtu = 1500) {
  return {.index = kInterface,
          .name = fmt::format("eth{}", last),
          .is_ethernet = true,
          .mac = mac_of(last),
          .mtu = mtu,
          .addresses = {Address::parse(ip, 0)}};
}

/// The network and the neighbour table that a test's hosts share.
struct RawNetwork {
  FakeFabric fabric;
  Segment segment;
};

struct RawOptions {
  HostDatapathConfig config{};
  std::uint16_t shards = 1;
  std::uint32_t mtu = 1500;
  bool has_checksums = false;
  std::uint16_t port = kRawPort;
};

struct RawHost {
  RawHost(RawNetwork& network, const std::string& ip, std::uint8_t last, RawOptions options = {}) {
    auto made = std::make_unique<FakeDevice>(network.fabric, ip);
    device = made.get();
    device->raw = {.has_queue_pairs = true, .has_steering = true};
    device->facts_.interfaces = {kInterface};
    device->facts_.has_frame_checksums = options.has_checksums;
    options.config.device = "verbs:fake0:1:raw";
    datapath = make_raw_datapath(
        options.config, std::move(made),
        std::make_unique<FakeNetwork>(network.segment, std::vector{interface_of(ip, last, options.mtu)}));
    HostPlace place;
    place.address = Address::parse(ip, options.port);
    place.shards = options.shards;
    datapath->take_place(place);
    address = place.address;
    network.segment.set(address, {KernelRoutes::State::known, mac_of(last)});
  }
  RawIo& io(std::uint16_t shard = 0) { return dynamic_cast<RawIo&>(datapath->io(shard)); }
  FakeQueuePair& pair(std::size_t shard = 0) { return *device->pairs[shard]; }
  [[nodiscard]] std::uint64_t rejected(encap::Reject reject) {
    return io().counters().rejected[static_cast<std::size_t>(reject)];
  }

  FakeDevice* device;
  std::unique_ptr<HostDatapath> datapath;
  Address address;
};

template <typename Host>
bool resolves(Host& from, const Address& to) {
  return runs_until(from.io(), [&] { return from.io().resolve(to); });
}

}  // namespace mltcp::rdma
