// How other threads wake one that sleeps by files: an eventfd that is written only while it is armed, and once.
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
    // What the caller looks at next is not older than what a waker that doesn't see this has left.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void disarm() override {
    armed_.store(false, std::memory_order_relaxed);
    if (announced_.load(std::memory_order_acquire) != taken_) clear();
  }
  /// After what the sleeper is to find has been left for it. True if this has written.
  bool wake() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return wake_unfenced();
  }
  /// The same for who shares a lock with the sleeper, taken after each armed and each left.
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
  // A waker may be held up between announcing and writing, so that a flag won't do: what the file gives is the number
  // of writes, and as long as it falls short of the announced, there is one to come.
  std::atomic<std::uint64_t> announced_{0};
  std::uint64_t taken_ = 0;  ///< the sleeper's
};

}  // namespace mltcp::endpoint
