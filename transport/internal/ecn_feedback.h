// Validates ECN on the path, and finds how many sent packets arrived marked from the counts that the peer sends back
// (RFC 9000 section 13.4.2). If the counts show that the path rewrites the ECN field, ECN is not used for a while and
// then tried again. So a single packet that is changed on its way does not turn ECN off for good. Each pause is longer
// than the previous one, up to a maximum.
//
// On request this class also detects hidden marks. A peer may hide marks to receive data faster, or a path may clear
// them. ECN then counts as not working. For a test, this end sends a run of packets that are already marked, as if a
// congested link had marked them. A run begins at random, once in some hundred packets. The peer cannot distinguish
// these packets from packets that a link has marked. By the time the peer acknowledges a packet, it has counted the
// packet's mark. So after the last acknowledgement before the run, the count of marks must grow by at least the number
// of packets of the run that have been acknowledged.
//
// Most tests have one or two packets, and some have as many as a queue may mark in a round trip. So a peer fails some
// of the tests if it hides a share of the marks, all marks of an acknowledgement except the first, or marks that follow
// many others. It also fails if it reports marked packets as lost, because too many of the tests' first packets are
// then lost. Congestion control does not see the marks made by this end. Marked bytes are computed from the counts of
// packets, because only these counts are tested.
//
// RFC 3168 section 18.1 leaves such tests to the network. draft-moncaster-tcpm-rcv-cheat tests whether losses are
// reported.
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
  /// Number of packets that must be acknowledged before ECN is tried again after its first failure.
  static constexpr std::uint32_t kFirstPause = 1024;
  static constexpr std::uint8_t kMaxDoublings = 6;  ///< maximum number of times that kFirstPause is doubled

  /// Returns whether ECN works, as far as known.
  [[nodiscard]] bool works() const { return state_ == State::works; }
  /// Returns whether packets must be sent ECN-capable, because ECN works or is being tried again.
  [[nodiscard]] bool is_used() const { return state_ != State::off; }

  /// The packets that an acknowledgement newly acknowledges.
  struct Acknowledged {
    std::uint32_t packets = 0;
    Bytes bytes = 0;
    std::uint64_t largest = 0;      ///< highest packet number in the acknowledgement
    std::uint64_t next_number = 0;  ///< number of the next packet to be sent
  };

  /// Processes the counts of an acknowledgement. Adds the marks to `sample` and returns the number of marked packets.
  /// `checked`: the peer is not trusted, so its count of marked bytes is not used.
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
    // Counts that decrease show that the path rewrites the ECN field (RFC 9000 section 13.4.2.1). So do counts that
    // grow by less than the number of acknowledged packets, if all of these packets are ECN-capable. The caller filters
    // out reordered acknowledgements.
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
  /// Processes an acknowledgement of a peer that is not trusted, if the counts in it are outdated. Earlier counts may
  /// have included marks of packets that were not acknowledged at that time. If this acknowledgement covers such
  /// packets, adds the bytes of their marks to `sample`.
  std::uint32_t on_older(const Acknowledged& acked, cc::AckSample& sample) { return add_marks(0, acked, sample); }

  /// Adds the round-trip time `latest` to the average and returns the average. Used while ECN does not work. The peer's
  /// acknowledgement delay is not subtracted, because the peer may overstate it.
  Nanos average_round_trip(Nanos latest) {
    const Nanos before(round_trip_ == 0 ? latest.count : round_trip_);
    round_trip_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>((7 * before.count + latest.count) / 8, 1, ~0U));
    return Nanos(round_trip_);
  }

  // Tests of the peer.

  static constexpr std::uint32_t kMinBetweenTests = 128;
  static constexpr std::uint32_t kBetweenTests = 512;  ///< a random number below this is added to kMinBetweenTests
  /// Log2 of the maximum number of packets in a test. Each test draws its own maximum. Each power of two is half as
  /// likely to be drawn as the next lower one.
  static constexpr int kMaxTestedLog2 = 8;
  /// Number of failed tests after which ECN counts as not working. A single failure may be an accident.
  static constexpr std::uint8_t kMaxMissed = 2;
  static constexpr std::uint8_t kTestsJudged = 15;  ///< number of tests over which lost first packets are counted
  static constexpr std::uint8_t kMaxLost = 4;       ///< maximum number of lost first packets in kTestsJudged tests

  /// Returns whether the packet must be sent marked. Call this function for each packet that may be marked. `sent`
  /// contains the records of all packets sent before this one.
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
    // A run may be interrupted by a few packets that request no acknowledgement, but not by other unmarked packets.
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
  /// Processes the arrival of an acknowledgement whose highest packet number is `largest`. While awaits_test(), call
  /// this function for each acknowledgement, before on_counts() or on_older(). `sent` contains the state of each
  /// packet. The peer may count a mark before it acknowledges the packet, because an acknowledgement has room for few
  /// ranges. Such packets have numbers up to `largest`.
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
    off,     ///< not used until left_ more packets are acknowledged
    begins,  ///< packets from oldest_ on are ECN-capable; none of them has been acknowledged yet
    /// Some ECN-capable packets are acknowledged; ECN works once a packet from the new oldest_ on is acknowledged.
    tried,
  };

  /// Adds `ce` marks to `sample`. The number of bytes that count as marked is at most the number of acknowledged bytes.
  /// Excess marks count for the bytes that are acknowledged next.
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
  /// Counts `packets` more packets for which ECN has worked. Forgets one failure after as many packets as a pause
  /// lasts.
  void recover(std::uint32_t packets) {
    left_ -= std::min(left_, packets);
    if (left_ > 0) return;
    if (--failures_ == 0) {
      missed_ = 0;
      lost_ = 0;
    }
    left_ = pause();
  }
  /// Returns whether to use the counts of an acknowledgement that arrives while ECN is off or is being tried again.
  bool goes_on_trying(const Acknowledged& acked) {
    if (state_ == State::off) {
      left_ -= std::min(left_, acked.packets);
      if (left_ > 0) return false;
      state_ = State::begins;
      oldest_ = acked.next_number;
      return false;
    }
    if (acked.largest < oldest_) return true;
    // Packets that were sent before ECN was tried again may arrive late, by up to a round trip. So ECN counts as
    // working only one round trip after the first acknowledgement of an ECN-capable packet.
    if (state_ == State::begins) {
      state_ = State::tried;
      oldest_ = acked.next_number;
    } else {
      state_ = State::works;
      left_ = pause();
    }
    return true;
  }
  /// Returns whether too many first packets of the latest tests were lost, compared with the loss of all packets.
  template <typename Sent>
  bool are_marked_lost(bool is_lost, const Sent& sent) {
    if (is_lost && lost_ < kTestsJudged) ++lost_;
    ++tests_;
    const bool too_many =
        is_lost && lost_ > kMaxLost && lost_ * sent.packets_sent() > 2U * tests_ * sent.lost_packets();
    if (too_many || tests_ == kTestsJudged) {
      lost_ = too_many ? kMaxLost : 0;  // after a failure, the next lost first packet is one too many again
      tests_ = 0;
    }
    return too_many;
  }
  /// Subtracts the marks made by this end from `ce`. Returns false if ECN no longer counts as working.
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
  /// Packets to be acknowledged until ECN is tried again, or until a failure is forgotten.
  std::uint32_t left_ = 0;
  std::uint64_t oldest_ = 0;      ///< oldest packet of the test that is in flight; see State if ECN does not work
  std::uint32_t round_trip_ = 0;  ///< see average_round_trip(), nanoseconds; 0 if there is no sample
  std::uint32_t base_ = 0;        ///< the peer's count of marks before it acknowledged any packet of the test
  std::uint16_t until_test_ = 0;  ///< packets until the next test; 0 if not drawn yet
  std::uint16_t run_left_ = 0;    ///< packets of the test that are still to be sent
  std::uint16_t length_ = 0;      ///< number of packet numbers from oldest_ to the last sent packet of the test
  std::uint16_t settled_ = 0;     ///< packets of the test before oldest_ that have been acknowledged
  /// Number of acknowledged packets of the test; the peer must have counted at least as many marks.
  std::uint16_t owed_ = 0;
  /// Marks of acknowledged test packets that must still be subtracted from the peer's count.
  std::uint16_t own_ = 0;
  /// Marks that an untrusted peer has counted for packets that it has not acknowledged yet.
  std::uint8_t early_marks_ = 0;
  std::uint8_t tests_ : 4 = 0;  ///< tests judged since the last reset, up to kTestsJudged
  std::uint8_t lost_ : 4 = 0;   ///< number of tests whose first packet was lost
  State state_ : 2 = State::works;
  bool is_first_settled_ : 1 = false;  ///< the first packet of the test is acknowledged, or lost
  std::uint8_t missed_ : 2 = 0;
  std::uint8_t failures_ : 4 = 0;
  bool is_acked_ : 1 = false;  ///< the test's first packet, or a later one, has been acknowledged
};

static_assert(sizeof(EcnFeedback) == 48);

}  // namespace mltcp::transport
