// A host on an Ethernet port: one IP address, and for each shard a datapath of the transport (PortIo) with its own UDP
// port, so that a process can run a shard on each queue pair of the port.
//
// Sent packets get Ethernet (with the port's 802.1Q tag), IPv4 or IPv6, and UDP headers; the port computes checksums if
// it can. At most one copy each way: into a packet buffer, unless the port reads payloads by reference, and out of it
// by the transport.
//
// Shard i uses queue i and UDP port `address.port + i`. Ports that support such a rule (rte_flow) put each packet into
// its shard's queue. With others, which select a queue by a hash, the PortIo that receives another shard's packet hands
// it over through that shard's ring: always correct, counted, and a cache line or two more expensive.
//
// There may be more shards than queues, as with several ranks on an interface with one queue: shard i then uses queue i
// modulo their number. All shards of a queue must be used by one thread; each polls the queue, and hands packets of
// other shards over through their rings.
//
// Each PortIo has its own neighbour table (Neighbours), because shards share nothing. The shard that receives an ARP
// request or Neighbour Solicitation for the host's address answers it. Replies and announcements arrive in one queue
// only, so they are handed to all shards. Packets to an unresolved neighbour wait in a short queue, as in a kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/ring_io.h"
#include "mltcp/transport/ethernet/neighbours.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::dpdk {

struct PortHostConfig {
  /// The host's IP address (v4 or v6) and the UDP port of shard 0.
  Address address{};
  std::uint32_t prefix_bits = 24;  ///< prefix length of the host's network, see NeighbourConfig
  Address gateway{};
  encap::DscpMap dscp{};
  /// Payloads of at least this many bytes are sent by reference if the port can: it needs offload multi_segments, and a
  /// NIC reads them only from RegisteredMemory. 0: all are copied. Copying shorter payloads is as fast
  /// (docs/explanation/performance.md).
  std::uint32_t zero_copy_from = 2048;
  std::uint32_t waiting_packets = 128;    ///< maximum waiting for address resolution, per queue; 1 to 65536
  std::uint32_t handover_packets = 1024;  ///< capacity of the ring to a shard; a power of two, 64 to 65536
  std::uint16_t shards = 0;               ///< 0: one for each queue; otherwise at least that, at most 1024
};

struct PortIoCounters {
  std::uint64_t sent_packets = 0;      ///< accepted by the port, without address resolution
  std::uint64_t received_packets = 0;  ///< passed to the transport
  std::uint64_t by_reference = 0;      ///< payloads sent without a copy
  std::uint64_t port_full = 0;         ///< send bursts cut short because the queue was full
  std::uint64_t no_buffer = 0;         ///< send() calls cut short because the pool was empty
  std::uint64_t unsendable = 0;        ///< too long, other IP version, or virtual; discarded
  std::uint64_t waited = 0;            ///< packets that waited for address resolution
  std::uint64_t waiting_full = 0;      ///< discarded because too many were waiting
  std::uint64_t unreachable = 0;       ///< discarded because the neighbour does not answer, or there is no route
  std::uint64_t handed_over = 0;       ///< packets passed to other shards
  std::uint64_t taken_over = 0;        ///< packets received from other shards, ARP and Neighbour Discovery included
  std::uint64_t handover_full = 0;     ///< discarded because the other shard's ring was full
  std::uint64_t linearised = 0;        ///< received in several segments, and copied into one
  std::uint64_t neighbour_frames = 0;  ///< received ARP and Neighbour Discovery frames
  RejectCounters rejected{};           ///< received frames that were discarded
};

class PortIo : public PacketIo {
 public:
  static constexpr std::uint32_t kBurst = 32;

  [[nodiscard]] virtual const Address& address() const = 0;
  [[nodiscard]] virtual std::uint16_t queue() const = 0;
  [[nodiscard]] virtual const PortIoCounters& counters() const = 0;
  [[nodiscard]] virtual const NeighbourCounters& neighbours() const = 0;
  /// Starts to resolve `destination` if its MAC address is not known. True if it is known.
  virtual bool resolve(const Address& destination) = 0;
  /// Frees the packets received last, and discards waiting ones.
  virtual void release() = 0;
};

class PortHost {
 public:
  /// `eal` and `port` must outlive it. Throws InputError if `config` is out of range, RunError if memory is short.
  PortHost(const Eal& eal, const Port& port, const PortHostConfig& config);
  ~PortHost();
  PortHost(const PortHost&) = delete;
  PortHost& operator=(const PortHost&) = delete;

  [[nodiscard]] const Port& port() const;
  [[nodiscard]] std::uint16_t shards() const;
  /// The datapath of a shard; those of one queue must be used by one thread at a time.
  [[nodiscard]] PortIo& io(std::uint16_t shard = 0) const;
  /// Whether the port puts every packet into its shard's queue, so that none is handed over.
  [[nodiscard]] bool is_steered() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
