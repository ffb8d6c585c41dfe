// Owners of what a network in one process is made of: a pool of packet buffers (mbufs), rings of them, and Ethernet
// ports whose receive and transmit queues are such rings (DPDK's net_ring driver).
//
// Set-up only; the data path calls DPDK with the handles that these give out. Names live in one space for the whole
// process and have at most 20 characters.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/fabric/link.h"

struct rte_mempool;
struct rte_ring;

namespace mltcp::dpdk {

/// Most Ethernet ports in a process that DPDK was built for.
std::uint32_t max_ports();
/// Ports that are still free.
std::uint32_t free_ports();

/// Packets that a link can hold: in its buffer and on the way, if they are of 200 bytes on average, and within reason.
std::uint32_t packets_in(const fabric::LinkConfig& link);

class PacketPool {
 public:
  /// `count` buffers, each for a frame of up to `frame_bytes` in one piece, in memory of NUMA socket `socket` (-1: that
  /// of the calling thread). Throws RunError if memory is short.
  PacketPool(const std::string& name, std::uint32_t count, std::uint32_t frame_bytes, int socket = -1);
  /// What AF_XDP wants of a pool: each buffer is a page, and page follows page. Elsewhere the padding between buffers,
  /// and buffers that move on so as not to cross a page, would put the last ones beyond the memory that the kernel is
  /// told of.
  struct Pages {};
  PacketPool(const std::string& name, std::uint32_t count, Pages pages, int socket = -1);
  /// Every buffer has been given back before.
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] std::uint32_t size() const { return count_; }
  /// Buffers that are out; what lies in the caches of cores is not. Exact while no thread allocates or frees.
  [[nodiscard]] std::uint32_t in_use() const;

  /// Bytes of memory that such a pool takes.
  static std::uint64_t memory_bytes(std::uint32_t count, std::uint32_t frame_bytes);
  static std::uint64_t memory_bytes(std::uint32_t count, Pages pages);

 private:
  rte_mempool* pool_ = nullptr;
  std::uint32_t count_ = 0;
};

class PacketRing {
 public:
  /// A ring for one producer thread and one consumer thread, which holds `slots` - 1 packets; a power of two. Throws
  /// RunError if memory is short.
  PacketRing(const std::string& name, std::uint32_t slots);
  /// Frees the packets inside.
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  [[nodiscard]] rte_ring* get() const { return ring_; }
  /// Frees the packets inside.
  void drain();

 private:
  rte_ring* ring_ = nullptr;
};

class RingPort {
 public:
  /// A started port that receives from `receive` and transmits into `transmit`, both of which outlive it. Throws
  /// RunError.
  RingPort(const std::string& name, const PacketRing& receive, const PacketRing& transmit, const PacketPool& pool);
  ~RingPort();
  RingPort(const RingPort&) = delete;
  RingPort& operator=(const RingPort&) = delete;

  /// DPDK's number of the port; its one queue each way is number 0.
  [[nodiscard]] std::uint16_t id() const { return id_; }

 private:
  std::string device_;
  std::uint16_t id_ = 0;
};

}  // namespace mltcp::dpdk
