// One connection of a shard. Combines its parts: received packets (ReceivedPackets), sent packets and loss recovery
// (SentPackets), received messages (MessageReceiver), sent messages (MessageSender) and the maximum packet size
// (PathMtu). Implements the state machine from handshake to close, reads and writes frames, and uses the congestion
// controller and pacer. Internal to the transport; programs use shard.h.
#pragma once

#include <bit>
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
#include "mltcp/transport/internal/path_mtu.h"
#include "mltcp/transport/internal/received_packets.h"
#include "mltcp/transport/internal/replay_window.h"
#include "mltcp/transport/internal/sent_packets.h"
#include "mltcp/transport/internal/shard_links.h"
#include "mltcp/transport/internal/work_budget.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

/// A packet built by a connection; its header is in the buffer that the caller passed.
struct BuiltPacket {
  std::span<const std::byte> header;
  std::span<const std::byte> payload;
  std::uint64_t message = 0;  ///< number of the message to which `payload` belongs
  PayloadHold* hold = nullptr;
  Ecn ecn = Ecn::not_ect;
};

class alignas(64) Connection {
 public:
  enum class State : std::uint8_t {
    connecting,  ///< CONNECT sent, no ACCEPT yet
    open,
    flushing,  ///< close() called; pending sends continue
    closing,   ///< CLOSE sent, not yet acknowledged
    draining,  ///< closed by the peer or by abort(): only replies to packets, until the drain time is over
    dead,      ///< to be destroyed by the shard
  };

  /// `links` must outlive the connection.
  Connection(ConnectionId id, const Address& remote, std::shared_ptr<const ConnectionConfig> config,
             const cc::AlgorithmTable& algorithm, const ShardLinks& links, Nanos now);

  // `tag`: the peer must put it into its packets. The shard checks it before it passes a packet on.

  /// Client: starts the handshake.
  void start_connect(std::uint64_t tag);
  /// Server: accepts, given the peer's CONNECT. The connection is half open until the peer answers ACCEPT, for which it
  /// has kHalfOpenLimit. `is_proven`: the peer has shown that it receives at its address; else it is sent at most three
  /// times the bytes that it has sent, until it has shown that.
  void start_accept(const wire::ConnectFrame& peer, std::uint64_t tag, bool is_proven, Nanos now);

  /// Call before either: a recent violation came from the peer's address. The window starts at the minimum and grows
  /// slowly.
  void begin_with_least(Nanos now);

  /// Call before either: packets of this connection are sealed.
  void set_seal(std::unique_ptr<PacketSeal> seal);

