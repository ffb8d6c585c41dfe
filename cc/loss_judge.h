// Decides which losses are a sign of congestion, for algorithms to which the path signals its queue in another way: by
// marks, or by its delay.
//
// Such a path signals before its queue overflows. A light loss on a path that is known to signal is no sign of
// congestion, and the data is only sent again. A path counts as signalling at first, and again whenever it has
// signalled. This trust ends, and every loss is then a sign, if the path has not signalled in this round trip or the
// one before and either
// - a heavy loss occurs (all heavy losses are signs), or
// - any loss occurs while the round-trip time is twice its value at the last signal, or, before the first signal,
//   twice the minimum: the path should have signalled such a queue. (Not for algorithms that use the round-trip time as
//   the signal.)
// RFC 8311 section 3.1 lets senders choose how to respond to marks and losses. BBR tolerates losses up to 2% of a round
// trip (draft-ietf-ccwg-bbr, BBR.LossThresh).
//
// The trust returns when the path signals. But a window that responds to every loss may never fill a queue that could
// signal. So the trust also returns if such losses continue while less than a quarter as many packets are sent in a
// round trip as when it ended: this sender's queue then hardly causes them. (A window that does not fall that far must
// wait until the path signals.) But the queue may belong to others that took the capacity, so this trust is on trial.
// It must last for many round trips with about as many packets as when it ended. If it ends before, twice as many
// losses are needed next time.
//
// Why this is safe: random loss drops the same share of packets at any rate, but a full queue drops everything above
// its capacity. So a window that keeps growing despite light losses turns them into heavy ones; if the sender's own
// rate bounds it, it fills the queue, which the round-trip time shows. "Heavy" means more than a twentieth of the
// packets in a moving average over round trips (computed as DCTCP's average of marks, RFC 8257 section 3.3), or more
// than an eighth of the packets of one round trip.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "mltcp/base/units.h"

namespace mltcp::cc {

class LossJudge {
 public:
  static constexpr float kHeavyShare = 0.05F;
  static constexpr float kWeight = 1.0F / 16;         ///< weight of a round trip in the average
  static constexpr std::uint32_t kMinPackets = 32;    ///< a round trip with fewer packets is merged with the next
  static constexpr std::uint32_t kSuddenLosses = 9;   ///< minimum losses in one round trip to be heavy, and also
  static constexpr std::uint32_t kSuddenDivisor = 8;  ///< a share above 1 / this
  static constexpr std::uint32_t kFewer = 4;          ///< below 1 / this of its window, losses restore the trust
  static constexpr std::uint32_t kProbation = 16;     ///< number of such round trips with a loss
  static constexpr std::uint32_t kMaxDoublings = 8;   ///< of kProbation
  static constexpr std::uint32_t kTrial = 4;          ///< round trips of trial per packet in a round trip

