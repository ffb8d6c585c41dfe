// A receive queue that signals packets by a file descriptor. The descriptor is a kernel socket, or a DPDK interrupt
// that must be enabled for each wait. Internal to this folder; needs DPDK's headers.
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
  /// Port::receive_file(): a kernel socket, readable while packets are pending. -1 if DPDK's interrupts are to be used.
  int socket = -1;

  /// Enables notification of the calling thread until end(). Returns false if that is not supported.
  [[nodiscard]] bool begin() const { return socket >= 0 || control(RTE_INTR_EVENT_ADD); }
  void end() const {
    if (socket < 0) control(RTE_INTR_EVENT_DEL);
  }
  /// Returns the file descriptor, valid between begin() and end().
  [[nodiscard]] int file() const { return socket >= 0 ? socket : rte_eth_dev_rx_intr_ctl_q_get_fd(port, queue); }
  [[nodiscard]] bool needs_arming() const { return socket < 0; }
  void arm() const {
    if (socket < 0) rte_eth_dev_rx_intr_enable(port, queue);
  }
  /// Disables the interrupt, and consumes pending interrupt events of the calling thread.
  void disarm() const {
    if (socket >= 0) return;
    std::array<rte_epoll_event, 8> events{};
    rte_epoll_wait(RTE_EPOLL_PER_THREAD, events.data(), static_cast<int>(events.size()), 0);
    rte_eth_dev_rx_intr_disable(port, queue);
  }

 private:
  // NOLINTNEXTLINE(modernize-use-nodiscard): ending cannot fail
  bool control(int operation) const {
    return rte_eth_dev_rx_intr_ctl_q(port, queue, RTE_EPOLL_PER_THREAD, operation, nullptr) == 0;
  }
};

}  // namespace mltcp::dpdk
