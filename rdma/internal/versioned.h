// A value that one thread writes and other threads read consistently. The writer never waits. A reader reads again if
// the value was written meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>

namespace mltcp::rdma {

/// All bytes of the value are zeros until the first store().
template <typename T>
class Versioned {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0);
  static constexpr std::size_t kWords = sizeof(T) / sizeof(std::uint64_t);

 public:
  /// Only one thread may call this function.
  void store(const T& value) {
    std::array<std::uint64_t, kWords> words;  // NOLINT(cppcoreguidelines-pro-type-member-init): memcpy() fills it
    std::memcpy(words.data(), &value, sizeof value);
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    // A reader that sees one of the new words also sees the odd version.
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    version_.store(version + 2, std::memory_order_release);
  }

  [[nodiscard]] T load() const {
    for (;; std::this_thread::yield()) {
      std::array<std::uint64_t, kWords> words;  // NOLINT(cppcoreguidelines-pro-type-member-init): the loop fills it
      const std::uint64_t version = version_.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
      if (version % 2 != 0 || version_.load(std::memory_order_relaxed) != version) continue;
      T value;
      std::memcpy(static_cast<void*>(&value), words.data(), sizeof value);
      return value;
    }
  }

 private:
  std::atomic<std::uint64_t> version_{0};  ///< odd while the words are being written
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace mltcp::rdma
