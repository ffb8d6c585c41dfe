// Finds where a job's iterations begin, from the collectives that its program calls. Each training step calls the same
// collectives in the same order, with a pause where it computes. For plug-ins that see the calls of collectives. Does
// no I/O and reads no clock.
//
//   learning   A pause at least half as long as the longest of the last 64 pauses ends a segment. If two segments in
//              succession consist of equal collectives, they are iterations.
//   following  The iteration ends when all its collectives were called, whatever the pauses are. If a
//              collective differs, the sequence ends (Step::lost).
//   longer     If two pauses are over four times as long as the longest usual pause between iterations, the segments
//              were only parts of an iteration (Step::lost).
//
// The work per collective is constant on average, and nothing is allocated after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::endpoint {

class CollectiveSequence {
 public:
  enum class Step : std::uint8_t {
    within,     ///< inside an iteration, or no iteration is known
    candidate,  ///< an iteration may begin here
    begins,     ///< an iteration begins, and the previous one was complete
    lost,       ///< the collectives no longer match the iteration that was followed
  };

  CollectiveSequence();

  /// Call when a collective's traffic begins. `signature` must be equal for equal collectives. `now` must not decrease.
  Step on_collective(std::uint64_t signature, Nanos now);
  /// Returns the number of collectives in an iteration; 0 if it is not known.
  [[nodiscard]] std::size_t length() const { return following_ ? length_ : 0; }

 private:
  static constexpr std::size_t kMaxCollectives = 8192;  ///< maximum number of collectives in an iteration
  static constexpr std::size_t kPauses = 64;

  [[nodiscard]] Nanos longest_pause() const;
  Step learn(std::uint64_t signature, Nanos pause, Nanos longest);
  Step follow(std::uint64_t signature, Nanos pause);
  void forget();

  std::array<Nanos, kPauses> pauses_{};
  std::size_t next_pause_ = 0;
  Nanos last_{};
  bool first_ = true;

  std::vector<std::uint64_t> before_;  ///< the previous segment; if following_, the collectives of an iteration
  std::vector<std::uint64_t> current_;
  bool whole_ = false;  ///< whether the current segment began with a pause
  bool following_ = false;
  std::size_t length_ = 0;
  std::size_t position_ = 0;
  Nanos usual_pause_{};  ///< the longest pause between iterations, except pauses counted in `longer_`
  int longer_ = 0;
};

}  // namespace mltcp::endpoint
