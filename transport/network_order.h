// Unaligned loads and stores of numbers in network byte order. This header is not installed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mltcp::encap {

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

constexpr std::uint16_t to_network(std::uint16_t value) {
  if constexpr (std::endian::native == std::endian::big) return value;
  return static_cast<std::uint16_t>(value << 8 | value >> 8);
}

inline std::uint16_t load_network(const std::byte* from) { return to_network(load<std::uint16_t>(from)); }
inline void store_network(std::byte* to, std::uint16_t value) { store(to, to_network(value)); }

}  // namespace mltcp::encap
