// Corrects the checksums of damaged packets. Without this correction, random inputs would never have a valid checksum,
// and a fuzzer would not reach the code after the check.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "mltcp/transport/crc32c.h"
#include "mltcp/transport/wire.h"

namespace mltcp::fuzz {

/// Corrects the checksum of a packet. If the header states an invalid covered length, also corrects this length. Clears
/// the flags for sealed packets, because no input could contain a valid seal. Does not change the magic.
inline void seal(std::vector<std::byte>& packet) {
  if (packet.size() < wire::kHeaderBytes) return;
  std::uint16_t covered = 0;
  std::memcpy(&covered, packet.data() + 2, sizeof covered);
  if (covered < wire::kHeaderBytes || covered > packet.size()) {
    covered = static_cast<std::uint16_t>(packet.size());
    std::memcpy(packet.data() + 2, &covered, sizeof covered);
  }
  packet[1] &= ~std::byte{wire::sealed | wire::epoch};
  std::memset(packet.data() + 4, 0, 4);
  const bool full = (std::to_integer<unsigned>(packet[1]) & wire::full_integrity) != 0;
  const std::uint32_t checksum =
      crc32c(0, full ? std::span<const std::byte>(packet) : std::span<const std::byte>(packet).first(covered));
  std::memcpy(packet.data() + 4, &checksum, sizeof checksum);
}

}  // namespace mltcp::fuzz
