// Wakes a thread that sleeps in poll(2), through an eventfd. The eventfd is written at most once after each arm().
#pragma once

#include <atomic>
#include <cstdint>

#include "mltcp/transport/poll_loop.h"

namespace mltcp::endpoint {

class Wakeup final : public Waker {
 public:
  /// Throws RunError if the system has no free file descriptor.
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
  /// Must be called after publishing what the sleeper has to see. Returns true if this call has written to the file.
  bool wake() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return wake_unfenced();
  }
  /// Like wake(), for a waker and a sleeper that share a lock. The lock must be taken after each arm() and each
  /// publication.
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
  // A flag is not sufficient here, because a waker may be delayed between announcing and writing. The file returns the
  // number of writes. While that number is below `announced_`, a write is still to come.
  std::atomic<std::uint64_t> announced_{0};
  std::uint64_t taken_ = 0;  ///< number of writes that the sleeper has read
};

}  // namespace mltcp::endpoint
