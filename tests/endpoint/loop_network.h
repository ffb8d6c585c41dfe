// A network within a process. Endpoints open its datapaths by the name "loop:NAME". Packets between its hosts arrive at
// once, or as the test selects. Its time is the machine's time or virtual time. A file wakes a host that sleeps, as
// with sockets.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/error.h"
#include "mltcp/base/time_source.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::loop_network {

class LoopIo;

class Network {
 public:
  /// Creates the network `name`. Each test has its own name. The network is destroyed with its last owner.
  static std::shared_ptr<Network> make(const std::string& name, bool virtual_time) {
    auto network = std::make_shared<Network>();
    network->is_virtual = virtual_time;
    const std::lock_guard lock(registry_mutex());
    registry()[name] = network;
    return network;
  }
  static std::shared_ptr<Network> find(const std::string& name) {
    const std::lock_guard lock(registry_mutex());
    const auto found = registry().find(name);
    return found == registry().end() ? nullptr : found->second.lock();
  }

  bool is_virtual = false;
  std::atomic<std::int64_t> time{1'000'000};
  std::atomic<std::uint16_t> free_port{0};    ///< port that a host gets when it requests a free port
  std::atomic<bool> hands_over{false};        ///< whether a host's shards may receive each other's packets
  std::function<void(bool)> on_work;          ///< called with true before work for a host, and with false after it
  std::string why_link_is_down{};             ///< reported by all datapaths on this network
  std::string why_silent{};                   ///< reported by paths to any peer, with the peer's address appended
  std::atomic<bool> takes_ports_once{false};  ///< whether the first request for a port fails
  std::mutex mutex;
  std::map<std::pair<std::array<std::uint8_t, 16>, std::uint16_t>, LoopIo*> hosts;
  /// Returns whether a packet is lost. Called while the mutex is held.
  std::function<bool(const Address& from, const Address& to, std::span<const std::byte> header)> loses;
  /// Maximum length in bytes; longer packets are lost. Guarded by the mutex.
  std::size_t longest = SIZE_MAX;
  std::uint64_t packets = 0;

 private:
  static std::mutex& registry_mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::map<std::string, std::weak_ptr<Network>>& registry() {
    static std::map<std::string, std::weak_ptr<Network>> all;
    return all;
  }
};

class LoopTime final : public TimeSource {
 public:
  explicit LoopTime(Network& network) : network_(network), system_(clock_) {}
  void begin_loop() override {
    if (!network_.is_virtual) system_.begin_loop();
  }
  void end_loop() override {
    if (!network_.is_virtual) system_.end_loop();
  }
  Nanos now() override { return network_.is_virtual ? Nanos(network_.time.fetch_add(100)) : system_.now(); }
  void pause() override {
    if (network_.is_virtual)
      network_.time += 1000;
    else
      system_.pause();
  }
  void sleep(Nanos duration) override {
    if (network_.is_virtual)
      network_.time += duration.count;
    else
      system_.sleep(duration);
  }
  WaitEnd wait(std::span<const int> files, Nanos max) override {
    if (!network_.is_virtual) return system_.wait(files, max);
    network_.time += max.count;
    return WaitEnd::timed_out;
  }

 private:
  Network& network_;
  const Clock clock_;
  SystemTime system_;
};

