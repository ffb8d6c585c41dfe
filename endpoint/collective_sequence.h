// Where a job's iterations begin, from the collectives that its program calls: a training step calls the same ones in
// the same order again and again, with a pause where it computes. For plug-ins that see collectives. Sans-IO.
//
//   learning   a pause at least half as long as the longest of the last 64 ends a segment; two segments one after the
//              other that are equal, collective by collective, are iterations
//   following  the iteration is counted by its collectives, whatever the pauses; one that differs ends it: lost
//   longer     twice a pause over four times as long as any between iterations: these were parts of an iteration, lost
//
// The work per collective is constant, and nothing is allocated after construction.
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
    within,     ///< of an iteration, or nothing is known
    candidate,  ///< perhaps an iteration begins
    begins,     ///< an iteration begins, and the one before was complete
    lost,       ///< what was taken for iterations is none, or is no more
  };

  CollectiveSequence();

  /// A collective's traffic begins; `signature` is equal for equal ones. `now` does not decrease.
  Step on_collective(std::uint64_t signature, Nanos now);
  /// Collectives in an iteration; 0: not known.
  [[nodiscard]] std::size_t length() const { return following_ ? length_ : 0; }

 private:
  static constexpr std::size_t kMaxCollectives = 8192;  ///< in an iteration
  static constexpr std::size_t kPauses = 64;

  [[nodiscard]] Nanos longest_pause() const;
  Step learn(std::uint64_t signature, Nanos pause, Nanos longest);
  Step follow(std::uint64_t signature, Nanos pause);
  void forget();

  std::array<Nanos, kPauses> pauses_{};
  std::size_t next_pause_ = 0;
  Nanos last_{};
  bool first_ = true;

  std::vector<std::uint64_t> before_;  ///< the segment before; the iteration, while following
  std::vector<std::uint64_t> current_;
  bool whole_ = false;  ///< the current segment began with a pause
  bool following_ = false;
  std::size_t length_ = 0;
  std::size_t position_ = 0;
  Nanos usual_pause_{};  ///< the longest between iterations, without those that are longer
  int longer_ = 0;
};

}  // namespace mltcp::endpoint
