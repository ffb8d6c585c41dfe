// One connection of a shard: what is sent and acknowledged, what is received and reassembled, loss recovery, and the
// use of its congestion controller. Internal to the transport; programs use shard.h.
//
// Loss recovery follows RFC 9002: packet numbers are never reused, a packet is lost when a packet sent
// `packet_threshold` later, or sent long enough before, has been acknowledged, and a probe timeout sends again
// without judging. What a lost packet carried (its "chunks") is queued again and travels in a new packet.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/cc/controller.h"
#include "mltcp/transport/deadline_heap.h"
#include "mltcp/transport/pacer.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/payload_holds.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/transport/range_set.h"
#include "mltcp/transport/rtt.h"
#include "mltcp/transport/types.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

/// A job on a shard: its iteration, its gain, its slots, and the rate that its connections share.
struct JobState {
  bool used = false;
  std::uint32_t number = 0;
  cc::Augmentation augmentation;
  Nanos pacing_quantum;  ///< as in JobConfig, like the next
  Nanos catch_up;
  Pacer pacer;
  PhaseGate gate;
  /// Connections that wait for the pacer, first come first served.
  GrowableRing<std::uint32_t> waiting;
  std::unique_ptr<cc::IterationLearner> learner;  ///< null: boundaries come from the application alone
  std::uint64_t open_messages = 0;                ///< posted on the job's connections and not completed
  bool in_burst = false;                          ///< some of them, or of those before them, have been sent

  void on_messages(std::int64_t more) {
    open_messages += static_cast<std::uint64_t>(more);
    if (open_messages == 0) in_burst = false;
  }
  void on_send(Nanos now) {
    if (in_burst || open_messages == 0 || learner == nullptr || augmentation.tracker.exact()) return;
    in_burst = true;
    if (learner->on_send(now)) augmentation.tracker.follow(*learner);
  }
  void on_delivered(Nanos now, Bytes bytes) {
    augmentation.tracker.on_delivered(bytes);
    if (learner != nullptr) learner->on_delivered(now, bytes);
  }
};

/// Packets that are built and not yet with the datapath. They point to headers in their own slots and to the user's
/// payload. A slot is used again only after all have left.
struct TxQueue {
  std::vector<TxPacket> packets;        ///< as many as a burst; destination null: dropped
  std::vector<std::uint64_t> messages;  ///< beside each packet: the number of the message that its payload is from
  std::size_t begin = 0;
  std::size_t end = 0;

  [[nodiscard]] bool empty() const { return begin == end; }
  /// Drops what the connection of `destination` has pointing into a message that has completed: its bytes are the
  /// user's again. Such packets are late retransmissions, so no data is lost.
  void drop_message(const Address* destination, std::uint64_t message) {
    for (std::size_t i = begin; i < end; ++i)
      if (packets[i].destination == destination && packets[i].payload.data() != nullptr && messages[i] == message)
        packets[i].destination = nullptr;
  }
  void drop_destination(const Address* destination) {
    for (std::size_t i = begin; i < end; ++i)
      if (packets[i].destination == destination) packets[i].destination = nullptr;
  }
};

/// What the acknowledgements of one burst have said to one connection.
struct AckBatch {
  cc::AckSample sample;
  std::uint64_t largest_acked = 0;
  bool has_acks = false;
};

/// Lends an AckBatch to each connection of a burst: memory that stays in the cache, which each connection's own would
/// not.
struct AckBatches {
  std::vector<AckBatch> batches;      ///< as many as a burst
  std::size_t used = 0;               ///< taken back by the shard after the burst
  std::vector<RangeSet::Range> news;  ///< scratch of on_ack()

  AckBatch* take() {
    AckBatch& batch = batches[used++];
    batch = {};
    return &batch;
  }
};

/// What a connection needs of its shard.
struct ShardLinks {
  GrowableRing<Completion>* completions = nullptr;
  TxQueue* tx = nullptr;
  PayloadHolds* holds = nullptr;
  AckBatches* acks = nullptr;
  std::span<JobState> jobs;
  ShardStats* stats = nullptr;
  /// How long after the time that it had asked for the shard is being polled: 0 in virtual time, unless hosts are
  /// modelled there.
  Nanos late{};
};

