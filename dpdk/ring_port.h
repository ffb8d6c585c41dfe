// RAII owners of the parts of an in-process network: pools of packet buffers (mbufs), rings of packets, and Ethernet
// ports. A port receives from one ring and transmits into another (DPDK's net_ring driver).
//
// These classes are for set-up only. The data path calls DPDK with the handles that they return. Names are unique
// within the process and have at most 20 characters.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/base/error.h"

struct rte_mempool;
struct rte_ring;

namespace mltcp::dpdk {

/// Returns the maximum number of Ethernet ports in a process (a build option of DPDK).
std::uint32_t max_ports();
/// Returns the number of Ethernet ports in the process that are not in use.
std::uint32_t free_ports();

/// Thrown if DPDK has too little memory for a pool; `missing_mb` MiB more are enough.
class MemoryError : public RunError {
 public:
  MemoryError(const std::string& what, std::uint32_t missing_mb) : RunError(what), missing_mb_(missing_mb) {}
  [[nodiscard]] std::uint32_t missing_mb() const { return missing_mb_; }

 private:
  std::uint32_t missing_mb_;
};

class PacketPool {
 public:
  /// Creates `count` buffers. Each holds a frame of up to `frame_bytes` in one piece. The memory is on NUMA node
  /// `socket`, or on the calling thread's node if `socket` is -1. Throws MemoryError if memory is short.
  PacketPool(const std::string& name, std::uint32_t count, std::uint32_t frame_bytes, int socket = -1);
  /// Selects the layout that AF_XDP requires: each buffer is one page, and the pages are contiguous. In any other
  /// layout the last buffers would be outside the memory that is registered with the kernel.
  struct Pages {};
  PacketPool(const std::string& name, std::uint32_t count, Pages pages, int socket = -1);
  /// Requires that all buffers have been freed.
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] std::uint32_t size() const { return count_; }
  /// Returns the number of buffers in use. Buffers in per-core caches count as free. Exact while no thread allocates or
  /// frees.
  [[nodiscard]] std::uint32_t in_use() const;

  /// Returns the memory in bytes that a pool with these arguments needs.
  static std::uint64_t memory_bytes(std::uint32_t count, std::uint32_t frame_bytes);
  static std::uint64_t memory_bytes(std::uint32_t count, Pages pages);

 private:
  bool make_pages(const std::string& name, int socket);

  rte_mempool* pool_ = nullptr;
  std::uint32_t count_ = 0;
};

class PacketRing {
 public:
  enum class Consumers : std::uint8_t { one, many };
  /// Creates a ring with a single producer for `slots` - 1 packets; `slots` must be a power of two. With
  /// Consumers::many, drain() may run while another thread takes packets from the ring. Throws RunError if memory is
  /// short.
  PacketRing(const std::string& name, std::uint32_t slots, Consumers consumers = Consumers::one);
  /// Frees the packets in the ring.
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  [[nodiscard]] rte_ring* get() const { return ring_; }
  /// Frees the packets in the ring.
  void drain();
  [[nodiscard]] bool is_empty() const;

 private:
  rte_ring* ring_ = nullptr;
};

class RingPort {
 public:
  /// Creates and starts a port that receives from `receive` and transmits into `transmit`. Both rings must outlive the
  /// port. Throws RunError if DPDK refuses.
  RingPort(const std::string& name, const PacketRing& receive, const PacketRing& transmit, const PacketPool& pool);
  ~RingPort();
  RingPort(const RingPort&) = delete;
  RingPort& operator=(const RingPort&) = delete;

  /// Returns DPDK's number of this port. The port has one queue, whose number is 0.
  [[nodiscard]] std::uint16_t id() const { return id_; }

 private:
  void open(const std::string& name, const PacketRing& receive, const PacketRing& transmit, const PacketPool& pool,
            unsigned socket);

  std::string device_;
  std::uint16_t id_ = 0;
};

}  // namespace mltcp::dpdk
