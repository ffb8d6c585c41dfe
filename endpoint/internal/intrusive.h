// Lists and hash tables whose links are members of the elements. Adding or removing an element allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mltcp::endpoint {

template <typename T>
struct ListHook {
  T* previous = nullptr;
  T* next = nullptr;
  bool linked = false;
};

/// A first-in, first-out list from which any element can be removed.
template <typename T, ListHook<T> T::*hook>
class List {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  [[nodiscard]] T* first() const { return first_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] static T* next(const T& element) { return (element.*hook).next; }
  [[nodiscard]] static bool holds(const T& element) { return (element.*hook).linked; }

  void push(T& element) {
    ListHook<T>& links = element.*hook;
    links = {last_, nullptr, true};
    (last_ != nullptr ? (last_->*hook).next : first_) = &element;
    last_ = &element;
    ++size_;
  }
  void push_front(T& element) {
    ListHook<T>& links = element.*hook;
    links = {nullptr, first_, true};
    (first_ != nullptr ? (first_->*hook).previous : last_) = &element;
    first_ = &element;
    ++size_;
  }
  /// `element` must be in this list.
  void erase(T& element) {
    ListHook<T>& links = element.*hook;
    (links.previous != nullptr ? (links.previous->*hook).next : first_) = links.next;
    (links.next != nullptr ? (links.next->*hook).previous : last_) = links.previous;
    links = {};
    --size_;
  }
  T* pop() {
    T* const element = first_;
    if (element != nullptr) erase(*element);
    return element;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
  std::size_t size_ = 0;
};

template <typename T>
struct HashHook {
  std::uint64_t who = 0;
  std::uint64_t tag = 0;
  // Valid for the oldest element of a key: its neighbours in the bucket's chain, and the youngest element of the key.
  T* chain_previous = nullptr;
  T* chain_next = nullptr;
  T* youngest = nullptr;
  // Valid for every element: its neighbours of the same key.
  T* older = nullptr;
  T* younger = nullptr;
  bool linked = false;
};

/// A hash table that finds the oldest element of a key. The bucket's chain contains only the oldest element of each
/// key. Younger elements of the key queue behind the oldest element. So the time to find a key does not depend on how
/// many elements share another key.
template <typename T, HashHook<T> T::*hook>
class FifoHash {
 public:
  /// `seed` must be unpredictable. Otherwise peers could choose tags that all fall into one bucket.
  void reset(std::size_t buckets, std::uint64_t seed) {
    buckets_.assign(buckets, nullptr);  // `buckets` is a power of two
    seed_ = seed | 1;
  }
  [[nodiscard]] static bool holds(const T& element) { return (element.*hook).linked; }

  [[nodiscard]] T* find(std::uint64_t who, std::uint64_t tag) const {
    for (T* at = buckets_[bucket(who, tag)]; at != nullptr; at = (at->*hook).chain_next)
      if ((at->*hook).tag == tag && (at->*hook).who == who) return at;
    return nullptr;
  }
  // The following functions look up several keys in a batch, one step at a time, so that the cache misses of the keys
  // overlap.
  [[nodiscard]] std::size_t prefetch(std::uint64_t who, std::uint64_t tag) const {
    const std::size_t place = bucket(who, tag);
    __builtin_prefetch(&buckets_[place]);
    return place;
  }
  void prefetch_first(std::size_t place) const {
    if (buckets_[place] != nullptr) __builtin_prefetch(&(buckets_[place]->*hook), 1);
  }
  [[nodiscard]] T* first_of(std::size_t place) const { return buckets_[place]; }

  void push(T& element, std::uint64_t who, std::uint64_t tag) {
    HashHook<T>& links = element.*hook;
    links = {};
    links.who = who;
    links.tag = tag;
    links.linked = true;
    if (T* const oldest = find(who, tag); oldest != nullptr) {
      T*& youngest = (oldest->*hook).youngest;
      links.older = youngest;
      (youngest->*hook).younger = &element;
      youngest = &element;
      return;
    }
    links.youngest = &element;
    chain(element, bucket(who, tag));
  }
  /// `element` must be in this table.
  void erase(T& element) {
    HashHook<T>& links = element.*hook;
    if (links.older == nullptr) {
      unchain(element);
      if (T* const heir = links.younger; heir != nullptr) {
        (heir->*hook).older = nullptr;
        (heir->*hook).youngest = links.youngest;
        chain(*heir, bucket(links.who, links.tag));
      }
    } else {
      (links.older->*hook).younger = links.younger;
      if (links.younger != nullptr)
        (links.younger->*hook).older = links.older;
      else
        (find(links.who, links.tag)->*hook).youngest = links.older;
    }
    links = {};
  }

 private:
  [[nodiscard]] std::size_t bucket(std::uint64_t who, std::uint64_t tag) const {
    std::uint64_t mixed = (tag ^ (who * 0x9E3779B97F4A7C15ULL)) * seed_;
    mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ULL;
    return static_cast<std::size_t>(mixed ^ (mixed >> 32)) & (buckets_.size() - 1);
  }
  void chain(T& element, std::size_t bucket) {
    HashHook<T>& links = element.*hook;
    links.chain_previous = nullptr;
    links.chain_next = buckets_[bucket];
    if (links.chain_next != nullptr) (links.chain_next->*hook).chain_previous = &element;
    buckets_[bucket] = &element;
  }
  void unchain(T& element) {
    HashHook<T>& links = element.*hook;
    if (links.chain_previous != nullptr)
      (links.chain_previous->*hook).chain_next = links.chain_next;
    else
      buckets_[bucket(links.who, links.tag)] = links.chain_next;
    if (links.chain_next != nullptr) (links.chain_next->*hook).chain_previous = links.chain_previous;
  }

  std::vector<T*> buckets_;
  std::uint64_t seed_ = 1;
};

}  // namespace mltcp::endpoint
