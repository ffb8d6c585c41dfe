// Tracks the packet numbers received from the peer and the acknowledgements that are due for them (RFC 9000 section
// 13.2, RFC 8257 section 3.2). MessageReceiver handles the contents of packets.
//
// A packet number may be forged, or belong to an earlier connection. Therefore numbers far above the highest are
// rejected, and no lower bound exists below which all numbers count as received. The highest numbers are discarded if
// the peer continues with lower numbers. ReplayWindow ensures that no packet of a sealed connection is accepted twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "mltcp/base/units.h"
#include "mltcp/transport/internal/range_set.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

class ReceivedPackets {
 public:
  /// Maximum distance of a plausible number above the highest received number. This is the number of records that a
  /// sender stores (SentPackets) with 2^20 packets in flight, which is the maximum.
  static constexpr std::uint64_t kMaxJump = std::uint64_t{4} << 20;
  /// If this many packets arrive below the highest range and that range does not grow, the range is regarded as forged
  /// or as part of an earlier connection, and is discarded. No network reorders packets by so many numbers. If one did,
  /// the data would merely be retransmitted.
  static constexpr std::uint32_t kMaxBehindTop = 1024;
  /// Maximum number of ranges tracked. One acknowledgement has room for all of them.
  static constexpr std::size_t kMaxRanges = wire::kMaxAckRanges;

  ReceivedPackets() { numbers_.reserve(kSkipsAtOnce); }

  /// Position of a packet's number relative to the numbers received so far.
  enum class Place : std::uint8_t {
    next,    ///< directly above the highest number, or the first packet
    ahead,   ///< more than one above the highest number
    behind,  ///< below the highest number
  };

  /// Returns whether a packet with this number can plausibly come from the peer.
  [[nodiscard]] bool believable(std::uint64_t number) const {
    const std::uint64_t next = numbers_.back().end;
    return number <= next || number - next <= kMaxJump;
  }
  /// Returns the number after the highest received number. The 32 bits in a header are widened to the number nearest to
  /// it.
  [[nodiscard]] std::uint64_t next() const { return numbers_.back().end; }
  [[nodiscard]] bool contains(std::uint64_t number) const { return numbers_.contains(number); }

  /// Records a packet whose number is believable() and is not contained yet. `span` is a field of the packet's header,
  /// and `hops` is RxPacket::hops.
  Place add(std::uint64_t number, std::uint32_t span, std::uint8_t hops, Nanos now) {
    const std::uint64_t end = numbers_.back().end;
    const Place place = number == end || numbers_.empty() ? Place::next : number > end ? Place::ahead : Place::behind;
    numbers_.add(number, number + 1);
    if (place == Place::behind) {
      count_behind_top(number);
    } else {
      highest_time_ = now;
      hops_ = hops;
    }
    // Forget numbers whose acknowledgement is of no use to the peer. If a packet with such a number arrives late, it is
    // accepted like any other packet, because a lower bound for accepted numbers could be forged.
    const std::uint64_t oldest_kept = number - std::min<std::uint64_t>(span, number);
    if (numbers_[0].begin < oldest_kept) numbers_.remove_below(oldest_kept);
    // Keep the range of this packet, because the ranges above it may be forged.
    if (numbers_.size() > kMaxRanges) numbers_.remove_lowest_range_but(number);
    return place;
  }
  /// Counts an ECN-capable packet of `bytes` bytes. Returns whether CE marking starts or stops with this packet, which
  /// the sender must learn without delay (RFC 8257 section 3.2).
  [[nodiscard]] bool count_ecn(Ecn ecn, std::size_t bytes) {
    const bool marked = ecn == Ecn::ce;
    ect0_packets_ += ecn == Ecn::ect0 ? 1 : 0;
    if (marked) {
      ++ce_packets_;
      ce_bytes_ += static_cast<std::uint32_t>(bytes);
    }
    if (marked == (last_was_marked_ != 0)) return false;
    last_was_marked_ = marked ? 1 : 0;
    return true;
  }

