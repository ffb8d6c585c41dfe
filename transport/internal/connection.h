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
#include "mltcp/transport/internal/paths.h"
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
  std::uint8_t path = 0;  ///< TxPacket::path
};

class alignas(64) Connection {
 public:
  enum class State : std::uint8_t {
    connecting,  ///< CONNECT sent, no ACCEPT yet
    open,
    flushing,  ///< close() called; pending sends continue
    closing,   ///< CLOSE sent, not yet acknowledged
    draining,  ///< the peer or abort() has closed the connection; only replies to packets until the drain time is over
    dead,      ///< to be destroyed by the shard
  };

  /// `links` must outlive the connection.
  Connection(ConnectionId id, const Address& remote, std::shared_ptr<const ConnectionConfig> config,
             const cc::AlgorithmTable& algorithm, const ShardLinks& links, Nanos now);

  // The peer must put `tag` into its packets. The shard checks the tag before it passes a packet to the connection.

  /// Starts the handshake at the client.
  void start_connect(std::uint64_t tag);
  /// Accepts a connection at the server. `peer` is the frame with which the peer has requested the connection. The
  /// connection is half open until a packet shows that the peer has received ACCEPT, for at most half_open_time().
  /// `is_proven`: whether the peer has shown that it receives packets at its address. As long as the address is not
  /// proven, this end sends at most three times as many bytes as it has received.
  void start_accept(const wire::ConnectFrame& peer, std::uint64_t tag, bool is_proven, Nanos now);

  /// Starts with the minimum window, which then grows slowly. Call this function before start_connect() or
  /// start_accept() if there was a recent violation from the peer's address.
  void start_at_min_window(Nanos now);

  /// Seals the packets of this connection. Call this function before start_connect() or start_accept().
  void set_seal(std::unique_ptr<PacketSeal> seal);

  [[nodiscard]] ConnectionId id() const { return id_; }
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Address& remote() const { return remote_; }
  /// Returns whether the peer may send from `source`: from its address, and if its packets take several paths, from any
  /// port.
  [[nodiscard]] bool may_come_from(const Address& source) const {
    return remote_ == source || (peer_has_paths_ && remote_.ip == source.ip);
  }
  [[nodiscard]] std::uint32_t peer_connection() const { return peer_connection_; }
  /// Returns the tag that the peer expects in packets from this end; 0 while connecting.
  [[nodiscard]] std::uint64_t peer_tag() const { return peer_tag_; }
  [[nodiscard]] bool was_accepted() const { return was_accepted_; }
  [[nodiscard]] bool is_proven() const { return is_proven_; }
  /// Returns whether the connection was accepted, but no packet has shown yet that the peer has received ACCEPT.
  [[nodiscard]] bool is_half_open() const { return is_half_open_; }
  [[nodiscard]] bool is_sealed() const { return is_sealed_; }
  /// Returns whether a CONNECT comes from the client that made this connection. Requires a sealed connection.
  [[nodiscard]] bool opens_greeting(const wire::KeyFrame& key, const SealedPacket& packet,
                                    const PacketSeal::Tag& tag) const {
    return sealing_->seal->opens_greeting(key.id, key.random, packet, tag);
  }
  /// The id of the job's key, and the random bytes that this end contributed to the packet keys. Both functions require
  /// a sealed connection.
  [[nodiscard]] std::uint64_t key_id() const { return sealing_->seal->key_id(); }
  [[nodiscard]] const EndRandom& own_random() const { return sealing_->seal->own(); }
  [[nodiscard]] bool is_over() const { return state_ == State::dead; }
  [[nodiscard]] std::uint8_t priority() const { return config_->priority; }
  [[nodiscard]] std::uint64_t next_packet_number() const { return sent_.next_number(); }

