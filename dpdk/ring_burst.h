// Bursts of packets through ring ports, and packet buffers as bytes: what hosts and switch do alike. Internal to this
// folder; needs DPDK's headers.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/base/handoff.h"
#include "mltcp/dpdk/ring_port.h"

namespace mltcp::dpdk {

inline std::span<std::byte> frame_of(rte_mbuf* packet) {
  return {rte_pktmbuf_mtod(packet, std::byte*), rte_pktmbuf_data_len(packet)};
}

inline void free_packets(rte_mbuf** packets, std::size_t count) {
  if (count == 0) return;
  hand_over(packets[0]->pool);
  rte_pktmbuf_free_bulk(packets, static_cast<unsigned>(count));
}

/// A burst from port `port`, whose receive queue is `ring`.
inline std::uint16_t receive_burst(std::uint16_t port, const PacketRing& ring, rte_mbuf** packets, std::uint16_t most) {
  const std::uint16_t count = rte_eth_rx_burst(port, 0, packets, most);
  take_over(ring.get());
  // The buffers may come from another core's cache: have all of them on their way before the first is looked at.
  for (std::uint16_t i = 0; i < count; ++i) rte_prefetch0(packets[i]);
  for (std::uint16_t i = 0; i < count; ++i) rte_prefetch0(rte_pktmbuf_mtod(packets[i], const std::byte*));
  return count;
}

/// Sends a burst on port `port`, whose transmit queue is `ring`; returns how many of `packets` were taken.
inline std::uint16_t send_burst(std::uint16_t port, const PacketRing& ring, rte_mbuf** packets, std::uint16_t count) {
  hand_over(ring.get());
  return rte_eth_tx_burst(port, 0, packets, count);
}

}  // namespace mltcp::dpdk
