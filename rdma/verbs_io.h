// A shard's datapath on an unreliable datagram queue pair.
//
// Sent: a request a packet, all of a burst posted at once, the last of them signalled. What is short goes inline,
// gathered from shim, header and payload. The payload of a packet with a hold that lies in registered memory is
// gathered by the device, behind shim and header in a buffer of ours; all else is copied into one. Packets to a peer
// whose queue pair is not known yet wait there, some hundreds at most, while the service thread asks (service.h). When
// there are more the oldest goes, as for ARP (RFC 1122 section 2.3.2.2 wants the latest): whom it waits for has had the
// longest time to answer.
//
// Received: each message has a buffer of its own in registered memory, of which the transport gets what is behind the
// 40 bytes of the route header and the shim (ud_packet.h). Buffers are posted again by the next calls, many at a time.
// A message that is longer than any buffer would make the queue pair fail; the rest of it goes to a place that is
// common to all and that nobody reads.
//
// Sleeping: the completion channel's file and the service thread's are in one epoll(7) file.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/base/ring.h"
#include "mltcp/rdma/device.h"
#include "mltcp/rdma/internal/keyed_hash.h"
#include "mltcp/rdma/internal/versioned.h"
#include "mltcp/rdma/service.h"
#include "mltcp/rdma/ud_packet.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/registered_memory.h"

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

struct VerbsIoCounters {
  std::uint64_t received_packets = 0;
  std::uint64_t sent_packets = 0;
  std::uint64_t posts = 0;         ///< calls by which they were sent
  std::uint64_t inlined = 0;       ///< of the packets sent
  std::uint64_t by_reference = 0;  ///< whose payload the device read where it lay
  std::uint64_t full = 0;          ///< calls of send() that left packets to the caller
  std::uint64_t waited = 0;        ///< packets that waited for a peer's queue pair
  std::uint64_t waiting_full = 0;  ///< dropped, as too many waited
  std::uint64_t unreachable = 0;   ///< dropped: nobody answers at that address
  std::uint64_t unsendable = 0;    ///< another IP version, no port, too long
  std::uint64_t too_long = 0;      ///< longer than the peer's queue pair takes
  std::uint64_t no_route = 0;      ///< the table of routes was full with those in use
  std::uint64_t no_header = 0;     ///< received without a route header
  std::uint64_t bad_header = 0;    ///< whose route header makes no sense
  std::uint64_t not_for_us = 0;    ///< for another UDP port
  std::uint64_t over_long = 0;     ///< received, longer than any of ours
  std::uint64_t send_errors = 0;
  std::uint64_t receive_errors = 0;
  std::uint64_t recoveries = 0;  ///< of a queue pair that had failed
};