  /// Records that packet `number` requests an acknowledgement. If `at_once`, the acknowledgement is due now. If not, it
  /// is due when enough packets have requested one, and after `config.max_ack_delay` at the latest. The required number
  /// of packets depends on `config` and on the ratio in the header's `flags` (wire::asked_ack_ratio). `finished`:
  /// whether the packet completed a message.
  void owe_ack(std::uint64_t number, std::uint8_t flags, bool at_once, bool finished, const ConnectionConfig& config,
               Nanos now) {
    ++unacknowledged_;
    if (at_once || enough(number, wire::asked_ack_ratio(flags), finished, config.ack_every))
      ack_at_once_ = true;
    else if (ack_deadline_.is_never())
      ack_deadline_ = now + config.max_ack_delay;
  }
  /// Makes an acknowledgement due at once, for a packet that was not passed to add().
  void owe_ack_now() {
    ++unacknowledged_;
    ack_at_once_ = true;
  }
  /// Returns whether a packet has requested an acknowledgement since the last ACK was sent.
  [[nodiscard]] bool owes_ack() const { return unacknowledged_ > 0; }
  [[nodiscard]] bool ack_due(Nanos now) const { return unacknowledged_ > 0 && (ack_at_once_ || now >= ack_deadline_); }
  /// Returns when a delayed acknowledgement is due; never() if none is pending.
  [[nodiscard]] Nanos ack_deadline() const { return ack_deadline_; }
  /// Fills in the packet-related fields of an acknowledgement: ranges, delay, hops and ECN counts.
  void fill(wire::AckFrame& frame, Nanos now) const {
    constexpr std::int64_t longest = 4'000'000'000;
    frame.delay_ns = static_cast<std::uint32_t>(std::min((now - highest_time_).count, longest));
    frame.hops = hops_;
    frame.ecn.ect0_packets = ect0_packets_;
    frame.ecn.ce_packets = ce_packets_;
    frame.ecn.ce_bytes = ce_bytes_;
    for (std::size_t i = numbers_.size(); i-- > 0 && frame.range_count < wire::kMaxAckRanges;)
      frame.ranges[frame.range_count++] = {numbers_[i].begin, numbers_[i].end - 1};
  }
  void on_ack_sent() {
    unacknowledged_ = 0;
    ack_at_once_ = false;
    ack_deadline_ = Nanos::never();
  }

  /// Returns when the packet with the highest number arrived.
  [[nodiscard]] Nanos highest_time() const { return highest_time_; }

 private:
  /// Number of holes for which memory is allocated at the start. Each number that the sender skips leaves a hole.
  static constexpr std::size_t kSkipsAtOnce = 3;

  void count_behind_top(std::uint64_t number);
  [[nodiscard]] bool enough(std::uint64_t number, std::uint32_t ratio, bool finished, std::uint32_t ack_every) const;

  RangeSet numbers_;
  Nanos highest_time_;
  Nanos ack_deadline_ = Nanos::never();
  std::uint32_t unacknowledged_ = 0;  ///< packets that have requested an acknowledgement since the last ACK
  std::uint32_t top_ = 0;             ///< low bits of the highest range's end when behind_top_ started to count
  // Counts for wire::EcnCounts. ECT(1) is never sent, so it is not counted.
  std::uint32_t ect0_packets_ = 0;
  std::uint32_t ce_packets_ = 0;
  std::uint32_t ce_bytes_ = 0;
  std::uint16_t behind_top_ : 15 = 0;  ///< packets received below the highest range since top_ was set
  std::uint16_t last_was_marked_ : 1 = 0;
  std::uint8_t hops_ = 0;  ///< hops of the packet received at highest_time_
  bool ack_at_once_ = false;
};

static_assert(sizeof(ReceivedPackets) == 64, "a cache line of a connection");

inline bool ReceivedPackets::enough(std::uint64_t number, std::uint32_t ratio, bool finished,
                                    std::uint32_t ack_every) const {
  if (unacknowledged_ >= std::max(ack_every, ratio)) return true;
  if (ratio == 1) return finished;
  // A sender that requests few acknowledgements has much more data in flight, so the end of a message is not urgent.
  // But packets right after a gap are urgent, because their acknowledgement lets the sender detect the loss.
  constexpr std::uint64_t packet_threshold = 3;  // packet threshold of RFC 9002 section 6.1.1
  return numbers_.size() > 1 && number - numbers_.back().begin < packet_threshold;
}

}  // namespace mltcp::transport
