// Decides which losses are a sign of congestion, for algorithms to which the path signals its queue in another way: by
// marks, or by its delay.
//
// Such a path signals before its queue overflows. A light loss on a path that is trusted to signal is no sign of
// congestion. It causes a retransmission, but no response of the algorithm. A path is trusted at first. The trust ends
// if the path has signalled neither in this round trip nor in the previous one, and one of two things happens:
//
// - A heavy loss occurs. Every heavy loss is a sign of congestion.
// - Any loss occurs while the round-trip time is more than twice its value at the last signal or, before the first
//   signal, more than twice the minimum. The path should have signalled such a queue. This rule does not apply to
//   algorithms that use the round-trip time as the signal.
//
// Without trust, every loss is a sign of congestion. RFC 8311 section 3.1 lets senders choose how to respond to marks
// and losses. BBR tolerates losses up to 2% of a round trip (draft-ietf-ccwg-bbr, BBR.LossThresh).
//
// The trust returns when the path signals. But a window that responds to every loss may never fill a queue enough to
// cause a signal. So the trust also returns if losses continue while less than a quarter as many packets are sent in a
// round trip as when the trust ended. The sender's own queue then hardly causes these losses. (If the window does not
// fall that far, the trust returns only with a signal.) The losses may still come from a queue of other flows, which
// took the capacity. So trust that returned in this way is on trial. It must last for many round trips with about as
// many packets as when the trust ended. If the trust ends during the trial, twice as many losses are needed to restore
// it the next time.
//
// Why this is safe: random loss drops the same share of packets at any rate, but a full queue drops everything above
// its capacity. A window that keeps growing despite light losses turns them into heavy losses. If the sender's own rate
// limits the window, the window fills the queue, which the round-trip time shows. "Heavy" means more than a twentieth
// of the packets in a moving average over round trips (computed like DCTCP's average of marks, RFC 8257 section 3.3),
// or more than an eighth of the packets of one round trip.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "mltcp/base/units.h"

namespace mltcp::cc {

class LossJudge {
 public:
  static constexpr float kHeavyShare = 0.05F;
  static constexpr float kWeight = 1.0F / 16;       ///< weight of a round trip in the average
  static constexpr std::uint32_t kMinPackets = 32;  ///< a round trip with fewer packets is merged with the next
  /// Losses of one round trip are heavy only if at least this many packets are lost.
  static constexpr std::uint32_t kSuddenLosses = 9;
  /// Losses of one round trip are heavy only if more than 1 / kSuddenDivisor of its packets are lost.
  static constexpr std::uint32_t kSuddenDivisor = 8;
  /// Losses help to restore the trust only in round trips with less than 1 / kFewer of the packets in window_.
  static constexpr std::uint32_t kFewer = 4;
  static constexpr std::uint32_t kProbation = 16;    ///< number of round trips with losses that restore the trust
  static constexpr std::uint32_t kMaxDoublings = 8;  ///< maximum number of times that kProbation is doubled
  static constexpr std::uint32_t kTrial = 4;  ///< duration of the trial: number of round trips per packet of window_

