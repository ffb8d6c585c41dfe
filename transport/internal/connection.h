// One connection of a shard. It joins what each knows its own part of: the packets that came (ReceivedPackets) and
// those that were sent, with loss recovery (SentPackets), the messages that come (MessageReceiver) and those that are
// sent (MessageSender). Its own are the states from handshake to end, the frames that it takes and writes, and the use
// of the congestion controller and of pacing. Internal to the transport; programs use shard.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mltcp/cc/controller.h"
#include "mltcp/transport/internal/chunk.h"
#include "mltcp/transport/internal/ecn_feedback.h"
#include "mltcp/transport/internal/message_receiver.h"
#include "mltcp/transport/internal/message_sender.h"
#include "mltcp/transport/internal/operation_deadlines.h"
#include "mltcp/transport/internal/pacer.h"
#include "mltcp/transport/internal/received_packets.h"
#include "mltcp/transport/internal/sent_packets.h"
#include "mltcp/transport/internal/shard_links.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

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
             const cc::AlgorithmTable& algorithm, const ShardLinks& links, Nanos now);

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
  [[nodiscard]] std::uint64_t next_packet_number() const { return sent_.next_number(); }

  PostResult send(const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline);
  PostResult receive(std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline);
  /// Ends an operation of whose message nothing has been sent, or has arrived, with Status::timed_out. False if there is
  /// none with that tag.
  bool cancel_send(std::uint64_t tag);
  bool cancel_receive(std::uint64_t tag);
  void close();
  /// Ends at once: every outstanding operation completes with `status`.
  void fail(Status status);
  /// The same with Status::aborted, and the peer is told.
  void abort(Nanos now) { end(Status::aborted, wire::CloseReason::aborted, now); }

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

  /// `job` is in use, or no_job.
  void attach(std::uint32_t job);
  [[nodiscard]] std::uint32_t job() const { return job_; }
  static constexpr std::uint32_t no_job = ~std::uint32_t{0};

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
    sent_.prefetch(acknowledges);
  }
  void prefetch_rings(bool acknowledges) const {
    if (!acknowledges) {
      receives_.prefetch();
      return;
    }
    sends_.prefetch();
    sent_.prefetch_rings();
  }

 private:
  /// What the frames of a packet have brought.
  struct Arrival {
    bool eliciting = false;  ///< asks for an acknowledgement
    bool at_once = false;    ///< ... now
    bool data = false;
    bool news = false;      ///< bytes that were not there before
    bool finished = false;  ///< the oldest message, and perhaps others, is complete
    bool question = false;
    bool refused = false;  ///< something was not taken: to the sender it is a lost packet
  };
  /// A packet that is being built.
  struct Draft {
    wire::Writer writer;
    std::uint16_t chunks = 0;
    bool retransmission = false;
  };

  // What arrives.
  static bool opens(const wire::Frame& frame);
  /// False if the packet counts for nothing.
  bool take_frames(wire::Reader& reader, const wire::Header& header, Arrival& arrival, Nanos now);
  void on_data(const wire::DataFrame& frame, const wire::Header& header, Arrival& arrival);
  /// Frames other than DATA and ACK. False as above.
  bool on_control(const wire::Frame& frame, Arrival& arrival, Nanos now);
  void count_refused(MessageReceiver::Taken why);
  void complete_receive(const MessageReceiver::Message& message, const wire::Header& header);
  void on_ack(const wire::AckFrame& frame, Nanos now);
  void on_acked_chunk(const Chunk& chunk, Nanos now);
  /// Completes the oldest messages as far as they are acknowledged and whole.
  void complete_sends(Nanos now);
  void doubt_front(Nanos now);
  void on_accepted(const wire::ConnectFrame& peer);
  /// False as above.
  bool on_close(wire::CloseReason reason, Nanos now);
  void drain(Nanos now);
  void agree_on_max_packet(std::uint32_t peers);
  void raise_credit(std::uint32_t messages);
  /// When both ends are flushing, neither will post another buffer: messages beyond the credit end as closed.
  void drop_unsendable();

  // Time limits.
  void need_deadlines();
  void expire_operations(Nanos now);
  void look_for_peer(Nanos now);
  void end(Status status, wire::CloseReason reason, Nanos now);

  // Congestion control.
  [[nodiscard]] cc::PathInfo path() const;
  /// Returns whether congestion persists.
  bool detect_losses(Nanos now);
  void requeue(const Chunk& chunk);
  void on_probe_timeout(Nanos now);
  void on_congestion(cc::CongestionEvent::Cause cause, Nanos now);
  void add_gain(cc::AckSample& sample) const;
  void update_pacing();

  // What is sent.
  /// Something to send again, or new bytes that neither credit nor the phase gate holds back.
  [[nodiscard]] bool has_data() const { return may_send_messages() && (sends_.has_lost() || has_new_data()); }
  [[nodiscard]] bool has_new_data() const {
    return sends_.has_credited() && (job_ == no_job || !links_->jobs[job_].gate.holds(sends_.next_round()));
  }
  [[nodiscard]] bool may_send_messages() const { return state_ == State::open || state_ == State::flushing; }
  [[nodiscard]] bool acks_carry_credit() const { return config_->credit_in_acks && state_ == State::open; }
  [[nodiscard]] bool credit_urgent() const;
  [[nodiscard]] bool control_due() const;
  /// Asks the gate and the window whether data may leave, and minds when to ask again.
  Blocked data_blocked(Nanos now);
  Blocked gate_blocked(Nanos now);
  Blocked window_blocked(Nanos now);
  void carry(Draft& draft, const Chunk& chunk) {
    sent_.add_chunk(chunk);
    ++draft.chunks;
  }
  void write_ack(wire::Writer& writer, Nanos now);
  void write_control(Draft& draft, bool with_data);
  void write_data(Draft& draft, BuiltPacket& packet, Nanos now);
  void fill_data(Draft& draft, BuiltPacket& packet);
  /// The header of a packet of `bytes` with data says whose it is; pacing counts it.
  void mark_data(wire::Header& header, std::uint32_t bytes, Nanos now);
  /// After abort(): a few copies of CLOSE.
  void repeat_close(Nanos now);

  // Completions.
  /// After close(): CLOSE follows the last message.
  void maybe_close() {
    if (state_ != State::flushing || !sends_.empty()) return;
    state_ = State::closing;
    close_due_ = true;
  }
  void complete_all(Status status);
  void push(const Completion& completion) {
    if (completion.kind == Completion::Kind::closed) [[unlikely]]
      links_->holds->complete(completion, PayloadHolds::none, *links_->completions);
    else
      links_->completions->push(completion);
  }
  void push_sent(const MessageSender::Message& message, Status status) {
    sends_.on_completed();
    if (job_ != no_job) links_->jobs[job_].on_messages(-1);
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

  // What a message touches stands together, a cache line after the other: with many connections each line is a miss.
  // Each part has its lines for itself. A receiver gets along with the first six and the first of sent_, a sender with
  // the first eight and the first four of sent_ (SentPackets::prefetch).
  static constexpr std::size_t line = 64;
  static constexpr std::size_t receiver_lines = 6;
  static constexpr std::size_t sender_lines = 8;

  // 0: whose it is.
  alignas(line) const ShardLinks* links_;
  std::shared_ptr<const ConnectionConfig> config_;
  ConnectionId id_;
  std::uint32_t peer_connection_ = 0;
  std::uint32_t job_ = no_job;
  std::uint32_t max_packet_;
  Address remote_;
  State state_ = State::connecting;
  bool finished_message_ = false;  ///< in this burst

 public:
  // Marks of the shard's work lists.
  bool touched = false;
  bool active = false;
  bool waits_for_job = false;

 private:
  // 1: counters, and what is to be told besides data and acknowledgements.
  alignas(line) std::uint64_t packets_received_ = 0;
  Bytes bytes_sent_ = 0;
  AckBatch* batch_ = nullptr;          ///< what the burst has acknowledged so far, lent by the shard; null: nothing
  Nanos held_until_ = Nanos::never();  ///< by pacing, or by the job's phase gate
  Nanos credit_probe_ = Nanos::never();
  Rate delivery_rate_;                ///< of the latest sample
  std::uint32_t paced_overhead_ = 0;  ///< of each packet on the wire, what the pacer counts
  bool connect_due_ = false;
  bool accept_due_ = false;
  bool close_due_ = false;
  bool ping_due_ = false;
  bool needs_timer_;                  ///< the congestion controller does
  std::uint8_t ack_ratio_flags_ = 0;  ///< of packets with data, see ack_ratio.h
  bool app_limited_ : 1 = false;      ///< when delivery_rate_ was measured
  bool aborted_ : 1 = false;          ///< ended here: the peer is told
  bool has_deadlines_ : 1 = false;    ///< some operation had one

  // 2
  alignas(line) ReceivedPackets received_;

  // 3
  alignas(line) MessageReceiver receives_;

  // 4 and 5, which ends with the first word of the pacer.
  alignas(line) MessageSender sends_;

  // 6
  Pacer pacer_;

  // 7 to 10: output and state of the congestion controller. Reno's ends within the first of them.
  alignas(line) cc::Controller controller_;

  // What is seldom looked at, to the end of the controller's last line.
  std::uint64_t nonce_ = 0;
  Nanos drain_until_ = Nanos::never();
  Nanos abort_copy_at_ = Nanos::never();           ///< never unless aborted_
  std::unique_ptr<OperationDeadlines> deadlines_;  ///< null until an operation has one

  // 11 to 14, and what follows them.
  alignas(line) SentPackets sent_;

  // What is seldom looked at, too.
  Nanos heard_;  ///< when it was made, or when a packet came since that was not the highest: see highest_time()
  Nanos look_at_ = Nanos::never();  ///< next time to see whether the peer is still heard
  EcnFeedback ecn_;
  std::uint32_t abort_copies_left_ = 0;
  wire::CloseReason abort_reason_ = wire::CloseReason::aborted;
  struct {
    std::uint64_t retransmitted_packets = 0;
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
