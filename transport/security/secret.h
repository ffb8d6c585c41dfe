// Memory for secrets. It has a fixed size, is wiped when it is destroyed, is compared in constant time, and is never
// printed.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace mltcp::security {

/// Overwrites memory in a way that the compiler does not optimise away.
inline void wipe(void* memory, std::size_t bytes) {
  std::memset(memory, 0, bytes);
  asm volatile("" : : "r"(memory) : "memory");
}

template <std::size_t Size>
class Secret {
 public:
  static constexpr std::size_t kSize = Size;

  Secret() = default;
  explicit Secret(std::span<const std::byte, Size> bytes) { std::memcpy(bytes_.data(), bytes.data(), Size); }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret() { wipe(bytes_.data(), Size); }

  [[nodiscard]] std::span<const std::byte, Size> bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte, Size> bytes() { return bytes_; }

  /// The comparison takes the same time whichever bytes differ.
  bool operator==(const Secret& other) const {
    std::byte differs{};
    for (std::size_t i = 0; i < Size; ++i) differs |= bytes_[i] ^ other.bytes_[i];
    return differs == std::byte{};
  }

 private:
  std::array<std::byte, Size> bytes_{};
};

}  // namespace mltcp::security
