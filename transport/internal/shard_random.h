// The source of a shard's random numbers: for ids, tags, keys, and the choice of skipped packet numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "mltcp/base/random.h"
#include "mltcp/base/siphash.h"
#include "mltcp/base/system_random.h"

namespace mltcp::transport {

class ShardRandom {
 public:
  /// Without a seed, nobody can guess the numbers.
  explicit ShardRandom(std::optional<std::uint64_t> seed) {
    if (seed) seeded_.emplace(*seed);
  }
  /// Returns a random number. Only the first call may throw, see SystemRandom.
  std::uint64_t next() { return seeded_ ? seeded_->next() : system_.next(); }
  /// Returns a random number for a secret. Without a seed it is drawn from the system now, so that an unnoticed copy of
  /// the process draws another number.
  std::uint64_t fresh() {
    if (seeded_) return seeded_->next();
    std::uint64_t drawn = 0;
    draw_system_random(std::as_writable_bytes(std::span(&drawn, 1)));
    return drawn;
  }
  [[nodiscard]] SipKey key() { return {fresh(), fresh()}; }
  /// Returns the seeded generator; null without a seed.
  [[nodiscard]] Random* seeded() { return seeded_ ? &*seeded_ : nullptr; }

 private:
  std::optional<Random> seeded_;
  SystemRandom system_;
};

}  // namespace mltcp::transport
