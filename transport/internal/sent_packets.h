// Records the packets that a connection has sent, and derives round-trip times, the delivery rate and losses from their
// acknowledgements. Loss recovery follows RFC 9002. Packet numbers are never reused. A packet is lost when a packet
// that was sent sufficiently later, in packets or in time, has been acknowledged (reordering.h). A probe timeout sends
// probes without declaring losses. The delivery rate is sampled as in draft-cheng-iccrg-delivery-rate-estimation. While
// a window is being reduced after a loss, packets are sent in proportion to those that arrive (RFC 9937).
//
// Probes of the path's packet size (path_mtu.h) have records of 0 bytes. They do not count as bytes in flight, and
// their loss is no sign of congestion. This class also counts the long packets that have been lost since a packet as
// long arrived.
//
// The caller responds to what this class detects. It receives the contents (chunks) of acknowledged and lost packets,
// and runs the congestion controller.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "mltcp/base/ring.h"
#include "mltcp/base/units.h"
#include "mltcp/cc/algorithm.h"
#include "mltcp/transport/internal/ack_batch.h"
#include "mltcp/transport/internal/chunk.h"
#include "mltcp/transport/internal/paths.h"
#include "mltcp/transport/internal/range_set.h"
#include "mltcp/transport/internal/reordering.h"
#include "mltcp/transport/internal/rtt.h"
#include "mltcp/transport/internal/shard_random.h"
#include "mltcp/transport/types.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

