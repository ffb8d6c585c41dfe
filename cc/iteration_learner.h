// Learns the iterations of a training job from its traffic alone: bytes per iteration, compute gap, boundaries.
//
// The network stretches, merges and delays bursts, but it never changes how many bytes an application sends. So the
// learner looks at *where in the byte stream* the job falls silent, and for how long: a gap is (position, length),
// where the position counts the job's delivered bytes. An iteration of B bytes makes gaps recur at distances of B,
// whatever happens to them in time, and the compute gap is the one that no congestion can fill, because an application
// can't go on before its gradients have arrived.
//
//   gap        silence before a burst: from the last acknowledgement until the next byte leaves. What lies nearer to
//              the gap before than 1/256 of a large burst (heartbeats, control messages) is no burst: the gaps add up
//   memory     a gap is forgotten when 48 younger ones were at least as long, so that the last 48 of *every* length are
//              there: thousands of small gaps don't push out the few large ones, and a pause of minutes pushes out
//              nothing
//   period     the smallest B after which gaps like the newest one recur, where every other large gap recurs too and
//              none that recurs is much larger. Each recurrence is worth the logarithm of how unlikely it was by
//              chance; 20 bits are enough, which is three iterations of exactly equal bytes, or more that differ
//   tracking   an iteration begins with the first large gap within 1/32 of the predicted position
//   longer     where gaps recur that are four times as long, the iterations are theirs: those before were buckets
//   failure    no gap there, or a large gap where none recurs: unknown. A period that had proved itself is taken up
//              again after one more iteration that fits; one that failed early doubles the evidence that the next needs
//
// What gaps and bytes can't tell apart isn't told apart: two equal halves of an iteration are two iterations, and four
// or more equal buckets are taken for iterations until the compute gap has been seen a few times.
// The per-acknowledgement work is an addition; the rest happens once per burst and is bounded.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "mltcp/base/units.h"

namespace mltcp::cc {

/// One job's learner, shared by its flows. Allocates nothing, about 4 kB.
class IterationLearner {
 public:
  /// `bytes` of the application were delivered: acknowledged for the first time. `now` never falls.
  void on_delivered(Nanos now, Bytes bytes) {
    position_ += bytes;
    last_delivered_ = now;
  }
  /// The job had nothing outstanding and sends now. True if this changed what is known, or began an iteration.
  bool on_send(Nanos now);

  /// The last predictions came true, and the iteration has not outgrown its size.
  [[nodiscard]] bool known() const { return tracking_ && bytes_sent() <= most_bytes(); }
  /// Iterations begun while known.
  [[nodiscard]] std::uint64_t iteration() const { return iteration_; }
  /// Delivered since the iteration began.
  [[nodiscard]] Bytes bytes_sent() const { return position_ - begin_; }
  /// 0 unless an iteration is being tracked.
  [[nodiscard]] Bytes bytes_per_iteration() const { return tracking_ ? size_ : 0; }
  /// An iteration with more bytes than this is none.
  [[nodiscard]] Bytes most_bytes() const { return size_ + tolerance(size_); }
  /// Typical silence between two iterations; 0 unless an iteration is being tracked.
  [[nodiscard]] Nanos compute_gap() const { return tracking_ ? gap_ : Nanos(0); }
  /// In [0, 1]; 0 while not known.
  [[nodiscard]] double bytes_ratio() const {
    return known() ? std::min(1.0, static_cast<double>(bytes_sent()) / static_cast<double>(size_)) : 0;
  }

 private:
  struct Gap {
    Bytes position = 0;
    Nanos length;
    Nanos end;                 ///< when the burst behind it began
    std::uint64_t larger = 0;  ///< younger gaps at least as long
  };
  static_assert(sizeof(Gap) == 32);
  struct Period {
    Bytes bytes = 0;
    Nanos gap;                      ///< the smallest of those that recurred
    std::uint32_t recurrences = 0;  ///< of the boundary
    bool flawless = false;          ///< every large gap recurred
  };
  static constexpr std::size_t capacity = 128;

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
  // What is believed.
  bool tracking_ = false;
  bool proven_ = false;  ///< size_ held for some iterations in a row
  std::uint32_t matched_ = 0;
  std::uint32_t strikes_ = 0;  ///< periods in a row that failed early
  std::uint32_t futile_ = 0;   ///< searches in a row that found nothing
  std::uint64_t iteration_ = 0;
  Bytes size_ = 0;
  Nanos gap_;
  Bytes begin_ = 0;
  // Gaps, oldest first.
  Bytes largest_burst_ = 0;  ///< of late
  std::size_t count_ = 0;
  std::array<Gap, capacity> gaps_;
};

}  // namespace mltcp::cc
