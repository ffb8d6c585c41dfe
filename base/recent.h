// What was looked up lately by its number, so that a map is asked only when numbers change: a cache of 16 pointers, by
// the low bits of the number. They point to nodes of a map that the owner has beside it, whose places are stable, so a
// copy, and whatever is moved to or from, begins with an empty one.
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

  /// What `number` stands for; if it is not here, what `look_up`, which returns a reference, finds.
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