/// The deadlines of a connection's operations. A slot is one of the send or receive ring, so that what is posted into
/// it next replaces a deadline that its operation has not lived to see: to complete an operation costs nothing here.
struct OperationDeadlines {
  OperationDeadlines(std::uint32_t max_sends, std::uint32_t max_receives)
      : sends(std::bit_ceil(max_sends)), receives(std::bit_ceil(max_receives)) {
    heap.reserve(std::size_t{sends} + receives);
  }
  [[nodiscard]] std::uint32_t of_send(std::uint64_t number) const {
    return static_cast<std::uint32_t>(number & (sends - 1));
  }
  [[nodiscard]] std::uint32_t of_receive(std::uint64_t number) const {
    return sends + static_cast<std::uint32_t>(number & (receives - 1));
  }

  std::uint32_t sends;  ///< powers of two
  std::uint32_t receives;
  DeadlineHeap heap;
};

/// A packet that a connection has built: the header lies in the buffer that it was given.
struct BuiltPacket {
  std::span<const std::byte> header;
  std::span<const std::byte> payload;
  std::uint64_t message = 0;  ///< that `payload` is a piece of
  PayloadHold* hold = nullptr;
  Ecn ecn = Ecn::not_ect;
};

class alignas(64) Connection {
 public:
  enum class State : std::uint8_t {
    connecting,  ///< CONNECT sent, no ACCEPT yet
    open,
    flushing,  ///< close() called; sends go on
    closing,   ///< CLOSE sent, not yet acknowledged
    draining,  ///< the peer closed, or abort() was called: only answers, until the drain time is over
    dead,      ///< to be freed by the shard
  };

  /// `links` outlives it.
  Connection(ConnectionId id, const Address& remote, std::shared_ptr<const ConnectionConfig> config,
             const cc::AlgorithmTable& algorithm, const PacketIo::Limits& limits, const ShardLinks& links, Nanos now);

  /// Client: begin the handshake.
  void start_connect(std::uint64_t nonce);
  /// Server: the peer's CONNECT has been parsed.
  void start_accept(const wire::ConnectFrame& peer);

