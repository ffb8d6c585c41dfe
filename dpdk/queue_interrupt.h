// A receive queue that tells of a packet by a file: a socket of the kernel's, or an interrupt of DPDK's, which is
// switched on for each wait. Internal to this folder, and needs DPDK's headers.
#pragma once

#include <rte_epoll.h>
#include <rte_ethdev.h>
#include <rte_interrupts.h>

#include <array>
#include <cstdint>

namespace mltcp::dpdk {

struct QueueInterrupt {
  std::uint16_t port = 0;
  std::uint16_t queue = 0;
  /// Port::receive_file(): a socket of the kernel's, readable while packets are there. -1: DPDK's interrupts.
  int socket = -1;

  /// Has the queue tell the calling thread, until end(). False if it can't.
  [[nodiscard]] bool begin() const { return socket >= 0 || control(RTE_INTR_EVENT_ADD); }
  void end() const {
    if (socket < 0) control(RTE_INTR_EVENT_DEL);
  }
  /// The file, between begin() and end().
  [[nodiscard]] int file() const { return socket >= 0 ? socket : rte_eth_dev_rx_intr_ctl_q_get_fd(port, queue); }
  [[nodiscard]] bool needs_arming() const { return socket < 0; }
  void arm() const {
    if (socket < 0) rte_eth_dev_rx_intr_enable(port, queue);
  }
  /// And takes what the interrupts of the calling thread have told.
  void disarm() const {
    if (socket >= 0) return;
    std::array<rte_epoll_event, 8> events{};
    rte_epoll_wait(RTE_EPOLL_PER_THREAD, events.data(), static_cast<int>(events.size()), 0);
    rte_eth_dev_rx_intr_disable(port, queue);
  }

 private:
  // NOLINTNEXTLINE(modernize-use-nodiscard): the end of what has begun can't fail
  bool control(int operation) const {
    return rte_eth_dev_rx_intr_ctl_q(port, queue, RTE_EPOLL_PER_THREAD, operation, nullptr) == 0;
  }
};

}  // namespace mltcp::dpdk
