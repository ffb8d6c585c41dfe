// CRC-32C (Castagnoli polynomial 0x1EDC6F41; RFC 3385, RFC 9260 appendix A), by the CPU's CRC instruction if it has
// one, else by a lookup table. Both give the same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mltcp {

/// Extends `crc`, the checksum of preceding bytes (0 if none), by `bytes`.
std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes);

/// The same, always by the lookup table; for comparison in tests.
std::uint32_t crc32c_portable(std::uint32_t crc, std::span<const std::byte> bytes);

}  // namespace mltcp