  PostResult send(const std::byte* data, Bytes length, std::uint64_t tag, Nanos deadline, std::uint8_t uncharged = 0);
  PostResult receive(std::byte* buffer, Bytes capacity, std::uint64_t tag, Nanos deadline);
  /// Ends the send with this tag with Status::timed_out. Returns false, without effect, if there is no such send, or if
  /// bytes of its message have been sent.
  bool cancel_send(std::uint64_t tag);
  /// Ends the receive with this tag with Status::timed_out. Returns false, without effect, if there is no such receive,
  /// or if bytes of its message have arrived.
  bool cancel_receive(std::uint64_t tag);
  bool discard_receive(std::uint64_t tag, std::uint64_t new_tag);
  void close();
  /// Ends the connection at once and completes all outstanding operations with `status`, without notifying the peer.
  void fail(Status status);
  /// Ends the connection and completes all outstanding operations, because the peer no longer has the connection.
  void on_forgotten();
  /// Like fail(Status::aborted), but notifies the peer.
  void abort(Nanos now) { end(Status::aborted, wire::CloseReason::aborted, now); }
  /// Handles a RESET, which reports that the peer no longer has the connection. The caller has checked that the RESET
  /// has the right tag, which only the peer knows. If the connection is sealed, the caller has checked that the sender
  /// has the key.
  void on_reset(Nanos now);

  /// Opens a sealed packet, and writes the packet's body to `out` if the body was encrypted. Returns false if the
  /// packet must be ignored: the peer did not seal it, it is a replay, or the connection is not sealed.
  [[nodiscard]] bool open(const RxPacket& packet, const wire::Header& header, std::span<std::byte> out,
                          wire::Reader& reader, Nanos now);
  /// Returns whether the packet must be ignored because the connection is sealed and a packet with this number has
  /// arrived, or may have arrived. If so, counts the packet.
  [[nodiscard]] bool is_replay(const wire::Header& header);
  /// Returns whether the sender of a RESET with this seal has the connection's key and answers the packet that this end
  /// sent last.
  [[nodiscard]] bool is_answer_of_restarted(const PacketSeal::Tag& tag) const;

  /// Processes a packet with a valid header that is addressed to this connection. The packet has the connection's tag,
  /// or was opened with its keys, or is the CONNECT that created the connection, possibly repeated. `reader` is at the
  /// first frame.
  void on_packet(const wire::Header& header, wire::Reader& reader, const RxPacket& packet, Nanos now);
  /// Processes a packet of which a switch has removed the end. The packet is not sealed, and has the connection's tag.
  void on_trimmed_packet(const wire::Header& header);
  /// Runs loss detection and congestion control. Call this function after the last packet of a burst.
  void end_of_batch(Nanos now);
  void on_timer(Nanos now);
  /// Handles the time limits: deadlines of operations, keep-alive, idle timeout, and the limits of half-open
  /// connections and of unconfirmed RESETs.
  void on_watch(Nanos now);
  /// Returns the latest time for the next on_watch(). This time changes in on_watch(), in on_reset(), during the
  /// handshake, and when an operation with a deadline is posted.
  [[nodiscard]] Nanos watch_deadline() const;

  /// The reason why build() has built no packet; `no` if it has built one.
  enum class Blocked : std::uint8_t { no, nothing, gate, window, pacing, job_pacing };
  /// Builds the next packet into `buffer` if one may be sent now. `buffer` has at least
  /// PacketIo::Limits::max_packet_bytes.
  Blocked build(Nanos now, std::span<std::byte> buffer, BuiltPacket& packet);
  /// Returns when on_timer() or build() must be called next.
  [[nodiscard]] Nanos next_deadline() const;

  /// Attaches the connection to a job. `job` is the index of a used job, or kNoJob to detach the connection.
  void attach(std::uint32_t job);
  [[nodiscard]] std::uint32_t job() const { return job_; }
  static constexpr std::uint32_t kNoJob = ~std::uint32_t{0};

  [[nodiscard]] ConnectionStats stats() const;

  /// Returns whether a message to which the program may reply completed in this burst. If so, the shard sends nothing
  /// on this connection before the next poll(), so that the packets sent then include the reply. Call this function
  /// once, after end_of_batch(), because it resets the flag.
  [[nodiscard]] bool awaits_answer() {
    const bool awaits = finished_message_;
    finished_message_ = false;
    return awaits;
  }