  /// Call with each sample of acknowledgements. `packets`: their number; `told`: they signal a queue; `round`: count of
  /// round trips. `full`: as in is_congestion().
  void on_acked(std::uint32_t packets, bool told, std::uint64_t round, Nanos smoothed_rtt, bool full) {
    if (told) {
      told_rtt_ = static_cast<std::uint32_t>(
          std::min<std::int64_t>(smoothed_rtt.count, std::numeric_limits<std::uint32_t>::max()));
      tells_ = true;
      doublings_ = 0;
      rounds_ = kMost;
    }
    acked_ = static_cast<std::uint16_t>(std::min(acked_ + packets, kMost));
    told_ = told_ || told;
    const std::uint32_t all = std::uint32_t{acked_} + lost_;
    const auto rounds = static_cast<std::uint8_t>(round - round_);  // never as many as would wrap
    if (rounds == 0 || (all < kMinPackets && window_ > 0)) return;
    const std::uint32_t window = std::clamp<std::uint32_t>(all / rounds, 1, kMost);
    if (all < kMinPackets) {  // the very first
      window_ = static_cast<std::uint16_t>(window);
      return;
    }
    average_ += kWeight * (static_cast<float>(lost_) / static_cast<float>(all) - average_);
    if (tells_) {
      // Fewer packets than at the failure prove nothing.
      if (window * 8 >= std::uint32_t{window_} * 7)
        rounds_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(rounds_ + rounds, kMost));
      if (!is_on_trial() || window > window_) window_ = static_cast<std::uint16_t>(window);
    } else if (lost_ > 0 && !full && kFewer * window < window_ && --rounds_ == 0) {
      tells_ = true;
      average_ = 0;  // the average covers the time before
    }
    round_ = static_cast<std::uint8_t>(round);
    packets_before_ = static_cast<std::uint16_t>(std::min(all, kMost));
    acked_ = lost_ = 0;
    told_before_ = told_;
    told_ = false;
  }
  /// Whether `packets` more losses are a sign of congestion. `told`: acknowledgements of the same batch, for which
  /// on_acked() follows, signal a queue. `full`: the round-trip time shows a queue, see shows_queue().
  [[nodiscard]] bool is_congestion(std::uint32_t packets, bool told, bool full) {
    lost_ = static_cast<std::uint16_t>(std::min(lost_ + packets, kMost));
    told = told || told_ || told_before_;
    // All losses may be detected at the beginning of a round trip.
    const std::uint32_t all = std::max<std::uint32_t>(std::uint32_t{acked_} + lost_, packets_before_);
    const bool sudden = lost_ >= kSuddenLosses && lost_ * kSuddenDivisor > all;
    const bool heavy = sudden || average_ > kHeavyShare;
    if (!told && (heavy || full)) distrust();
    if (!heavy) return !tells_;
    average_ = 0;  // answered
    acked_ = lost_ = 0;
    return true;
  }
  /// Whether the round-trip time is so long that the path should have signalled.
  [[nodiscard]] bool shows_queue(Nanos smoothed_rtt, Nanos min_rtt) const {
    return smoothed_rtt > (told_rtt_ > 0 ? Nanos(told_rtt_) : min_rtt) * 2;
  }

 private:
  static constexpr std::uint32_t kMost = 65'535;

  /// Whether the restored trust has not yet been tested long enough at the rate at which it ended.
  [[nodiscard]] bool is_on_trial() const { return rounds_ < std::min(kTrial * window_, kMost); }
  void distrust() {
    if (tells_ && !is_on_trial())
      doublings_ = 0;
    else if (tells_ && doublings_ < kMaxDoublings)
      ++doublings_;
    // In the very first round trip only the packets so far are known.
    if (window_ == 0) window_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(acked_ + lost_, kMost));
    tells_ = false;
    rounds_ = static_cast<std::uint16_t>(kProbation << doublings_);
  }

  float average_ = 0;           ///< share of packets lost, in the round trips before this one
  std::uint32_t told_rtt_ = 0;  ///< smoothed RTT in nanoseconds at the path's last signal; 0: no signal yet
  std::uint16_t acked_ = 0;     ///< packets acknowledged in this round trip
  std::uint16_t lost_ = 0;
  std::uint16_t packets_before_ = 0;  ///< packets in the round trip before, including lost ones
  std::uint16_t window_ = 0;          ///< packets in a round trip; frozen when the trust ends
  std::uint16_t rounds_ = kMost;      ///< round trips of the trial; without trust, those with a loss until it returns
  std::uint8_t round_ = 0;            ///< lowest bits of the round's count
  std::uint8_t doublings_ : 4 = 0;    ///< doublings of kProbation
  bool told_ : 1 = false;             ///< the path signalled in this round trip
  bool told_before_ : 1 = false;
  bool tells_ : 1 = true;
};

static_assert(sizeof(LossJudge) == 20, "fits into what the largest algorithm leaves of a controller's state");

}  // namespace mltcp::cc
