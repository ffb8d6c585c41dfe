// Sleeping until a packet comes to any of a switch's ports, where all of them tell of packets by a file. Internal to
// this folder, and needs DPDK's headers.
#pragma once

#include <vector>

#include "mltcp/base/loop_time.h"
#include "mltcp/base/time_source.h"
#include "mltcp/dpdk/queue_interrupt.h"

namespace mltcp::dpdk {

/// Has receive queues tell the calling thread of packets while it lives. It makes them and waits for them.
class ReceiveInterrupts {
 public:
  /// Of ports that have_interrupts(). None: nothing is armed.
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

  /// Whether wait() ends when a packet comes to any of the queues. No more once one of their files has failed for good.
  [[nodiscard]] bool are_armed() const { return armed_; }
  /// Whether all of them are sockets, which tell of each packet: who looks soon after one is not woken by the next.
  [[nodiscard]] bool are_sockets() const { return switched_.empty(); }

  /// Sleeps until a packet comes, `most` at the longest (above 0, less than a second), and has `loop` count that. What
  /// came before an interrupt was switched on raises none: where there are such, `is_idle` looks once they all are, and
  /// there is no sleep unless it returns true. Returns whether a file has ended the sleep.
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
