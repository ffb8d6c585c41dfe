// A cache of recent look-ups in a map with integer keys: 16 pointers, selected by the low bits of the key, so that the
// map is searched only when keys change. The pointers refer to nodes of a map that the owner has as well; the nodes
// must not move. Copying or moving empties the cache of the destination; moving empties that of the source, too.
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

  /// The value of key `number`: from the cache, or else the reference that `look_up()` returns.
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
