// A shard's datapath on a queue pair for Ethernet frames (IBV_QPT_RAW_PACKET). Packets are plain UDP over IP,
// compatible with ports on sockets, AF_XDP and DPDK.
//
// internal/pair_io.h handles routes, waiting packets and bursts. internal/work_queues.h posts requests and takes their
// completions.
//
// Sending: all headers are written into a buffer (transport/ethernet/frame_writer.h). The payload is copied behind
// them, unless the device reads it in place. Short frames are sent inline. The device computes checksums if it can. If
// the MAC address of a destination is unknown, the packet waits while the service thread finds the address
// (raw_service.h).
//
// Receiving: rules of the device steer frames to the queue pair (QueuePair::steer()). RawIo still checks every frame
// completely, because it does not rely on the device's rules.
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
#include "mltcp/rdma/internal/pair_io.h"
#include "mltcp/rdma/raw_service.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/ethernet/frame_writer.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::rdma {

struct RawIoConfig {
  Address address;  ///< address of the shard, with its UDP port
  encap::MacAddress mac{};
  std::uint32_t mtu = 1500;  ///< maximum length of IP packets in bytes
  std::uint32_t send_depth = 512;
  std::uint32_t receive_depth = 1024;
  std::uint32_t max_pieces = 2;  ///< maximum number of pieces that the device gathers
  std::uint32_t inline_bytes = 256;
  std::uint32_t zero_copy_from = 1024;  ///< Limits::keeps_payload_from; 0 if all payload is copied
  bool has_checksums = false;           ///< value of DeviceFacts::has_frame_checksums
};

struct RawIoCounters : WorkCounters {
  std::array<std::uint64_t, encap::kRejects> rejected{};  ///< number of dropped frames for each encap::Reject
};

struct RawRoute {
  Address destination{};  ///< IP address, with port 0
  std::uint8_t traffic_class = 0;
  bool is_used = false;
  KernelRoutes::State state = KernelRoutes::State::asked;
  encap::MacAddress mac{};
  std::uint32_t generation = 0;
  std::uint32_t busy = 0;  ///< number of packets that wait for this route
  Nanos ask_at{};          ///< when to ask the service thread about this route again
  Nanos used_at{};
};

class RawIo final : public PairIo<RawIo, RawRoute, RawIoCounters, RawService, RawMailbox> {
 public:
  /// Maximum length in bytes of a frame that a peer may send to this port.
  static constexpr std::uint32_t kLongestFrame = 10240;

  /// Creates the queue pair, and steers the frames of the shard's UDP port to it. Throws RunError if the device
  /// refuses.
  RawIo(Device& device, const Clock& clock, const RawIoConfig& config);

 private:
  friend PairIo;

  bool is_sendable(const TxPacket& packet) const { return writer_.is_sendable(packet); }
  static std::uint8_t traffic_class_of(const TxPacket&) { return 0; }
  static Address key_of(const Address& destination);
  static bool leads_to(const RawRoute& route, const Address& destination, std::uint8_t) {
    return route.destination.ip == destination.ip;
  }
  bool request(RawRoute& route, Nanos now);
  void refresh(RawRoute& route, Nanos now);
  static bool vacate(const RawRoute&) { return true; }
  void apply(RawRoute& route, const WayNews& news) const;
  static bool fits(const RawRoute&, std::uint32_t) { return true; }
  std::uint32_t write_waiting(const TxPacket& packet, const RawRoute& route, std::uint32_t buffer);
  void send_waiting_one(const WorkQueues::Waiting& packet, const RawRoute& route);
  bool send_now(const TxPacket& packet, RawRoute& route);
  void add(const WorkQueues::Flight& flight, std::uint32_t bytes, const TxPacket* packet,
           std::optional<std::uint32_t> key);
  bool accept(const ibv_wc& done, RxPacket& out);
  encap::Reject check(std::span<const std::byte> bytes, bool is_verified, encap::Frame& frame) const;

  const RawIoConfig config_;
  encap::FrameWriter writer_;
  bool computes_checksums_;  ///< whether the device computes checksums
};

}  // namespace mltcp::rdma