  /// Call for each batch of acknowledgements. `packets` is the number of acknowledged packets, `signalled` whether they
  /// signal a queue, and `round` the count of round trips. `full` is as in is_congestion().
  void on_acked(std::uint32_t packets, bool signalled, std::uint64_t round, Nanos smoothed_rtt, bool full) {
    if (signalled) {
      rtt_at_signal_ = static_cast<std::uint32_t>(
          std::min<std::int64_t>(smoothed_rtt.count, std::numeric_limits<std::uint32_t>::max()));
      signals_ = true;
      doublings_ = 0;
      rounds_ = kMaxCount;
    }
    acked_ = static_cast<std::uint16_t>(std::min(acked_ + packets, kMaxCount));
    signalled_ = signalled_ || signalled;
    const std::uint32_t all = std::uint32_t{acked_} + lost_;
    const auto rounds = static_cast<std::uint8_t>(round - round_);  // always below 256
    if (rounds == 0 || (all < kMinPackets && window_ > 0)) return;
    const std::uint32_t window = std::clamp<std::uint32_t>(all / rounds, 1, kMaxCount);
    if (all < kMinPackets) {  // the first round trip
      window_ = static_cast<std::uint16_t>(window);
      return;
    }
    average_ += kWeight * (static_cast<float>(lost_) / static_cast<float>(all) - average_);
    if (signals_) {
      // A round trip with fewer packets than when the trust ended does not count for the trial.
      if (window * 8 >= std::uint32_t{window_} * 7)
        rounds_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(rounds_ + rounds, kMaxCount));
      if (!is_on_trial() || window > window_) window_ = static_cast<std::uint16_t>(window);
    } else if (lost_ > 0 && !full && kFewer * window < window_ && --rounds_ == 0) {
      signals_ = true;
      average_ = 0;  // the average covers the time without trust
    }
    round_ = static_cast<std::uint8_t>(round);
    packets_before_ = static_cast<std::uint16_t>(std::min(all, kMaxCount));
    acked_ = lost_ = 0;
    signalled_before_ = signalled_;
    signalled_ = false;
  }
  /// Returns whether `packets` more lost packets are a sign of congestion. `signalled` is whether acknowledgements of
  /// the same batch signal a queue; on_acked() for this batch follows. `full` is whether the round-trip time shows a
  /// queue, see shows_queue().
  [[nodiscard]] bool is_congestion(std::uint32_t packets, bool signalled, bool full) {
    lost_ = static_cast<std::uint16_t>(std::min(lost_ + packets, kMaxCount));
    signalled = signalled || signalled_ || signalled_before_;
    // All losses may be detected at the beginning of a round trip, when few packets have been acknowledged.
    const std::uint32_t all = std::max<std::uint32_t>(std::uint32_t{acked_} + lost_, packets_before_);
    const bool sudden = lost_ >= kSuddenLosses && lost_ * kSuddenDivisor > all;
    const bool heavy = sudden || average_ > kHeavyShare;
    if (!signalled && (heavy || full)) distrust();
    if (!heavy) return !signals_;
    average_ = 0;  // the algorithm responds now, so these losses count no more
    acked_ = lost_ = 0;
    return true;
  }
  /// Returns whether the round-trip time is so long that the path should have signalled a queue.
  [[nodiscard]] bool shows_queue(Nanos smoothed_rtt, Nanos min_rtt) const {
    return smoothed_rtt > (rtt_at_signal_ > 0 ? Nanos(rtt_at_signal_) : min_rtt) * 2;
  }

 private:
  static constexpr std::uint32_t kMaxCount = 65'535;

  /// Returns whether the trust is on trial (see the head of this file).
  [[nodiscard]] bool is_on_trial() const { return rounds_ < std::min(kTrial * window_, kMaxCount); }
  void distrust() {
    if (signals_ && !is_on_trial())
      doublings_ = 0;
    else if (signals_ && doublings_ < kMaxDoublings)
      ++doublings_;
    // In the first round trip only the packets counted so far are known.
    if (window_ == 0) window_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(acked_ + lost_, kMaxCount));
    signals_ = false;
    rounds_ = static_cast<std::uint16_t>(kProbation << doublings_);
  }

  float average_ = 0;  ///< moving average of the share of lost packets, up to the previous round trip
  /// Smoothed RTT in nanoseconds at the path's last signal; 0 if there was no signal yet.
  std::uint32_t rtt_at_signal_ = 0;
  std::uint16_t acked_ = 0;  ///< packets acknowledged in this round trip
  std::uint16_t lost_ = 0;
  std::uint16_t packets_before_ = 0;  ///< packets in the previous round trip, including lost ones
  std::uint16_t window_ = 0;          ///< packets in a round trip; not updated without trust
  /// With trust: number of round trips since the trial began. Without trust: number of round trips with a loss that are
  /// still needed to restore the trust.
  std::uint16_t rounds_ = kMaxCount;
  std::uint8_t round_ = 0;          ///< lowest 8 bits of the count of round trips
  std::uint8_t doublings_ : 4 = 0;  ///< number of times that kProbation is doubled now
  bool signalled_ : 1 = false;      ///< whether the path signalled in this round trip
  bool signalled_before_ : 1 = false;
  bool signals_ : 1 = true;
};

static_assert(sizeof(LossJudge) == 20, "fits into what the largest algorithm leaves of a controller's state");

}  // namespace mltcp::cc
