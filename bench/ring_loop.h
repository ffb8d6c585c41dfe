// The bare ring loop: what a packet costs on DPDK ring ports with no protocol at all. The yardstick for the
// transport's cost per packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mltcp::bench {

/// Two ring ports, wired to each other, in one thread. Needs a started dpdk::Eal.
class RingLoop {
 public:
  /// Packets of `frame_bytes` (64 to 9000), in bursts of `burst` (1 to 64). Throws InputError or RunError.
  RingLoop(std::size_t frame_bytes, std::size_t burst);
  ~RingLoop();
  RingLoop(const RingLoop&) = delete;
  RingLoop& operator=(const RingLoop&) = delete;

  /// Once round: allocates a burst of packet buffers, writes an Ethernet, IPv4 and UDP header without checksums into
  /// each, transmits them on port A, receives them on port B, reads a word of each header and frees them. Returns how
  /// many packets came through.
  std::size_t round();

  /// The same with the payload copied into each packet, and nothing read of it at the receiver.
  std::size_t round_with_copy();

  /// Packet buffers that are not free; 0 after every round.
  [[nodiscard]] std::uint32_t buffers_in_use() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::bench
