// Functions that send and receive bursts of packets on Ethernet ports, and access packet buffers as bytes. Used by
// hosts and switches. Internal to this folder and to programs that link PkgConfig::DPDK; needs DPDK's headers.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/base/handoff.h"
#include "mltcp/dpdk/ring_port.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::dpdk {

/// Returns the bytes of a packet's first segment.
inline std::span<std::byte> frame_of(rte_mbuf* packet) {
  return {rte_pktmbuf_mtod(packet, std::byte*), rte_pktmbuf_data_len(packet)};
}

/// Flips one bit of the bytes after the Ethernet header. The random number `bits` selects the bit. Unlike on a NIC,
/// frames carry no frame check sequence here. So the receiver can detect the error only by the checksums in the
/// headers.
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

/// Allocates up to `count` buffers from `pool`. Returns how many it has allocated.
inline std::size_t allocate_packets(rte_mempool* pool, rte_mbuf** packets, std::size_t count) {
  std::size_t got = count;
  {
    const Unwatched buffers;  // allocation resets the contents of buffers
    if (rte_pktmbuf_alloc_bulk(pool, packets, static_cast<unsigned>(count)) != 0) [[unlikely]] {
      got = 0;
      while (got < count && (packets[got] = rte_pktmbuf_alloc(pool)) != nullptr) ++got;
    }
  }
  take_over(pool);
  return got;
}

/// Receives a burst of up to `max` packets from receive queue `queue` of port `port`. Returns their number.
inline std::uint16_t receive_burst(std::uint16_t port, std::uint16_t queue, rte_mbuf** packets, std::uint16_t max) {
  std::uint16_t count = 0;
  {
    const Unwatched driver;
    count = rte_eth_rx_burst(port, queue, packets, max);
  }
  for (std::uint16_t i = 0; i < count; ++i) {
    const Unwatched field;
    take_over(packets[i]->pool);  // if rings connect ports, the buffer comes from the pool of another thread
  }
  // The buffers may be in another core's cache: prefetch all before the first is used.
  for (std::uint16_t i = 0; i < count; ++i) rte_prefetch0(packets[i]);
  for (std::uint16_t i = 0; i < count; ++i) rte_prefetch0(rte_pktmbuf_mtod(packets[i], const std::byte*));
  return count;
}

/// Receives a burst of up to `max` packets from ring port `port`, whose receive queue is `ring`. Returns their number.
inline std::uint16_t receive_burst(std::uint16_t port, const PacketRing& ring, rte_mbuf** packets, std::uint16_t max) {
  const std::uint16_t count = receive_burst(port, std::uint16_t{0}, packets, max);
  take_over(ring.get());
  return count;
}

/// Sends a burst of one packet or more on transmit queue `queue` of port `port`. Returns how many packets were
/// accepted.
inline std::uint16_t send_burst(std::uint16_t port, std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  hand_over(packets[0]->pool);  // the port will free the buffers into this pool
  const Unwatched driver;
  return rte_eth_tx_burst(port, queue, packets, count);
}

/// Sends a burst on ring port `port`, whose transmit queue is `ring`. Returns how many packets were accepted.
inline std::uint16_t send_burst(std::uint16_t port, const PacketRing& ring, rte_mbuf** packets, std::uint16_t count) {
  hand_over(ring.get());
  return rte_eth_tx_burst(port, 0, packets, count);
}

}  // namespace mltcp::dpdk
