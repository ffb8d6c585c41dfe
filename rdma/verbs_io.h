// A shard's datapath on an unreliable datagram queue pair.
//
// Routes, waiting and bursts are in internal/pair_io.h; posting of requests and their completions in
// internal/work_queues.h.
//
// Sending: short packets are sent inline, gathered from shim, header and payload. The device gathers a payload in
// place, after shim and header in a buffer, if the packet has a hold and the payload is in registered memory. All other
// packets are copied into a buffer. Packets to a peer with an unknown queue pair wait while the service thread asks
// (service.h).
//
// Receiving: the transport gets the bytes after the 40 bytes of the route header and the shim (ud_packet.h).
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
  Address address;  ///< of the shard, with its UDP port
  Network network = Network::roce_v4;
  std::uint32_t longest_message = 1024;  ///< including the shim
  std::uint32_t send_depth = 512;
  std::uint32_t receive_depth = 1024;
  std::uint32_t max_pieces = 3;  ///< maximum that the device gathers
  std::uint32_t key = 0;         ///< Q_Key
  std::uint32_t inline_bytes = 256;
  std::uint32_t zero_copy_from = 1024;  ///< Limits::keeps_payload_from; 0: all payload is copied
};

struct VerbsIoCounters : WorkCounters {
  std::uint64_t too_long = 0;    ///< longer than the peer's queue pair accepts
  std::uint64_t no_header = 0;   ///< received without a route header
  std::uint64_t bad_header = 0;  ///< with an invalid route header
  std::uint64_t not_for_us = 0;  ///< for another UDP port
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
  std::uint32_t busy = 0;         ///< number of packets that use it or wait for it
  std::uint64_t handle_from = 0;  ///< position of the first packet that may use `handle`
  Nanos ask_at{};                 ///< when to ask again: known: whether it is still right; unreachable: for the peer
  Nanos used_at{};
};

class VerbsIo final : public PairIo<VerbsIo, VerbsRoute, VerbsIoCounters, Service, Mailbox> {
 public:
  static constexpr std::uint32_t kMaxWaiting = WorkQueues::kMaxWaiting;
  static constexpr Nanos kRecoverAfter = WorkQueues::kRecoverAfter;
  /// How long narrow_peer() reports a message that was too long for its peer.
  static constexpr Nanos kNarrowFor{5'000'000'000};

  /// Creates the queue pair. The service learns its number later, and is asked through its mailbox. Throws RunError.
  VerbsIo(Device& device, const Clock& clock, const VerbsIoConfig& config);

  /// What peers need to know to send here.
  [[nodiscard]] RemoteQueue own_queue() const;
  /// A peer whose queue pair accepts only shorter messages than one recently sent there; empty: none. Any thread.
  [[nodiscard]] std::optional<Address> narrow_peer() const;

 private:
  friend PairIo;
  static constexpr std::size_t kPieces = 3;  // shim, header, payload

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
  Versioned<Narrow> narrow_;  ///< written by the shard alone
};

}  // namespace mltcp::rdma