class SentPackets {
 public:
  static constexpr Nanos kMaxProbeInterval{1'000'000'000};
  /// Upper bound of waits that depend on the round-trip time, which the peer can increase by acknowledging late. See
  /// bounded().
  static constexpr Nanos kMaxPatience{3'000'000'000};
  /// Maximum number of records per packet in flight. It is more than one, because lost packets and pure
  /// acknowledgements also keep a record for a while.
  static constexpr std::size_t kRecordsPerPacketInFlight = 4;
  static constexpr std::uint16_t kMaxAcksAhead = 4096;
  /// Minimum distance between packet numbers that are skipped on purpose. A random number below `kBetweenSkips` is
  /// added to it.
  static constexpr std::uint32_t kMinBetweenSkips = 128;
  static constexpr std::uint32_t kBetweenSkips = 512;
  /// Number of skipped packet numbers for which memory is allocated at the start.
  static constexpr std::size_t kSkipsAtOnce = 3;
  /// Maximum number of acknowledged ranges tracked. If there are more ranges, repeated acknowledgements of them are
  /// processed again, without effect.
  static constexpr std::size_t kMaxAckedRanges = 8192;

  /// `skips`: whether some packet numbers are skipped, see skip_number(). `checks`: whether the peer is not trusted
  /// (ConnectionConfig::check_peer).
  SentPackets(Nanos initial_rtt, Nanos now, bool skips, bool checks)
      : rtt_(initial_rtt), last_eliciting_sent_(now), last_progress_(now), reordering_(checks) {
    skips_ = skips;
    if (skips) acked_.reserve(kSkipsAtOnce);  // each skipped number is a hole
  }

  /// Packets that were found to be lost.
  struct Losses {
    std::uint32_t packets = 0;
    std::uint32_t by_paths = 0;  ///< packets lost because their paths carry none
    std::uint64_t first = 0;     ///< number of the first lost packet
    std::uint64_t largest = 0;   ///< number of the last lost packet
    /// Longest time between the sending of two lost packets with no acknowledged packet in between.
    Nanos longest_run;
    Bytes in_flight_before = 0;
  };

  // Packets in flight.

  [[nodiscard]] std::uint64_t next_number() const { return packets_.end(); }
  [[nodiscard]] std::uint64_t packets_sent() const { return packets_.end() - skipped_in_all_; }
  [[nodiscard]] Bytes in_flight() const { return in_flight_; }
  [[nodiscard]] std::uint32_t in_flight_packets() const { return in_flight_packets_; }
  /// Returns whether any packet has been acknowledged.
  [[nodiscard]] bool any_acked() const { return any_acked_; }
  [[nodiscard]] std::uint64_t largest_acked() const { return largest_acked_; }
  /// Returns whether a sent packet has been acknowledged; false if its record has been removed.
  [[nodiscard]] bool is_acked(std::uint64_t number) const {
    return number >= packets_.begin() && packets_[number].state == State::acked;
  }
  [[nodiscard]] bool is_in_flight(std::uint64_t number) const {
    return number >= packets_.begin() && packets_[number].state == State::in_flight;
  }
  [[nodiscard]] const RttEstimator& rtt() const { return rtt_; }
  [[nodiscard]] std::uint64_t lost_packets() const { return lost_in_all_; }
  [[nodiscard]] std::uint64_t spurious_losses() const { return spurious_in_all_; }

  // Long packets are longer than wire::kSmallestPacket. A path may drop them while it carries short packets.

  /// Returns the number of lost long packets, at most kMaxLongLost. The count restarts at 0 when a packet at least as
  /// long as the shortest counted packet is acknowledged.
  [[nodiscard]] std::uint8_t long_lost() const { return long_lost_ & kMaxLongLost; }
  static constexpr std::uint8_t kMaxLongLost = 127;
  /// Returns whether note_long_lost() has been called since long_lost() was 0.
  [[nodiscard]] bool long_lost_noted() const { return long_lost_ > kMaxLongLost; }
  void note_long_lost() { long_lost_ |= kMaxLongLost + 1; }
  /// Returns the size in bytes of the longest packet acknowledged since the last set_longest_acked(), or the value
  /// passed to that call if this value is larger.
  [[nodiscard]] std::uint32_t longest_acked() const { return longest_acked_; }
  void set_longest_acked(std::uint32_t bytes) {
    longest_acked_ = static_cast<std::uint16_t>(bytes);
    long_lost_ = 0;
    note_size();
  }
  [[nodiscard]] std::uint32_t longest_in_flight() const;
  /// Declares lost all packets in flight that are longer than `bytes`, because the path does not carry them. Such
  /// losses are no sign of congestion. `losses` is the result of detect_losses(). Call this function instead of
  /// judge().
  template <typename OnLost>
  void forgive_losses(std::uint32_t bytes, const Losses& losses, OnLost on_lost);

  // Sending.

  /// Returns whether the number of records is at its maximum. If so, call make_room() before the next packet.
  [[nodiscard]] bool full(const ConnectionConfig& config) const { return packets_.size() >= max_records(config); }
  /// Removes the oldest record. If its packet is still in flight, declares the packet lost. This class calls
  /// `on_lost(const Chunk&)` for each chunk of a lost packet.
  template <typename OnLost>
  void make_room(OnLost on_lost) {
    if (packets_.front().state == State::in_flight) {
      if (packets_.front().bytes > 0) ++lost_in_all_;
      mark_lost(packets_.front(), on_lost);
    }
    forget_oldest();
    acked_.remove_below(packets_.begin());
  }
  /// Adds a chunk to the packet that is being built.
  void add_chunk(const Chunk& chunk) { chunks_.push(chunk); }
  /// Records a packet of `bytes` bytes that has been built. It contains the last `chunk_count` chunks added, at least
  /// one. `path` is its path value.
  void on_sent(std::uint32_t bytes, std::uint16_t chunk_count, std::uint8_t path, Nanos now) {
    if (in_flight_packets_ == 0) {
      first_sent_ = delivered_time_ = now;
      // After a probe timeout, sending is no progress: all packets may be lost, and only size probes may have arrived.
      if (probe_count_ == 0) last_progress_ = now;
    }
    // Written in place: building the record first and copying it would stall on store forwarding.
    Packet& record = packets_.push_reused();
    record.sent = now;
    record.first_sent = first_sent_;
    record.delivered_time = delivered_time_;
    record.delivered = delivered_;
    record.first_chunk = static_cast<std::uint32_t>(chunks_.end() - chunk_count);
    record.in_flight =
        static_cast<std::uint32_t>(std::min<Bytes>(in_flight_ + bytes, std::numeric_limits<std::uint32_t>::max()));
    record.lost = lost_total_ & kLostBits;
    record.was_overtaken = 0;
    record.path = path;
    record.bytes = static_cast<std::uint16_t>(bytes);
    record.chunk_count = static_cast<std::uint16_t>(chunk_count & 0x1FFFU);
    record.state = State::in_flight;
    record.app_limited = delivered_ < app_limited_until_;
    in_flight_ += bytes;
    ++in_flight_packets_;
    last_eliciting_sent_ = now;
    if (until_skip_ > 0) --until_skip_;
  }
  /// Records a packet without chunks, which is never acknowledged. It needs a record only to keep the numbering
  /// contiguous.
  void on_sent_bare(const ConnectionConfig& config, Nanos now) {
    if (until_skip_ > 0) --until_skip_;
    if (packets_.empty()) {
      packets_.skip();
      return;
    }
    packets_.push(Packet());
    forget_finished(config, now);
  }
  /// Returns the span field for the header of the latest packet: the packet's number minus number N. N is the oldest
  /// packet for which a repeated acknowledgement is still useful. The peer acknowledges packets below N only once.
  [[nodiscard]] std::uint32_t span() const {
    const std::uint64_t number = packets_.end() - 1;
    const std::uint64_t span = number - std::min(keeps_lost_ ? oldest_of_use_ : packets_.begin(), number);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(span, ~std::uint32_t{0}));
  }
  /// Returns whether skip_number() must be called before the next packet.
  [[nodiscard]] bool skip_is_due() const { return skips_ && until_skip_ == 0; }
  /// Skips the next packet number, to detect a peer that acknowledges packets that it has not received (RFC 9000
  /// section 21.4). The first call only draws at random when to skip. The skipped number gets the record of a packet
  /// that needs no acknowledgement. The receiver forgets the gap as soon as the sender has forgotten the packets before
  /// the gap. A peer can distinguish a skipped number from a loss, because a loss also leaves a gap in the bytes.
  /// on_withheld() does not have this weakness.
  void skip_number(ShardRandom& random);
  /// Returns whether to call on_withheld() instead of skip_number(), if a packet with data is available. This is true
  /// for the first skip, and at random for one in four later skips.
  [[nodiscard]] bool may_withhold(ShardRandom& random) const {
    return withheld_ == 0 || (!is_in_flight(widened(withheld_)) && random.next() >> 62 == 0);
  }
  /// Like on_sent(), for a packet that is deliberately not sent. It is detected as lost like any other packet, and its
  /// contents are sent then. Only congestion control does not see the loss. An acknowledgement of the packet is a
  /// violation.
  void on_withheld(std::uint16_t chunk_count, ShardRandom& random, Nanos now);
  /// Records that the application has no more data to send. So the application limits the delivery rates that the
  /// packets in flight will show.
  void on_app_limited() {
    app_limited_until_ = delivered_ + in_flight_;
    was_idle_ = true;
  }
  /// Records that the next packet is blocked by the window, and not by the application or pacing.
  void on_window_limited() { window_limited_until_ = packets_.end(); }
  /// Returns whether, for lack of data, nothing was in flight for longer than a probe timeout. Call this function
  /// before data is sent.
  [[nodiscard]] bool end_idle(const ConnectionConfig& config, Nanos now) {
    if (in_flight_packets_ != 0 || !was_idle_) return false;
    was_idle_ = false;
    return any_acked_ && now - last_eliciting_sent_ > probe_timeout(config);
  }

  // Acknowledgements.

  /// From now on treats an acknowledgement of a packet that was never sent as a violation. Call this function if the
  /// peer accepts no packets that are forged in this end's name.
  void trust_numbers() { are_own_ = true; }
  /// Returns whether `frame` acknowledges a packet that was never sent, and the peer must know this. The packet has a
  /// future number, the number of the withheld packet, or the latest skipped number without a record. on_ack() finds
  /// skipped numbers that have records.
  ///
  /// Without trust_numbers(), somebody may have sent a forged packet with such a number to the peer, which acknowledges
  /// it in good faith. So one skipped number is forgiven, and future numbers are ignored unless they are too high for
  /// any receiver to accept. An honest receiver drops a future number soon (ReceivedPackets::kMaxBehindTop). A receiver
  /// that continues to acknowledge future numbers keeps the sender from measuring round trips and marks, so
  /// `acks_ahead` counts such acknowledgements. Calls `on_lost(const Chunk&)` for the contents of a withheld packet.
  template <typename OnLost>
  [[nodiscard]] bool is_false_ack(const wire::AckFrame& frame, std::uint16_t& acks_ahead, OnLost on_lost) {
    if (frame.ranges[0].last >= packets_.end()) [[unlikely]]
      if (are_own_ || frame.ranges[0].last - packets_.end() > kRecordsPerPacketInFlight << 20 ||
          ++acks_ahead > kMaxAcksAhead)
        return true;
    if (covers(frame, withheld_)) [[unlikely]] {
      take_back_withheld(on_lost);
      if (!forgives_skip()) return true;
    }
    // Ranges are in descending order, so only the last one can contain numbers without a record.
    if (frame.ranges[frame.range_count - 1].first >= packets_.begin() || !covers(frame, forgotten_skip_)) return false;
    forgotten_skip_ = 0;
    return !forgives_skip();
  }
  /// Processes an ACK frame. Calls `on_acked(const Chunk&)` for each chunk of a newly acknowledged packet. Calls
  /// `stop()` after each newly acknowledged packet, and ends the processing if `stop()` returns true. `news` is scratch
  /// space. `paths` learns what the frame says about path values; null if there is only one. Returns false if the frame
  /// acknowledges a skipped number and this is not forgiven.
  template <typename OnAcked, typename Stop>
  bool on_ack(const wire::AckFrame& frame, AckBatch& batch, std::vector<RangeSet::Range>& news, Paths* paths, Nanos now,
              OnAcked on_acked, Stop stop);
  /// Records that an ACK frame has newly acknowledged packets.
  void on_progress(Nanos now) {
    probe_count_ = 0;
    probes_due_ = 0;
    last_progress_ = now;
  }
  /// Returns whether all losses since the last congestion response were spurious, so that the response must be undone.
  [[nodiscard]] bool undo_losses() {
    if (!has_losses_ || episode_lost_ == 0 || episode_spurious_ < episode_lost_) return false;
    episode_lost_ = episode_spurious_ = 0;
    recovery_until_ = 0;
    return true;
  }
  /// Fills in the rest of `sample`: losses, round-trip times, the round count, and changes since the newest
  /// acknowledged packet was sent.
  void complete(cc::AckSample& sample, std::uint64_t largest_acked) {
    if (largest_acked >= round_end_) {
      ++rounds_;
      round_end_ = packets_.end();
      if (reorders_) [[unlikely]] {
        reordering_.on_round(rounds_, rtt_.smoothed());
        reorders_ = reordering_.seen();
      }
    }
    if (has_losses_) [[unlikely]] {
      sample.lost_packets = std::exchange(lost_packets_, 0);
      sample.lost_bytes = std::exchange(lost_bytes_, 0);
      has_losses_ = episode_lost_ > 0;
    }
    sample.min_rtt = rtt_.minimum();
    sample.smoothed_rtt = rtt_.smoothed();
    sample.round_count = rounds_;
    const Packet& newest = packets_[largest_acked];
    sample.in_flight_when_sent = newest.in_flight;
    sample.delivered_since_sent = delivered_ - newest.delivered;
    sample.lost_since_sent = (lost_total_ - newest.lost) & kLostBits;
    sample.in_recovery = largest_acked < recovery_until_;
  }

  // Loss detection.

  /// Returns how late acknowledgements are known to arrive, as the time beyond a round trip; 0 if none is late.
  [[nodiscard]] Nanos reordering_window() const { return reorders_ ? reordering_.window() : Nanos(0); }
  /// Detects lost packets, and sets loss_time(). If packets were lost, call judge() or forgive_losses() next. `paths`
  /// as in on_ack().
  template <typename OnLost>
  Losses detect_losses(const ConnectionConfig& config, Paths* paths, Nanos now, OnLost on_lost);
  /// Declares packets lost that `frame` reports. Call judge() next if there are any. `paths` as in on_ack().
  template <typename OnLost>
  Losses on_trimmed(const wire::TrimmedFrame& frame, Paths* paths, OnLost on_lost);
  struct Verdict {
    bool congestion = false;  ///< first loss in its round trip: the congestion controller must respond
    bool persistent = false;  ///< nothing was delivered for three probe timeouts (RFC 9002 section 7.6)
  };
  /// Decides how to respond to `losses`. `congestion`: whether the congestion controller regards them as a sign of
  /// congestion.
  Verdict judge(const Losses& losses, bool congestion, const ConnectionConfig& config);
  /// Returns when the next packet will be declared lost unless it is acknowledged before; never() if there is no such
  /// packet.
  [[nodiscard]] Nanos loss_time() const { return loss_time_; }
  /// Returns whether a sign of congestion in packet `number` is the first in its round trip, so that it needs a
  /// response.
  [[nodiscard]] bool responds_to(std::uint64_t number) const { return number >= recovery_until_; }
  /// Records that the congestion controller responds to marks. Signs of congestion in packets sent so far belong to
  /// this event. Unlike a response to losses, this response cannot be undone.
  void begin_recovery() {
    recovery_until_ = packets_.end();
    episode_lost_ = 0;
    reduced_from_ = 0;
  }
  /// Returns whether a packet of `bytes` may be sent although the window is full, because the window is being reduced
  /// after a loss. One packet with the lost data may be sent at once. After that, bytes may be sent in proportion to
  /// delivered bytes: by the ratio of the new `window` to the bytes that were in flight (RFC 9937 section 6.2). The
  /// reduction bound of that RFC is not used. Below the window, only the pacer limits bursts.
  [[nodiscard]] bool reduction_allows(Bytes bytes, double window) const {
    if (largest_acked_ >= recovery_until_ || reduced_from_ == 0) return false;
    const std::uint32_t delivered = static_cast<std::uint32_t>(delivered_) - reduced_delivered_;
    const std::uint32_t sent = sent_total() - reduced_sent_;
    return sent == 0 || static_cast<double>(sent + bytes) * static_cast<double>(reduced_from_) <=
                            static_cast<double>(delivered) * window;
  }
  /// Removes the oldest records of packets that are acknowledged, or were lost so long ago that no acknowledgement can
  /// follow.
  void forget_finished(const ConnectionConfig& config, Nanos now) {
    while (!packets_.empty()) {
      const Packet& packet = packets_.front();
      if (packet.state == State::in_flight) break;
      if (packet.state == State::lost && now - packet.sent < longest_wait(config)) break;
      forget_oldest();
    }
    keeps_lost_ = !packets_.empty() && packets_.front().state == State::lost;
    if (keeps_lost_) [[unlikely]]
      pass_over_lost(config, now);
    else
      acked_.remove_below(packets_.begin());
  }
  /// Stops tracking all packets in flight. They count neither as acknowledged nor as lost.
  void give_up(const ConnectionConfig& config, Nanos now);

  // Probe timeouts (RFC 9002 section 6.2).

  /// Returns the number of consecutive probe timeouts.
  [[nodiscard]] std::uint32_t probe_timeouts() const { return probe_count_; }
  /// Returns how long packets have been in flight without any acknowledgement.
  [[nodiscard]] Nanos silence(Nanos now) const { return now - last_progress_; }

  /// Returns `wait`, limited to kMaxPatience, or to the probe timeout for `config.initial_rtt` if that is longer. The
  /// peer can influence the measured round-trip time. This limits its influence on waits.
  [[nodiscard]] static Nanos bounded(Nanos wait, const ConnectionConfig& config) {
    if (wait <= kMaxPatience) [[likely]]
      return wait;
    return std::min(wait, longest_patience(config));
  }
  [[nodiscard]] Nanos probe_timeout(const ConnectionConfig& config) const {
    return bounded(rtt_.probe_timeout(config.timer_granularity, config.max_ack_delay), config);
  }
  /// Returns when to send a probe; never() while the loss timer is running or nothing is in flight.
  [[nodiscard]] Nanos probe_deadline(const ConnectionConfig& config) const {
    if (in_flight_packets_ == 0 || !loss_time_.is_never()) return Nanos::never();
    const Nanos timeout = probe_timeout(config);
    const Nanos longest = std::max(kMaxProbeInterval, timeout);
    const std::uint32_t doublings = std::min<std::uint32_t>(probe_count_, 20);
    return last_eliciting_sent_ +
           (timeout.count > longest.count >> doublings ? longest : timeout * (std::int64_t{1} << doublings));
  }
  /// Makes two probes due, because the probe timeout has expired. Returns false if the connection must be given up
  /// because nothing was received for ConnectionConfig::give_up_after.
  [[nodiscard]] bool on_probe_timeout(const ConnectionConfig& config, Nanos now);
  /// Returns whether probes are due. Probes may be sent regardless of the window.
  [[nodiscard]] bool probing() const { return probes_due_ > 0; }
  void on_probe_sent() { --probes_due_; }
  /// Calls `visit(const Chunk&)` for the contents of the oldest packet in flight.
  template <typename Visit>
  void for_oldest_in_flight(Visit visit) const {
    for (std::uint64_t number = std::max(loss_cursor_, packets_.begin()); number < packets_.end(); ++number) {
      if (packets_[number].state != State::in_flight) continue;
      for_chunks(packets_[number], visit);
      return;
    }
  }

  /// Prefetches the cache lines that are used to send a packet without chunks. If `sender`, also prefetches the lines
  /// used for each packet with chunks.
  void prefetch(bool sender) const {
    const auto* const at = reinterpret_cast<const std::byte*>(this);
    const std::size_t lines = sender ? 4 : 1;
    for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(at + i * 64, 1);
  }
  void prefetch_rings() const {
    packets_.prefetch();
    chunks_.prefetch();
  }

 private:
  static constexpr std::uint32_t kLostBits = (1U << 23) - 1;  ///< of lost_total_ that a record has
  enum class State : std::uint8_t {
    in_flight,
    acked,
    lost,     ///< kept for a while, because a late acknowledgement shows that the loss was spurious
    ignored,  ///< a pure acknowledgement, a packet given up, or a skipped number (then `sent` is never())
  };
  struct Packet {
    Nanos sent;
    Nanos first_sent;      ///< for the delivery rate: start of the sending interval
    Nanos delivered_time;  ///< for the delivery rate: when `delivered` was reached
    Bytes delivered = 0;
    std::uint32_t first_chunk = 0;  ///< low bits of the first chunk's position; see for_chunks()
    std::uint32_t in_flight = 0;    ///< bytes in flight after this packet was sent, saturated at 4 GiB - 1
    std::uint32_t lost : 23 = 0;    ///< low bits of lost_total_ when this packet was sent
    /// The packet was declared lost because a later one with the same path value was acknowledged.
    std::uint32_t was_overtaken : 1 = 0;
    std::uint32_t path : 8 = 0;
    std::uint16_t bytes = 0;
    std::uint16_t chunk_count : 13 = 0;  ///< wide enough for a packet full of the shortest data frames
    State state : 2 = State::ignored;
    bool app_limited : 1 = false;
  };
  static_assert(sizeof(Packet) == 48);
  static_assert(wire::kDataFrameBytes << 13U > 65'535);

  /// Returns the bytes sent since the connection began, modulo 2^32.
  [[nodiscard]] std::uint32_t sent_total() const {
    return static_cast<std::uint32_t>(in_flight_ + delivered_) + lost_total_;
  }
  [[nodiscard]] static Nanos longest_patience(const ConnectionConfig& config);
  [[nodiscard]] static std::size_t max_records(const ConnectionConfig& config) {
    return kRecordsPerPacketInFlight * std::size_t{config.max_packets_in_flight};
  }
  template <typename Visit>
  void for_chunks(const Packet& packet, Visit& visit) const {
    // Low bits are enough, because there are fewer than 2^32 chunks at a time.
    const std::uint64_t begin = chunks_.begin();
    const std::uint64_t first = begin + (packet.first_chunk - static_cast<std::uint32_t>(begin));
    for (std::uint32_t i = 0; i < packet.chunk_count; ++i) visit(chunks_[first + i]);
  }
  template <typename OnAcked>
  void on_acked_packet(Packet& packet, cc::AckSample& sample, Nanos now, OnAcked& on_acked);
  template <typename OnAcked>
  void on_late_ack(std::uint64_t number, Nanos now, OnAcked& on_acked);
  /// Reports packet `number`, which `frame` acknowledges, to `paths`.
  void tell_paths(Paths& paths, const Packet& packet, std::uint64_t number, const wire::AckFrame& frame,
                  Nanos now) const {
    if (packet.bytes == 0 || (packet.state != State::in_flight && packet.state != State::lost)) return;
    const std::uint64_t below = frame.ranges[0].last - number;
    if (packet.state == State::lost) paths.on_late(packet.was_overtaken != 0);
    const bool is_marked =
        paths.judges_by_delay() ? now - packet.sent > rtt_.smoothed() : below < 64 && (frame.marks >> below & 1) != 0;
    paths.on_acked(static_cast<std::uint8_t>(packet.path), number, is_marked);
  }
  /// Returns the time after which a packet counts as lost if a later packet has been acknowledged. `is_spread`: whether
  /// packets take several paths, whose round trips differ.
  [[nodiscard]] Nanos loss_delay(const ConnectionConfig& config, bool is_spread) const {
    if (!is_spread) [[likely]]
      return rtt_.loss_delay(config.timer_granularity, reordering_window());
    // A path that has failed must be noticed within few round trips. Acknowledgements on other paths show the time, so
    // the granularity of timers does not matter.
    return std::max(rtt_.loss_delay(Nanos(), reordering_window()), rtt_.smoothed() * 2 + rtt_.variation() * 4);
  }
  /// Returns the maximum time from sending a packet to its late acknowledgement.
  [[nodiscard]] Nanos longest_wait(const ConnectionConfig& config) const {
    return rtt_.smoothed() + reordering_.longest(rtt_.smoothed()) + config.timer_granularity;
  }
  /// Learns from packet `number`, which was acknowledged after packets with higher numbers.
  void learn_reordering(std::uint64_t number, std::uint64_t largest, Nanos now) {
    reordering_.on_late(largest - number, now - packets_[number].sent - rtt_.longest_lately(), rounds_,
                        rtt_.smoothed());
    reorders_ = true;
  }
  void pass_over_lost(const ConnectionConfig& config, Nanos now);
  /// `says_path_drops`: whether the loss may mean that the path does not carry packets of this size.
  template <typename OnLost>
  void mark_lost(Packet& packet, OnLost& on_lost, bool says_path_drops = true) {
    packet.state = State::lost;
    in_flight_ -= packet.bytes;
    --in_flight_packets_;
    if (packet.bytes > 0) {
      ++lost_packets_;
      lost_bytes_ += packet.bytes;
      lost_total_ += packet.bytes;
      has_losses_ = true;
    }
    if (packet.bytes > wire::kSmallestPacket && says_path_drops) count_long_lost(packet.bytes);
    for_chunks(packet, on_lost);
  }
  void count_long_lost(std::uint16_t bytes) {
    min_long_lost_ = long_lost_ == 0 ? bytes : std::min(min_long_lost_, bytes);
    if (long_lost() < kMaxLongLost) ++long_lost_;
    note_size();
  }
  /// Processes the acknowledgement of a packet of notable_bytes_ bytes or more.
  void on_long_acked(std::uint16_t bytes) {
    if (bytes >= min_long_lost_) long_lost_ = 0;
    longest_acked_ = std::max(longest_acked_, bytes);
    note_size();
  }
  void note_size() {
    const auto longer = static_cast<std::uint16_t>(std::min(longest_acked_ + 1, 65'535));
    notable_bytes_ = long_lost_ == 0 ? longer : std::min(longer, min_long_lost_);
  }
  /// Returns the latest packet number with these low 32 bits.
  [[nodiscard]] std::uint64_t widened(std::uint32_t number) const {
    return packets_.end() - (static_cast<std::uint32_t>(packets_.end()) - number);
  }
  /// Returns whether `frame` acknowledges the packet with these low bits; false if the low bits are 0, which means no
  /// packet.
  [[nodiscard]] bool covers(const wire::AckFrame& frame, std::uint32_t low_bits) const {
    if (low_bits == 0) return false;
    const std::uint64_t number = widened(low_bits);
    std::uint32_t i = 0;
    while (i < frame.range_count && frame.ranges[i].first > number) ++i;
    return i < frame.range_count && frame.ranges[i].last >= number;
  }
  /// Handles an acknowledgement of the withheld packet, which nobody can have received. Its contents count as lost.
  template <typename OnLost>
  void take_back_withheld(OnLost& on_lost) {
    const std::uint64_t number = widened(std::exchange(withheld_, 0));
    if (number < packets_.begin()) return;
    Packet& packet = packets_[number];
    if (packet.state == State::in_flight) {
      --in_flight_packets_;
      for_chunks(packet, on_lost);
    }
    packet.state = State::ignored;
  }
  /// Handles an acknowledgement of a skipped number, after which the next number is skipped soon. Returns whether the
  /// acknowledgement is forgiven.
  [[nodiscard]] bool forgives_skip() {
    constexpr std::uint16_t soon = 32;
    until_skip_ %= soon;
    const bool forgives = !are_own_ && !has_forgiven_;
    has_forgiven_ = true;
    return forgives;
  }
  void draw_skip(ShardRandom& random);
  void forget_oldest() {
    const Packet& packet = packets_.front();
    for (std::uint32_t i = 0; i < packet.chunk_count; ++i) chunks_.pop();
    if (packet.state == State::ignored && packet.sent.is_never()) [[unlikely]]
      forgotten_skip_ = static_cast<std::uint32_t>(packets_.begin());
    packets_.pop();
  }

  // Members are ordered by cache line. A connection that only receives uses only the first line.
  GrowableRing<Packet> packets_;  ///< index = packet number; its end is the next packet's number
  Bytes in_flight_ = 0;
  Nanos loss_time_ = Nanos::never();
  std::uint32_t in_flight_packets_ = 0;
  std::uint32_t lost_total_ = 0;  ///< bytes lost since the connection began, modulo 2^32: only differences are used
  std::uint8_t probe_count_ = 0;  ///< consecutive probe timeouts, saturated
  std::uint8_t probes_due_ = 0;
  bool any_acked_ : 1 = false;
  bool skips_ : 1 = false;  ///< some packet numbers are skipped, see skip_number()
  bool was_idle_ : 1 = true;
  bool reorders_ : 1 = false;    ///< value of reordering_.seen()
  bool keeps_lost_ : 1 = false;  ///< the oldest record is of a lost packet, so oldest_of_use_ applies
  /// There are losses that are not yet reported in a sample, or that may still be undone.
  bool has_losses_ : 1 = false;
  bool are_own_ : 1 = false;         ///< trust_numbers() has been called
  bool has_forgiven_ : 1 = false;    ///< an acknowledgement of a skipped number was forgiven
  std::uint8_t long_lost_ = 0;       ///< see long_lost(); the highest bit is long_lost_noted()
  std::uint16_t notable_bytes_ = 1;  ///< on_long_acked() is called for acknowledged packets at least this long
  std::uint16_t until_skip_ = 0;     ///< packet numbers to be used before one is skipped

  // Second cache line.
  GrowableRing<Chunk> chunks_;
  Bytes delivered_ = 0;
  Nanos delivered_time_;
  Nanos first_sent_;
  Bytes app_limited_until_ = 0;  ///< samples are limited by the application until delivered_ reaches this value

  // Third cache line.
  RttEstimator rtt_;
  Nanos last_eliciting_sent_;
  Nanos last_progress_;
  std::uint64_t rounds_ = 0;

  // Fourth cache line.
  RangeSet acked_;  ///< numbers in packets_ that have been acknowledged
  std::uint64_t largest_acked_ = 0;
  std::uint64_t loss_cursor_ = 0;     ///< no packet with a lower number is in flight
  std::uint64_t recovery_until_ = 0;  ///< packets with lower numbers were sent before the last congestion response
  std::uint64_t round_end_ = 0;
  std::uint64_t window_limited_until_ = 0;

  // Rarely used members.
  Bytes lost_bytes_ = 0;            ///< bytes lost since the last sample
  std::uint32_t lost_packets_ = 0;  ///< packets lost since the last sample
  std::uint32_t episode_lost_ = 0;
  std::uint32_t episode_spurious_ = 0;
  std::uint32_t skipped_in_all_ = 0;     ///< packet numbers skipped in total
  std::uint32_t forgotten_skip_ = 0;     ///< latest skipped number without a record, modulo 2^32; 0 if there is none
  std::uint32_t withheld_ = 0;           ///< latest packet that was withheld, modulo 2^32; 0 if there is none
  std::uint64_t episode_begin_ = 0;      ///< first packet whose loss led to the last response to losses
  Nanos first_sample_ = Nanos::never();  ///< time of the first RTT sample
  std::uint64_t lost_in_all_ = 0;
  std::uint64_t spurious_in_all_ = 0;
  // Values at the beginning of the latest reduction of the window after a loss, modulo 2^32. See reduction_allows().
  std::uint32_t reduced_from_ = 0;       ///< bytes in flight before the loss was found; 0 if there is no reduction
  std::uint32_t reduced_delivered_ = 0;  ///< delivered_ when the reduction began
  std::uint32_t reduced_sent_ = 0;       ///< sent_total() when the reduction began
  std::uint16_t longest_acked_ = 0;
  std::uint16_t min_long_lost_ = 0;  ///< size in bytes of the shortest packet that long_lost() counts
  std::uint64_t oldest_of_use_ = 0;  ///< packets with lower numbers have been acknowledged, or were lost long ago
  Reordering reordering_;
};

static_assert(sizeof(SentPackets) == 376, "the first four cache lines are what a sender touches for each packet");

template <typename OnAcked, typename Stop>
bool SentPackets::on_ack(const wire::AckFrame& frame, AckBatch& batch, std::vector<RangeSet::Range>& news, Paths* paths,
                         Nanos now, OnAcked on_acked, Stop stop) {
  const std::uint64_t largest = frame.ranges[0].last;
  const std::uint64_t end = packets_.end();
  const std::uint64_t largest_before = largest_acked_;
  cc::AckSample& sample = batch.sample;
  if (!batch.has_acks) sample.bytes_in_flight_before = in_flight_;
  for (std::uint32_t i = 0; i < frame.range_count; ++i) {
    const wire::PacketRange& range = frame.ranges[i];
    if (range.last < packets_.begin()) break;
    if (range.first >= end) continue;
    // ACK frames repeat ranges, so only numbers that were not acknowledged before are processed.
    news.clear();
    acked_.for_gaps(std::max(range.first, packets_.begin()), std::min(range.last, end - 1) + 1,
                    [&](std::uint64_t from, std::uint64_t to) {
                      news.push_back({from, to});
                    });
    if (acked_.size() < kMaxAckedRanges)
      for (const RangeSet::Range& fresh : news) acked_.add(fresh.begin, fresh.end);
    std::uint64_t number = news.empty() ? 0 : news.back().end;
    while (!news.empty()) {
      if (number == news.back().begin) {
        news.pop_back();
        if (!news.empty()) number = news.back().end;
        continue;
      }
      Packet& packet = packets_[--number];
      if (paths != nullptr) [[unlikely]]
        tell_paths(*paths, packet, number, frame, now);
      if (packet.state == State::in_flight) {
        if (number >= largest_acked_ || !any_acked_) {
          largest_acked_ = number;
          any_acked_ = true;
          // An RTT sample requires that the largest packet of the frame is newly acknowledged (RFC 9002 section 5.1).
          // An untrusted peer could prevent samples, and so hide its queue, by always acknowledging a later packet that
          // needs no acknowledgement. So this rule does not apply to an untrusted peer.
          if (number == largest || reordering_.is_checked()) {
            if (!rtt_.has_sample()) first_sample_ = now;
            const Nanos delay(number == largest ? frame.delay_ns : 0);
            rtt_.add(now - packet.sent, delay);
            sample.latest_rtt = rtt_.latest();
            sample.endpoint_delay = std::min(delay, rtt_.latest());
            if (number == largest) batch.rtt_bytes = packet.bytes;
          }
        } else if (reorders_ && number < largest_before) [[unlikely]] {
          learn_reordering(number, largest_before, now);
        }
        batch.largest_acked = std::max(batch.largest_acked, number);
        on_acked_packet(packet, sample, now, on_acked);
        if (number < window_limited_until_) sample.cwnd_limited = true;
      } else if (packet.state == State::lost) {
        on_late_ack(number, now, on_acked);
      } else if (packet.state == State::ignored && packet.sent.is_never()) [[unlikely]] {
        packet.state = State::acked;
        if (!forgives_skip()) return false;
      }
      if (stop()) return true;
    }
  }
  return true;
}

template <typename OnAcked>
void SentPackets::on_acked_packet(Packet& packet, cc::AckSample& sample, Nanos now, OnAcked& on_acked) {
  in_flight_ -= packet.bytes;
  --in_flight_packets_;
  packet.state = State::acked;
  ++sample.acked_packets;
  sample.acked_bytes += packet.bytes;
  if (packet.bytes >= notable_bytes_) [[unlikely]]
    on_long_acked(packet.bytes);
  delivered_ += packet.bytes;
  delivered_time_ = now;
  // The delivery rate is over the longer of the sending and the acknowledging interval, so that neither a burst of
  // packets nor a burst of acknowledgements inflates it.
  const Nanos interval = std::max(packet.sent - packet.first_sent, now - packet.delivered_time);
  if (interval.count > 0) {
    const double rate = static_cast<double>(delivered_ - packet.delivered) * 8e9 / static_cast<double>(interval.count);
    sample.delivery_rate = Rate(static_cast<std::uint64_t>(rate));
    sample.app_limited = packet.app_limited;
  }
  first_sent_ = packet.sent;
  for_chunks(packet, on_acked);
}

template <typename OnAcked>
void SentPackets::on_late_ack(std::uint64_t number, Nanos now, OnAcked& on_acked) {
  Packet& packet = packets_[number];
  packet.state = State::acked;
  if (packet.bytes == 0) {
    for_chunks(packet, on_acked);
    return;
  }
  if (packet.bytes >= notable_bytes_) on_long_acked(packet.bytes);
  ++spurious_in_all_;
  // Only packets whose loss belongs to the last congestion response show whether that response was spurious.
  if (number >= episode_begin_ && number < recovery_until_) ++episode_spurious_;
  for_chunks(packet, on_acked);
  if (largest_acked_ > number) learn_reordering(number, largest_acked_, now);
}

template <typename OnLost>
SentPackets::Losses SentPackets::on_trimmed(const wire::TrimmedFrame& frame, Paths* paths, OnLost on_lost) {
  Losses losses;
  losses.in_flight_before = in_flight_;
  for (std::uint64_t map = frame.map; map != 0; map &= ~std::bit_floor(map)) {
    const auto below = static_cast<std::uint64_t>(std::bit_width(map) - 1);
    if (below > frame.largest) continue;
    const std::uint64_t number = frame.largest - below;
    if (number >= packets_.end() || !is_in_flight(number)) continue;
    Packet& packet = packets_[number];
    if (paths != nullptr && packet.bytes > 0) paths->on_trimmed(packet.path);
    if (packet.bytes > 0 && losses.packets++ == 0) losses.first = number;
    losses.largest = number;
    mark_lost(packet, on_lost, false);
  }
  return losses;
}

template <typename OnLost>
SentPackets::Losses SentPackets::detect_losses(const ConnectionConfig& config, Paths* paths, Nanos now,
                                               OnLost on_lost) {
  loss_time_ = Nanos::never();
  Losses losses;
  if (!any_acked_) return losses;
  losses.in_flight_before = in_flight_;
  const Nanos delay = bounded(loss_delay(config, paths != nullptr), config);
  const Nanos late = now - delay;
  const std::uint32_t packet_threshold = reorders_ ? reordering_.packet_threshold() : Reordering::kFirstThreshold;
  Nanos run_begin = Nanos::never();  // start of a run of lost packets without an acknowledged packet in between
  std::uint64_t number = std::max(loss_cursor_, packets_.begin());
  std::uint64_t cursor = std::numeric_limits<std::uint64_t>::max();  // the first packet that stays in flight
  for (; number < largest_acked_; ++number) {
    Packet& packet = packets_[number];
    if (packet.state == State::acked) run_begin = Nanos::never();
    if (packet.state != State::in_flight) continue;
    const bool overtaken = paths == nullptr ? largest_acked_ - number >= packet_threshold
                                            : packet.bytes > 0 && paths->is_overtaken(packet.path, number);
    if (!overtaken && packet.sent > late) {
      // Packets are in order of sending, so all further packets are younger.
      if (loss_time_.is_never()) loss_time_ = packet.sent + delay;
      cursor = std::min(cursor, number);
      if (paths == nullptr) break;
      continue;  // a younger packet may have been overtaken on its path
    }
    if (paths != nullptr && packet.bytes > 0) [[unlikely]] {
      packet.was_overtaken = overtaken && packet.sent > late ? 1 : 0;
      if (paths->on_lost(packet.path)) ++losses.by_paths;
    }
    if (packet.bytes == 0) [[unlikely]] {
      mark_lost(packet, on_lost);
      continue;
    }
    // Before the first RTT sample a silence does not count (RFC 9002 section 7.6.2), because the peer may not have been
    // running.
    if (packet.sent >= first_sample_) {
      if (run_begin.is_never()) run_begin = packet.sent;
      losses.longest_run = std::max(losses.longest_run, packet.sent - run_begin);
    }
    mark_lost(packet, on_lost);
    if (losses.packets++ == 0) losses.first = number;
    losses.largest = number;
  }
  loss_cursor_ = std::min({cursor, number, packets_.end()});
  return losses;
}

template <typename OnLost>
void SentPackets::forgive_losses(std::uint32_t bytes, const Losses& losses, OnLost on_lost) {
  lost_in_all_ += losses.packets;
  for (std::uint64_t number = std::max(loss_cursor_, packets_.begin()); number < packets_.end(); ++number) {
    if (packets_[number].state != State::in_flight || packets_[number].bytes <= bytes) continue;
    mark_lost(packets_[number], on_lost);
    ++lost_in_all_;
  }
  lost_packets_ = 0;
  lost_bytes_ = 0;
  episode_lost_ = 0;
  recovery_until_ = 0;
  reduced_from_ = 0;
  has_losses_ = false;
  set_longest_acked(bytes);
}

}  // namespace mltcp::transport
