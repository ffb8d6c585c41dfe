// Wakes a thread that sleeps in poll(2): an eventfd that is written at most once, and only while it is armed.
#pragma once

#include <atomic>
#include <cstdint>

#include "mltcp/transport/poll_loop.h"

namespace mltcp::endpoint {

class Wakeup final : public Waker {
 public:
  /// Throws RunError if the system has no file left.
  Wakeup();
  ~Wakeup() override;
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  [[nodiscard]] int file() const override { return file_; }
  void arm() override {
    armed_.store(true, std::memory_order_relaxed);
    // Either a waker sees `armed_`, or the caller sees what that waker has published.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void disarm() override {
    armed_.store(false, std::memory_order_relaxed);
    if (announced_.load(std::memory_order_acquire) != taken_) clear();
  }
  /// Call after publishing what the sleeper has to see. True if this has written to the file.
  bool wake() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return wake_unfenced();
  }
  /// Likewise, if waker and sleeper share a lock that is taken after each arm() and each publication.
  bool wake_unfenced() noexcept {
    if (!armed_.load(std::memory_order_relaxed)) [[likely]]
      return false;
    return armed_.exchange(false, std::memory_order_acq_rel) && write();
  }

 private:
  bool write() noexcept;
  void clear() noexcept;

  int file_ = -1;
  std::atomic<bool> armed_{false};
  // A flag would not do, as a waker may be delayed between announcing and writing. The file returns the number of
  // writes; while that is below `announced_`, a write is still to come.
  std::atomic<std::uint64_t> announced_{0};
  std::uint64_t taken_ = 0;  ///< read by the sleeper
};

}  // namespace mltcp::endpoint