class VerbsIo final : public PacketIo {
 public:
  static constexpr std::uint32_t burst = 64;
  static constexpr std::uint32_t most_waiting = 256;
  /// A route in use has its queue pair asked for anew so often.
  static constexpr Nanos refresh_after{1'000'000'000};
  /// A queue pair that fails again and again is not made ready more often.
  static constexpr Nanos recover_after{100'000'000};
  /// For so long after a message that was too long for its peer narrow_peer() tells of it.
  static constexpr Nanos narrow_for{5'000'000'000};

  /// Makes the queue pair. The service is told its number later, and asked through its mailbox. Throws RunError.
  VerbsIo(Device& device, const Clock& clock, const VerbsIoConfig& config);
  ~VerbsIo() override;
  VerbsIo(const VerbsIo&) = delete;
  VerbsIo& operator=(const VerbsIo&) = delete;
  /// Before the first packet.
  void attach(const Service& service, Mailbox& mailbox);

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override;
  std::size_t send(std::span<const TxPacket> packets) override;
  [[nodiscard]] bool is_blocked() const override { return blocked_ || is_waiting_for_room_; }
  [[nodiscard]] std::uint64_t activity() const override {
    return counters_.received_packets + counters_.sent_packets + counters_.waited + news_;
  }
  /// When a queue pair that has failed is to be made ready: nothing would wake who waits for packets of it.
  [[nodiscard]] Nanos deadline() const override { return has_failed_ ? recovered_at_ + recover_after : Nanos::never(); }
  std::optional<Wakeup> begin_waiting() override { return Wakeup{wait_file_, true}; }
  void arm() override;
  void disarm() override;

  /// Whether packets to `destination` would be sent at once; if not, asks for its queue pair.
  bool resolve(const Address& destination);
  /// What peers have to know to send here.
  [[nodiscard]] RemoteQueue own_queue() const;
  [[nodiscard]] const VerbsIoCounters& counters() const { return counters_; }
  [[nodiscard]] const QueuePair& queue_pair() const { return *pair_; }
  /// A peer whose queue pair takes shorter messages than one that should have been sent there lately; empty: none. By
  /// any thread.
  [[nodiscard]] std::optional<Address> narrow_peer() const;

 private:
  static constexpr std::uint32_t kWays = 4;
  static constexpr std::uint32_t kSets = kRoutes / kWays;
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint64_t kNoPosition = ~std::uint64_t{0};
  static constexpr std::size_t kPieces = 3;  // shim, header, payload
  static constexpr std::uint32_t kRepost = 32;

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
  struct InFlight {
    std::uint32_t buffer = kNone;
    std::uint32_t route = 0;
    PayloadHold* hold = nullptr;
  };
  struct Waiting {
    std::uint32_t buffer = 0;
    std::uint32_t route = 0;
    std::uint32_t bytes = 0;
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
  void drop_oldest_waiting();
  void note_narrow(const Route& route);

  [[nodiscard]] bool is_sendable(const TxPacket& packet) const;
  Fate send_one(const TxPacket& packet, Nanos now);
  void wait(const TxPacket& packet, Route& route);
  std::uint32_t copy(const TxPacket& packet, const Route& route, bool with_payload, std::uint32_t buffer) const;
  ibv_send_wr& add_request(Route& route, const InFlight& flight);
  bool has_room();
  void post_requests();
  void on_refused(const ibv_send_wr* from);
  void finish(const InFlight& flight);
  void reap();
  void finish_all();
  void recover();
  void end();

  void give_back();
  void post_receives(std::size_t least);
  bool accept(const ibv_wc& done, RxPacket& out);
  void prepare_receives();
  [[nodiscard]] std::uint32_t excess() const;
  void wait_for(int file) const;
  [[nodiscard]] std::byte* receive_buffer(std::uint32_t number) const;
  [[nodiscard]] std::byte* send_buffer(std::uint32_t number) const;

  const Clock& clock_;
  Device& device_;
  const VerbsIoConfig config_;
  Limits limits_;
  const std::size_t receive_stride_;
  const std::size_t send_stride_;
  struct FreePages {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, FreePages> memory_;
  std::unique_ptr<QueuePair> pair_;
  RegisteredRanges registered_;
  const Service* service_ = nullptr;
  Mailbox* mailbox_ = nullptr;
  int wait_file_ = -1;
  bool blocked_ = false;
  bool has_failed_ = false;  ///< the queue pair: recover() is due
  bool must_reset_ = false;  ///< some of what was posted will not be completed
  bool has_ended_ = false;   ///< the device is gone
  Nanos recovered_at_{};
  std::uint64_t news_ = 0;
  VerbsIoCounters counters_;

  const KeyedHash hash_;
  std::vector<Route> routes_;
  std::uint32_t last_route_ = 0;
  std::uint32_t generation_ = 0;

  // Sending.
  std::vector<std::uint32_t> free_buffers_;  ///< the one used last is the next: it is in the cache
  GrowableRing<InFlight> flights_;           ///< never grows
  GrowableRing<Waiting> waiting_;            ///< never grows
  bool is_waiting_for_room_ = false;         ///< packets that waited for their route
  std::uint32_t holds_ = 0;                  ///< of those in flight
  /// Of the first request in flight of which the device did not say whether it has taken it.
  std::uint64_t doubtful_from_ = kNoPosition;
  std::array<ibv_send_wr, burst> requests_{};
  std::array<std::array<ibv_sge, kPieces>, burst> pieces_{};
  std::size_t request_count_ = 0;

  // Receiving.
  std::vector<std::uint32_t> handed_out_;  ///< buffers of the latest call
  std::vector<std::uint32_t> spent_;       ///< to be posted
  std::vector<bool> is_here_;              ///< scratch of recover(): buffers that the transport has
  std::array<ibv_recv_wr, kRepost> receives_{};
  std::array<std::array<ibv_sge, 2>, kRepost> receive_pieces_{};
  std::array<ibv_wc, burst> done_{};

  Versioned<Narrow> narrow_;  ///< written by the shard alone
};

}  // namespace mltcp::rdma