  /// Prefetches the connection's own cache lines that a received packet uses. If `acknowledges` is true, also
  /// prefetches the lines of the send side. It must be true if the packet contains an ACK or if a message is about to
  /// be sent. Call prefetch_rings() when these lines are cached, to prefetch the memory to which they point.
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
    bool eliciting = false;  ///< the packet must be acknowledged
    bool at_once = false;    ///< the packet must be acknowledged at once
    bool data = false;
    bool acknowledges = false;
    bool news = false;      ///< the packet contains data that had not been received before
    bool finished = false;  ///< the oldest message has completed, and perhaps later messages
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

  /// Handles a frame while the connection waits for ACCEPT. Returns false if the packet must be ignored.
  [[gnu::cold]] bool opens(const wire::Frame& frame, const wire::Header& header, Nanos now);
  /// Processes the frames of a packet. Returns false if the packet must be ignored.
  bool take_frames(wire::Reader& reader, const wire::Header& header, Arrival& arrival, Nanos now);
  void on_data(const wire::DataFrame& frame, const wire::Header& header, Arrival& arrival);
  /// Handles frames other than DATA and ACK. Returns false if the packet must be ignored.
  [[gnu::cold]] bool on_control(const wire::Frame& frame, const wire::Header& header, Arrival& arrival, Nanos now);
  [[gnu::cold]] void count_refused(MessageReceiver::Taken why);
  void complete_receive(const MessageReceiver::Message& message, const wire::Header& header);
  /// Handles an ACK. Returns false if it acknowledges packets that were never sent; the connection has then ended.
  bool on_ack(const wire::AckFrame& frame, const wire::Header& header, Nanos now);
  /// Returns the forward delay of this connection; null unless its job takes turns.
  [[nodiscard]] ForwardDelay* forward_delay() const {
    const bool takes_turns = job_ != kNoJob && links_->jobs[job_].augmentation.takes_turns();
    return takes_turns ? &links_->forward_delays[id_ & links_->index_mask] : nullptr;
  }
  [[gnu::cold]] void on_violation(Nanos now);
  /// Adds the congestion marks that an acknowledgement reports to `sample`.
  void count_marks(const wire::AckFrame& frame, std::uint32_t newly_acked, Bytes newly_acked_bytes,
                   cc::AckSample& sample);
  /// Handles the arrival of a packet for a half-open connection.
  [[gnu::cold]] void on_half_open(const wire::Header& header, const RxPacket& packet);
  [[gnu::cold]] void on_retry(std::uint64_t cookie, Nanos now);
  void on_acked_chunk(const Chunk& chunk, Nanos now);
  /// Completes the oldest messages that are acknowledged. If the peer sends reports of whole messages, completes only
  /// messages that it has reported as whole.
  void complete_sends(Nanos now);
  /// Completes the oldest messages that the peer has reported as whole, whether or not they are acknowledged. Called
  /// when the peer closes.
  void complete_whole();
  [[gnu::cold]] void check_front(Nanos now);
  [[gnu::cold]] void on_accepted(const wire::ConnectFrame& peer);
  /// Handles a CLOSE. Returns false if the packet must be ignored.
  [[gnu::cold]] bool on_close(wire::CloseReason reason, Nanos now);
  /// After this many consecutive probe timeouts the peer may be refusing the contents of the probes.
  static constexpr std::uint32_t kProbesInVain = 8;
  /// Drain time after closing, in probe timeouts; see SentPackets::bounded() for its limit.
  static constexpr std::int64_t kDrainTimeouts = 8;
  /// Maximum time that a half-open connection's CLOSE waits for room in the datapath.
  static constexpr Nanos kTimeForClose{1'000'000};
  /// Maximum time for which an accepted connection may be half open, however often its peer repeats CONNECT. This is
  /// several round trips of nearly any path. half_open_time() is longer if initial_rtt is long.
  static constexpr Nanos kHalfOpenLimit{3'000'000'000};
  [[nodiscard]] Nanos half_open_time() const;
  /// If received packets wait to be processed, postpones the end of the connection, because some of the packets may
  /// come from the peer. If the end is postponed, sets `end` to the new time and returns true. Postpones the end by at
  /// most `limit` in total.
  bool puts_off(Nanos limit, Nanos& end, Nanos now);
  /// Maximum number of bytes sent per received byte before the peer's address is proven (RFC 9000 section 8.1).
  static constexpr std::uint32_t kBytesPerUnprovenByte = 3;
  /// Maximum number of RETRYs per connection that this end answers immediately.
  static constexpr std::uint8_t kMaxRetries = 4;
  [[gnu::cold]] void drain(Nanos now);
  void raise_credit(std::uint32_t messages);
  /// Completes sends beyond the credit with Status::closed in two cases. If both ends are flushing, no more buffers
  /// will be posted. If only the peer is flushing, and bytes of a message beyond the credit have been sent, the peer
  /// will refuse all data of that message.
  void drop_unsendable();

  // Deadlines and idle detection.
  void need_deadlines();
  [[gnu::cold]] void expire_operations(Nanos now);
  [[gnu::cold]] void look_for_peer(Nanos now);
  /// Handles an unconfirmed RESET of a sealed connection: sends the peer another PING, or ends the connection if the
  /// time for an answer is over.
  void look_into_reset(Nanos now);
  void refute_reset();
  void end(Status status, wire::CloseReason reason, Nanos now);

  /// Adopts the version and the number of paths that the peer's CONNECT or ACCEPT says.
  void agree_on_paths(std::uint8_t version, std::uint32_t peers);

  // Packet size.
  void agree_on_max_packet(std::uint32_t peers);
  /// Number of consecutive probe timeouts after which the packets may be too long for the path.
  static constexpr std::uint32_t kSuspiciousTimeouts = 3;
  /// Number of long packets lost, with no long packet arriving in between, after which they may be too long for the
  /// path.
  static constexpr std::uint8_t kSuspiciousLosses = 10;
  static constexpr Nanos kSuspiciousSilence{500'000'000};
  /// Returns whether the packet size may be the reason for a probe timeout. If so, starts to test the size.
  bool suspects_size(Nanos now);
  /// Starts to test the packet size if many long packets have been lost. Call this function after losses.
  [[gnu::cold]] void check_size(Nanos now);
  [[nodiscard]] Nanos patience_with_size() const;
  /// Starts to test the packet size. Returns false if packets already have the smallest size.
  bool suspect_size();
  [[gnu::cold]] void on_size_verdict(PathMtu::Verdict verdict);
  /// Changes the maximum size of packets to PathMtu::size(). If packets become shorter, handles `losses` and returns
  /// true.
  [[gnu::cold]] bool change_size(const SentPackets::Losses& losses);
  [[nodiscard]] bool may_probe_size() const {
    return may_send_messages() && is_proven_ && !due_.connect && !due_.accept;
  }
  /// Builds a size probe. Returns false if none is needed any more.
  [[gnu::cold]] bool build_size_probe(Nanos now, std::span<std::byte> buffer, BuiltPacket& packet);

  // Congestion control.
  [[nodiscard]] cc::PathInfo path() const;
  /// Detects losses and responds to them. Returns whether there is persistent congestion. `ce_packets` is the number of
  /// marked packets that were acknowledged in the same batch.
  bool detect_losses(Nanos now, std::uint32_t ce_packets);
  void requeue(const Chunk& chunk);
  /// Handles a chunk of a lost packet.
  [[gnu::cold]] void on_lost_chunk(const Chunk& chunk, Nanos now);
  void on_probe_timeout(Nanos now);
  void on_congestion(cc::CongestionEvent::Cause cause, Nanos now);
  void on_trimmed(const wire::TrimmedFrame& frame, Nanos now);
  /// Tells the congestion controller of losses. Returns whether nothing was delivered for several probe timeouts.
  bool respond(const SentPackets::Losses& losses, std::uint32_t ce_packets, Nanos now);
  void add_gain(cc::AckSample& sample, const JobState& job) const;
  void update_pacing();

  // Sending.

  /// Returns whether there is data to retransmit, or new data for which the peer has granted credit and the phase gate
  /// is open.
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
  /// Returns whether the final credit must be sent now. The final credit lets the peer end messages for which this end
  /// will post no buffer.
  [[nodiscard]] bool needs_final_credit() const { return !receives_.final_sent() && sends_.waits_for_credit(); }
  /// Returns whether the next packet contains CONNECT or ACCEPT.
  [[nodiscard]] bool greets_next() const { return due_.connect || (due_.accept && state_ != State::draining); }
  [[nodiscard]] bool control_due() const {  // due_.any() would also count ACCEPT, which is not sent while draining
    return (due_.any() && (greets_next() || due_.close || due_.ping)) || credit_urgent();
  }
  /// Returns whether CONNECT must wait because of a violation from the peer's address. If so, sets the time of the next
  /// check.
  [[gnu::cold]] bool is_held_off(Nanos now);
  /// Returns what prevents data from being sent, and sets the time of the next check.
  Blocked data_blocked(Nanos now);
  Blocked gate_blocked(Nanos now);
  Blocked window_blocked(Nanos now);
  /// Returns whether to wait because the window has room for a packet, but not yet for a batch that is worth sending.
  bool gathers(Bytes free_bytes);
  /// Returns the header of the next packet without the fields that depend on its contents.
  [[nodiscard]] wire::Header next_header() const {
    wire::Header header;
    if (config_->full_integrity && !is_sealed_) header.flags |= wire::full_integrity;
    header.connection = peer_connection_;
    header.tag = peer_tag_;
    header.packet_number = sent_.next_number();
    return header;
  }
  /// Writes the header, and seals the packet if the connection is sealed. `greets`: whether the packet contains CONNECT
  /// or ACCEPT.
  void finish(Draft& draft, wire::Header& header, std::span<std::byte> buffer, BuiltPacket& packet, bool greets) {
    if (!is_sealed_) [[likely]]
      packet.header = draft.writer.finish(header, packet.payload);
    else
      seal(draft, header, buffer, packet, greets);
  }
  void seal(Draft& draft, wire::Header& header, std::span<std::byte> buffer, BuiltPacket& packet, bool greets);
  /// Returns the maximum size of the next packet in bytes. Returns 0 if no packet may be sent because the peer's
  /// address is not proven.
  [[nodiscard]] std::size_t packet_limit() const { return is_proven_ ? max_packet_ : unproven_packet_limit(); }
  [[gnu::cold]] [[nodiscard]] std::size_t unproven_packet_limit() const;
  void carry(Draft& draft, const Chunk& chunk) {
    sent_.add_chunk(chunk);
    ++draft.chunks;
  }
  /// Writes an ACK that leaves `reserved` bytes of the packet for later frames. `withheld`: the packet will not be
  /// sent, so the next packet repeats the ACK.
  void write_ack(wire::Writer& writer, std::size_t reserved, bool withheld, Nanos now);
  /// Returns the paths of sent packets; null if there is one. Does not read a cache line of its own then.
  [[nodiscard]] Paths* own_paths() const { return own_has_paths_ ? paths_.get() : nullptr; }
  /// Returns the path value of the next packet. `eliciting`: whether the packet will be acknowledged.
  [[nodiscard, gnu::cold]] std::uint8_t choose_path(bool eliciting);
  void write_control(Draft& draft, bool with_data);
  [[gnu::cold]] void write_close(Draft& draft);
  void write_data(Draft& draft, BuiltPacket& packet, Nanos now);
  void fill_data(Draft& draft, BuiltPacket& packet);
  [[nodiscard]] bool has_space_for_data(std::size_t free_bytes) const;
  /// Returns whether the next packet with data must request an acknowledgement at once.
  [[nodiscard]] bool needs_ack_now() const;
  /// Returns whether the next packet with data may be built but not sent, instead of skipping a packet number. See
  /// SentPackets::on_withheld().
  [[nodiscard, gnu::cold]] bool may_withhold() const;
  /// Writes the job tag into the header of a packet with data, and charges the packet's `bytes` to the pacers.
  void mark_data(wire::Header& header, std::uint32_t bytes, Nanos now);
  /// Sends the copies of CLOSE that follow abort().
  [[gnu::cold]] void repeat_close(Nanos now);

  // Completions.

  /// Sends CLOSE if close() was called and the last message has completed.
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

  // Members are ordered by use, in whole cache lines, because with many connections each line is a cache miss. A
  // receiver uses the first six lines and the first line of sent_. A sender uses the first eight lines and the first
  // four lines of sent_ (SentPackets::prefetch).
  static constexpr std::size_t kLine = 64;
  static constexpr std::size_t kReceiverLines = 6;
  static constexpr std::size_t kSenderLines = 8;

  // Cache line 0: identity and state.
  alignas(kLine) const ShardLinks* links_;
  std::shared_ptr<const ConnectionConfig> config_;
  ConnectionId id_;
  std::uint32_t peer_connection_ = 0;
  std::uint32_t job_ = kNoJob;
  std::uint32_t max_packet_;
  Address remote_;
  State state_ = State::connecting;
  bool finished_message_ = false;  ///< a message completed in this burst
  bool in_batch_ = false;          ///< true from the start of a batch until the window is full

 public:
  // Flags for each of the shard's work lists: whether this connection is in the list.
  bool touched = false;
  bool active = false;
  bool waits_for_job = false;

 private:
  // Cache line 1: counters, and control frames to be sent.
  alignas(kLine) std::uint64_t packets_received_ = 0;
  Bytes bytes_sent_ = 0;
  /// Acknowledgements of the current burst, lent by the shard; null if there are none.
  AckBatch* batch_ = nullptr;
  Nanos held_until_ = Nanos::never();  ///< when sending is no longer blocked by pacing, the phase gate or a violation
  Nanos credit_probe_ = Nanos::never();
  std::uint64_t peer_tag_ = 0;        ///< tag of sent packets
  std::uint32_t paced_overhead_ = 0;  ///< bytes of lower-layer headers per packet that the pacer counts
  /// Control frames that the next packet must contain. Usually there are none, so all flags are tested together.
  struct Due {
    bool connect = false;
    bool accept = false;
    bool close = false;
    bool ping = false;
    [[nodiscard]] bool any() const { return std::bit_cast<std::uint32_t>(*this) != 0; }
  };
  Due due_;
  bool needs_timer_;                       ///< the congestion controller needs on_timer()
  std::uint8_t ack_ratio_flags_ = 0;       ///< header flags of packets with data, see ack_ratio.h
  bool app_limited_ : 1 = false;           ///< whether the application limited the delivery_rate_ sample
  bool aborted_ : 1 = false;               ///< this end has ended the connection, so the peer must be notified
  bool close_built_ : 1 = false;           ///< CLOSE has been built; only used if aborted_
  bool has_deadlines_ : 1 = false;         ///< deadlines_ is not null
  bool was_accepted_ : 1 = false;          ///< the peer has opened the connection, not this end
  bool is_proven_ : 1 = true;              ///< the peer has shown that it receives packets at its address
  bool is_half_open_ : 1 = false;          ///< see is_half_open()
  bool has_cookie_ : 1 = false;            ///< cookie_ must be sent with CONNECT
  bool size_probe_due_ : 1 = false;        ///< PathMtu::next_probe() is not 0
  bool size_changed_ : 1 = false;          ///< max_packet_ must be changed to PathMtu::size()
  bool may_raise_size_ : 1 = false;        ///< result of PathMtu::waits_to_raise()
  bool is_sealed_ : 1 = false;             ///< sealing_ is not null
  bool starts_at_min_window_ : 1 = false;  ///< start_at_min_window() has been called
  bool has_paths_ : 1 = false;             ///< paths_ is not null
  bool peer_has_paths_ : 1 = false;        ///< the peer's packets have several path values
  bool own_has_paths_ : 1 = false;         ///< the packets of this end have several path values
  bool has_trimmed_ : 1 = false;           ///< the next ACK reports trimmed_

  // Cache line 2.
  alignas(kLine) ReceivedPackets received_;

  // Cache line 3.
  alignas(kLine) MessageReceiver receives_;

  // Cache lines 4 and 5. Line 5 ends with the first word of the pacer.
  alignas(kLine) MessageSender sends_;

  // Cache line 6.
  Pacer pacer_;

  // Cache lines 7 to 10: output and state of the congestion controller. Reno's state ends within line 7.
  alignas(kLine) cc::Controller controller_;

  // Rarely used members, which fill up the controller's last cache line.
  std::uint64_t tag_ = 0;  ///< sent in CONNECT or ACCEPT; the peer must put it into its packets
  /// While draining, the end of the drain time. While half open, the time when the connection is given up. While
  /// connecting, the time when Sealing::refused_as takes effect. Nanos::never() in all other states.
  Nanos ends_at_ = Nanos::never();
  Nanos abort_copy_at_ = Nanos::never();           ///< time of the next copy of CLOSE; never() if there is none
  std::unique_ptr<OperationDeadlines> deadlines_;  ///< null until first needed

  // Cache lines 11 to 14, and the rest of sent_.
  alignas(kLine) SentPackets sent_;

  // Rarely used members.

  /// Arrival time of the latest packet whose number was not a new highest number, or the time of creation. The packet
  /// with the highest number arrived at received_.highest_time().
  Nanos heard_;
  Nanos look_at_ = Nanos::never();  ///< time of the next check whether the peer is still alive
  EcnFeedback ecn_;
  wire::CloseReason abort_reason_ = wire::CloseReason::aborted;
  std::uint8_t abort_copies_left_ = 0;
  std::uint8_t retries_left_ = kMaxRetries;
  std::uint8_t looks_put_off_ = 0;                 ///< consecutive postponements, see puts_off()
  std::uint8_t version_ = wire::kProtocolVersion;  ///< of the wire format; chosen by the server
  std::uint16_t acks_ahead_ = 0;                   ///< number of acknowledgements of packets that were not sent yet
  std::uint32_t allowance_ = 0;                    ///< bytes that may still be sent before the peer's address is proven
  std::uint64_t hole_bytes_ = 0;  ///< bytes of the shard's memory for holes that this connection uses (HoleLedger)
  std::uint64_t cookie_ = 0;      ///< cookie of the latest RETRY, if has_cookie_
  Rate delivery_rate_;            ///< rate of the latest sample
  struct Sealing {
    std::unique_ptr<PacketSeal> seal;
    PacketSeal::Tag last{};  ///< tag of the packet sent last
    ReplayWindow window;     ///< numbers of the packets that were opened
    /// Time when this end accepts a report that the peer no longer has the connection; never() if there is no report.
    /// The report was sealed with the key. Any packet from the peer that arrives before this time refutes the report.
    Nanos reset_believed_at = Nanos::never();
    Nanos ask_at = Nanos::never();  ///< time of the next PING because of that report; never() if there is no report
    /// Budget for attempts to open ACCEPTs that the key does not open. Each connection has its own budget, so that
    /// ACCEPTs forged for one connection do not delay others.
    WorkBudget failed_accepts{Nanos(500'000)};
    /// While connecting, the refusal from an unauthenticated CLOSE, which takes effect at ends_at_. Status::ok if there
    /// is none.
    Status refused_as = Status::ok;
  };
  std::unique_ptr<Sealing> sealing_;  ///< null if packets are not sealed
  std::unique_ptr<Paths> paths_;      ///< null if the packets of both ends have one path value
  ConnectionCounters stats_;
  PathMtu mtu_;
  wire::TrimmedFrame trimmed_;  ///< trimmed packets that the peer does not know of yet
  Nanos long_lost_since_;       ///< time of the latest SentPackets::note_long_lost()
};

// Guards the layout above. Every part begins at a cache line, so one member too many adds a line.
static_assert(sizeof(Connection) == 1344);

}  // namespace mltcp::transport
