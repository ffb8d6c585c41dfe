// The transport's public face: a shard is one single-threaded instance of the transport over one datapath queue. It
// owns its connections, jobs, timers and pacing, and does everything inside poll(now): receive, acknowledge, detect
// losses, send. It never blocks, starts no thread and reads no clock.
//
//   Shard shard(io, ShardConfig{});
//   ConnectionId c = shard.connect(peer, ConnectionConfig{}, now);
//   JobId job = shard.add_job({.number = 7, .augmentation = cc::Augmentation::mltcp({})});
//   shard.attach(c, job);
//   shard.begin_iteration(job, gradient.size());
//   shard.send(c, gradient, tag);                    // `gradient` stays untouched until its completion
//   for (;;) { shard.poll(now()); n = shard.take_completions(out); ... }
//
// Messages: the n-th message sent on a connection lands in the n-th buffer that the peer posted with receive(), as
// with InfiniBand queue pairs. A sender holds a message back until the peer has posted its buffer ("credit"), so no
// byte is ever buffered twice or dropped for want of room. Messages complete in the order in which they finish.
//
// Time limits: a send or receive may have a deadline, a time like that of poll(). If it is there first, the operation
// completes with Status::timed_out, and its memory is the caller's again. If nothing of its message has been sent, or
// has arrived, it then counts as never posted: later operations take its place, and the connection goes on. If its
// message has begun, the connection ends as by abort(), so that it ends at the peer, too: there is no way to take back
// a part.
//
// Time never falls within a shard: where `now` is earlier than one before, the latest counts. A clock that is set back
// stops a shard's timers until it has caught up. From 0 to 73 years.
//
// Shards share nothing. One shard is used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/base/system_random.h"
#include "mltcp/transport/internal/connection.h"
#include "mltcp/transport/pollable.h"

namespace mltcp {

class Shard final : public Pollable {
 public:
  /// `io` outlives the shard. Throws InputError if `config` is out of range, RunError if the system has no random
  /// numbers and `config` no seed.
  Shard(PacketIo& io, const ShardConfig& config);
  ~Shard() override;
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  /// The ids of the first `config.max_connections` connections of a shard, in the order in which they are made, none
  /// having ended. Networks that spread flows over paths tell them apart by these (wire::peek_connection). Throws
  /// InputError without a seed: then nobody knows.
  static std::vector<ConnectionId> first_connections(const ShardConfig& config);

  /// Accepts connections from now on, each with `config`. Throws InputError if `config` is out of range, or wants what
  /// the datapath doesn't have (PacketIo::Limits), itself or by its congestion control (cc::Capabilities).
  void listen(const ConnectionConfig& config);
  /// Begins to connect; completes with Completion::connected or closed. Sends and receives may be posted at once.
  /// Throws InputError like listen(), RunError if max_connections are open.
  ConnectionId connect(const Address& remote, const ConnectionConfig& config, Nanos now);

  /// Sends `message` (0 bytes to 4 GiB), which the caller keeps unchanged until its completion. `sent` come in the
  /// order of the messages, unless one times out.
  PostResult send(ConnectionId id, std::span<const std::byte> message, std::uint64_t tag,
                  Nanos deadline = Nanos::never());
  /// Sends `length` bytes that do not exist; only over a datapath with virtual payloads.
  PostResult send_virtual(ConnectionId id, Bytes length, std::uint64_t tag, Nanos deadline = Nanos::never());
  /// A hint: the program is about to send on these connections. Worth its cost where there are many connections, more
  /// than the cache holds, and several ids: what sends would wait for one by one is fetched for all together.
  void prefetch(std::span<const ConnectionId> ids) const;
  /// Provides the buffer for the next message without one. The shard writes to it until its completion. An end that
  /// only receives learns that its peer has died without a word by ConnectionConfig::keep_alive or idle_limit alone.
  PostResult receive(ConnectionId id, std::span<std::byte> buffer, std::uint64_t tag, Nanos deadline = Nanos::never());
  /// The same for a message whose bytes nobody wants; they are counted and dropped.
  PostResult receive_virtual(ConnectionId id, Bytes capacity, std::uint64_t tag, Nanos deadline = Nanos::never());

  /// Closes once all posted sends are done. Receives that are outstanding then complete with Status::closed, here
  /// and at the peer, and so do sends of the peer; when both ends close, also sends for which no buffer was posted. A
  /// connection that is not open yet ends at once.
  void close(ConnectionId id);
  /// Ends the connection at once and tells the peer, if it can. Operations complete with Status::aborted.
  void abort(ConnectionId id, Nanos now);

  /// Throws RunError if max_jobs exist.
  JobId add_job(const JobConfig& config);
  /// The job's connections go on without a job.
  void remove_job(JobId id);
  /// The connection carries data of `job` from now on. Unknown ids are ignored.
  void attach(ConnectionId id, JobId job);
  /// The job's next iteration begins now and will send `bytes` (of the application, all connections of the job on
  /// this shard together). From then on nothing is learned any more, unless `bytes` is 0: not known.
  void begin_iteration(JobId job, Bytes bytes);
  /// The most that the job's connections send together, on the wire; 0 = unlimited.
  void set_job_rate(JobId job, Rate rate);
  /// From now on the first bytes of each of the job's iterations wait for a slot of `plan` (phase_gate.h). Only new
  /// data waits: never acknowledgements, control packets or what is sent again, nor what was posted before the
  /// iteration. An iteration that has begun to send goes on. Returns PlanState::active, or why the job has no plan now.
  PlanState set_plan(JobId job, const PhasePlan& plan, Nanos now);
  /// The job sends when it is ready, from now on; what is held goes with the next poll.
  void clear_plan(JobId job, Nanos now);
  /// All zero, with PlanState::unknown_job, for an unknown job.
  [[nodiscard]] GateStats gate_stats(JobId job) const;
  /// The job's progress and gain.
  [[nodiscard]] const cc::Augmentation& job_progress(JobId job) const { return jobs_[job].augmentation; }

