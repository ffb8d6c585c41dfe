// Where a shard's random numbers come from: ids, tags, keys, and which packet numbers are skipped.
#pragma once

#include <cstdint>
#include <optional>

#include "mltcp/base/random.h"
#include "mltcp/base/siphash.h"
#include "mltcp/base/system_random.h"

namespace mltcp {

class ShardRandom {
 public:
  /// Without a seed: numbers that nobody can guess.
  explicit ShardRandom(std::optional<std::uint64_t> seed) {
    if (seed) seeded_.emplace(*seed);
  }
  /// May throw in the first call only, see SystemRandom.
  std::uint64_t next() { return seeded_ ? seeded_->next() : system_.next(); }
  [[nodiscard]] SipKey key() { return {next(), next()}; }
  /// Null without a seed.
  [[nodiscard]] Random* seeded() { return seeded_ ? &*seeded_ : nullptr; }

 private:
  std::optional<Random> seeded_;
  SystemRandom system_;
};

}  // namespace mltcp
