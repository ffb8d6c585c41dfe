// Sleeping until a packet comes, where ports tell of packets by a file that can be waited for. What loops over ports do
// alike; internal to this folder, and needs DPDK's headers.
#pragma once

#include <rte_epoll.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mltcp/dpdk/loop_time.h"

namespace mltcp::dpdk {

/// Has the interrupts of receive queues told to the calling thread while it lives. It makes them and waits for them.
class ReceiveInterrupts {
 public:
  struct Queue {
    std::uint16_t port = 0;
    std::uint16_t queue = 0;
  };

  /// Of ports that have_interrupts(). None: nothing is armed.
  explicit ReceiveInterrupts(std::vector<Queue> queues) : queues_(std::move(queues)) {
    armed_ = !queues_.empty();
    for (const Queue& queue : queues_) {
      armed_ = armed_ && control(queue, RTE_INTR_EVENT_ADD);
      if (armed_) ++added_;
    }
  }
  ~ReceiveInterrupts() {
    for (std::size_t i = 0; i < added_; ++i) control(queues_[i], RTE_INTR_EVENT_DEL);
  }
  ReceiveInterrupts(const ReceiveInterrupts&) = delete;
  ReceiveInterrupts& operator=(const ReceiveInterrupts&) = delete;

  /// Whether wait() ends when a packet comes to any of the queues.
  [[nodiscard]] bool are_armed() const { return armed_; }
  /// A wait is of whole milliseconds, one at least.
  static constexpr Nanos shortest{1'000'000};

  /// Sleeps until a packet comes, `most` at the longest, and has `time` count that. What came before a queue's
  /// interrupt was switched on raises none: `is_idle` looks once they all are, and there is no sleep unless it returns
  /// true.
  template <typename IsIdle>
  void wait(LoopTime& time, Nanos most, IsIdle is_idle) {
    for (const Queue& queue : queues_) rte_eth_dev_rx_intr_enable(queue.port, queue.queue);
    if (is_idle()) {
      std::array<rte_epoll_event, 8> events{};
      time.count_sleep(most, [&] {
        rte_epoll_wait(RTE_EPOLL_PER_THREAD, events.data(), static_cast<int>(events.size()),
                       static_cast<int>(most.count / shortest.count));
      });
    }
    for (const Queue& queue : queues_) rte_eth_dev_rx_intr_disable(queue.port, queue.queue);
  }

 private:
  static bool control(const Queue& queue, int operation) {
    return rte_eth_dev_rx_intr_ctl_q(queue.port, queue.queue, RTE_EPOLL_PER_THREAD, operation, nullptr) == 0;
  }

  std::vector<Queue> queues_;
  std::size_t added_ = 0;
  bool armed_ = false;
};

}  // namespace mltcp::dpdk
