// The bare ring loop: the cost of a packet on DPDK ring ports without a protocol, to compare the transport's cost with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mltcp::bench {

/// Two ring ports, connected to each other, in one thread. Needs a started dpdk::Eal.
class RingLoop {
 public:
  /// Packets of `frame_bytes` (64 to 9000), in bursts of `burst` (1 to 64). Throws InputError or RunError.
  RingLoop(std::size_t frame_bytes, std::size_t burst);
  ~RingLoop();
  RingLoop(const RingLoop&) = delete;
  RingLoop& operator=(const RingLoop&) = delete;

  /// One round: allocates a burst of packet buffers, writes an Ethernet, IPv4 and UDP header without checksums into
  /// each, sends them on port A, receives them on port B, reads a word of each header and frees them. Returns the
  /// number of packets received.
  std::size_t round();

  /// The same, and copies a payload into each packet; the receiver does not read the payload.
  std::size_t round_with_copy();

  /// Packet buffers in use; 0 after every round.
  [[nodiscard]] std::uint32_t buffers_in_use() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::bench
