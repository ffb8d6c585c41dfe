// A shard's datapath on an unreliable datagram queue pair.
//
// How requests are posted, and what has become of them, is in internal/work_queues.h.
//
// Sent: what is short goes inline, gathered from shim, header and payload. The payload of a packet with a hold that
// lies in registered memory is gathered by the device, behind shim and header in a buffer of ours; all else is copied
// into one. Packets to a peer whose queue pair is not known yet wait while the service thread asks (service.h).
//
// Received: the transport gets what is behind the 40 bytes of the route header and the shim (ud_packet.h).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/keyed_hash.h"
#include "mltcp/rdma/internal/versioned.h"
#include "mltcp/rdma/internal/work_queues.h"
#include "mltcp/rdma/service.h"
#include "mltcp/rdma/ud_packet.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::rdma {

struct VerbsIoConfig {
  Address address;  ///< the shard's, with its UDP port
  Network network = Network::roce_v4;
  std::uint32_t longest_message = 1024;  ///< shim included
  std::uint32_t send_depth = 512;
  std::uint32_t receive_depth = 1024;
  std::uint32_t most_pieces = 3;  ///< that the device gathers
  std::uint32_t key = 0;          ///< Q_Key
  std::uint32_t inline_bytes = 256;
  std::uint32_t zero_copy_from = 1024;  ///< Limits::keeps_payload_from; 0: all is copied
};

struct VerbsIoCounters : WorkCounters {
  std::uint64_t too_long = 0;    ///< longer than the peer's queue pair takes
  std::uint64_t no_header = 0;   ///< received without a route header
  std::uint64_t bad_header = 0;  ///< whose route header makes no sense
  std::uint64_t not_for_us = 0;  ///< for another UDP port
};

class VerbsIo final : public PacketIo {
 public:
  static constexpr std::uint32_t burst = WorkQueues::burst;
  static constexpr std::uint32_t most_waiting = WorkQueues::most_waiting;
  static constexpr Nanos recover_after = WorkQueues::recover_after;
  /// A route in use has its queue pair asked for anew so often.
  static constexpr Nanos refresh_after{1'000'000'000};
  /// For so long after a message that was too long for its peer narrow_peer() tells of it.
  static constexpr Nanos narrow_for{5'000'000'000};

  /// Makes the queue pair. The service is told its number later, and asked through its mailbox. Throws RunError.
  VerbsIo(Device& device, const Clock& clock, const VerbsIoConfig& config);
  ~VerbsIo() override = default;
  VerbsIo(const VerbsIo&) = delete;
  VerbsIo& operator=(const VerbsIo&) = delete;
  /// Before the first packet.
  void attach(const Service& service, Mailbox& mailbox);

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

  /// Whether packets to `destination` would be sent at once; if not, asks for its queue pair.
  bool resolve(const Address& destination);
  /// What peers have to know to send here.
  [[nodiscard]] RemoteQueue own_queue() const;
  [[nodiscard]] const VerbsIoCounters& counters() const { return counters_; }
  [[nodiscard]] const QueuePair& queue_pair() const { return work_.pair(); }
  /// A peer whose queue pair takes shorter messages than one that should have been sent there lately; empty: none. By
  /// any thread.
  [[nodiscard]] std::optional<Address> narrow_peer() const;

 private:
  static constexpr std::uint32_t kWays = 4;
  static constexpr std::uint32_t kSets = kRoutes / kWays;
  static constexpr std::size_t kPieces = 3;  // shim, header, payload

  struct Route {
    Address destination{};
    std::uint8_t traffic_class = 0;
    bool is_used = false;
    Resolution::State state = Resolution::State::asked;
    Shim shim{};
    ibv_ah* handle = nullptr;
    RemoteQueue queue{};
    std::uint32_t generation = 0;
    std::uint32_t busy = 0;         ///< packets that are being sent by it, or wait
    std::uint64_t handle_from = 0;  ///< position of the first packet that may be sent by `handle`
    Nanos ask_at{};                 ///< known: whether it is still right; unreachable: again
    Nanos used_at{};
  };
  struct Narrow {
    Address peer{};
    Nanos until{};
  };
  enum class Fate : std::uint8_t { taken, blocked };

  Route* route_to(const Address& destination, std::uint8_t traffic_class, Nanos now);
  Route* find_place(std::uint32_t set);
  bool request(Route& route, Nanos now);
  void refresh(Route& route, Nanos now);
  [[nodiscard]] std::uint32_t number_of(const Route& route) const {
    return static_cast<std::uint32_t>(&route - routes_.data());
  }
  void take_news();
  void send_waiting();
  void note_narrow(const Route& route);

  [[nodiscard]] bool is_sendable(const TxPacket& packet) const;
  Fate send_one(const TxPacket& packet, Nanos now);
  void wait(const TxPacket& packet, Route& route);
  std::uint32_t copy(const TxPacket& packet, const Route& route, bool with_payload, std::uint32_t buffer) const;
  ibv_send_wr& address(ibv_send_wr& request, const Route& route) const;

  bool accept(const ibv_wc& done, RxPacket& out);

  const Clock& clock_;
  Device& device_;
  const VerbsIoConfig config_;
  Limits limits_;
  VerbsIoCounters counters_;
  const KeyedHash hash_;
  std::vector<Route> routes_;  ///< whose packets work_ counts until its end
  std::uint32_t last_route_ = 0;
  std::uint32_t generation_ = 0;
  WorkQueues work_;
  const Service* service_ = nullptr;
  Mailbox* mailbox_ = nullptr;
  bool blocked_ = false;
  std::uint64_t news_ = 0;
  Versioned<Narrow> narrow_;  ///< written by the shard alone
};

}  // namespace mltcp::rdma
