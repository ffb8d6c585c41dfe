// The maximum size of packets on a connection's path: datagram packetization layer path MTU discovery (RFC 8899),
// reduced to the parts that are needed if the size on which the ends agree is nearly always right.
//
// The agreed size is used at once and is not probed. If packets longer than the smallest size are lost and no packet as
// long arrives (counted by SentPackets), the path may be a black hole for long packets (section 4.3). The path is then
// tested in rounds. A round consists of a probe of the size in use, a probe of the base size, and a probe of the
// smallest size, which every path must carry. Once a shorter probe has arrived, each round has only one shorter probe,
// of the longest size that arrived. A probe is a packet that contains only PADDING. If a probe of the size in use
// arrives, the suspicion was wrong. If kMaxProbes probes of the size in use are lost, and a shorter probe has arrived,
// the connection continues with the size of the longest probe that has arrived. A probe counts as lost when later
// packets have arrived.
//
// Then a binary search finds the longest packet that the path carries, one probe at a time. A size counts as too long
// when kMaxProbes probes are lost. If the search ends below the agreed size, a new search begins with the agreed size.
// The new search begins at the first acknowledgement after kFirstRaise, because an idle connection sends nothing. The
// first wait is short because a burst of losses or a short-lived attack may have dropped the packets. Each further wait
// is twice as long, up to kRaiseAfter.
//
// A probe does not count as bytes in flight, and a lost probe is not a sign of congestion. ICMP messages are not read,
// so an attacker off the path cannot make packets shorter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/base/units.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

