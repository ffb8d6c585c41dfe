// Validates ECN on the path and finds how many sent packets arrived marked, from the counts that the peer sends back
// (RFC 9000 section 13.4.2). If the counts show that the field is rewritten, ECN is not used for a while and then tried
// again, after a longer pause each time. So a single packet changed on its way does not turn ECN off for good.
//
// On request it also detects hidden marks: a peer may hide them to be sent more, or a path may clear them. ECN then
// counts as not working. The test: once in some hundred packets, at random, this end sends a run of packets already
// marked, as if a congested link had marked them; the peer cannot tell them from others. (RFC 3168 section 18.1 relies
// on the network for this; draft-moncaster-tcpm-rcv-cheat tests whether losses are reported.) A peer has counted the
// packets that it acknowledges. So from the last acknowledgement before the run on, the count of marks must grow by at
// least the number of packets of the run that have been acknowledged. Most tests have one or two packets, and some have
// as many as a queue may mark in a round trip. So a peer fails some of the tests if it hides a share of the marks, all
// but the first mark of an acknowledgement, or marks that follow many others. It also fails if it reports marked
// packets as lost: then too many of the tests' first packets are lost. Congestion control does not see the marks made
// by this end. It computes marked bytes from the counts of packets, because only these are tested.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "mltcp/base/units.h"
#include "mltcp/cc/algorithm.h"
#include "mltcp/transport/internal/shard_random.h"
#include "mltcp/transport/wire.h"

namespace mltcp::transport {

class EcnFeedback {
 public:
  static constexpr std::uint32_t kFirstPause = 1024;  ///< packets acknowledged until ECN is tried again
  static constexpr std::uint8_t kMaxDoublings = 6;    ///< of kFirstPause

  /// Whether ECN works, as far as known.
  [[nodiscard]] bool works() const { return state_ == State::works; }
  /// Whether packets must be sent ECN-capable: ECN works, or is being tried again.
  [[nodiscard]] bool is_used() const { return state_ != State::off; }

  /// The packets that an acknowledgement newly acknowledges.
  struct Acknowledged {
    std::uint32_t packets = 0;
    Bytes bytes = 0;
    std::uint64_t largest = 0;      ///< number that it acknowledges
    std::uint64_t next_number = 0;  ///< number of the next packet to be sent
  };

  /// Takes the counts of an acknowledgement. Adds the marks to `sample` and returns the number of marked packets.
  /// `checked`: the peer's count of marked bytes is not used.
  std::uint32_t on_counts(const wire::EcnCounts& counts, const Acknowledged& acked, bool checked,
                          cc::AckSample& sample) {
    const std::uint32_t ect0 = counts.ect0_packets - std::exchange(ect0_packets_, counts.ect0_packets);
    std::uint32_t ce = counts.ce_packets - std::exchange(ce_packets_, counts.ce_packets);
    const std::uint32_t ce_bytes = counts.ce_bytes - std::exchange(ce_bytes_, counts.ce_bytes);
    if (state_ == State::works) [[likely]] {
      if (failures_ > 0) [[unlikely]]
        recover(acked.packets);
    } else if (!goes_on_trying(acked)) {
      return 0;
    }
    // Counts that decrease, or do not cover all packets although all are ECN-capable, mean that the path rewrites the
    // field (RFC 9000 section 13.4.2.1). Reordered acknowledgements are filtered out by the caller.
    if (ect0 > (1U << 31) || ce > (1U << 31) || counts.ect1_packets != 0 ||
        (state_ == State::works && ect0 + ce < acked.packets)) {
      fail();
      return 0;
    }
    if (awaits_test()) [[unlikely]]
      if (!judge_test(ce)) return 0;
    if (checked) return add_marks(ce, acked, sample);
    sample.ce_packets += ce;
    sample.ce_bytes = std::min(sample.ce_bytes + (ce == 0 ? 0 : ce_bytes), sample.acked_bytes);
    return ce;
  }
  /// The same for an acknowledgement of a checked peer whose counts are too old to be used: adds the marks that other
  /// acknowledgements counted early, for packets that this one acknowledges.
  std::uint32_t on_older(const Acknowledged& acked, cc::AckSample& sample) { return add_marks(0, acked, sample); }

  /// While ECN does not work: the average round-trip time, including the peer's own delay, which it may overstate.
  Nanos average_round_trip(Nanos latest) {
    const Nanos before(round_trip_ == 0 ? latest.count : round_trip_);
    round_trip_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>((7 * before.count + latest.count) / 8, 1, ~0U));
    return Nanos(round_trip_);
  }

