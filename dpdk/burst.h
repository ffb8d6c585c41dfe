// Bursts of packets through Ethernet ports, and packet buffers as bytes: what hosts and switches do alike. Internal to
// this folder and to programs that name PkgConfig::DPDK; needs DPDK's headers.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/base/handoff.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/ethernet/encapsulation.h"

namespace mltcp::dpdk {

/// The bytes of a packet's first segment.
inline std::span<std::byte> frame_of(rte_mbuf* packet) {
  return {rte_pktmbuf_mtod(packet, std::byte*), rte_pktmbuf_data_len(packet)};
}

/// Flips one bit behind the Ethernet header, which the random number `bits` chooses. The frame check sequence that
/// would find it in a NIC is not there; the checksums of the headers find it at the receiver.
inline void flip_bit(std::span<std::byte> frame, std::uint64_t bits) {
  if (frame.size() <= encap::kEthernetBytes) return;
  const std::size_t at = encap::kEthernetBytes + (bits >> 3) % (frame.size() - encap::kEthernetBytes);
  frame[at] ^= static_cast<std::byte>(1U << (bits & 7));
}

inline void free_packets(rte_mbuf** packets, std::size_t count) {
  if (count == 0) return;
  hand_over(packets[0]->pool);
  rte_pktmbuf_free_bulk(packets, static_cast<unsigned>(count));
}

/// As many of `count` buffers as `pool` has; returns how many.
inline std::size_t allocate_packets(rte_mempool* pool, rte_mbuf** packets, std::size_t count) {
  std::size_t got = count;
  {
    const Unwatched buffers;  // which it resets
    if (rte_pktmbuf_alloc_bulk(pool, packets, static_cast<unsigned>(count)) != 0) [[unlikely]] {
      got = 0;
      while (got < count && (packets[got] = rte_pktmbuf_alloc(pool)) != nullptr) ++got;
    }
  }
  take_over(pool);
  return got;
}

/// A burst from receive queue `queue` of port `port`.
inline std::uint16_t receive_burst(std::uint16_t port, std::uint16_t queue, rte_mbuf** packets, std::uint16_t most) {
  std::uint16_t count = 0;
  {
    const Unwatched driver;
    count = rte_eth_rx_burst(port, queue, packets, most);
  }
  // The buffers may come from another core's cache: have all of them on their way before the first is looked at.
  for (std::uint16_t i = 0; i < count; ++i) rte_prefetch0(packets[i]);
  for (std::uint16_t i = 0; i < count; ++i) rte_prefetch0(rte_pktmbuf_mtod(packets[i], const std::byte*));
  return count;
}

/// A burst from ring port `port`, whose receive queue is `ring`.
inline std::uint16_t receive_burst(std::uint16_t port, const PacketRing& ring, rte_mbuf** packets, std::uint16_t most) {
  const std::uint16_t count = receive_burst(port, std::uint16_t{0}, packets, most);
  take_over(ring.get());
  return count;
}

/// Sends a burst, of one packet at least, on transmit queue `queue` of port `port`; returns how many were taken.
inline std::uint16_t send_burst(std::uint16_t port, std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  hand_over(packets[0]->pool);  // to which the port gives them back
  const Unwatched driver;
  return rte_eth_tx_burst(port, queue, packets, count);
}

/// Sends a burst on ring port `port`, whose transmit queue is `ring`; returns how many of `packets` were taken.
inline std::uint16_t send_burst(std::uint16_t port, const PacketRing& ring, rte_mbuf** packets, std::uint16_t count) {
  hand_over(ring.get());
  return rte_eth_tx_burst(port, 0, packets, count);
}

}  // namespace mltcp::dpdk
