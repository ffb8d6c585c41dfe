// Which packets have come from the peer, and the acknowledgement that they are owed (RFC 9000 section 13.2, RFC 8257
// section 3.2). Of numbers alone: what the packets carry is the message receiver's.
//
// Nothing that a packet says of its number is final: it may be forged, or of an earlier connection. So no number is
// believed that is far ahead, there is no floor below which nothing counts, and the highest numbers are forgotten when
// the peer goes on below them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "mltcp/base/units.h"
#include "mltcp/transport/internal/range_set.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/types.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

class ReceivedPackets {
 public:
  /// A packet is not believed whose number is further ahead of all that came before. What a sender may have used since
  /// a packet of it arrived: the most records that one keeps (SentPackets), with as many packets in flight as a peer
  /// may have set at most, 2^20.
  static constexpr std::uint64_t max_jump = std::uint64_t{4} << 20;
  /// So many packets below the highest numbers received, while those don't go on: they were not the peer's, but forged
  /// or of an earlier connection. No network reorders as deeply; and if one did, what is forgotten is sent again.
  static constexpr std::uint32_t max_behind_top = 1024;
  /// Ranges of numbers that are remembered, and so no more than one acknowledgement names: what is remembered is told.
  static constexpr std::size_t max_ranges = wire::max_ack_ranges;

  /// Where a packet stands among those that came before it.
  enum class Place : std::uint8_t {
    next,    ///< right above the highest, or the first of all
    ahead,   ///< above the highest, and some between them are missing
    behind,  ///< below the highest
  };

  /// Whether a packet of that number can be the peer's at all.
  [[nodiscard]] bool believable(std::uint64_t number) const {
    const std::uint64_t next = numbers_.back().end;
    return number <= next || number - next <= max_jump;
  }
  [[nodiscard]] bool contains(std::uint64_t number) const { return numbers_.contains(number); }

  /// Takes note of a believable packet that is not contained. `span` is as in its header, `hops` as in RxPacket.
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
    // Forgotten are numbers whose acknowledgement the peer has no use for. Should such a packet come late, it is taken
    // as any: a floor below which nothing counts could be forged.
    const std::uint64_t oldest_kept = number - std::min<std::uint64_t>(span, number);
    if (numbers_[0].begin < oldest_kept) numbers_.remove_below(oldest_kept);
    // The range of this packet stays, however many lie above: they may be forged, and all the peer's packets below.
    if (numbers_.size() > max_ranges) numbers_.remove_lowest_range_but(number);
    return place;
  }
  /// Counts an ECN-capable packet of `bytes`. True where marks begin or end: the sender hears of that without delay
  /// (RFC 8257 section 3.2).
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

  /// The packet of that number asks for an acknowledgement: now if `at_once`; else as soon as enough have asked, by
  /// what the sender wishes in its header's `flags` (wire::asked_ack_ratio) and `config` says, and after
  /// `config.max_ack_delay` at the latest. `finished`: it has brought the end of a message.
  void owe_ack(std::uint64_t number, std::uint8_t flags, bool at_once, bool finished, const ConnectionConfig& config,
               Nanos now) {
    ++unacknowledged_;
    if (at_once || enough(number, wire::asked_ack_ratio(flags), finished, config.ack_every))
      ack_at_once_ = true;
    else if (ack_deadline_.is_never())
      ack_deadline_ = now + config.max_ack_delay;
  }
  /// One is owed now for a packet that add() was not told of.
  void owe_ack_now() {
    ++unacknowledged_;
    ack_at_once_ = true;
  }
  /// Packets have asked since the last acknowledgement.
  [[nodiscard]] bool owes_ack() const { return unacknowledged_ > 0; }
  [[nodiscard]] bool ack_due(Nanos now) const { return unacknowledged_ > 0 && (ack_at_once_ || now >= ack_deadline_); }
  /// When the acknowledgement is due that is held back; never() without one.
  [[nodiscard]] Nanos ack_deadline() const { return ack_deadline_; }
  /// Writes down what an acknowledgement says of packets: ranges, delay, hops and ECN counts.
  void fill(wire::AckFrame& frame, Nanos now) const {
    constexpr std::int64_t longest = 4'000'000'000;
    frame.delay_ns = static_cast<std::uint32_t>(std::min((now - highest_time_).count, longest));
    frame.hops = hops_;
    frame.ecn.ect0_packets = ect0_packets_;
    frame.ecn.ce_packets = ce_packets_;
    frame.ecn.ce_bytes = ce_bytes_;
    for (std::size_t i = numbers_.size(); i-- > 0 && frame.range_count < wire::max_ack_ranges;)
      frame.ranges[frame.range_count++] = {numbers_[i].begin, numbers_[i].end - 1};
  }
  void on_ack_sent() {
    unacknowledged_ = 0;
    ack_at_once_ = false;
    ack_deadline_ = Nanos::never();
  }

  /// When the packet came that was the highest.
  [[nodiscard]] Nanos highest_time() const { return highest_time_; }

 private:
  void count_behind_top(std::uint64_t number);
  [[nodiscard]] bool enough(std::uint64_t number, std::uint32_t ratio, bool finished, std::uint32_t ack_every) const;

  RangeSet numbers_;
  Nanos highest_time_;
  Nanos ack_deadline_ = Nanos::never();
  std::uint32_t unacknowledged_ = 0;  ///< packets that have asked since the last ACK
  std::uint32_t top_ = 0;             ///< low bits of where the highest range ended when behind_top_ was begun
  // As wire::EcnCounts; nobody sends ECT(1).
  std::uint32_t ect0_packets_ = 0;
  std::uint32_t ce_packets_ = 0;
  std::uint32_t ce_bytes_ = 0;
  std::uint16_t behind_top_ : 15 = 0;  ///< packets that came below the highest range since then
  std::uint16_t last_was_marked_ : 1 = 0;
  std::uint8_t hops_ = 0;  ///< of the packet of highest_time_
  bool ack_at_once_ = false;
};

static_assert(sizeof(ReceivedPackets) == 64, "a cache line of a connection");

inline bool ReceivedPackets::enough(std::uint64_t number, std::uint32_t ratio, bool finished,
                                    std::uint32_t ack_every) const {
  if (unacknowledged_ >= std::max(ack_every, ratio)) return true;
  if (ratio == 1) return finished;
  // A sender that asks for few has much more under way: it need not hear of a message's end at once. But of the packets
  // behind a gap, by which it finds a loss.
  constexpr std::uint64_t packets_that_tell = 3;  // RFC 9002 section 6.1.1
  return numbers_.size() > 1 && number - numbers_.back().begin < packets_that_tell;
}

}  // namespace mltcp
