// Validates ECN on the path and finds how many sent packets arrived marked, from the counts that the peer sends back
// (RFC 9000 section 13.4.2).
//
// On request it also detects hidden marks: by a peer that wants to be sent more, or by a path that clears them. ECN
// then counts as not working. One packet in some hundreds, at random, is sent marked, as if a congested link had marked
// it, and nobody can tell it from the others (RFC 3168 section 18.1 counts on the network for that;
// draft-moncaster-tcpm-rcv-cheat tests whether losses are told). The first acknowledgement of that packet has to count
// one mark more than the acknowledgement before it, since a peer has counted what it acknowledges. A peer that hides a
// share of the marks fails that share of the tests. Congestion control doesn't see the marks that this end has made.
#pragma once

#include <algorithm>
#include <cstdint>

#include "mltcp/cc/algorithm.h"
#include "mltcp/transport/internal/shard_random.h"
#include "mltcp/transport/wire.h"

namespace mltcp {

class EcnFeedback {
 public:
  /// Whether ECN works, as far as known. Once it fails validation, or marks are missing, ECN stays off.
  [[nodiscard]] bool works() const { return works_; }

  /// Takes the counts of an acknowledgement of `newly_acked` packets, all sent ECN-capable. Adds the marks to `sample`
  /// and returns the number of marked packets.
  std::uint32_t on_counts(const wire::EcnCounts& counts, std::uint32_t newly_acked, cc::AckSample& sample) {
    if (!works_) return 0;
    const std::uint32_t ect0 = counts.ect0_packets - last_.ect0_packets;
    const std::uint32_t ce = counts.ce_packets - last_.ce_packets;
    // Counts that decrease, or do not cover all ECN-capable packets, mean that the path rewrites the field (RFC 9000
    // section 13.4.2.1). Reordered acknowledgements are filtered out by the caller.
    if (ect0 > (1U << 31) || ce > (1U << 31) || counts.ect1_packets != 0 || ect0 + ce < newly_acked) {
      works_ = false;
      return 0;
    }
    const Bytes ce_bytes = ce == 0 ? 0 : counts.ce_bytes - last_.ce_bytes;
    sample.ce_packets += ce;
    sample.ce_bytes = std::min(sample.ce_bytes + ce_bytes, sample.acked_bytes);  // the peer's count is not trusted
    last_ = counts;
    return test_ == Test::acked ? judge_test(ce, sample) : ce;
  }

  // Tests of the peer.

  static constexpr std::uint32_t least_between_tests = 128;
  static constexpr std::uint32_t between_tests = 512;  ///< and up to so many more, evenly at random
  static constexpr std::uint8_t most_missed = 2;       ///< marks: once may be an accident that nobody has thought of

  /// Call for each packet of `bytes` that may be marked. Whether it is sent marked.
  bool begins_test(std::uint64_t number, std::uint32_t bytes, ShardRandom& random) {
    if (until_test_ == 0)
      until_test_ = static_cast<std::uint16_t>(least_between_tests + (random.next() >> 32) % between_tests);
    if (--until_test_ > 0 || test_ != Test::none) return false;
    test_ = Test::in_flight;
    tested_ = number;
    tested_bytes_ = bytes;
    return true;
  }
  [[nodiscard]] bool awaits_test() const { return test_ == Test::in_flight; }
  [[nodiscard]] std::uint64_t tested() const { return tested_; }
  /// It has been acknowledged: on_counts() judges the test the next time.
  void on_test_acked() { test_ = Test::acked; }
  /// It was lost, or an acknowledgement has not told all that was received: this one shows nothing.
  void drop_test() { test_ = Test::none; }

 private:
  enum class Test : std::uint8_t { none, in_flight, acked };

  std::uint32_t judge_test(std::uint32_t ce, cc::AckSample& sample) {
    test_ = Test::none;
    if (ce == 0) {
      if (++missed_ >= most_missed) works_ = false;
      return 0;
    }
    --sample.ce_packets;
    sample.ce_bytes -= std::min<Bytes>(sample.ce_bytes, tested_bytes_);
    return ce - 1;
  }

  wire::EcnCounts last_;
  std::uint64_t tested_ = 0;  ///< number of the packet
  std::uint32_t tested_bytes_ = 0;
  std::uint16_t until_test_ = 0;  ///< packets; 0: not drawn yet
  std::uint8_t missed_ : 7 = 0;
  bool works_ : 1 = true;
  Test test_ = Test::none;
};

}  // namespace mltcp
