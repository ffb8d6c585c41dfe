// Lets a switch sleep until a packet arrives at any of its ports, if all ports can signal packets by a file descriptor.
// Internal to this folder; needs DPDK's headers.
#pragma once

#include <vector>

#include "mltcp/base/loop_time.h"
#include "mltcp/base/time_source.h"
#include "mltcp/dpdk/queue_interrupt.h"

namespace mltcp::dpdk {

/// During the object's lifetime, receive queues can notify the thread that created the object. Only this thread may
/// call wait().
class ReceiveInterrupts {
 public:
  /// All `queues` must belong to ports with has_interrupts(). If there are none, notification is off.
  ReceiveInterrupts(TimeSource& time, const std::vector<QueueInterrupt>& queues) : time_(time) {
    armed_ = !queues.empty();
    for (const QueueInterrupt& queue : queues) {
      armed_ = armed_ && queue.begin();
      if (!armed_) break;
      if (queue.needs_arming()) switched_.push_back(queue);
      files_.push_back(queue.file());
    }
  }
  ~ReceiveInterrupts() {
    for (const QueueInterrupt& queue : switched_) queue.end();
  }
  ReceiveInterrupts(const ReceiveInterrupts&) = delete;
  ReceiveInterrupts& operator=(const ReceiveInterrupts&) = delete;

  /// Returns whether wait() ends when a packet arrives at any queue. False once a file descriptor has failed
  /// permanently.
  [[nodiscard]] bool are_armed() const { return armed_; }
  /// Returns whether all file descriptors are sockets, which signal every packet without being armed.
  [[nodiscard]] bool are_sockets() const { return switched_.empty(); }

  /// Sleeps until a packet arrives, for at most `max` (above 0, less than a second), and counts the sleep in `loop`.
  /// DPDK interrupts do not signal packets that arrive before the interrupts are enabled. So wait() calls `is_idle`
  /// after it has enabled all interrupts. `is_idle` must check for packets again. If `is_idle` returns false, wait()
  /// does not sleep. Returns whether a file descriptor has ended the sleep.
  template <typename IsIdle>
  bool wait(LoopTime& loop, Nanos max, IsIdle is_idle) {
    WaitEnd end = WaitEnd::timed_out;
    for (const QueueInterrupt& queue : switched_) queue.arm();
    if (switched_.empty() || is_idle()) {
      loop.count_sleep(max, [&] { end = time_.wait(files_, max); });
      if (end == WaitEnd::failed) armed_ = false;
    }
    for (const QueueInterrupt& queue : switched_) queue.disarm();
    return end != WaitEnd::timed_out;
  }

 private:
  TimeSource& time_;
  std::vector<QueueInterrupt> switched_;
  std::vector<int> files_;
  bool armed_ = false;
};

}  // namespace mltcp::dpdk
