// How long packets a connection's path carries: datagram packetization layer path MTU discovery (RFC 8899), as far as
// it is needed where the ends' agreement on a size is nearly always right.
//
// The size agreed on is used at once and is not probed. Only when packets vanish that are longer than the smallest, and
// nothing as long arrives (SentPackets counts them), is the path suspected of being a black hole for them (section
// 4.3). It is then tried in rounds: a probe of the size used so far, and behind it one of a base size and one of the
// smallest that every path must carry, or of the longer of these that is known to arrive. Each probe is a packet of
// PADDING that carries nothing else. If one of the used size arrives the suspicion was wrong. If kMaxProbes of them
// are lost, which shows only by packets sent later that arrive, the connection goes on with the shorter size.
//
// From then on a binary search looks for the longest packet that the path carries, one probe at a time, and each size
// counts as too long when kMaxProbes are lost. When it has ended below the size agreed on, it begins again with that
// after kFirstRaise, at the next acknowledgement: a connection that idles sends nothing. What dropped the packets may
// have been a burst of losses or somebody who was there for a moment, and then that is soon over. Otherwise each time
// is twice as long as the one before, up to kRaiseAfter.
//
// A probe counts neither as bytes in flight nor, when lost, as a sign of congestion. No ICMP message is read, so nobody
// off the path can make packets shorter.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/base/units.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

class PathMtu {
 public:
  static constexpr std::uint32_t kBase = 1200;       ///< BASE_PLPMTU (section 5.1.2)
  static constexpr std::uint32_t kMaxProbes = 3;     ///< MAX_PROBES (section 5.1.2)
  static constexpr std::uint32_t kGranularity = 16;  ///< a search ends when its bounds are as close
  static constexpr Nanos kFirstRaise{1'000'000'000};
  static constexpr Nanos kRaiseAfter{60'000'000'000};  ///< PMTU_RAISE_TIMER (section 5.1.1)

  /// What the outcome of a probe means.
  enum class Verdict : std::uint8_t {
    nothing,
    healthy,  ///< the path has carried what it was suspected of dropping
    shorter,  ///< size() has become smaller
    longer,   ///< size() has become larger
  };

  /// Both ends accept packets up to this size.
  void agree(std::uint32_t bytes) {
    agreed_ = size_ = static_cast<std::uint16_t>(bytes);
    too_long_ = bytes + 1;
  }
  [[nodiscard]] std::uint32_t agreed() const { return agreed_; }
  /// Of the packets that carry something.
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] bool is_suspect() const { return phase_ == Phase::suspect; }
  /// Whether packets are shorter than agreed on, and the search for longer ones has ended.
  [[nodiscard]] bool waits_to_raise() const { return phase_ == Phase::idle && size_ < agreed_; }

  /// Packets of the used size seem to vanish: begins to try it, or goes on with another round as nothing has arrived.
  /// False if they are as short as can be.
  bool suspect() {
    if (size_ <= wire::kSmallestPacket) return false;
    if (phase_ != Phase::suspect) {
      phase_ = Phase::suspect;
      lost_ = 0;
      carried_ = 0;
    }
    plan_round();
    // Nobody knows whether earlier probes were too long, or nothing arrived at the time.
    if (carried_ == 0) first_round_ = round_;
    return true;
  }
  /// A packet of the used size has arrived.
  void on_carried(Nanos now) {
    if (phase_ == Phase::suspect) go_on(now);
  }
  /// Call at times while waits_to_raise().
  void look(Nanos now) {
    if (now < raise_at_) return;
    if (raises_ < kMaxDoublings) ++raises_;
    too_long_ = agreed_ + 1U;
    begin_search();
  }

  /// Size of the probe to be sent next; 0: none.
  [[nodiscard]] std::uint32_t next_probe() const {
    if (planned_ == 0) return 0;
    if (phase_ == Phase::search) return candidate_;
    if (planned_ == in_round()) return size_;
    if (carried_ != 0) return carried_;
    return planned_ == 2 ? kBase : static_cast<std::uint32_t>(wire::kSmallestPacket);
  }
  /// To be told again with the outcome of what is sent now.
  [[nodiscard]] std::uint8_t round() const { return round_; }
  void on_probe_sent() { --planned_; }
  Verdict on_probe_acked(std::uint32_t bytes, Nanos now) {
    if (phase_ == Phase::suspect) {
      if (bytes < size_) {
        carried_ = static_cast<std::uint16_t>(std::max<std::uint32_t>(carried_, bytes));
        if (planned_ < in_round()) planned_ = 0;  // what is left of a round
        return lost_ < kMaxProbes ? Verdict::nothing : fall(now);
      }
      go_on(now);
      return Verdict::healthy;
    }
    // A probe of an earlier suspicion may come late, and of a size that has been used since.
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
    suspect,  ///< the used size is tried
    search,   ///< a larger one is
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
    // The size agreed on works again, or it was no black hole at all: that is found by one probe.
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
  std::uint32_t too_long_ = 0;  ///< the least size known to be dropped; above agreed_: none
  std::uint16_t agreed_ = 0;
  std::uint16_t size_ = 0;
  std::uint16_t candidate_ = 0;   ///< search: the size tried
  std::uint16_t carried_ = 0;     ///< suspect: the longest probe that has arrived; 0: none yet
  std::uint8_t lost_ = 0;         ///< probes of the size that is tried
  std::uint8_t planned_ = 0;      ///< probes to be sent now
  std::uint8_t round_ = 0;        ///< of a suspicion; goes on with the next one
  std::uint8_t first_round_ = 0;  ///< suspect: the first round of which anything has arrived, or the latest
  std::uint8_t raises_ = 0;       ///< since the size agreed on was used, up to kMaxDoublings
  Phase phase_ = Phase::idle;
};

static_assert(sizeof(PathMtu) == 32);

}  // namespace mltcp::transport
