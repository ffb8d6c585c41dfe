// Corrects the checksums of damaged Neighbour Discovery frames, so that a fuzzer reaches the code after the check of
// the checksum.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::fuzz {

/// Corrects the ICMPv6 checksum if the lengths in the frame permit it.
inline void seal_discovery(std::vector<std::byte>& frame) {
  const std::size_t ip = frame.size() > 16 && frame[12] == std::byte{0x81} ? 18 : 14;
  if (frame.size() < ip + 64) return;
  const std::size_t size =
      std::to_integer<std::size_t>(frame[ip + 4]) << 8 | std::to_integer<std::size_t>(frame[ip + 5]);
  if (frame.size() < ip + 40 + size || size < 24) return;
  frame[ip + 42] = frame[ip + 43] = std::byte{0};
  const std::array<std::byte, 4> rest{static_cast<std::byte>(size >> 8), static_cast<std::byte>(size), std::byte{0},
                                      std::byte{58}};
  const std::uint16_t partial =
      encap::join(encap::sum(frame.data() + ip + 8, 32 + size), encap::sum(rest.data(), rest.size()), 0);
  const auto checksum = static_cast<std::uint16_t>(~partial);
  std::memcpy(frame.data() + ip + 42, &checksum, sizeof checksum);
}

}  // namespace mltcp::fuzz
