// Sleeping until a packet comes, where ports tell of packets by a file that can be waited for. What loops over ports do
// alike; internal to this folder, and needs DPDK's headers.
#pragma once

#include <poll.h>
#include <rte_epoll.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <utility>
#include <vector>

#include "mltcp/dpdk/loop_time.h"

namespace mltcp::dpdk {

/// Has receive queues tell the calling thread of packets while it lives. It makes them and waits for them.
class ReceiveInterrupts {
 public:
  struct Queue {
    std::uint16_t port = 0;
    std::uint16_t queue = 0;
    /// Port::receive_file(): a socket of the kernel's, readable while packets are there. -1: DPDK's interrupts, which
    /// are switched on for each wait.
    int file = -1;
  };

  /// Of ports that have_interrupts(). None: nothing is armed.
  explicit ReceiveInterrupts(std::vector<Queue> queues) {
    armed_ = !queues.empty();
    for (const Queue& queue : queues) {
      if (queue.file >= 0) {
        files_.push_back({queue.file, POLLIN, 0});
        continue;
      }
      armed_ = armed_ && control(queue, RTE_INTR_EVENT_ADD);
      if (!armed_) break;
      switched_.push_back(queue);
      files_.push_back({rte_eth_dev_rx_intr_ctl_q_get_fd(queue.port, queue.queue), POLLIN, 0});
    }
  }
  ~ReceiveInterrupts() {
    for (const Queue& queue : switched_) control(queue, RTE_INTR_EVENT_DEL);
  }
  ReceiveInterrupts(const ReceiveInterrupts&) = delete;
  ReceiveInterrupts& operator=(const ReceiveInterrupts&) = delete;

  /// Whether wait() ends when a packet comes to any of the queues. No more once one of their files has failed for good.
  [[nodiscard]] bool are_armed() const { return armed_; }
  /// Whether all of them are sockets, which tell of each packet: who looks soon after one is not woken by the next.
  [[nodiscard]] bool are_sockets() const { return switched_.empty(); }

  /// Sleeps until a packet comes, `most` at the longest (above 0, less than a second), and has `time` count that. What
  /// came before an interrupt was switched on raises none: where there are such, `is_idle` looks once they all are, and
  /// there is no sleep unless it returns true. Returns whether a file has ended the sleep.
  template <typename IsIdle>
  bool wait(LoopTime& time, Nanos most, IsIdle is_idle) {
    bool told = false;
    for (const Queue& queue : switched_) rte_eth_dev_rx_intr_enable(queue.port, queue.queue);
    if (switched_.empty() || is_idle()) {
      time.count_sleep(most, [&] {
        const timespec limit{0, static_cast<long>(most.count)};
        told = ppoll(files_.data(), files_.size(), &limit, nullptr) > 0;
      });
      if (told) look_at_files();
    }
    for (const Queue& queue : switched_) rte_eth_dev_rx_intr_disable(queue.port, queue.queue);
    return told;
  }

 private:
  static bool control(const Queue& queue, int operation) {
    return rte_eth_dev_rx_intr_ctl_q(queue.port, queue.queue, RTE_EPOLL_PER_THREAD, operation, nullptr) == 0;
  }

  void look_at_files() {
    for (const pollfd& file : files_) {
      if ((file.revents & ~POLLIN) == 0) continue;
      // An interface that goes down tells its sockets once; to ask is to take it. What stays is ready for ever, and
      // sleeping by it would be spinning.
      int error = 0;
      socklen_t size = sizeof error;
      if (getsockopt(file.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error == 0) armed_ = false;
    }
    if (switched_.empty()) return;
    std::array<rte_epoll_event, 8> events{};  // takes what the interrupts have told
    rte_epoll_wait(RTE_EPOLL_PER_THREAD, events.data(), static_cast<int>(events.size()), 0);
  }

  std::vector<Queue> switched_;
  std::vector<pollfd> files_;
  bool armed_ = false;
};

}  // namespace mltcp::dpdk