  // Tests of the peer.

  static constexpr std::uint32_t kMinBetweenTests = 128;
  static constexpr std::uint32_t kBetweenTests = 512;  ///< plus 0 up to this many packets, evenly distributed
  static constexpr int kMaxTestedLog2 = 8;             ///< log2 of the longest test; each step is half as likely
  static constexpr std::uint8_t kMaxMissed = 2;        ///< failed tests; a single one may be an unforeseen accident
  static constexpr std::uint8_t kTestsJudged = 15;     ///< tests over which lost first packets are counted
  static constexpr std::uint8_t kMaxLost = 4;          ///< maximum lost first packets in kTestsJudged tests

  /// Whether the packet is sent marked. Call for each packet that may be marked. `sent` has records of all packets
  /// before.
  template <typename Sent>
  bool is_test(std::uint64_t number, const Sent& sent, ShardRandom& random) {
    if (run_left_ == 0) {
      if (until_test_ == 0)
        until_test_ = static_cast<std::uint16_t>(kMinBetweenTests + (random.next() >> 32) % kBetweenTests);
      if (--until_test_ > 0 || awaits_test() || !works()) return false;
      const std::uint64_t drawn = random.next();
      const int max_log2 = std::countr_zero(drawn | std::uint64_t{1} << kMaxTestedLog2);
      run_left_ = static_cast<std::uint16_t>(1 + ((drawn >> 32) & ((std::uint64_t{1} << max_log2) - 1)));
      oldest_ = number;
      settled_ = owed_ = own_ = 0;
      is_acked_ = false;
      is_first_settled_ = false;
    }
    // Packets in between that ask for no acknowledgement do no harm.
    for (std::uint64_t end = oldest_ + length_; end < number; ++end) {
      if (number - end <= kMinBetweenTests && !sent.is_in_flight(end) && !sent.is_acked(end)) continue;
      run_left_ = 0;
      return false;
    }
    length_ = static_cast<std::uint16_t>(number + 1 - oldest_);
    --run_left_;
    return true;
  }
  [[nodiscard]] bool awaits_test() const { return length_ > 0 || owed_ > 0 || run_left_ > 0; }
  /// An acknowledgement has arrived. Call before on_counts(), which is not called for older acknowledgements. `sent`
  /// has the state of each packet. Because an acknowledgement has limited room, marks may be counted before their
  /// packets are acknowledged, but not before `largest` is at least as high.
  template <typename Sent>
  void on_acks(const Sent& sent, std::uint64_t largest) {
    if (!is_acked_) {
      base_ = ce_packets_;
      is_acked_ = largest >= oldest_;
    }
    for (; length_ > 0 && !sent.is_in_flight(oldest_); ++oldest_, --length_) {
      const bool is_acked = sent.is_acked(oldest_);
      if (is_acked) ++settled_;
      if (is_first_settled_) continue;
      is_first_settled_ = true;
      if (!are_marked_lost(!is_acked, sent)) continue;
      fail();
      return;
    }
    std::uint16_t owed = settled_;
    for (std::uint32_t i = 0; i < length_; ++i)
      if (sent.is_acked(oldest_ + i)) ++owed;
    own_ = static_cast<std::uint16_t>(own_ + owed - owed_);
    owed_ = owed;
  }

 private:
  enum class State : std::uint8_t {
    works,
    off,     ///< not used for left_ more packets
    begins,  ///< packets from oldest_ on are ECN-capable; none of them has been acknowledged
    tried,   ///< some are acknowledged; works once one from the new oldest_ on is, and all are counted
  };

