// The path values of a connection whose packets take several paths through the network. Chooses the value of each
// packet, by one of several balancers (balancers.h), and records what acknowledgements say about each value.
//
// Packets with one value stay in order. So a packet is lost if a later packet with the same value has been
// acknowledged. Packets with different values overtake each other, which says nothing about losses.
//
// A value is *late* if its latest packet has not been acknowledged, although much later packets with other values have.
// No more packets have this value until that packet is acknowledged or lost. So a path that is much slower than the
// others, or has failed, holds one packet of each of its values.
//
// A value is *retired* when several of its packets in a row were lost, for example because a switch on its path has
// failed. Now and then one packet probes a retired value, which is used again once such a packet is acknowledged. The
// distance between two probes doubles with each probe that is lost. Losses of retired values are no sign of congestion,
// unless most values are retired.
//
// A connection with one value has no object of this class.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/balancers.h"

namespace mltcp::transport {

class SentPackets;

class Paths {
 public:
  /// `values`: number of path values of sent packets, 1 to kMaxPaths. If it is 1, only marks() is useful. `by_delay`:
  /// packets carry no marks, so those whose round trip is above the average count as marked. `seed`: seed of random
  /// choices.
  Paths(std::uint32_t values, const BalancerTable& balancer, bool by_delay, std::uint64_t seed);

  // Sending.

  [[nodiscard]] bool judges_by_delay() const { return by_delay_; }
  /// Returns the path value of the next packet with data.
  std::uint8_t next(const SentPackets& sent);
  /// Returns the path value of a packet that will not be acknowledged.
  std::uint8_t next_unacknowledged() { return static_cast<std::uint8_t>(++unacknowledged_ % values_.size()); }
  /// Records that packet `number` with this value was acknowledged, and whether it arrived with a congestion mark.
  void on_acked(std::uint8_t path, std::uint64_t number, bool is_marked);
  /// Records that a packet with this value was lost. Returns whether its path, and not congestion, is the cause.
  bool on_lost(std::uint8_t path);
  /// Records that a switch trimmed a packet with this value: its queue is full, but the path carries packets.
  void on_trimmed(std::uint8_t path);
  /// Records that a packet arrived after it was declared lost. `was_overtaken`: because of is_overtaken().
  void on_late(bool was_overtaken) { keeps_order_ = keeps_order_ && !was_overtaken; }
  /// Returns whether a later packet with the same value has been acknowledged. Always false if a path has been seen
  /// that does not keep packets in order.
  [[nodiscard]] bool is_overtaken(std::uint8_t path, std::uint64_t number) const {
    return keeps_order_ && values_[path].largest_acked > number;
  }

  // Receiving.

  /// Records that packet `number` has arrived. `next`: the number after the highest one received before.
  void on_received(std::uint64_t number, std::uint64_t next, bool is_marked) {
    constexpr std::uint64_t bits = 64;
    if (number >= next) {
      const std::uint64_t shift = number + 1 - next;
      marks_ = (shift < bits ? marks_ << shift : 0) | (is_marked ? 1 : 0);
    } else if (const std::uint64_t behind = next - 1 - number; is_marked && behind < bits) {
      marks_ |= std::uint64_t{1} << behind;
    }
  }
  /// Returns which of the last 64 packet numbers arrived with a congestion mark. Bit n is the highest received number
  /// minus n.
  [[nodiscard]] std::uint64_t marks() const { return marks_; }

 private:
  std::uint8_t choose(const SentPackets& sent);
  [[nodiscard]] bool is_late(const PathValue& value, const SentPackets& sent) const;
  void revive(PathValue& value);

  // Packets between two probes of retired values.
  static constexpr std::uint32_t kMinBetweenProbes = 16;
  static constexpr std::uint32_t kMaxBetweenProbes = 1024;

  std::unique_ptr<Balancer> balancer_;
  std::vector<PathValue> values_;
  std::uint64_t marks_ = 0;
  std::uint32_t retired_ = 0;
  std::uint32_t between_probes_ = kMinBetweenProbes;
  std::uint32_t until_probe_ = kMinBetweenProbes;
  std::uint32_t unacknowledged_ = 0;
  std::uint8_t probed_ = 0;  ///< the retired value that was probed last
  bool keeps_order_ = true;
  bool by_delay_;
};

}  // namespace mltcp::transport
