// CRC-32C (Castagnoli polynomial 0x1EDC6F41; RFC 3385, RFC 9260 appendix A). Uses the CPU's CRC instruction if there is
// one, else a lookup table. Both give the same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mltcp {

/// Returns the checksum of some preceding bytes followed by `bytes`. `crc` is the checksum of the preceding bytes; 0 if
/// there are none.
std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes);

/// Returns the same as crc32c(), but always by the lookup table. For comparison in tests.
std::uint32_t crc32c_portable(std::uint32_t crc, std::span<const std::byte> bytes);

}  // namespace mltcp
