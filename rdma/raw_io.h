// A shard's datapath on a queue pair for Ethernet frames (IBV_QPT_RAW_PACKET): packets are plain UDP over IP, as those
// of ports on sockets, AF_XDP and DPDK, which it talks with.
//
// How requests are posted, and what has become of them, is in internal/work_queues.h.
//
// Sent: headers, and the transport's own behind them, are written into a buffer (transport/ethernet/frame_writer.h);
// with it the payload, unless the device gathers it where it lies. What is short goes inline. The device computes
// checksums if it can. Packets to a host whose MAC address is not known yet wait, complete but for it, while the
// service thread finds it (raw_service.h).
//
// Received: a frame that rules of the device have put here (Device, QueuePair::steer()). What it is is nevertheless
// checked, all of it: rules are the device's.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/keyed_hash.h"
#include "mltcp/rdma/internal/work_queues.h"
#include "mltcp/rdma/raw_service.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/ethernet/frame_writer.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::rdma {

struct RawIoConfig {
  Address address;  ///< the shard's, with its UDP port
  encap::MacAddress mac{};
  std::uint32_t mtu = 1500;  ///< of IP packets
  std::uint32_t send_depth = 512;
  std::uint32_t receive_depth = 1024;
  std::uint32_t most_pieces = 2;  ///< that the device gathers
  std::uint32_t inline_bytes = 256;
  std::uint32_t zero_copy_from = 1024;  ///< Limits::keeps_payload_from; 0: all is copied
  bool has_checksums = false;           ///< DeviceFacts::has_frame_checksums
};

struct RawIoCounters : WorkCounters {
  std::array<std::uint64_t, encap::kRejects> rejected{};  ///< frames that were dropped, by encap::Reject
};

class RawIo final : public PacketIo {
 public:
  static constexpr std::uint32_t burst = WorkQueues::burst;
  /// A route in use is asked for anew so often, and one without a way.
  static constexpr Nanos refresh_after{1'000'000'000};
  /// Longest frame that any port may send here.
  static constexpr std::uint32_t longest_frame = 10240;

  /// Makes the queue pair, and has the device put the frames of the shard's UDP port there. Throws RunError.
  RawIo(Device& device, const Clock& clock, const RawIoConfig& config);
  ~RawIo() override = default;
  RawIo(const RawIo&) = delete;
  RawIo& operator=(const RawIo&) = delete;
  /// Before the first packet.
  void attach(const RawService& service, RawMailbox& mailbox);

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override;
  std::size_t send(std::span<const TxPacket> packets) override;
  [[nodiscard]] bool is_blocked() const override { return blocked_ || work_.is_waiting_for_room(); }
  [[nodiscard]] std::uint64_t activity() const override {
    return counters_.received_packets + counters_.sent_packets + counters_.waited + news_;
  }
  [[nodiscard]] Nanos deadline() const override { return work_.deadline(); }
  std::optional<Wakeup> begin_waiting() override { return Wakeup{work_.wait_file(), true}; }
  void arm() override { work_.arm(blocked_); }
  void disarm() override;

  /// Whether packets to `destination` would be sent at once; if not, asks for the way.
  bool resolve(const Address& destination);
  [[nodiscard]] const RawIoCounters& counters() const { return counters_; }
  [[nodiscard]] const QueuePair& queue_pair() const { return work_.pair(); }

 private:
  static constexpr std::uint32_t kWays = 4;
  static constexpr std::uint32_t kSets = kRawRoutes / kWays;

  struct Route {
    Address destination{};  ///< port 0
    bool is_used = false;
    KernelRoutes::State state = KernelRoutes::State::asked;
    encap::MacAddress mac{};
    std::uint32_t generation = 0;
    std::uint32_t busy = 0;  ///< packets that wait for it
    Nanos ask_at{};
    Nanos used_at{};
  };
  enum class Fate : std::uint8_t { taken, blocked };

  Route* route_to(const Address& destination, Nanos now);
  Route* find_place(std::uint32_t set);
  bool request(Route& route, bool is_new, Nanos now);
  [[nodiscard]] std::uint32_t number_of(const Route& route) const {
    return static_cast<std::uint32_t>(&route - routes_.data());
  }
  void take_news();
  void send_waiting();
  Fate send_one(const TxPacket& packet, Nanos now);
  void wait(const TxPacket& packet, Route& route);
  void add(const WorkQueues::Flight& flight, std::uint32_t bytes, const TxPacket* packet,
           std::optional<std::uint32_t> key);
  bool accept(const ibv_wc& done, RxPacket& out);
  encap::Reject check(std::span<const std::byte> bytes, bool is_verified, encap::Frame& frame) const;

  const Clock& clock_;
  Device& device_;
  const RawIoConfig config_;
  Limits limits_;
  RawIoCounters counters_;
  encap::FrameWriter writer_;
  const KeyedHash hash_;
  std::vector<Route> routes_;  ///< whose packets work_ counts until its end
  std::uint32_t last_route_ = 0;
  std::uint32_t generation_ = 0;
  WorkQueues work_;
  bool computes_checksums_;  ///< the device does
  const RawService* service_ = nullptr;
  RawMailbox* mailbox_ = nullptr;
  bool blocked_ = false;
  std::uint64_t news_ = 0;
};

}  // namespace mltcp::rdma