class PathMtu {
 public:
  static constexpr std::uint32_t kBase = 1200;    ///< BASE_PLPMTU in bytes (RFC 8899 section 5.1.2)
  static constexpr std::uint32_t kMaxProbes = 3;  ///< MAX_PROBES (RFC 8899 section 5.1.2)
  /// A search ends when its bounds differ by at most this many bytes.
  static constexpr std::uint32_t kGranularity = 16;
  static constexpr Nanos kFirstRaise{1'000'000'000};
  static constexpr Nanos kRaiseAfter{60'000'000'000};  ///< PMTU_RAISE_TIMER (RFC 8899 section 5.1.1)

  /// Consequence of a probe that was acknowledged or lost.
  enum class Verdict : std::uint8_t {
    nothing,
    healthy,  ///< the path carries the size that it was suspected of dropping
    shorter,  ///< size() has become smaller
    longer,   ///< size() has become larger
  };

  /// Sets the maximum packet size that both ends accept.
  void agree(std::uint32_t bytes) {
    agreed_ = size_ = static_cast<std::uint16_t>(bytes);
    too_long_ = bytes + 1;
  }
  [[nodiscard]] std::uint32_t agreed() const { return agreed_; }
  /// Returns the maximum size of packets other than probes.
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool is_suspect() const { return phase_ == Phase::suspect; }
  /// Returns whether packets are shorter than agreed, and the search for a longer size has ended.
  [[nodiscard]] bool waits_to_raise() const { return phase_ == Phase::idle && size_ < agreed_; }

  /// Starts to test the size in use, because packets of this size seem to be lost. Starts another round if the test is
  /// already running. Returns false if packets already have the smallest size.
  bool suspect() {
    if (size_ <= wire::kSmallestPacket) return false;
    if (phase_ != Phase::suspect) {
      phase_ = Phase::suspect;
      lost_ = 0;
      carried_ = 0;
    }
    plan_round();
    // As long as no probe has arrived, losses of earlier rounds do not count: perhaps no packet could arrive at that
    // time.
    if (carried_ == 0) first_round_ = round_;
    return true;
  }
  /// Processes the arrival of a packet of the size in use.
  void on_carried(Nanos now) {
    if (phase_ == Phase::suspect) go_on(now);
  }
  /// Starts a new search if it is time. Call this function from time to time while waits_to_raise().
  void look(Nanos now) {
    if (now < raise_at_) return;
    if (raises_ < kMaxDoublings) ++raises_;
    too_long_ = agreed_ + 1U;
    begin_search();
  }

  /// Returns the size of the next probe in bytes; 0 if no probe is due.
  [[nodiscard]] std::uint32_t next_probe() const {
    if (planned_ == 0) return 0;
    if (phase_ == Phase::search) return candidate_;
    if (planned_ == in_round()) return size_;
    if (carried_ != 0) return carried_;
    return planned_ == 2 ? kBase : static_cast<std::uint32_t>(wire::kSmallestPacket);
  }
  /// Returns the round of the probes sent now. Pass it to on_probe_lost().
  [[nodiscard]] std::uint8_t round() const { return round_; }
  void on_probe_sent() { --planned_; }
  Verdict on_probe_acked(std::uint32_t bytes, Nanos now) {
    if (phase_ == Phase::suspect) {
      if (bytes < size_) {
        carried_ = static_cast<std::uint16_t>(std::max<std::uint32_t>(carried_, bytes));
        if (planned_ < in_round()) planned_ = 0;  // cancels the remaining probes of the round
        return lost_ < kMaxProbes ? Verdict::nothing : fall(now);
      }
      go_on(now);
      return Verdict::healthy;
    }
    // A probe of an earlier suspicion may arrive late, with a size that is in use by now.
    if (bytes <= size_ || bytes > agreed_) return Verdict::nothing;
    size_ = static_cast<std::uint16_t>(bytes);
    too_long_ = std::max<std::uint32_t>(too_long_, bytes + 1);
    go_on(now);
    return Verdict::longer;
  }
  Verdict on_probe_lost(std::uint32_t bytes, std::uint8_t round, Nanos now) {
    if (phase_ == Phase::suspect) {
      const auto since = [this](std::uint8_t before) { return static_cast<std::uint8_t>(round_ - before); };
      if (bytes != size_ || since(round) > since(first_round_)) return Verdict::nothing;
      lost_ = static_cast<std::uint8_t>(std::min(lost_ + 1, 255));
      if (lost_ >= kMaxProbes && carried_ != 0) return fall(now);
      if (planned_ == 0) plan_round();
      return Verdict::nothing;
    }
    if (phase_ != Phase::search || bytes != candidate_) return Verdict::nothing;
    if (++lost_ < kMaxProbes) {
      planned_ = 1;
      return Verdict::nothing;
    }
    too_long_ = candidate_;
    go_on(now);
    return Verdict::nothing;
  }

 private:
  static constexpr std::uint8_t kMaxDoublings = 6;
  enum class Phase : std::uint8_t {
    idle,
    suspect,  ///< the size in use is tested
    search,   ///< a larger size is tested
  };

  [[nodiscard]] std::uint8_t in_round() const { return carried_ == 0 && size_ > kBase ? 3 : 2; }
  void plan_round() {
    ++round_;
    planned_ = in_round();
  }
  Verdict fall(Nanos now) {
    too_long_ = size_;
    size_ = carried_;
    go_on(now);
    return Verdict::shorter;
  }
  void begin_search() {
    phase_ = Phase::search;
    // The agreed size may work again, or the path may never have been a black hole. One probe of the agreed size shows
    // this.
    set_candidate(too_long_ > agreed_ ? agreed_ : size_ + (too_long_ - size_) / 2);
  }
  void set_candidate(std::uint32_t bytes) {
    candidate_ = static_cast<std::uint16_t>(bytes);
    lost_ = 0;
    planned_ = 1;
  }
  void go_on(Nanos now) {
    if (size_ < agreed_ && too_long_ - size_ > kGranularity) {
      begin_search();
      return;
    }
    phase_ = Phase::idle;
    planned_ = 0;
    if (size_ == agreed_) raises_ = 0;
    raise_at_ = now + std::min(kFirstRaise * (std::int64_t{1} << raises_), kRaiseAfter);
  }

  Nanos raise_at_;
  std::uint32_t too_long_ = 0;  ///< the smallest size known to be dropped; above agreed_ if none is known
  std::uint16_t agreed_ = 0;
  std::uint16_t size_ = 0;
  std::uint16_t candidate_ = 0;   ///< size tested by a search
  std::uint16_t carried_ = 0;     ///< longest probe that has arrived during a suspicion; 0 if none has
  std::uint8_t lost_ = 0;         ///< number of lost probes of the size that is tested
  std::uint8_t planned_ = 0;      ///< number of probes to be sent now
  std::uint8_t round_ = 0;        ///< number of rounds of all suspicions, modulo 256
  std::uint8_t first_round_ = 0;  ///< first round of a suspicion in which lost probes count
  std::uint8_t raises_ = 0;       ///< number of searches since the agreed size was last used, up to kMaxDoublings
  Phase phase_ = Phase::idle;
};

static_assert(sizeof(PathMtu) == 32);

}  // namespace mltcp::transport
