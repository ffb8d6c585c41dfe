// Sleeping until a packet arrives at any port of a switch, if all of them can signal packets by a file descriptor.
// Internal to this folder; needs DPDK's headers.
#pragma once

#include <vector>

#include "mltcp/base/loop_time.h"
#include "mltcp/base/time_source.h"
#include "mltcp/dpdk/queue_interrupt.h"

namespace mltcp::dpdk {

/// Enables notification of the calling thread by receive queues during its lifetime. Must be created in the thread that
/// waits.
class ReceiveInterrupts {
 public:
  /// `queues` of ports with has_interrupts(). Empty: notification is off.
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

  /// Whether wait() ends when a packet arrives at any queue. False once a file descriptor has failed permanently.
  [[nodiscard]] bool are_armed() const { return armed_; }
  /// Whether all are sockets, which signal every packet: a loop that polls soon after one packet is not woken by the
  /// next.
  [[nodiscard]] bool are_sockets() const { return switched_.empty(); }

  /// Sleeps until a packet arrives, for at most `most` (above 0, less than a second), and counts that in `loop`.
  /// Packets that arrive before an interrupt is enabled do not trigger it: with DPDK interrupts, `is_idle` must check
  /// again after all are enabled, and there is no sleep unless it returns true. Returns whether a file descriptor has
  /// ended the sleep.
  template <typename IsIdle>
  bool wait(LoopTime& loop, Nanos most, IsIdle is_idle) {
    WaitEnd end = WaitEnd::timed_out;
    for (const QueueInterrupt& queue : switched_) queue.arm();
    if (switched_.empty() || is_idle()) {
      loop.count_sleep(most, [&] { end = time_.wait(files_, most); });
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
