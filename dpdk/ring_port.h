// Owners of the parts of an in-process network: a pool of packet buffers (mbufs), rings of them, and Ethernet ports
// whose receive and transmit queues are such rings (DPDK's net_ring driver).
//
// For set-up only; the data path calls DPDK with the handles. Names are unique within the process and have at most 20
// characters.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/base/error.h"

struct rte_mempool;
struct rte_ring;

namespace mltcp::dpdk {

/// Maximum number of Ethernet ports in a process (a build option of DPDK).
std::uint32_t max_ports();
/// Number of ports not in use.
std::uint32_t free_ports();

/// DPDK's memory is too short for a pool; `missing_mb` MiB more are enough.
class MemoryError : public RunError {
 public:
  MemoryError(const std::string& what, std::uint32_t missing_mb) : RunError(what), missing_mb_(missing_mb) {}
  [[nodiscard]] std::uint32_t missing_mb() const { return missing_mb_; }

 private:
  std::uint32_t missing_mb_;
};

class PacketPool {
 public:
  /// `count` buffers, each for a frame of up to `frame_bytes` in one piece, in memory of NUMA node `socket` (-1: that
  /// of the calling thread). Throws MemoryError.
  PacketPool(const std::string& name, std::uint32_t count, std::uint32_t frame_bytes, int socket = -1);
  /// The layout that AF_XDP requires: each buffer is a page, and pages are contiguous. With padding between buffers, or
  /// buffers moved to avoid page boundaries, the last ones would be outside the memory that is registered with the
  /// kernel.
  struct Pages {};
  PacketPool(const std::string& name, std::uint32_t count, Pages pages, int socket = -1);
  /// All buffers must have been freed.
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  [[nodiscard]] rte_mempool* get() const { return pool_; }
  [[nodiscard]] std::uint32_t size() const { return count_; }
  /// Number of allocated buffers, not counting those in per-core caches. Exact while no thread allocates or frees.
  [[nodiscard]] std::uint32_t in_use() const;

  /// Memory of such a pool in bytes.
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
  /// A ring for `slots` - 1 packets with a single producer; `slots` is a power of two. With many consumers, drain() may
  /// be called while another thread takes packets out. Throws RunError if memory is short.
  PacketRing(const std::string& name, std::uint32_t slots, Consumers consumers = Consumers::one);
  /// Frees the packets inside.
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  [[nodiscard]] rte_ring* get() const { return ring_; }
  /// Frees the packets inside.
  void drain();
  [[nodiscard]] bool is_empty() const;

 private:
  rte_ring* ring_ = nullptr;
};

class RingPort {
 public:
  /// A started port that receives from `receive` and transmits into `transmit`, which must outlive it. Throws RunError.
  RingPort(const std::string& name, const PacketRing& receive, const PacketRing& transmit, const PacketPool& pool);
  ~RingPort();
  RingPort(const RingPort&) = delete;
  RingPort& operator=(const RingPort&) = delete;

  /// DPDK's number of the port, which has queue 0 only.
  [[nodiscard]] std::uint16_t id() const { return id_; }

 private:
  void open(const std::string& name, const PacketRing& receive, const PacketRing& transmit, const PacketPool& pool,
            unsigned socket);

  std::string device_;
  std::uint16_t id_ = 0;
};

}  // namespace mltcp::dpdk
