// A shard's datapath on an unreliable datagram queue pair.
//
// internal/pair_io.h handles routes, waiting packets and bursts. internal/work_queues.h posts requests and takes their
// completions.
//
// Sending: short packets are sent inline, gathered from shim, header and payload. If a packet has a hold and its
// payload is in registered memory, the device reads the payload in place, and shim and header are in a buffer. All
// other packets are copied into a buffer. If a peer's queue pair is unknown, the packet waits while the service thread
// asks for it (service.h).
//
// Receiving: the transport gets the bytes after the route header (40 bytes) and the shim (ud_packet.h).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/pair_io.h"
#include "mltcp/rdma/internal/versioned.h"
#include "mltcp/rdma/service.h"
#include "mltcp/rdma/ud_packet.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::rdma {

struct VerbsIoConfig {
  Address address;  ///< address of the shard, with its UDP port
  Network network = Network::roce_v4;
  std::uint32_t longest_message = 1024;  ///< maximum message in bytes, including the shim
  std::uint32_t send_depth = 512;
  std::uint32_t receive_depth = 1024;
  std::uint32_t max_pieces = 3;  ///< maximum number of pieces that the device gathers
  std::uint32_t key = 0;         ///< Q_Key of the queue pair
  std::uint32_t inline_bytes = 256;
  std::uint32_t zero_copy_from = 1024;  ///< Limits::keeps_payload_from; 0 if all payload is copied
};

struct VerbsIoCounters : WorkCounters {
  std::uint64_t too_long = 0;    ///< packets longer than the peer's queue pair accepts
  std::uint64_t no_header = 0;   ///< messages received without a route header
  std::uint64_t bad_header = 0;  ///< messages received with an invalid route header
  std::uint64_t not_for_us = 0;  ///< messages received for another UDP port
};

struct VerbsRoute {
  Address destination{};
  std::uint8_t traffic_class = 0;
  bool is_used = false;
  Resolution::State state = Resolution::State::asked;
  Shim shim{};
  ibv_ah* handle = nullptr;
  RemoteQueue queue{};
  std::uint32_t generation = 0;
  std::uint32_t busy = 0;         ///< number of packets that use this route or wait for it
  std::uint64_t handle_from = 0;  ///< position of the first packet that may use `handle`
  Nanos ask_at{};                 ///< when to ask the service thread about this route again
  Nanos used_at{};
};

class VerbsIo final : public PairIo<VerbsIo, VerbsRoute, VerbsIoCounters, Service, Mailbox> {
 public:
  static constexpr std::uint32_t kMaxWaiting = WorkQueues::kMaxWaiting;
  static constexpr Nanos kRecoverAfter = WorkQueues::kRecoverAfter;
  /// Time for which narrow_peer() reports a message that was too long for its peer.
  static constexpr Nanos kNarrowFor{5'000'000'000};

  /// Creates the queue pair. attach() must be called before the first packet. Throws RunError if the device refuses.
  VerbsIo(Device& device, const Clock& clock, const VerbsIoConfig& config);

  /// Returns what peers need to send to this queue pair.
  [[nodiscard]] RemoteQueue own_queue() const;
  /// Returns a peer whose queue pair accepts only messages shorter than one that was recently sent to it; empty if
  /// there is no such peer. May be called from any thread.
  [[nodiscard]] std::optional<Address> narrow_peer() const;

 private:
  friend PairIo;
  static constexpr std::size_t kPieces = 3;  // shim, header and payload

  struct Narrow {
    Address peer{};
    Nanos until{};
  };

  [[nodiscard]] bool is_sendable(const TxPacket& packet) const;
  static std::uint8_t traffic_class_of(const TxPacket& packet) { return traffic_class(packet); }
  static const Address& key_of(const Address& destination) { return destination; }
  static bool leads_to(const VerbsRoute& route, const Address& destination, std::uint8_t traffic_class) {
    return route.traffic_class == traffic_class && route.destination == destination;
  }
  bool request(VerbsRoute& route, Nanos now);
  void refresh(VerbsRoute& route, Nanos now);
  bool vacate(const VerbsRoute& route);
  void apply(VerbsRoute& route, const RouteNews& news) const;
  bool fits(const VerbsRoute& route, std::size_t bytes);
  std::uint32_t write_waiting(const TxPacket& packet, const VerbsRoute& route, std::uint32_t buffer) const {
    return copy(packet, route, true, buffer);
  }
  void send_waiting_one(const WorkQueues::Waiting& packet, VerbsRoute& route);
  bool send_now(const TxPacket& packet, VerbsRoute& route);
  std::uint32_t copy(const TxPacket& packet, const VerbsRoute& route, bool with_payload, std::uint32_t buffer) const;
  ibv_send_wr& address(ibv_send_wr& request, const VerbsRoute& route) const;
  bool accept(const ibv_wc& done, RxPacket& out);

  const VerbsIoConfig config_;
  Versioned<Narrow> narrow_;  ///< written only by the shard's thread
};

}  // namespace mltcp::rdma
