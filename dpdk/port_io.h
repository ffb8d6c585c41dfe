// A host on an Ethernet port. It has one IP address, and for each shard a datapath of the transport (PortIo) with its
// own UDP port, so that a process can run a shard on each queue pair of the port.
//
// Sent packets get Ethernet (with the port's 802.1Q tag), IPv4 or IPv6, and UDP headers. The port computes checksums if
// it can. A sent payload is copied once, into a packet buffer, unless the port reads payloads by reference. The
// transport copies a received payload once, out of the packet buffer.
//
// Shard i uses queue i and UDP port `address.port + i`. Ports that support suitable rules (rte_flow) put each packet
// into its shard's queue. Other ports select a queue by a hash. The PortIo that receives another shard's packet then
// hands it over through that shard's ring. This is always correct, is counted, and costs a cache line or two more.
//
// There may be more shards than queues, for example if several ranks share an interface with one queue. Shard i then
// uses queue i modulo the number of queues. All shards of a queue must be used by one thread. Each of these shards
// polls the queue, and hands over packets of other shards through those shards' rings.
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
  /// NIC reads only payloads in RegisteredMemory. For shorter payloads, a copy is as fast as a reference
  /// (docs/explanation/performance.md). 0 if all payloads are to be copied.
  std::uint32_t zero_copy_from = 2048;
  /// Maximum number of packets that wait for address resolution, per shard; 1 to 65536.
  std::uint32_t waiting_packets = 128;
  std::uint32_t handover_packets = 1024;  ///< capacity in packets of the ring to a shard; a power of two, 64 to 65536
  std::uint16_t shards = 0;               ///< from the number of queues to 1024; 0 for one shard per queue
};

struct PortIoCounters {
  std::uint64_t sent_packets = 0;      ///< packets accepted by the port, except ARP and Neighbour Discovery
  std::uint64_t received_packets = 0;  ///< packets passed to the transport
  std::uint64_t by_reference = 0;      ///< payloads sent without a copy
  std::uint64_t port_full = 0;         ///< send bursts cut short because the queue was full
  std::uint64_t no_buffer = 0;         ///< send() calls cut short because the pool was empty
  std::uint64_t unsendable = 0;     ///< packets discarded because they were too long, virtual, or to another IP version
  std::uint64_t waited = 0;         ///< packets that waited for address resolution
  std::uint64_t waiting_full = 0;   ///< packets discarded because too many were waiting
  std::uint64_t unreachable = 0;    ///< packets discarded because the neighbour does not answer, or there is no route
  std::uint64_t handed_over = 0;    ///< packets passed to other shards
  std::uint64_t taken_over = 0;     ///< packets received from other shards, ARP and Neighbour Discovery included
  std::uint64_t handover_full = 0;  ///< packets discarded because the ring of their shard was full
  std::uint64_t linearised = 0;     ///< frames received in several segments, and copied into one
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
  /// Starts to resolve `destination` if its MAC address is not known. Returns whether the MAC address is already known.
  virtual bool resolve(const Address& destination) = 0;
  /// Frees the packets received last, and discards the packets that wait to be sent.
  virtual void release() = 0;
};

class PortHost {
 public:
  /// `eal` and `port` must outlive the host. Throws InputError if `config` is out of range, RunError if memory is
  /// short.
  PortHost(const Eal& eal, const Port& port, const PortHostConfig& config);
  ~PortHost();
  PortHost(const PortHost&) = delete;
  PortHost& operator=(const PortHost&) = delete;

  [[nodiscard]] const Port& port() const;
  [[nodiscard]] std::uint16_t shards() const;
  /// Returns the datapath of a shard. Only one thread at a time may use the datapaths of one queue.
  [[nodiscard]] PortIo& io(std::uint16_t shard = 0) const;
  /// Returns whether the port puts every packet into its shard's queue, so that no packet is handed over.
  [[nodiscard]] bool is_steered() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::dpdk
