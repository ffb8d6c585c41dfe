// Contents of messages, generated from a seed so that sender and receiver know them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/base/units.h"

namespace mltcp::experiment {

class Payload {
 public:
  /// `longest` is the maximum length of a message in bytes.
  Payload(std::uint64_t seed, Bytes longest) : pattern_(longest + kStep * kTurns) {
    Random random = Random::stream(seed, 0xB17E5);
    for (std::byte& byte : pattern_) byte = static_cast<std::byte>(random.next() >> 56);
  }

  /// Returns the content of message `number`. Each message starts `kStep` bytes further into the pattern than the
  /// message before it; after `kTurns` messages, the offsets repeat.
  [[nodiscard]] std::span<const std::byte> message(std::uint64_t number, Bytes length) const {
    return std::span(pattern_).subspan((number % kTurns) * kStep, length);
  }

 private:
  static constexpr std::size_t kStep = 64;
  static constexpr std::size_t kTurns = 61;
  std::vector<std::byte> pattern_;
};

}  // namespace mltcp::experiment
