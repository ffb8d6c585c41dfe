// The implementation of CompletionQueue: a ring and a file to wait on. The ring has a place for each operation that
// will report to this queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "mltcp/endpoint/internal/bounded_ring.h"
#include "mltcp/endpoint/internal/wakeup.h"
#include "mltcp/endpoint/types.h"

namespace mltcp::endpoint {

class CompletionRing {
 public:
  explicit CompletionRing(std::uint32_t places) : places_(places), ring_(places) {}

  /// Reserves a place for a future completion. Returns false if no place is free. pop() frees the place.
  bool reserve() noexcept {
    if (reserved_.fetch_add(1, std::memory_order_relaxed) < places_) return true;
    reserved_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  /// Frees the place of a completion that will not come.
  void give_back() noexcept { reserved_.fetch_sub(1, std::memory_order_relaxed); }
  /// Adds a completion. Its place must have been reserved.
  void push(const Completion& completion) noexcept {
    pushing_.fetch_add(1, std::memory_order_relaxed);
    while (!ring_.push(completion)) {  // the thread that takes the oldest completion has not yet freed its cell
    }
    wakeup_.wake();
    pushing_.fetch_sub(1, std::memory_order_release);
  }
  /// Must be called before destruction, because another thread may take the last completion before push() has finished
  /// its wake-up. Must not be called in a forked child, where an interrupted push() never ends.
  void await_pushers() const noexcept {
    while (pushing_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }
  bool pop(Completion& completion) noexcept {
    if (!ring_.pop(completion)) return false;
    give_back();
    return true;
  }
  [[nodiscard]] bool has_some() const noexcept { return ring_.has_some(); }
  [[nodiscard]] Wakeup& wakeup() noexcept { return wakeup_; }

 private:
  const std::uint32_t places_;
  std::atomic<std::uint32_t> reserved_{0};
  std::atomic<std::uint32_t> pushing_{0};  ///< number of threads in push()
  BoundedRing<Completion> ring_;
  Wakeup wakeup_;
};

}  // namespace mltcp::endpoint