  [[nodiscard]] ConnectionId id() const { return id_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Address& remote() const { return remote_; }
  [[nodiscard]] std::uint32_t peer_connection() const { return peer_connection_; }
  [[nodiscard]] std::uint64_t nonce() const { return nonce_; }
  [[nodiscard]] std::uint8_t priority() const { return config_->priority; }
  [[nodiscard]] std::uint64_t next_packet_number() const { return sent_.end(); }

  PostResult send(const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline);
  PostResult receive(std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline);
  void close();
  /// Ends at once: every outstanding operation completes with `status`.
  void fail(Status status);
  /// The same with Status::aborted, and the peer is told.
  void abort(Nanos now);

  /// Takes a packet whose header is valid and meant for this connection. `reader` stands before its first frame.
  void on_packet(const wire::Header& header, wire::Reader& reader, const RxPacket& packet, Nanos now);
  /// After the last packet of a burst: losses, congestion control.
  void end_of_batch(Nanos now);
  void on_timer(Nanos now);
  /// Deadlines of operations, keep-alive and idle limit.
  void on_watch(Nanos now);
  /// When on_watch() is due at the latest; it changes there, and when an operation with a deadline is posted.
  [[nodiscard]] Nanos watch_deadline() const;

  /// Why build() made no packet.
  enum class Blocked : std::uint8_t { no, nothing, gate, window, pacing, job_pacing };
  /// Builds the next packet into `buffer` (at least PacketIo::Limits::max_packet_bytes) if there is one to send now.
  Blocked build(Nanos now, std::span<std::byte> buffer, BuiltPacket& packet);
  /// When on_timer() or build() has something to do next.
  [[nodiscard]] Nanos next_deadline() const;

  void attach(std::uint32_t job);
  [[nodiscard]] std::uint32_t job() const { return job_; }
  static constexpr std::uint32_t no_job = ~std::uint32_t{0};

  // Cache lines of a connection that a message touches.
  static constexpr std::size_t line = 64;
  static constexpr std::size_t receiver_lines = 7;
  static constexpr std::size_t sender_lines = 12;

  [[nodiscard]] ConnectionStats stats() const;

  /// A message has come to its end in this burst: the program may answer, and what there is to send waits for the next
  /// poll. Asked once, after end_of_batch().
  [[nodiscard]] bool awaits_answer() {
    const bool awaits = finished_message_;
    finished_message_ = false;
    return awaits;
  }

  /// Brings to the cache what a packet that arrives touches, if it `acknowledges` also that; or all that a message to
  /// send touches. First the connection itself, and when that is there, what it points to.
  void prefetch(bool acknowledges) const {
    const auto* const at = reinterpret_cast<const std::byte*>(this);
    const std::size_t lines = acknowledges ? sender_lines : receiver_lines;
    for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(at + i * line, 1);
  }
  void prefetch_rings(bool acknowledges) const {
    if (!acknowledges) {
      receives_.prefetch();
      return;
    }
    sends_.prefetch();
    sent_.prefetch();
    chunks_.prefetch();
  }

 private:
  enum class ChunkKind : std::uint8_t { data, connect, accept, credit, ping, close };
  /// A piece of what a packet carried, that its loss brings back.
  struct Chunk {
    std::uint64_t message = 0;
    std::uint32_t offset = 0;
    std::uint16_t length = 0;
    ChunkKind kind = ChunkKind::data;
  };
  static_assert(sizeof(Chunk) == 16);

  enum class PacketState : std::uint8_t {
    in_flight,
    acked,
    lost,     ///< remembered for a while: its late acknowledgement says that the loss was none
    ignored,  ///< carried only an acknowledgement, or was given up
  };
  struct SentPacket {
    Nanos sent;
    Nanos first_sent;      ///< for the delivery rate: start of the send interval
    Nanos delivered_time;  ///< for the delivery rate: when `delivered` was reached
    Bytes delivered = 0;
    std::uint32_t first_chunk = 0;  ///< the low bits of its position; see chunk_of()
    std::uint32_t in_flight = 0;    ///< bytes, when it had left; 4 GiB - 1 if it was more
    std::uint32_t lost = 0;         ///< lost_total_ then
    std::uint16_t bytes = 0;
    std::uint16_t chunk_count : 13 = 0;  ///< as many data frames as the longest packet has room for, and more
    PacketState state : 2 = PacketState::ignored;
    bool app_limited : 1 = false;
  };
  static_assert(sizeof(SentPacket) == 48);
  static_assert(wire::data_frame_bytes << 13U > 65'535);
  /// The `i`-th piece of what a packet carried. There are fewer than 2^32 at a time.
  [[nodiscard]] Chunk& chunk_of(const SentPacket& packet, std::uint32_t i) {
    const std::uint64_t begin = chunks_.begin();
    return chunks_[begin + (packet.first_chunk - static_cast<std::uint32_t>(begin)) + i];
  }

  // A cache line each, as there are many.
  struct alignas(64) SendMessage {
    const std::byte* data = nullptr;
    Bytes length = 0;
    Bytes next_offset = 0;  ///< from here on nothing has been sent yet
    std::uint64_t tag = 0;
    RangeSet acked;
    std::uint32_t round = 0;  ///< of the job's phase gate, when it was posted
    PayloadHolds::Number hold = PayloadHolds::none;
    bool done = false;
    bool all_acked = false;  ///< completes in its turn, when the peer has said that it is whole
  };
  static_assert(sizeof(SendMessage) == 64);
  struct alignas(64) ReceiveMessage {
    std::byte* buffer = nullptr;
    Bytes capacity = 0;
    Bytes total = 0;
    std::uint64_t tag = 0;
    RangeSet received;
    bool total_known = false;
    bool done = false;
  };
  static_assert(sizeof(ReceiveMessage) == 64);

  // What arrives.
  static bool opens(const wire::Frame& frame);
  /// Whether the packet of `header`, which may have `finished` a message, is reason for an acknowledgement at once.
  [[nodiscard]] bool asks_for_ack(const wire::Header& header, bool finished) const;
  enum class Taken : std::uint8_t { refused, nothing_new, news };
  Taken on_data(const wire::DataFrame& frame, const wire::Header& header);
  void on_question(Nanos now);
  void count_behind_top(std::uint64_t number);
  void complete_receive(ReceiveMessage& message, const wire::Header& header);
  void on_ack(const wire::AckFrame& frame, Nanos now);
  void on_acked_packet(SentPacket& packet, Nanos now);
  void on_acked_chunk(const Chunk& chunk, Nanos now);
  void on_late_ack(std::uint64_t number, Nanos now);
  void skip_numbers(std::uint64_t last);
  void doubt_front(Nanos now);
  void on_ecn_counts(const wire::EcnCounts& counts, std::uint32_t newly_acked_packets);
  void on_close(Nanos now);
  void drain(Nanos now);
  void agree_on_max_packet(std::uint32_t peers);
  void raise_credit(std::uint32_t messages);
  [[nodiscard]] std::uint64_t most_credit() const;
  /// When both ends are flushing, neither will post another buffer: messages beyond the credit end as closed.
  void drop_unsendable();

  // Time limits.
  void need_deadlines();
  void expire_operations(Nanos now);
  void look_for_peer(Nanos now);
  /// Takes the completed ones from `from` on out of the ring; those behind move up, with their deadlines.
  template <typename Message, typename Slot>
  void close_up(GrowableRing<Message>& ring, std::uint64_t from, Slot slot);
  void end(Status status, wire::CloseReason reason, Nanos now);

  // Loss recovery.
  /// Returns whether congestion persists.
  bool detect_losses(Nanos now);
  void on_lost_packet(SentPacket& packet);
  void on_probe_timeout(Nanos now);
  void requeue(const Chunk& chunk);
  void forget_finished(Nanos now);
  void make_room();
  /// Takes the oldest packet and its chunks off the record.
  void forget_oldest();
  [[nodiscard]] cc::PathInfo path() const;
  [[nodiscard]] Nanos probe_timeout() const;
  [[nodiscard]] Nanos probe_deadline() const;
  void on_congestion(cc::CongestionEvent::Cause cause, Nanos now);
  void update_pacing();

  // What is sent.
  /// Something to send again, or new bytes that neither credit nor the phase gate holds back.
  [[nodiscard]] bool has_data() const;
  [[nodiscard]] bool has_new_data() const;
  /// As has_new_data(), but the gate may be closed.
  [[nodiscard]] bool has_credited_data() const { return next_message_ < sends_.end() && next_message_ < credit_; }
  [[nodiscard]] bool may_send_messages() const { return state_ == State::open || state_ == State::flushing; }
  [[nodiscard]] bool acks_carry_credit() const { return config_->credit_in_acks && state_ == State::open; }
  [[nodiscard]] bool credit_urgent() const;
  [[nodiscard]] bool credit_final_due() const;
  Blocked blocked(Nanos now);
  std::span<const std::byte> fill_data(wire::Writer& writer, bool& retransmission, std::uint64_t& gathered);
  bool next_retransmission(Chunk& chunk);
  void write_ack(wire::Writer& writer, Nanos now);
  void write_control(wire::Writer& writer, bool with_data);
  /// The oldest message has arrived.
  void complete_front();
  void maybe_close();
  void complete_all(Status status);
  void push(const Completion& completion) {
    if (completion.kind == Completion::Kind::closed) [[unlikely]]
      links_->holds->complete(completion, PayloadHolds::none, *links_->completions);
    else
      links_->completions->push(completion);
  }
  void push_sent(const SendMessage& message, Status status) {
    count_open_sends(-1);
    const Completion completion{.kind = Completion::Kind::sent,
                                .status = status,
                                .connection = id_,
                                .tag = message.tag,
                                .bytes = message.length};
    if (message.hold == PayloadHolds::none) [[likely]]
      links_->completions->push(completion);
    else
      links_->holds->complete(completion, message.hold, *links_->completions);
  }
  void count_open_sends(std::int64_t more);

  // What a message touches stands together, a cache line after the other: with many connections each line is a miss. A
  // receiver gets along with the first seven.

  // 0: whose it is, and the acknowledgement that is due.
  alignas(line) const ShardLinks* links_;
  std::shared_ptr<const ConnectionConfig> config_;
  ConnectionId id_;
  std::uint32_t peer_connection_ = 0;
  std::uint32_t job_ = no_job;
  std::uint32_t unacknowledged_ = 0;  ///< ack-eliciting packets since the last ACK
  Address remote_;
  State state_ = State::connecting;
  bool ack_at_once_ = false;
  bool finished_message_ = false;  ///< in this burst

 public:
  // Marks of the shard's work lists.
  bool touched = false;
  bool active = false;
  bool waits_for_job = false;

 private:
  // 1: which packets were received, and what is to be told.
  alignas(line) bool connect_due_ = false;
  bool accept_due_ = false;
  bool credit_due_ = false;
  bool credit_known_ = false;       ///< by the peer, all of it: told in what is repeated until acknowledged, or used
  bool credit_lost_ = false;        ///< a CREDIT: nobody knows what the peer knows
  bool credit_final_told_ = false;  ///< the peer knows, or is being told, that no more credit comes
  bool peer_credit_final_ = false;  ///< the peer said so
  bool close_due_ = false;
  bool ping_due_ = false;
  bool needs_timer_;  ///< the congestion controller does
  bool any_acked_ = false;
  bool was_idle_ = true;
  bool ecn_works_ = true;
  bool aborted_ : 1 = false;        ///< ended here: the peer is told
  bool has_deadlines_ : 1 = false;  ///< some operation had one
  bool tells_whole_ : 1 = false;    ///< the peer has said how many messages are whole: it always does
  bool last_was_marked_ = false;    ///< the ECN-capable packet received last
  std::uint8_t received_hops_ = 0;  ///< of the packet of largest_received_time_
  Nanos largest_received_time_;
  Nanos ack_deadline_ = Nanos::never();
  RangeSet received_;  ///< packet numbers
  /// Packets that came below the highest of these ranges since it ended at `top_` (its low bits).
  std::uint32_t behind_top_ = 0;
  std::uint32_t top_ = 0;

  // 2: what is received, and whether anything is in flight.
  alignas(line) GrowableRing<ReceiveMessage> receives_;  ///< position = message number
  std::uint64_t advertised_credit_ = 0;
  Bytes in_flight_ = 0;
  std::uint32_t in_flight_packets_ = 0;
  std::uint32_t probes_due_ = 0;
  Nanos loss_time_ = Nanos::never();

  // 3: what is sent.
  alignas(line) GrowableRing<SendMessage> sends_;  ///< position = message number
  std::uint64_t next_message_ = 0;                 ///< first message with unsent bytes
  std::uint64_t credit_ = 0;                       ///< messages below this may be sent
  Nanos held_until_ = Nanos::never();              ///< by pacing, or by the job's phase gate
  Nanos credit_probe_ = Nanos::never();

  // 4: in which packets.
  alignas(line) GrowableRing<SentPacket> sent_;  ///< position = packet number; its end is the next packet's
  GrowableRing<Chunk> chunks_;

  // 5
  alignas(line) std::uint64_t packets_received_ = 0;
  std::uint64_t packets_sent_ = 0;
  Bytes bytes_sent_ = 0;
  wire::EcnCounts counts_;
  std::int64_t open_sends_ = 0;  ///< of sends_, those not completed
  std::uint32_t max_packet_;
  std::uint32_t keeps_payload_from_;
  AckBatch* batch_ = nullptr;  ///< what the burst has acknowledged so far, lent by the shard; null: nothing

  // 6: what is sent again, and the delivery rate.
  alignas(line) GrowableRing<Chunk> retransmit_;
  Bytes delivered_ = 0;
  Nanos delivered_time_;
  Nanos first_sent_;
  Bytes app_limited_until_ = 0;  ///< in terms of delivered_

  // 7: from here on only a sender's.
  alignas(line) RttEstimator rtt_;
  Nanos last_eliciting_sent_;
  Nanos last_progress_;
  std::uint32_t probe_count_ = 0;  ///< timeouts in a row
  std::uint32_t packet_threshold_ = 3;

  // 8
  alignas(line) RangeSet acked_;  ///< packet numbers of sent_ whose acknowledgement has been seen
  std::uint64_t largest_acked_ = 0;
  std::uint64_t loss_cursor_ = 0;     ///< no packet below is in flight
  std::uint64_t recovery_until_ = 0;  ///< packets below were sent before the last congestion response
  std::uint64_t round_end_ = 0;
  std::uint64_t cwnd_limited_until_ = 0;

  // 9 and 10
  alignas(line) std::uint64_t rounds_ = 0;
  Rate delivery_rate_;
  Bytes lost_bytes_ = 0;  ///< since the controller was last told
  std::uint32_t lost_packets_ = 0;
  std::uint32_t lost_total_ = 0;  ///< bytes since the connection began, modulo 2^32: for differences
  std::uint32_t episode_lost_ = 0;
  std::uint32_t episode_spurious_ = 0;
  bool app_limited_ = false;          ///< when delivery_rate_ was measured
  std::uint8_t ack_ratio_flags_ = 0;  ///< of packets with data, see ack_ratio.h
  std::uint16_t overhead_;            ///< per packet on the wire
  std::uint16_t paced_overhead_ = 0;  ///< of it, what the pacer counts
  Pacer pacer_;
  std::uint64_t whole_ = 0;  ///< messages below are complete at the peer, as it said

  // 11 to 14: output and state of the congestion controller. Reno's ends within the first of them.
  alignas(line) cc::Controller controller_;

  // What is seldom looked at.
  std::uint64_t episode_begin_ = 0;  ///< packets below were sent before the response to the episode before
  std::uint64_t nonce_ = 0;
  Nanos first_sample_ = Nanos::never();  ///< when rtt_ had its first
  Nanos drain_until_ = Nanos::never();
  Nanos abort_copy_at_ = Nanos::never();  ///< never unless aborted_
  std::uint32_t abort_copies_left_ = 0;
  wire::CloseReason abort_reason_ = wire::CloseReason::aborted;
  std::unique_ptr<OperationDeadlines> deadlines_;    ///< null until an operation has one
  std::uint64_t asked_by_peer_ = ~std::uint64_t{0};  ///< whole messages when its first PING of several came
  Nanos asked_since_;
  Nanos heard_;  ///< when it was made, or when a packet came since that was not the highest: see largest_received_time_
  Nanos look_at_ = Nanos::never();  ///< next time to see whether the peer is still heard
  // A message that the peer has acknowledged and does not have.
  std::uint64_t doubted_ = ~std::uint64_t{0};  ///< its number
  static constexpr std::uint64_t not_asked = ~std::uint64_t{0};
  std::uint64_t asked_at_ = not_asked;  ///< the packet whose acknowledgement tells for certain
  std::uint32_t repairs_ = 0;           ///< of this message
  // Packet numbers that were acknowledged before they were used, and so are not.
  std::uint32_t skipped_ = 0;
  std::uint64_t skipped_at_ = 0;  ///< packets_sent_ then
  wire::EcnCounts peer_counts_;
  struct {
    std::uint64_t retransmitted_packets = 0;
    std::uint64_t lost_packets = 0;
    std::uint64_t spurious_losses = 0;
    std::uint64_t duplicate_packets = 0;
    std::uint64_t conflicting_packets = 0;
    std::uint64_t repaired_messages = 0;
    std::uint64_t congestion_events = 0;
    std::uint64_t persistent_congestions = 0;
    std::uint64_t ce_packets = 0;
  } stats_;
};

// Every line that stands apart in the class is one, and a field too many makes one more.
static_assert(sizeof(Connection) == 1152);

}  // namespace mltcp
