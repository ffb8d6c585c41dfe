// Which losses are a sign of congestion, for algorithms that a path tells of its queue in another way: by marks, or by
// its delay.
//
// Such a path tells before its queue overflows. A light loss of a path that is known to tell is then no sign of
// congestion, and only sent again; a path counts as one that tells at first, and whenever it has told. That ends, and
// every loss is a sign, when it has told nothing in this round trip or the one before and
// - a heavy loss comes. All heavy losses are signs.
// - or any loss while the round trip is twice what it was when the path told last, or, as long as it never has, twice
//   the least: a queue that it should have told of. (Not for algorithms that the round trip itself tells.)
// RFC 8311 section 3.1 leaves senders the choice of how to answer marks and losses. BBR bears losses up to 2% of a
// round trip (draft-ietf-ccwg-bbr, BBR.LossThresh).
//
// The trust comes back when the path tells. But a window that answers every loss may never fill a queue that could
// tell. So it comes back, too, when such losses go on where far fewer packets are sent in a round trip than when it
// ended, less than a quarter: what drops them then is hardly this sender's queue. (Windows that do not fall so far have
// to wait until the path tells.) It may be the queue of others who took its place, so this is on trial: who fails
// before it has sent about as much as when it failed, for many round trips, has to show twice as many losses next time.
//
// Why that is safe: random loss takes the same share of the packets at any rate, but a full queue drops all that is too
// much, so a window that grows on over light losses makes them heavy ones; one that the sender's own rate bounds fills
// the queue, which shows. "Heavy" is more than a twentieth of the packets in a moving average over round trips, as
// DCTCP's of marks is (RFC 8257 section 3.3), or more than an eighth of those of one round trip.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "mltcp/base/units.h"

namespace mltcp::cc {

class LossJudge {
 public:
  static constexpr float kHeavyShare = 0.05F;
  static constexpr float kWeight = 1.0F / 16;         ///< of a round trip in the average
  static constexpr std::uint32_t kMinPackets = 32;    ///< a round trip with fewer is taken together with the next
  static constexpr std::uint32_t kSuddenLosses = 9;   ///< in one round trip, so many and
  static constexpr std::uint32_t kSuddenDivisor = 8;  ///< a share above 1 / this
  static constexpr std::uint32_t kFewer = 4;          ///< packets in a round trip, times, than when the trust ended
  static constexpr std::uint32_t kProbation = 16;     ///< round trips of so few with a loss bring the trust back
  static constexpr std::uint32_t kMaxDoublings = 8;   ///< of it
  static constexpr std::uint32_t kTrial = 4;          ///< round trips for each packet of one

  /// Call with each sample of acknowledgements: how many packets, whether they tell of a queue, the count of round
  /// trips, and how long these take. `full`: as in is_congestion().
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
      // Less than where it failed proves nothing.
      if (window * 8 >= std::uint32_t{window_} * 7)
        rounds_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(rounds_ + rounds, kMost));
      if (!is_on_trial() || window > window_) window_ = static_cast<std::uint16_t>(window);
    } else if (lost_ > 0 && !full && kFewer * window < window_ && --rounds_ == 0) {
      tells_ = true;
      average_ = 0;  // of the time before
    }
    round_ = static_cast<std::uint8_t>(round);
    packets_before_ = static_cast<std::uint16_t>(std::min(all, kMost));
    acked_ = lost_ = 0;
    told_before_ = told_;
    told_ = false;
  }
  /// Whether `packets` more losses are a sign of congestion. `told`: acknowledgements of the same batch, for which
  /// on_acked() follows, tell of a queue. `full`: the round trip does, see shows_queue().
  [[nodiscard]] bool is_congestion(std::uint32_t packets, bool told, bool full) {
    lost_ = static_cast<std::uint16_t>(std::min(lost_ + packets, kMost));
    told = told || told_ || told_before_;
    // Losses may all be found at the beginning of a round trip.
    const std::uint32_t all = std::max<std::uint32_t>(std::uint32_t{acked_} + lost_, packets_before_);
    const bool sudden = lost_ >= kSuddenLosses && lost_ * kSuddenDivisor > all;
    const bool heavy = sudden || average_ > kHeavyShare;
    if (!told && (heavy || full)) distrust();
    if (!heavy) return !tells_;
    average_ = 0;  // answered
    acked_ = lost_ = 0;
    return true;
  }
  /// Whether the round trip is so long that the path should have told.
  [[nodiscard]] bool shows_queue(Nanos smoothed_rtt, Nanos min_rtt) const {
    return smoothed_rtt > (told_rtt_ > 0 ? Nanos(told_rtt_) : min_rtt) * 2;
  }

 private:
  static constexpr std::uint32_t kMost = 65'535;

  /// As long as the trust that came back has not been tried where it ended.
  [[nodiscard]] bool is_on_trial() const { return rounds_ < std::min(kTrial * window_, kMost); }
  void distrust() {
    if (tells_ && !is_on_trial())
      doublings_ = 0;
    else if (tells_ && doublings_ < kMaxDoublings)
      ++doublings_;
    // In the very first round trip all that is known is how many it had so far.
    if (window_ == 0) window_ = static_cast<std::uint16_t>(std::min<std::uint32_t>(acked_ + lost_, kMost));
    tells_ = false;
    rounds_ = static_cast<std::uint16_t>(kProbation << doublings_);
  }

  float average_ = 0;           ///< share of packets that are lost, of the round trips before this one
  std::uint32_t told_rtt_ = 0;  ///< in nanoseconds, when the path told last; 0: never
  std::uint16_t acked_ = 0;     ///< in this round trip
  std::uint16_t lost_ = 0;
  std::uint16_t packets_before_ = 0;  ///< in the one before, lost ones included
  std::uint16_t window_ = 0;          ///< packets in a round trip; where the trust ended, until that is over
  std::uint16_t rounds_ = kMost;      ///< of the trial; without trust, those with a loss until it comes back
  std::uint8_t round_ = 0;            ///< the last digits
  std::uint8_t doublings_ : 4 = 0;    ///< of the probation
  bool told_ : 1 = false;             ///< in this round trip
  bool told_before_ : 1 = false;
  bool tells_ : 1 = true;
};

static_assert(sizeof(LossJudge) == 20, "fits into what the largest algorithm leaves of a controller's state");

}  // namespace mltcp::cc