  /// Does all that is due at `at`. Returns when to call again at the latest, whether for the transport or for the
  /// datapath (PacketIo::deadline).
  Nanos poll(Nanos at) override;
  /// Moves completions to `out`, oldest first, and returns how many.
  std::size_t take_completions(std::span<Completion> out);

  /// Until its completion of kind `closed`.
  [[nodiscard]] bool exists(ConnectionId id) const {
    const Connection* connection = find(id);
    return connection != nullptr && connection->state() != Connection::State::draining;
  }
  /// All zero for an unknown connection.
  [[nodiscard]] ConnectionStats stats(ConnectionId id) const;
  /// The peer's address, until the connection ends; null for an unknown connection.
  [[nodiscard]] const Address* remote(ConnectionId id) const {
    const Connection* connection = find(id);
    return connection != nullptr ? &connection->remote() : nullptr;
  }
  [[nodiscard]] const ShardStats& stats() const { return stats_; }

 private:
  struct PeerKey {
    Address remote;
    std::uint32_t connection = 0;
    bool operator==(const PeerKey&) const = default;
  };
  struct PeerKeyHash {
    std::size_t operator()(const PeerKey& key) const noexcept {
      return AddressHash{}(key.remote) ^ (key.connection * std::size_t{0x9E3779B97F4A7C15ULL});
    }
  };
  struct Slot {
    std::unique_ptr<Connection> connection;
    ConnectionId next_id = 0;  ///< of its next connection
  };

  [[nodiscard]] Connection* find(ConnectionId id) const;
  Connection* make_connection(const Address& remote, const std::shared_ptr<const ConnectionConfig>& config, Nanos now);
  void free_connection(std::uint32_t index);
  PostResult post_send(Connection& connection, const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline);
  PostResult post_receive(ConnectionId id, std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline);
  void send_close(const Address& remote, std::uint32_t peer_connection, std::uint64_t packet_number,
                  wire::CloseReason reason);
  [[nodiscard]] bool completions_full() const {
    return completions_.size() + holds_.waiting() >= config_.max_completions;
  }

  Nanos work(Nanos now);
  void activate(Connection& connection);
  void activate_waiting(JobState& job, Nanos now);
  /// All connections of the job look again whether they may send.
  void activate_all(JobId job);
  void receive_bursts(Nanos now, bool& more);
  void prefetch_burst(std::span<const RxPacket> packets);
  void on_packet(const RxPacket& packet, Nanos now);
  void deliver(Connection& connection, const RxPacket& packet, const wire::Header& header, wire::Reader& reader,
               Nanos now);
  void on_connect(const RxPacket& packet, const wire::Header& header, wire::Reader& reader, Nanos now);
  void fire_timers(Nanos now);
  void transmit(Nanos now, bool& more);
  /// True when everything built so far is with the datapath.
  bool flush();
  /// The time that counts at `now`; see the head of this file.
  Nanos advance(Nanos now);
  std::uint64_t draw() { return seeded_ ? seeded_->next() : system_random_.next(); }
  /// Of the slot's next connection, other than `last`.
  ConnectionId draw_id(std::uint32_t index, ConnectionId last);
  [[nodiscard]] std::uint32_t index_of(ConnectionId id) const { return id & index_mask_; }
  // The ids in deadlines_.
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
  std::uint32_t index_mask_ = 0;  ///< where a connection id has its slot
  Nanos latest_;
  std::optional<Random> seeded_;
  SystemRandom system_random_;
  bool listening_ = false;
  std::shared_ptr<const ConnectionConfig> listen_config_;
  std::shared_ptr<const ConnectionConfig> latest_config_;  ///< of connect(); mostly that of the next one, too

  std::vector<Slot> slots_;
  GrowableRing<std::uint32_t> free_slots_;
  std::unordered_map<PeerKey, std::uint32_t, PeerKeyHash> accepted_;
  std::vector<JobState> jobs_;
  GrowableRing<Completion> completions_;
  PayloadHolds holds_;
  GrowableRing<std::uint32_t> active_;  ///< connections that may have something to send
  std::vector<std::uint32_t> touched_;  ///< connections that got a packet in this burst
  std::vector<std::uint32_t> answers_;  ///< connections for which the next poll sends, see awaits_answer()
  DeadlineHeap deadlines_;              ///< connections, then jobs, then what is watched of connections

  struct Fetch {
    const Connection* connection = nullptr;
    std::uint32_t index = 0;
    bool acknowledges = false;
  };
  std::vector<RxPacket> rx_;
  std::vector<Fetch> fetches_;  ///< scratch of prefetch_burst()
  std::vector<std::byte> tx_buffers_;
  TxQueue tx_;
  AckBatches acks_;
  ShardStats stats_;
  ShardLinks links_;
  Nanos due_ = Nanos::never();  ///< what the latest poll() returned
};

}  // namespace mltcp