class LoopIo final : public PacketIo {
 public:
  LoopIo(Network& network, const Address& address) : network_(network), address_(address) {
    file_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    const std::lock_guard lock(network_.mutex);
    LoopIo*& place = network_.hosts[{address.ip, address.port}];
    if (place != nullptr) throw RunError("the port is in use; choose another");
    place = this;
  }
  ~LoopIo() override {
    {
      const std::lock_guard lock(network_.mutex);
      network_.hosts.erase({address_.ip, address_.port});
    }
    close(file_);
  }
  LoopIo(const LoopIo&) = delete;
  LoopIo& operator=(const LoopIo&) = delete;

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override {
    const Work work(network_);
    const std::lock_guard lock(network_.mutex);
    lent_.clear();
    std::size_t count = 0;
    for (; count < out.size() && !arrived_.empty(); ++count) {
      lent_.push_back(std::move(arrived_.front()));
      arrived_.pop_front();
    }
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = {};
      out[i].source = lent_[i].from;
      out[i].bytes = lent_[i].bytes;
    }
    activity_ += count;
    if (arrived_.empty() && is_signalled_) {
      std::uint64_t ignored = 0;
      is_signalled_ = read(file_, &ignored, sizeof ignored) < 0;
    }
    return count;
  }
  std::size_t send(std::span<const TxPacket> packets) override {
    const Work work(network_);
    const std::lock_guard lock(network_.mutex);
    for (const TxPacket& packet : packets) {
      ++activity_;
      ++network_.packets;
      if (packet.header.size() + packet.payload.size() > network_.longest) continue;
      if (network_.loses && network_.loses(address_, *packet.destination, packet.header)) continue;
      const auto found = network_.hosts.find({packet.destination->ip, packet.destination->port});
      if (found != network_.hosts.end()) found->second->take(address_, packet);
    }
    return packets.size();
  }
  [[nodiscard]] std::uint64_t activity() const override { return activity_; }
  std::optional<Wakeup> begin_waiting() override { return Wakeup{file_, false}; }
  [[nodiscard]] std::span<PacketIo* const> feeders() const override { return feeders_; }
  void fed_by(PacketIo& other) { feeders_.push_back(&other); }

 private:
  struct Work {
    explicit Work(const Network& of) : network(of) {
      if (network.on_work) network.on_work(true);
    }
    ~Work() {
      if (network.on_work) network.on_work(false);
    }
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;
    const Network& network;
  };
  struct Packet {
    Address from;
    std::vector<std::byte> bytes;
  };
  void take(const Address& from, const TxPacket& packet) {
    Packet arrived{from, {packet.header.begin(), packet.header.end()}};
    arrived.bytes.insert(arrived.bytes.end(), packet.payload.begin(), packet.payload.end());
    arrived_.push_back(std::move(arrived));
    if (is_signalled_) return;
    const std::uint64_t one = 1;
    is_signalled_ = write(file_, &one, sizeof one) == sizeof one;
  }

  Network& network_;
  const Address address_;
  Limits limits_;
  int file_ = -1;
  bool is_signalled_ = false;
  std::uint64_t activity_ = 0;
  std::deque<Packet> arrived_;
  std::deque<Packet> lent_;
  std::vector<PacketIo*> feeders_;
};

class LoopDatapath final : public HostDatapath {
 public:
  explicit LoopDatapath(const HostDatapathConfig& config)
      : network_(Network::find(config.device.substr(5))), time_(checked(network_)) {}

  [[nodiscard]] std::string description() const override { return "a network within the process"; }
  [[nodiscard]] std::uint32_t mtu() const override { return 1500; }
  [[nodiscard]] TimeSource& time() override { return time_; }
  [[nodiscard]] std::string why_link_is_down() const override { return network_->why_link_is_down; }
  [[nodiscard]] std::string why_silent(const Address& peer) const override {
    return network_->why_silent.empty() ? why_link_is_down() : network_->why_silent + to_text(peer);
  }
  void take_place(const HostPlace& place) override {
    if (network_->takes_ports_once.exchange(false)) throw RunError("the port is in use; choose another");
    for (std::uint16_t shard = 0; shard < place.shards; ++shard) {
      Address address = place.address;
      address.port = static_cast<std::uint16_t>(address.port + shard);
      ios_.push_back(std::make_unique<LoopIo>(*network_, address));
    }
    for (const auto& io : ios_)
      for (const auto& other : ios_)
        if (network_->hands_over) io->fed_by(*other);
  }
  [[nodiscard]] std::uint16_t shards() const override { return static_cast<std::uint16_t>(ios_.size()); }
  [[nodiscard]] PacketIo& io(std::uint16_t shard) override { return *ios_[shard]; }
  bool resolve(std::uint16_t /*shard*/, const Address& /*destination*/) override { return true; }
  [[nodiscard]] DatapathLosses losses() const override { return {}; }

 private:
  static Network& checked(const std::shared_ptr<Network>& network) {
    if (network == nullptr) throw InputError("there is no such network; make it first");
    return *network;
  }
  std::shared_ptr<Network> network_;
  LoopTime time_;
  std::vector<std::unique_ptr<LoopIo>> ios_;
};

inline void register_datapath() {
  register_host_datapath({.name = "loop",
                          .forms = "loop:NAME",
                          .takes = [](std::string_view device) { return device.starts_with("loop:"); },
                          .check = [](const HostDatapathConfig&, const HostPlace&) {},
                          .open = [](const HostDatapathConfig& config) -> std::unique_ptr<HostDatapath> {
                            return std::make_unique<LoopDatapath>(config);
                          },
                          .free_ports = [](const HostDatapathConfig& config, const HostPlace&) -> std::uint16_t {
                            const auto network = Network::find(config.device.substr(5));
                            return network == nullptr ? std::uint16_t{0} : network->free_port.load();
                          }});
}

}  // namespace mltcp::loop_network
