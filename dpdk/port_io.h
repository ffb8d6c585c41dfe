// A host on an Ethernet port: one IP address, and for each queue pair of the port a datapath of the transport (PortIo)
// with a UDP port of its own, so that a process runs as many shards on a port as the port has queues.
//
// Around what the transport sends there is Ethernet (with the port's 802.1Q tag), IPv4 or IPv6, and UDP; checksums are
// the port's work where it can do it. One copy each way at most: into a packet buffer, unless the port reads payloads
// where they lie, and out of it by the transport.
//
// Shard i has queue i and UDP port `address.port + i`. Ports that take such a rule (rte_flow) put each packet into the
// queue of its shard. Others choose a queue by a hash, and the PortIo that finds another's packet hands it over through
// that one's ring: always right, counted, and dearer by a cache line or two.
//
// There may be more shards than queues: shard i then has queue i modulo their number, as when several ranks live behind
// an interface with one queue. Shards of one queue are used by one thread, each polls it, and what it finds for another
// goes the same way, through the other's ring.
//
// Each PortIo has a Neighbours of its own, since shards share nothing. Questions about the host's address are answered
// by whoever receives them. What tells about neighbours (answers, announcements) arrives in one queue only, so it is
// handed to all. Packets to a neighbour that is not known yet wait in a short queue, as in a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/ring_io.h"
#include "mltcp/ethernet/neighbours.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::dpdk {

struct PortHostConfig {
  /// The host's IP address, of either version, and the UDP port of shard 0.
  Address address{};
  std::uint32_t prefix_bits = 24;  ///< of the segment, see NeighbourConfig like the next
  Address gateway{};
  encap::DscpMap dscp{};
  /// Payloads of so many bytes and more are sent without a copy if the port can: it has offload multi_segments, and
  /// a NIC reads them only from RegisteredMemory. 0: all are copied. Shorter ones are copied as fast
  /// (docs/performance.md).
  std::uint32_t zero_copy_from = 2048;
  std::uint32_t waiting_packets = 128;    ///< that wait for neighbours, per queue; 1 to 65536
  std::uint32_t handover_packets = 1024;  ///< on their way to another shard, per shard; a power of two, 64 to 65536
  std::uint16_t shards = 0;               ///< 0: one for each queue; otherwise that or more, at most 1024
};

struct PortIoCounters {
  std::uint64_t sent_packets = 0;      ///< taken by the port; address resolution not counted
  std::uint64_t received_packets = 0;  ///< given to the transport
  std::uint64_t by_reference = 0;      ///< packets whose payload was not copied
  std::uint64_t port_full = 0;         ///< bursts that the full queue cut short
  std::uint64_t no_buffer = 0;         ///< calls of send() that the empty pool cut short
  std::uint64_t unsendable = 0;        ///< too long, to the other IP version, or without bytes; discarded
  std::uint64_t waited = 0;            ///< packets that waited for a neighbour
  std::uint64_t waiting_full = 0;      ///< discarded since too many waited
  std::uint64_t unreachable = 0;       ///< discarded since the neighbour does not answer, or there is no way there
  std::uint64_t handed_over = 0;       ///< to the shard that they were for
  std::uint64_t taken_over = 0;        ///< from other shards, neighbours' news included
  std::uint64_t handover_full = 0;     ///< discarded
  std::uint64_t linearised = 0;        ///< received in several segments, and copied into one
  std::uint64_t neighbour_frames = 0;  ///< of ARP and Neighbour Discovery, received
  RejectCounters rejected{};           ///< received frames that were discarded
};

class PortIo : public PacketIo {
 public:
  static constexpr std::uint32_t burst = 32;

  [[nodiscard]] virtual const Address& address() const = 0;
  [[nodiscard]] virtual std::uint16_t queue() const = 0;
  [[nodiscard]] virtual const PortIoCounters& counters() const = 0;
  [[nodiscard]] virtual const NeighbourCounters& neighbours() const = 0;
  /// Asks for the MAC address of `destination` if it is not known. True once it is.
  virtual bool resolve(const Address& destination) = 0;
  /// Gives back the packets that were received last, and discards those that wait.
  virtual void release() = 0;
};

class PortHost {
 public:
  /// `eal` and `port` outlive it. Throws InputError for a configuration out of range, RunError if memory is short.
  PortHost(const Eal& eal, const Port& port, const PortHostConfig& config);
  ~PortHost();
  PortHost(const PortHost&) = delete;
  PortHost& operator=(const PortHost&) = delete;

  [[nodiscard]] const Port& port() const;
  [[nodiscard]] std::uint16_t shards() const;
  /// Of a shard; each used by one thread at a time, like all of one queue.
  [[nodiscard]] PortIo& io(std::uint16_t shard = 0) const;
  /// Whether the port itself puts all packets into the queue of their shard, so that none is handed over.
  [[nodiscard]] bool is_steered() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
