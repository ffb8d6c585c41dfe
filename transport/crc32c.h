// CRC-32C (Castagnoli polynomial 0x1EDC6F41; RFC 3385, RFC 9260 appendix A), with the processor's instruction where
// there is one and with a table where not. Both give the same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mltcp {

/// The checksum of `bytes` appended to what `crc` is the checksum of; 0 to begin.
std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes);

/// The same from the table, on every machine: for comparison.
std::uint32_t crc32c_portable(std::uint32_t crc, std::span<const std::byte> bytes);

}  // namespace mltcp