  /// At most as many bytes as are acknowledged count as marked; excess marks count for the bytes acknowledged next.
  std::uint32_t add_marks(std::uint32_t ce, const Acknowledged& acked, cc::AckSample& sample) {
    if (ce == 0 && early_marks_ == 0) [[likely]]
      return 0;
    const std::uint32_t all = ce + early_marks_;
    const std::uint32_t taken = std::min(all, acked.packets);
    early_marks_ = static_cast<std::uint8_t>(std::min<std::uint32_t>(all - taken, 0xFF));
    sample.ce_packets += ce;
    sample.ce_bytes = std::min(sample.ce_bytes + acked.bytes * taken / acked.packets, sample.acked_bytes);
    return ce;
  }
  void drop_test() { length_ = owed_ = own_ = run_left_ = 0; }
  [[nodiscard]] std::uint32_t pause() const { return kFirstPause << failures_; }
  void fail() {
    drop_test();
    tests_ = 0;
    early_marks_ = 0;
    state_ = State::off;
    round_trip_ = 0;
    left_ = pause();
    if (failures_ < kMaxDoublings) ++failures_;
  }
  /// ECN has worked for `packets` more packets. After as many as a pause would last, one failure is forgotten.
  void recover(std::uint32_t packets) {
    left_ -= std::min(left_, packets);
    if (left_ > 0) return;
    if (--failures_ == 0) {
      missed_ = 0;
      lost_ = 0;
    }
    left_ = pause();
  }
  /// Whether the counts of this acknowledgement are used.
  bool goes_on_trying(const Acknowledged& acked) {
    if (state_ == State::off) {
      left_ -= std::min(left_, acked.packets);
      if (left_ > 0) return false;
      state_ = State::begins;
      oldest_ = acked.next_number;
      return false;
    }
    if (acked.largest < oldest_) return true;
    // Packets sent before may still arrive late, but by less than a round trip.
    if (state_ == State::begins) {
      state_ = State::tried;
      oldest_ = acked.next_number;
    } else {
      state_ = State::works;
      left_ = pause();
    }
    return true;
  }
  /// Whether too many of the latest tests' first packets were lost, compared with all packets.
  template <typename Sent>
  bool are_marked_lost(bool is_lost, const Sent& sent) {
    if (is_lost && lost_ < kTestsJudged) ++lost_;
    ++tests_;
    const bool too_many =
        is_lost && lost_ > kMaxLost && lost_ * sent.packets_sent() > 2U * tests_ * sent.lost_packets();
    if (too_many || tests_ == kTestsJudged) {
      lost_ = too_many ? kMaxLost : 0;  // after a failure, one more is one too many
      tests_ = 0;
    }
    return too_many;
  }
  /// Subtracts the marks made by this end from `ce`. False if ECN no longer counts as working.
  bool judge_test(std::uint32_t& ce) {
    const auto own = static_cast<std::uint16_t>(std::min<std::uint32_t>(ce, own_));
    own_ = static_cast<std::uint16_t>(own_ - own);
    ce -= own;
    const bool misses = ce_packets_ - base_ < owed_;
    if (misses || (run_left_ == 0 && length_ == 0)) drop_test();
    if (!misses || ++missed_ < kMaxMissed) return true;
    missed_ = kMaxMissed - 1;
    fail();
    return false;
  }

  // The latest counts of the peer.
  std::uint32_t ect0_packets_ = 0;
  std::uint32_t ce_packets_ = 0;
  std::uint32_t ce_bytes_ = 0;
  std::uint32_t left_ = 0;        ///< packets to be acknowledged until ECN is tried again, or a failure is forgotten
  std::uint64_t oldest_ = 0;      ///< the oldest packet of the test that is in flight; if not works(): see State
  std::uint32_t round_trip_ = 0;  ///< see average_round_trip(); 0: none yet
  std::uint32_t base_ = 0;        ///< marks counted by the last acknowledgement before that of a packet of the test
  std::uint16_t until_test_ = 0;  ///< packets until the next test; 0: not drawn yet
  std::uint16_t run_left_ = 0;    ///< packets of the test to be sent
  std::uint16_t length_ = 0;      ///< packet numbers from oldest_ to the last one sent
  std::uint16_t settled_ = 0;     ///< packets of the test before oldest_ that have been acknowledged
  std::uint16_t owed_ = 0;        ///< acknowledged packets of the test in all: the peer must count as many marks
  std::uint16_t own_ = 0;         ///< of those, how many must still be subtracted from the peer's count
  std::uint8_t early_marks_ = 0;  ///< marks counted by a checked peer for packets not acknowledged yet
  std::uint8_t tests_ : 4 = 0;    ///< tests judged since the last reset, up to kTestsJudged
  std::uint8_t lost_ : 4 = 0;     ///< of those, tests whose first packet was lost
  State state_ : 2 = State::works;
  bool is_first_settled_ : 1 = false;  ///< the first packet of the test is acknowledged, or lost
  std::uint8_t missed_ : 2 = 0;
  std::uint8_t failures_ : 4 = 0;
  bool is_acked_ : 1 = false;  ///< the test's first packet, or a later one, has been acknowledged
};

static_assert(sizeof(EcnFeedback) == 48);

}  // namespace mltcp::transport
