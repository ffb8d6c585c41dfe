// Implements CRC-32C (see crc32c.h).
//
// The crc32 instruction has a latency of three cycles and a throughput of one instruction per cycle. Therefore the
// input is processed in three stripes of 128 bytes at a time. The checksums of the stripes are computed in parallel.
// They are joined with tables that show how a checksum changes when zero bytes are appended to the input (Gopal et al.,
// "Fast CRC Computation for iSCSI Polynomial Using CRC32 Instruction", Intel, 2011).
#include "mltcp/transport/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace mltcp {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // 0x1EDC6F41 with its bits reversed

constexpr auto kByteTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}();

#if defined(__x86_64__)
constexpr std::size_t kStripe = 128;

constexpr std::uint32_t append_zeros(std::uint32_t crc, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) crc = (crc >> 8) ^ kByteTable[crc & 0xFF];
  return crc;
}

// Element [b][v] of the result is the contribution of byte b of the checksum register, if this byte has the value v,
// after `zeros` zero bytes.
constexpr auto make_shift_table(std::size_t zeros) {
  std::array<std::array<std::uint32_t, 256>, 4> table{};
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    const std::uint32_t basis = append_zeros(1U << bit, zeros);
    for (std::uint32_t value = 0; value < 256; ++value)
      if ((value >> (bit % 8) & 1) != 0) table[bit / 8][value] ^= basis;
  }
  return table;
}
constexpr auto kShiftOne = make_shift_table(kStripe);
constexpr auto kShiftTwo = make_shift_table(2 * kStripe);

inline std::uint32_t shift(const std::array<std::array<std::uint32_t, 256>, 4>& table, std::uint32_t crc) {
  return table[0][crc & 0xFF] ^ table[1][crc >> 8 & 0xFF] ^ table[2][crc >> 16 & 0xFF] ^ table[3][crc >> 24];
}

inline std::uint64_t load(const std::byte* p) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::uint32_t crc, const std::byte* p, std::size_t size) {
  std::uint64_t a = ~crc;
  while (size >= 3 * kStripe) {
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t i = 0; i < kStripe; i += 8) {
      a = _mm_crc32_u64(a, load(p + i));
      b = _mm_crc32_u64(b, load(p + kStripe + i));
      c = _mm_crc32_u64(c, load(p + 2 * kStripe + i));
    }
    a = shift(kShiftTwo, static_cast<std::uint32_t>(a)) ^ shift(kShiftOne, static_cast<std::uint32_t>(b)) ^ c;
    p += 3 * kStripe;
    size -= 3 * kStripe;
  }
  for (; size >= 8; p += 8, size -= 8) a = _mm_crc32_u64(a, load(p));
  auto narrow = static_cast<std::uint32_t>(a);
  for (; size > 0; ++p, --size) narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(*p));
  return ~narrow;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::uint32_t crc, std::span<const std::byte> bytes) {
  crc = ~crc;
  for (const std::byte byte : bytes) crc = (crc >> 8) ^ kByteTable[(crc ^ static_cast<std::uint32_t>(byte)) & 0xFF];
  return ~crc;
}

std::uint32_t crc32c(std::uint32_t crc, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = static_cast<int>(__builtin_cpu_supports("sse4.2")) != 0;
  if (has_instruction) return crc32c_sse42(crc, bytes.data(), bytes.size());
#endif
  return crc32c_portable(crc, bytes);
}

}  // namespace mltcp