  [[nodiscard]] ConnectionId id() const { return id_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Address& remote() const { return remote_; }
  [[nodiscard]] std::uint32_t peer_connection() const { return peer_connection_; }
  /// The tag that the peer expects in packets to it; 0 while connecting.
  [[nodiscard]] std::uint64_t peer_tag() const { return peer_tag_; }
  [[nodiscard]] bool was_accepted() const { return was_accepted_; }
  [[nodiscard]] bool is_proven() const { return is_proven_; }
  /// Accepted, but no packet has arrived yet that requires having received ACCEPT.
  [[nodiscard]] bool is_half_open() const { return is_half_open_; }
  [[nodiscard]] bool is_sealed() const { return is_sealed_; }
  /// Sealed: whether a CONNECT comes from the client that has made this connection.
  [[nodiscard]] bool opens_greeting(const wire::KeyFrame& key, const SealedPacket& packet,
                                    const PacketSeal::Tag& tag) const {
    return sealing_->seal->opens_greeting(key.id, key.random, packet, tag);
  }
  /// Sealed connections only: the id of the job's key, and the random bytes that this end contributed to the packet
  /// keys.
  [[nodiscard]] std::uint64_t key_id() const { return sealing_->seal->key_id(); }
  [[nodiscard]] const EndRandom& own_random() const { return sealing_->seal->own(); }
  [[nodiscard]] bool is_over() const { return state_ == State::dead; }
  [[nodiscard]] std::uint8_t priority() const { return config_->priority; }
  [[nodiscard]] std::uint64_t next_packet_number() const { return sent_.next_number(); }

  PostResult send(const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline, std::uint8_t uncharged = 0);
  PostResult receive(std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline);
  /// Ends the send with this tag with Status::timed_out. False, without effect, if there is no such send, or if bytes
  /// of its message have been sent.
  bool cancel_send(std::uint64_t tag);
  /// The same for a receive. False if there is no such receive, or if bytes of its message have arrived.
  bool cancel_receive(std::uint64_t tag);
  bool discard_receive(std::uint64_t tag, std::uint64_t new_tag);
  void close();
  /// Ends the connection at once: all outstanding operations complete with `status`. The peer is not notified.
  void fail(Status status);
  /// The peer no longer has the connection: ends it here too, and completes all outstanding operations.
  void on_forgotten();
  /// Like fail(Status::aborted), but notifies the peer.
  void abort(Nanos now) { end(Status::aborted, wire::CloseReason::aborted, now); }
  /// A RESET reports that the peer no longer has the connection. Its tag was right, which proves that the peer sent it,
  /// or, if the connection is sealed, that its sender has the key.
  void on_reset(Nanos now);

  /// Opens a sealed packet and writes its body to `out` if it was encrypted. False: ignore the packet, because it is
  /// not the peer's, is a replay, or the connection is not sealed.
  [[nodiscard]] bool open(const RxPacket& packet, const wire::Header& header, std::span<std::byte> out,
                          wire::Reader& reader, Nanos now);
  /// Whether the connection is sealed and a packet with that number has arrived, or may have. If so, counts the packet,
  /// which must be ignored.
  [[nodiscard]] bool is_replay(const wire::Header& header);
  /// Whether the sender of a RESET with this seal has the connection's key and answers the packet sent last.
  [[nodiscard]] bool is_answer_of_restarted(const PacketSeal::Tag& tag) const;

  /// Processes a packet with a valid header, addressed to this connection. It has the connection's tag, or is the
  /// CONNECT that created the connection or a copy of it. `reader` is before its first frame.
  void on_packet(const wire::Header& header, wire::Reader& reader, const RxPacket& packet, Nanos now);
  /// Call after the last packet of a burst: runs loss detection and congestion control.
  void end_of_batch(Nanos now);
  void on_timer(Nanos now);
  /// Handles deadlines of operations, keep-alive and idle limit.
  void on_watch(Nanos now);
  /// Latest time for the next on_watch(); changes only there and when an operation with a deadline is posted.
  [[nodiscard]] Nanos watch_deadline() const;

  /// The reason why build() has built no packet.
  enum class Blocked : std::uint8_t { no, nothing, gate, window, pacing, job_pacing };
  /// Builds the next packet into `buffer` (at least PacketIo::Limits::max_packet_bytes) if one may be sent now.
  Blocked build(Nanos now, std::span<std::byte> buffer, BuiltPacket& packet);
  /// When on_timer() or build() must be called next.
  [[nodiscard]] Nanos next_deadline() const;

  /// `job` is the index of a used job, or kNoJob.
  void attach(std::uint32_t job);
  [[nodiscard]] std::uint32_t job() const { return job_; }
  static constexpr std::uint32_t kNoJob = ~std::uint32_t{0};

  [[nodiscard]] ConnectionStats stats() const;

  /// Whether a message completed in this burst, so that the program may reply: sending is then delayed until the next
  /// poll(), to be combined with the reply. Call once, after end_of_batch(); resets the flag.
  [[nodiscard]] bool awaits_answer() {
    const bool awaits = finished_message_;
    finished_message_ = false;
    return awaits;
  }

  /// Prefetches the cache lines used by a received packet, or if `acknowledges` (it contains an ACK, or a message is
  /// about to be sent) also those of the send side. The first call prefetches the connection itself; the next one, when
  /// that is cached, what it points to.
  void prefetch(bool acknowledges) const {
    const auto* const at = reinterpret_cast<const std::byte*>(this);
    const std::size_t lines = acknowledges ? kSenderLines : kReceiverLines;
    for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(at + i * kLine, 1);
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
  /// Effects of a received packet's frames.
  struct Arrival {
    bool eliciting = false;  ///< must be acknowledged
    bool at_once = false;    ///< must be acknowledged at once
    bool data = false;
    bool acknowledges = false;
    bool news = false;      ///< contains data that had not been received before
    bool finished = false;  ///< the oldest message has completed, and perhaps later ones
    bool question = false;
    bool refused = false;  ///< some data was refused, so the packet must not be acknowledged
  };
  /// A packet being built.
  struct Draft {
    wire::Writer writer;
    std::uint16_t chunks = 0;
    bool retransmission = false;
  };

  // Receiving.
  /// Handles a packet of a connection that waits for ACCEPT. False if it must be ignored.
  [[gnu::cold]] bool opens(const wire::Frame& frame, const wire::Header& header, Nanos now);
  /// False if the packet must be ignored.
  bool take_frames(wire::Reader& reader, const wire::Header& header, Arrival& arrival, Nanos now);
  void on_data(const wire::DataFrame& frame, const wire::Header& header, Arrival& arrival);
  /// Handles frames other than DATA and ACK. False if the packet must be ignored.
  [[gnu::cold]] bool on_control(const wire::Frame& frame, const wire::Header& header, Arrival& arrival, Nanos now);
  [[gnu::cold]] void count_refused(MessageReceiver::Taken why);
  void complete_receive(const MessageReceiver::Message& message, const wire::Header& header);
  /// False if it acknowledges packets that were never sent: the connection has ended.
  bool on_ack(const wire::AckFrame& frame, Nanos now);
  [[gnu::cold]] void on_violation(Nanos now);
  /// Takes the marks that an acknowledgement reports.
  void count_marks(const wire::AckFrame& frame, std::uint32_t newly_acked, Bytes newly_acked_bytes,
                   cc::AckSample& sample);
  /// A packet has arrived for a connection that is half open.
  [[gnu::cold]] void on_half_open(const wire::Header& header, const RxPacket& packet);
  [[gnu::cold]] void on_retry(std::uint64_t cookie, Nanos now);
  void on_acked_chunk(const Chunk& chunk, Nanos now);
  /// Completes the oldest messages that are acknowledged and whole.
  void complete_sends(Nanos now);
  /// Completes the oldest messages that the peer has reported as whole, even if not acknowledged, because the peer
  /// closes.
  void complete_whole();
  [[gnu::cold]] void check_front(Nanos now);
  [[gnu::cold]] void on_accepted(const wire::ConnectFrame& peer);
  /// False if the packet must be ignored.
  [[gnu::cold]] bool on_close(wire::CloseReason reason, Nanos now);
  /// After this many probe timeouts in a row the peer may be refusing the contents of the probes.
  static constexpr std::uint32_t kProbesInVain = 8;
  static constexpr std::int64_t kDrainTimeouts = 8;  ///< drain time after closing, in probe timeouts, but bounded
  static constexpr Nanos kRoomForClose{1'000'000};   ///< maximum wait of a half-open connection's CLOSE for room
  /// How long an accepted connection may be half open, however often its peer asks: several round trips of nearly any
  /// path; longer if initial_rtt is long.
  static constexpr Nanos kHalfOpenLimit{3'000'000'000};
  [[nodiscard]] Nanos half_open_time() const;
  /// Whether the end of the connection is postponed, because packets wait that may come from the peer. Then sets `end`;
  /// at most `limit` in total.
  bool puts_off(Nanos limit, Nanos& end, Nanos now);
  static constexpr std::uint32_t kBytesPerUnprovenByte = 3;  ///< RFC 9000 section 8.1
  static constexpr std::uint8_t kMaxRetries = 4;             ///< RETRYs per connection answered at once
  [[gnu::cold]] void drain(Nanos now);
  void raise_credit(std::uint32_t messages);
  /// When both ends are flushing, no more buffers will be posted: sends beyond the credit complete as closed. They also
  /// do if only the peer is flushing and one of them has begun, because the peer will refuse all of its data.
  void drop_unsendable();

  // Deadlines and idle detection.
  void need_deadlines();
  [[gnu::cold]] void expire_operations(Nanos now);
  [[gnu::cold]] void look_for_peer(Nanos now);
  /// After RESET of a sealed connection: asks the peer again, or ends the connection if the time for that is over.
  void look_into_reset(Nanos now);
  void refute_reset();
  void end(Status status, wire::CloseReason reason, Nanos now);

  // The size of packets.
  void agree_on_max_packet(std::uint32_t peers);
  static constexpr std::uint32_t kSuspiciousTimeouts = 3;  ///< probe timeouts in a row
  static constexpr std::uint8_t kSuspiciousLosses = 10;    ///< losses of long packets while none arrives
  static constexpr Nanos kSuspiciousSilence{500'000'000};
  /// At a probe timeout: whether the packet size may be the reason that nothing arrives. If so, starts to test the
  /// size.
  bool suspects_size(Nanos now);
  /// Call after losses.
  [[gnu::cold]] void check_size(Nanos now);
  [[nodiscard]] Nanos patience_with_size() const;
  /// False if packets already have the smallest size.
  bool suspect_size();
  [[gnu::cold]] void on_size_verdict(PathMtu::Verdict verdict);
  /// Continues with packets of PathMtu::size(). Returns whether they are shorter; the losses found are then handled.
  [[gnu::cold]] bool change_size(const SentPackets::Losses& losses);
  [[nodiscard]] bool may_probe_size() const {
    return may_send_messages() && is_proven_ && !due_.connect && !due_.accept;
  }
  /// False if no size probe is needed any more.
  [[gnu::cold]] bool build_size_probe(Nanos now, std::span<std::byte> buffer, BuiltPacket& packet);

  // Congestion control.
  [[nodiscard]] cc::PathInfo path() const;
  /// Returns whether there is persistent congestion. `ce_packets`: marked packets acknowledged in the same batch.
  bool detect_losses(Nanos now, std::uint32_t ce_packets);
  void requeue(const Chunk& chunk);
  /// A chunk of a lost packet.
  [[gnu::cold]] void on_lost_chunk(const Chunk& chunk, Nanos now);
  void on_probe_timeout(Nanos now);
  void on_congestion(cc::CongestionEvent::Cause cause, Nanos now);
  void add_gain(cc::AckSample& sample) const;
  void update_pacing();

  // Sending.
  /// Whether there is data to retransmit, or new data that neither credit nor the phase gate blocks.
  [[nodiscard]] bool has_data() const { return may_send_messages() && (sends_.has_lost() || has_new_data()); }
  [[nodiscard]] bool has_new_data() const {
    return sends_.has_credited() && (job_ == kNoJob || !links_->jobs[job_].gate.holds(sends_.next_round()));
  }
  [[nodiscard]] bool may_send_messages() const { return state_ == State::open || state_ == State::flushing; }
  [[nodiscard]] bool acks_carry_credit() const { return config_->credit_in_acks && state_ == State::open; }
  [[nodiscard]] bool credit_urgent() const {
    if (state_ == State::open) [[likely]]
      return receives_.credit_urgent();
    return state_ == State::flushing && (needs_final_credit() || receives_.credit_urgent());
  }
  /// The final credit lets the peer end messages for which no buffer will come.
  [[nodiscard]] bool needs_final_credit() const { return !receives_.final_told() && sends_.waits_for_credit(); }
  /// Whether the next packet has CONNECT or ACCEPT in it.
  [[nodiscard]] bool greets_next() const { return due_.connect || (due_.accept && state_ != State::draining); }
  [[nodiscard]] bool control_due() const {  // any() alone would count ACCEPT while draining
    return (due_.any() && (greets_next() || due_.close || due_.ping)) || credit_urgent();
  }
  /// Whether CONNECT must wait because of a violation from the peer's address; sets the time for the next check.
  [[gnu::cold]] bool is_held_off(Nanos now);
  /// Checks whether gate and window allow data to be sent, and sets the time for the next check.
  Blocked data_blocked(Nanos now);
  Blocked gate_blocked(Nanos now);
  Blocked window_blocked(Nanos now);
  /// Whether to wait: the window has room for a packet, but not for a batch that is worth sending.
  bool gathers(Bytes room);
  /// The header of the next packet, except the fields that depend on its contents.
  [[nodiscard]] wire::Header next_header() const {
    wire::Header header;
    if (config_->full_integrity && !is_sealed_) header.flags |= wire::full_integrity;
    header.connection = peer_connection_;
    header.tag = peer_tag_;
    header.packet_number = sent_.next_number();
    return header;
  }
  /// Writes the header, and seals the packet. `greets`: it has CONNECT or ACCEPT in it.
  void finish(Draft& draft, wire::Header& header, std::span<std::byte> buffer, BuiltPacket& packet, bool greets) {
    if (!is_sealed_) [[likely]]
      packet.header = draft.writer.finish(header, packet.payload);
    else
      seal(draft, header, buffer, packet, greets);
  }
  void seal(Draft& draft, wire::Header& header, std::span<std::byte> buffer, BuiltPacket& packet, bool greets);
  /// Maximum bytes of the next packet; 0: none may be sent, because the peer's address is not proven.
  [[nodiscard]] std::size_t room() const { return is_proven_ ? max_packet_ : room_unproven(); }
  [[gnu::cold]] [[nodiscard]] std::size_t room_unproven() const;
  void carry(Draft& draft, const Chunk& chunk) {
    sent_.add_chunk(chunk);
    ++draft.chunks;
  }
  /// Leaves `room_behind` bytes for later frames. `withheld`: the packet is not sent, so the next one carries the ACK,
  /// too.
  void write_ack(wire::Writer& writer, std::size_t room_behind, bool withheld, Nanos now);
  void write_control(Draft& draft, bool with_data);
  [[gnu::cold]] void write_close(Draft& draft);
  void write_data(Draft& draft, BuiltPacket& packet, Nanos now);
  void fill_data(Draft& draft, BuiltPacket& packet);
  [[nodiscard]] bool has_room_for_data(std::size_t room) const;
  /// Whether the next packet with data must ask for an acknowledgement at once.
  [[nodiscard]] bool needs_ack_now() const;
  /// When a number is due to be skipped: whether the next packet with data is withheld, see SentPackets::on_withheld().
  [[nodiscard, gnu::cold]] bool may_withhold() const;
  /// Fills in the job tag of a header of a packet with data, and charges the pacers with its `bytes`.
  void mark_data(wire::Header& header, std::uint32_t bytes, Nanos now);
  /// After abort(): sends a few copies of CLOSE.
  [[gnu::cold]] void repeat_close(Nanos now);

  // Completions.
  /// After close(): sends CLOSE once the last message has completed.
  void maybe_close() {
    if (state_ != State::flushing || !sends_.empty()) return;
    state_ = State::closing;
    due_.close = true;
  }
  [[gnu::cold]] void complete_all(Status status);
  void push(const Completion& completion) {
    if (completion.kind == Completion::Kind::closed) [[unlikely]]
      links_->holds->complete(completion, PayloadHolds::kNone, *links_->completions);
    else
      links_->completions->push(completion);
  }
  void push_sent(const MessageSender::Message& message, Status status) {
    sends_.on_completed();
    if (job_ != kNoJob) links_->jobs[job_].on_messages(-1);
    const Completion completion{.kind = Completion::Kind::sent,
                                .status = status,
                                .connection = id_,
                                .tag = message.tag,
                                .bytes = message.length};
    if (message.hold == PayloadHolds::kNone) [[likely]]
      links_->completions->push(completion);
    else
      links_->holds->complete(completion, message.hold, *links_->completions);
  }

  // Ordered by use, in whole cache lines, as with many connections each line is a cache miss. A receiver uses the first
  // six lines and the first one of sent_; a sender the first eight and the first four of sent_ (SentPackets::prefetch).
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kReceiverLines = 6;
  static constexpr std::size_t kSenderLines = 8;

  // Line 0: identity and state.
  alignas(kLine) const ShardLinks* links_;
  std::shared_ptr<const ConnectionConfig> config_;
  ConnectionId id_;
  std::uint32_t peer_connection_ = 0;
  std::uint32_t job_ = kNoJob;
  std::uint32_t max_packet_;
  Address remote_;
  State state_ = State::connecting;
  bool finished_message_ = false;  ///< a message completed in this burst
  bool in_batch_ = false;          ///< a batch is being sent, until the window is full

 public:
  // Flags of the shard's work lists.
  bool touched = false;
  bool active = false;
  bool waits_for_job = false;

 private:
  // Line 1: counters, and control frames to be sent.
  alignas(kLine) std::uint64_t packets_received_ = 0;
  Bytes bytes_sent_ = 0;
  AckBatch* batch_ = nullptr;          ///< acknowledgements of the current burst, lent by the shard; null: none
  Nanos held_until_ = Nanos::never();  ///< blocked by pacing, or by the job's phase gate
  Nanos credit_probe_ = Nanos::never();
  std::uint64_t peer_tag_ = 0;        ///< tag of sent packets
  std::uint32_t paced_overhead_ = 0;  ///< bytes of lower-layer headers per packet that the pacer counts
  /// Frames that go with the next packet. Usually there are none, so all flags are tested together.
  struct Due {
    bool connect = false;
    bool accept = false;
    bool close = false;
    bool ping = false;
    [[nodiscard]] bool any() const { return std::bit_cast<std::uint32_t>(*this) != 0; }
  };
  Due due_;
  bool needs_timer_;                  ///< the congestion controller needs on_timer()
  std::uint8_t ack_ratio_flags_ = 0;  ///< header flags of packets with data, see ack_ratio.h
  bool app_limited_ : 1 = false;      ///< as of the delivery_rate_ sample
  bool aborted_ : 1 = false;          ///< ended by this end, so the peer must be notified
  bool end_told_ : 1 = false;         ///< aborted: CLOSE has been built
  bool has_deadlines_ : 1 = false;    ///< some operation had one
  bool was_accepted_ : 1 = false;     ///< the peer has connected, not this end
  bool is_proven_ : 1 = true;         ///< the peer receives at its address
  bool is_half_open_ : 1 = false;     ///< see is_half_open()
  bool has_cookie_ : 1 = false;       ///< to be sent with CONNECT
  bool size_probe_due_ : 1 = false;   ///< PathMtu::next_probe()
  bool size_changed_ : 1 = false;     ///< max_packet_ is to become PathMtu::size()
  bool may_raise_size_ : 1 = false;   ///< PathMtu::waits_to_raise()
  bool is_sealed_ : 1 = false;        ///< sealing_ is not null
  bool begins_least_ : 1 = false;     ///< see begin_with_least()

  // Line 2.
  alignas(kLine) ReceivedPackets received_;

  // Line 3.
  alignas(kLine) MessageReceiver receives_;

  // Lines 4 and 5; line 5 ends with the first word of the pacer.
  alignas(kLine) MessageSender sends_;

  // Line 6.
  Pacer pacer_;

  // Lines 7 to 10: output and state of the congestion controller. Reno's state ends within line 7.
  alignas(kLine) cc::Controller controller_;

  // Rarely used; fills up the controller's last line.
  std::uint64_t tag_ = 0;  ///< sent in CONNECT or ACCEPT; the peer must put it into its packets
  /// Draining: the end of the drain time. Half open: when the connection is given up. Else never.
  Nanos ends_at_ = Nanos::never();
  Nanos abort_copy_at_ = Nanos::never();           ///< never unless aborted_
  std::unique_ptr<OperationDeadlines> deadlines_;  ///< null until an operation has one

  // Lines 11 to 14, and the rest of sent_.
  alignas(kLine) SentPackets sent_;

  // Rarely used, too.
  Nanos heard_;  ///< time of creation, or of the last packet that was not the highest; see received_.highest_time()
  Nanos look_at_ = Nanos::never();  ///< when to check next whether the peer is still alive
  EcnFeedback ecn_;
  wire::CloseReason abort_reason_ = wire::CloseReason::aborted;
  std::uint8_t abort_copies_left_ = 0;
  std::uint8_t retries_left_ = kMaxRetries;
  std::uint8_t looks_put_off_ = 0;  ///< postponements in a row, see puts_off()
  std::uint16_t acks_ahead_ = 0;    ///< see SentPackets::is_lie()
  std::uint32_t allowance_ = 0;     ///< not proven: bytes that may be sent
  std::uint64_t hole_bytes_ = 0;    ///< bytes used of the shard's budget (HoleLedger)
  std::uint64_t cookie_ = 0;        ///< cookie of the latest RETRY, if has_cookie_
  Rate delivery_rate_;              ///< rate of the latest sample
  struct Sealing {
    std::unique_ptr<PacketSeal> seal;
    PacketSeal::Tag last{};  ///< tag of the packet sent last
    ReplayWindow window;     ///< packets that were opened
    /// Somebody with the key has reported that the peer does not have the connection. The report is accepted at this
    /// time unless a packet from the peer arrives before. Else never.
    Nanos reset_believed_at = Nanos::never();
    Nanos ask_at = Nanos::never();  ///< when to ask the peer again before reset_believed_at
    /// Budget for ACCEPTs that the key does not open. Each connection has its own, so that ACCEPTs forged for one
    /// connection do not delay others.
    WorkBudget failed_accepts{Nanos(500'000)};
    Status refused_as = Status::ok;  ///< connecting: the refusal in an unauthenticated CLOSE; accepted at ends_at_
  };
  std::unique_ptr<Sealing> sealing_;  ///< null: packets are not sealed
  ConnectionCounters stats_;
  PathMtu mtu_;
  Nanos long_lost_since_;  ///< SentPackets::long_lost_noted()
};

// Guards the layout above: every part begins at a cache line, and one member too many adds a line.
static_assert(sizeof(Connection) == 1280);

}  // namespace mltcp::transport
