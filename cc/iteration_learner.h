// Learns the iterations of a training job from its traffic alone: bytes per iteration, compute gap and boundaries.
//
// The network stretches, merges and delays bursts, but does not change how many bytes an application sends. So the
// learner records at which positions in the byte stream the job pauses, and for how long: a gap is (position, length),
// where the position counts the job's delivered bytes. With B bytes per iteration, gaps recur at distances of B,
// no matter when they occur. The compute gap is the gap that congestion cannot close, because an application cannot
// continue before its gradients have arrived.
//
//   gap        silence before a burst, from the last acknowledgement until the next byte is sent. Gaps less than 1/256
//              of a large burst apart (with heartbeats or control messages in between) are merged into one gap
//   memory     a gap is forgotten after 48 later gaps that were at least as long. So the last 48 gaps of *every* length
//              are stored: thousands of small gaps do not displace the few large ones, and a pause of minutes displaces
//              no other gap
//   period     the smallest B at which gaps like the latest one recur, all other large gaps recur as well, and no
//              recurring gap is much larger. Each recurrence counts as the logarithm of its improbability, in bits. The
//              required 20 bits take three iterations of exactly equal bytes, or more iterations if bytes differ
//   tracking   an iteration begins with the first large gap within 1/32 of the predicted position
//   longer     if gaps four times as long recur, they separate the iterations. The shorter gaps then only separated
//              gradient buckets
//   failure    if there is no gap at the predicted position, or a large gap elsewhere, the iteration is unknown. A
//              proven period is resumed after one more iteration that fits. After a period that failed early, the next
//              period needs twice as much evidence
//
// Ambiguous patterns stay ambiguous: two equal halves of an iteration count as two iterations, and four or more equal
// buckets count as iterations until the compute gap has been seen a few times. The work per acknowledgement is one
// addition; everything else happens once per burst and is bounded.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mltcp/base/units.h"

namespace mltcp::cc {

/// Learns the iterations of one job; shared by the flows of the job. Takes about 4 kB, and never allocates.
class IterationLearner {
 public:
  /// Call when `bytes` of application data were acknowledged for the first time. `now` must not decrease.
  void on_delivered(Nanos now, Bytes bytes) {
    position_ += bytes;
    last_delivered_ = now;
  }
  /// Call when the job starts to send while none of its bytes are outstanding. Returns true if this began an iteration
  /// or changed the estimate.
  bool on_send(Nanos now);

  /// Returns whether an iteration is being tracked and has not exceeded max_bytes().
  [[nodiscard]] bool known() const { return tracking_ && bytes_sent() <= max_bytes(); }
  /// Number of iterations that began while a period was known.
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  /// Bytes delivered since the iteration began.
  [[nodiscard]] Bytes bytes_sent() const { return position_ - begin_; }
  /// Learned bytes per iteration; 0 unless an iteration is being tracked.
  [[nodiscard]] Bytes bytes_per_iteration() const { return tracking_ ? size_ : 0; }
  /// Maximum bytes of an iteration. An iteration with more bytes does not fit the learned period.
  [[nodiscard]] Bytes max_bytes() const { return size_ + tolerance(size_); }
  /// Typical silence between two iterations; 0 unless an iteration is being tracked.
  [[nodiscard]] Nanos compute_gap() const { return tracking_ ? gap_ : Nanos(0); }
  /// Share of the iteration's bytes that have been delivered, in [0, 1]; 0 while known() is false.
  [[nodiscard]] double bytes_ratio() const {
    return known() ? std::min(1.0, static_cast<double>(bytes_sent()) / static_cast<double>(size_)) : 0;
  }

 private:
  struct Gap {
    Bytes position = 0;
    Nanos length;
    Nanos end;                 ///< time when the following burst began
    std::uint64_t larger = 0;  ///< number of later gaps that are at least as long as this gap
  };
  static_assert(sizeof(Gap) == 32);
  struct Period {
    Bytes bytes = 0;
    Nanos gap;                      ///< the smallest gap that recurred
    std::uint32_t recurrences = 0;  ///< number of recurrences of the gap at the boundary
    bool flawless = false;          ///< whether every large gap recurred
  };
  static constexpr std::size_t kCapacity = 128;

  static constexpr Bytes tolerance(Bytes size) { return size / 32; }

  const Gap& record(Nanos now);
  [[nodiscard]] const Gap& newest() const { return gaps_[count_ - 1]; }
  [[nodiscard]] const Gap* nearest(Bytes position, Bytes within, Nanos at_least) const;
  std::optional<Period> search();
  [[nodiscard]] std::optional<Period> find_period() const;
  [[nodiscard]] std::optional<Period> check_period(std::size_t before) const;
  [[nodiscard]] bool recurs(const Gap& gap, Bytes period) const;
  [[nodiscard]] bool fits_again() const;
  void follow();
  void begin_iteration(Bytes position, Nanos gap);
  void adopt(const Period& period);
  void fail();

  Bytes position_ = 0;
  Nanos last_delivered_;
  // The current estimate.
  bool tracking_ = false;
  bool proven_ = false;  ///< whether size_ was right for several iterations in a row
  std::uint32_t matched_ = 0;
  std::uint32_t strikes_ = 0;  ///< number of consecutive periods that failed early
  std::uint32_t futile_ = 0;   ///< number of consecutive searches without result
  std::uint64_t iteration_ = 0;
  Bytes size_ = 0;
  Nanos gap_;
  Bytes begin_ = 0;
  // The recorded gaps, oldest first.
  Bytes largest_burst_ = 0;  ///< size of the largest recent burst; decays with each burst
  std::size_t count_ = 0;
  std::array<Gap, kCapacity> gaps_;
};

}  // namespace mltcp::cc
