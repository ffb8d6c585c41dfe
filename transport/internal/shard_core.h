// The implementation of a shard: its connection table, its jobs and the work of one poll. The public functions are
// documented in shard.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/base/siphash.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/deadline_heap.h"
#include "mltcp/transport/internal/address_counts.h"
#include "mltcp/transport/internal/connection.h"
#include "mltcp/transport/internal/cookies.h"
#include "mltcp/transport/internal/payload_holds.h"
#include "mltcp/transport/internal/shard_links.h"
#include "mltcp/transport/internal/shard_random.h"
#include "mltcp/transport/internal/violators.h"
#include "mltcp/transport/internal/work_budget.h"
#include "mltcp/transport/job_claims.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

class ShardCore {
 public:
  ShardCore(PacketIo& io, const ShardConfig& config);
  ShardCore(const ShardCore&) = delete;
  ShardCore& operator=(const ShardCore&) = delete;

  static std::vector<ConnectionId> first_connections(const ShardConfig& config);

  void listen(const ConnectionConfig& config);
  ConnectionId connect(const Address& remote, const ConnectionConfig& config, Nanos now);
  [[nodiscard]] bool has_virtual_payloads() const { return limits_.virtual_payload; }
  PostResult send(ConnectionId id, const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline,
                  std::uint8_t uncharged = 0);
  PostResult receive(ConnectionId id, std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline);
  void prefetch(std::span<const ConnectionId> ids) const;
  bool cancel(ConnectionId id, std::uint64_t tag, bool is_send);
  bool discard_receive(ConnectionId id, std::uint64_t tag, std::uint64_t new_tag);
  bool close(ConnectionId id);
  bool abort(ConnectionId id, Nanos now);

  JobId add_job(const JobConfig& config);
  bool remove_job(JobId id);
  [[nodiscard]] bool attach(ConnectionId id, JobId job);
  [[nodiscard]] bool begin_iteration(JobId job, Bytes bytes);
  [[nodiscard]] bool learn_iterations(JobId job);
  [[nodiscard]] bool set_job_rate(JobId job, Rate rate);
  [[nodiscard]] PlanState set_plan(JobId job, const PhasePlan& plan, Nanos now);
  bool clear_plan(JobId job, Nanos now);
  /// Returns a job; null if the job is unknown.
  [[nodiscard]] const JobState* find_job(JobId id) const {
    return id < jobs_.size() && jobs_[id].used ? &jobs_[id] : nullptr;
  }

  Nanos poll(Nanos at);
  std::size_t take_completions(std::span<Completion> out);

  /// Returns a connection; null if the connection is unknown.
  [[nodiscard]] Connection* find(ConnectionId id) const;
  /// Like find(), but also returns null for a connection that has ended and still notifies its peer.
  [[nodiscard]] Connection* find_alive(ConnectionId id) const {
    Connection* const connection = find(id);
    return connection == nullptr || connection->state() == Connection::State::draining ? nullptr : connection;
  }
  [[nodiscard]] const ShardStats& stats() const { return stats_; }
  /// Returns the claims of jobs; null if they are not counted.
  [[nodiscard]] const JobClaims* job_claims() const { return claims_ ? &*claims_ : nullptr; }

