// SipHash-2-4, a keyed hash (pseudorandom function) of short inputs: Aumasson and Bernstein, "SipHash: a fast
// short-input PRF", INDOCRYPT 2012. Without the key nobody can choose inputs that share a bucket of a hash table, or
// compute the hash of an input.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace mltcp {

using SipKey = std::array<std::uint64_t, 2>;

namespace siphash_detail {

struct State {
  std::uint64_t v0, v1, v2, v3;

  constexpr void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  constexpr void take(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace siphash_detail

/// Returns the hash of `input`. Reads words in the machine's byte order, so only little-endian machines give the
/// published values.
inline std::uint64_t siphash(const SipKey& key, std::span<const std::byte> input) {
  siphash_detail::State state{key[0] ^ 0x736F6D6570736575ULL, key[1] ^ 0x646F72616E646F6DULL,
                              key[0] ^ 0x6C7967656E657261ULL, key[1] ^ 0x7465646279746573ULL};
  std::size_t at = 0;
  for (; at + 8 <= input.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, input.data() + at, 8);
    state.take(word);
  }
  std::uint64_t last = 0;
  if (at < input.size()) std::memcpy(&last, input.data() + at, input.size() - at);
  state.take(last | static_cast<std::uint64_t>(input.size()) << 56);
  state.v2 ^= 0xFF;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace mltcp
