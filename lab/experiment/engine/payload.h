// Real message payloads: generated from a seed, so that both ends know them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::experiment {

class Payload {
 public:
  /// Message `number` starts `kStep` bytes further into the pattern than the previous one, modulo `kTurns` messages.
  static constexpr std::size_t kStep = 64;
  static constexpr std::size_t kTurns = 61;

  /// For messages of up to `longest` bytes.
  Payload(std::uint64_t seed, Bytes longest);

  [[nodiscard]] std::span<const std::byte> message(std::uint64_t number, Bytes length) const {
    return std::span(pattern_).subspan((number % kTurns) * kStep, length);
  }
  /// CRC-32C of message(number, length); cached.
  std::uint32_t checksum(std::uint64_t number, Bytes length);

 private:
  std::vector<std::byte> pattern_;
  std::map<std::pair<std::uint64_t, Bytes>, std::uint32_t> known_;
};

}  // namespace mltcp::experiment