 private:
  /// The queue of a slot. Slots in queues can be freed for a new peer when no slot is free.
  enum class Kept : std::uint8_t {
    taken,  ///< the slot is in use or free, and is in no queue
    ended,  ///< an accepted connection that has ended and still notifies its peer
    /// A connection made by connect() that has ended and still notifies its peer; only connect() may free its slot.
    ended_own,
    unproven,    ///< half open, and the peer has not proven that it receives at its address
    unanswered,  ///< half open, and accepted with a cookie, which proves the peer's address
  };
  static constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};
  /// The fields that decide whether a packet belongs to a connection are stored beside the connection. So a packet that
  /// does not belong to the connection does not touch the connection's memory.
  struct alignas(32) Slot {  // aligned so that no slot is in two cache lines
    std::unique_ptr<Connection> connection;
    std::uint64_t tag = 0;           ///< tag that the peer must put into its packets
    ConnectionId id = 0;             ///< id of this slot's connection, or of its next connection
    std::uint32_t before = kNoSlot;  ///< previous slot in its queue
    std::uint32_t after = kNoSlot;
    Kept kept = Kept::taken;
  };
  static_assert(sizeof(Slot) == 32);
  struct Queue {
    std::uint32_t first = kNoSlot;
    std::uint32_t last = kNoSlot;
  };
  /// A CONNECT, and the contents of frames that may follow it.
  struct Greeting {
    wire::ConnectFrame connect;
    bool has_key = false;
    wire::KeyFrame key;
    bool has_cookie = false;
    std::uint64_t cookie = 0;
  };

  Slot* take_slot(Nanos now);
  Connection* make_connection(Slot& slot, const Address& remote, const std::shared_ptr<const ConnectionConfig>& config,
                              Nanos now);
  void free_connection(std::uint32_t index);
  /// Moves the slot from its queue to the end of the queue `kept`.
  void keep(std::uint32_t index, Kept kept);
  [[nodiscard]] Queue& queue(Kept kept) { return queues_[static_cast<std::size_t>(kept)]; }
  [[nodiscard]] bool has(Kept kept) const { return queues_[static_cast<std::size_t>(kept)].first != kNoSlot; }
  /// Returns the first slot in the queue `kept` that this poll does not use, preferably a slot whose peer has the
  /// address `like`. Returns kNoSlot if there is no such slot.
  [[nodiscard]] std::uint32_t first_of(Kept kept, const Address* like = nullptr);
  /// Frees a slot for a peer that connects from `remote`, unless enough slots are free. If the peer has proven its
  /// address, may end connections whose peers have not answered. Returns false if no slot can be freed.
  [[nodiscard]] bool make_room(const Address& remote, bool is_proven);
  /// Sends a packet that belongs to no connection, once and unreliably. `frames(writer)` writes its frames.
  template <typename Frames>
  void answer(const Address& remote, std::uint32_t connection, std::uint64_t tag, Frames frames);
  [[nodiscard]] bool completions_full() const {
    return completions_.size() + holds_.waiting() >= config_.max_completions;
  }

  [[nodiscard]] JobState* find_job(JobId id) { return id < jobs_.size() && jobs_[id].used ? &jobs_[id] : nullptr; }
  void pace(JobState& job, Rate rate) const;
  Nanos work(Nanos now);
  void activate(Connection& connection);
  void activate_waiting(JobState& job, Nanos now);
  /// Makes all connections of the job check again whether they may send.
  void activate_all(JobId job);
  void receive_bursts(Nanos now, bool& more);
  void prefetch_burst(std::span<const RxPacket> packets);
  void on_packet(const RxPacket& packet, Nanos now);
  void on_trimmed(const RxPacket& packet);
  void deliver(Connection& connection, const RxPacket& packet, const wire::Header& header, wire::Reader& reader,
               Nanos now);
  /// Enters a connection into by_peer_. The peer's id is known from a packet with the connection's tag or key.
  void enter_peer(Connection& connection);
  void on_sealed(const RxPacket& packet, Nanos now);
  void count(wire::ParseError error);
  /// Returns the engine for keys of this kind, which is created at the first use.
  SealEngine& engine(const PacketKey& key);
  /// Returns the key with which the connecting peer has sealed the packet. Returns null if the packet is not sealed, or
  /// is sealed with an unknown key.
  [[nodiscard]] const PacketKey* key_of(const RxPacket& packet, const wire::Header& header, const Greeting& greeting,
                                        WorkBudget& failed, Nanos now);
  [[nodiscard]] static SealedPacket as_greeting(const RxPacket& packet, const wire::Header& header);
  /// Returns whether this shard itself has sent the CONNECT, to another address, and somebody has sent it back.
  [[nodiscard]] bool is_turned_back(const RxPacket& packet, const Greeting& greeting) const;
  /// Returns whether a CONNECT comes from the client of a sealed connection.
  [[nodiscard]] static bool is_of_client(const Connection& connection, const RxPacket& packet,
                                         const wire::Header& header, const Greeting& greeting);
  /// Returns whether a peer with the key `key`, or without a key, may replace the connection `old` by a new connection
  /// with the same peer id.
  [[nodiscard]] static bool may_replace(const Connection& old, std::optional<std::uint64_t> key);
  [[nodiscard]] static EndRandom draw_random();
  /// Ends all sealed connections if this process was copied. Requires an engine.
  void give_up_copied_keys(Nanos now);
  /// Returns whether a packet of an unknown connection may be answered with RESET now. If so, counts the RESET.
  [[nodiscard]] bool may_reset(Nanos now);
  /// Processes a packet that is addressed to connection 0.
  void on_unknown_connection(const RxPacket& packet, const wire::Header& header, wire::Reader& reader, Nanos now);
  void on_connect(const RxPacket& packet, const wire::Header& header, wire::Reader& reader, const Greeting& greeting,
                  Nanos now);
  /// Returns the reason for answering a CONNECT with CLOSE; CloseReason::done if the connection may be accepted.
  [[nodiscard]] wire::CloseReason why_refused(const wire::ConnectFrame& connect) const;
  void on_reset(const RxPacket& packet, const wire::Header& header, std::uint32_t connection, Nanos now);
  void on_unknown_sealed(const RxPacket& packet, const wire::Header& header, Nanos now);
  void on_unknown(const RxPacket& packet, const wire::Header& header, Nanos now);
  void send_reset(const RxPacket& packet, const wire::Header& header, Nanos now);
  /// Processes a packet of another protocol version. A peer that connects with version 2 gets a CLOSE of that version.
  void on_foreign(const RxPacket& packet);
  void fire_timers(Nanos now);
  void transmit(Nanos now, bool& more);
  /// Sends the queued packets. Returns true if the datapath has accepted all packets built so far.
  bool flush();
  /// Returns the time to use for `now`, so that time never goes back; see shard.h.
  Nanos advance(Nanos now);
  /// Returns a random id for the slot's next connection, different from `last`.
  ConnectionId draw_id(std::uint32_t index, ConnectionId last);
  [[nodiscard]] std::uint32_t index_of(ConnectionId id) const { return id & index_mask_; }
  // Keys in deadlines_: slot indices for the timers of connections, then a range for jobs, then a range for the watch
  // deadlines of connections.
  [[nodiscard]] std::uint32_t job_deadline(JobId job) const { return config_.max_connections + job; }
  [[nodiscard]] std::uint32_t watch_deadline(std::uint32_t index) const {
    return config_.max_connections + config_.max_jobs + index;
  }
  void watch(const Connection& connection) {
    deadlines_.set(watch_deadline(index_of(connection.id())), connection.watch_deadline());
  }

  PacketIo& io_;
  ShardConfig config_;
  PacketIo::Limits limits_;
  std::uint32_t index_mask_ = 0;  ///< the bits of a connection id that hold its slot
  Nanos latest_;
  ShardRandom random_;
  Cookies cookies_;
  std::uint32_t max_half_open_ = 0;
  std::unique_ptr<SealEngine> engine_;  ///< null until a key is used
  std::vector<std::byte> opened_;       ///< body of the current packet after decryption; empty until a key is used
  /// Budgets for CONNECTs that no key opens. All unproven addresses share one budget. A proven address uses the budget
  /// whose index is a hash of the address.
  WorkBudget failed_unproven_;
  std::vector<WorkBudget> failed_proven_;
  SipKey budget_key_;
  WorkBudget failed_resets_;
  std::size_t next_reset_key_ = 0;
  WorkBudget resets_;
  bool listening_ = false;
  std::shared_ptr<const ConnectionConfig> listen_config_;
  /// Settings of the last connect(). The next connection shares them if it has the same settings.
  std::shared_ptr<const ConnectionConfig> latest_config_;

  std::vector<Slot> slots_;
  std::array<Queue, 5> queues_;  ///< indexed by Kept; the entry of Kept::taken is not used
  GrowableRing<std::uint32_t> free_slots_;
  std::unordered_map<PeerKey, std::uint32_t, PeerKeyHash> by_peer_;  ///< slots of connections whose peer's id is known
  /// Number of accepted connections per proven address; not counted if there is no limit.
  AddressCounts accepted_from_;
  Violators violators_;
  std::vector<JobState> jobs_;
  std::vector<ForwardDelay> forward_delays_;  ///< see ShardLinks::forward_delays
  GrowableRing<Completion> completions_;
  PayloadHolds holds_;
  GrowableRing<std::uint32_t> active_;  ///< connections that may have packets to send
  std::vector<std::uint32_t> touched_;  ///< connections that received a packet in this burst
  std::vector<std::uint32_t> answers_;  ///< connections that send at the next poll, see Connection::awaits_answer()
  /// Ids in this heap: first those of connections, then of jobs, then of connections' watch deadlines.
  DeadlineHeap deadlines_;

  struct Fetch {
    const Connection* connection = nullptr;
    std::uint32_t index = 0;
    bool acknowledges = false;
  };
  std::vector<RxPacket> rx_;
  std::vector<Fetch> fetches_;  ///< scratch space of prefetch_burst()
  std::vector<std::byte> tx_buffers_;
  TxQueue tx_;
  AckBatches acks_;
  ShardStats stats_;
  wire::Frame frame_;
  std::optional<JobClaims> claims_;
  ShardLinks links_;
  Nanos due_ = Nanos::never();  ///< return value of the last poll()
};

}  // namespace mltcp::transport
