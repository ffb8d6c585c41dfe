// A cache for look-ups in a map with integer keys: 16 pointers, selected by the low bits of the key. The map is
// searched only if the requested key differs from the key last requested with the same low bits. The pointers refer to
// nodes of the map, which must not move. Copying empties the cache of the destination. Moving empties both caches.
#pragma once

#include <array>
#include <cstdint>

namespace mltcp {

template <typename T>
class Recent {
 public:
  Recent() = default;
  ~Recent() = default;
  Recent(const Recent& /*other*/) {}
  Recent(Recent&& other) noexcept { other.entries_ = {}; }
  Recent& operator=(const Recent& other) {
    if (this != &other) entries_ = {};
    return *this;
  }
  Recent& operator=(Recent&& other) noexcept {
    entries_ = other.entries_ = {};
    return *this;
  }

  /// Returns the value of key `number` from the cache. If the value is not cached, calls look_up(), which returns a
  /// reference to the value, and caches the reference.
  template <typename LookUp>
  T& get(std::uint32_t number, LookUp look_up) {
    Entry& entry = entries_[number % entries_.size()];
    if (entry.value == nullptr || entry.number != number) [[unlikely]]
      entry = {number, &look_up()};
    return *entry.value;
  }

 private:
  struct Entry {
    std::uint32_t number = 0;
    T* value = nullptr;
  };
  std::array<Entry, 16> entries_{};
};

}  // namespace mltcp
