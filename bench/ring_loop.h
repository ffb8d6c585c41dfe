// Sends packets over DPDK ring ports without a protocol. The cost per packet is the baseline for the transport's cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mltcp::bench {

/// Two connected ring ports, driven by one thread. Requires a started dpdk::Eal.
class RingLoop {
 public:
  /// `frame_bytes` (64 to 9000) is the size of each packet, `burst` (1 to 64) the number of packets per round. Throws
  /// InputError or RunError.
  RingLoop(std::size_t frame_bytes, std::size_t burst);
  ~RingLoop();
  RingLoop(const RingLoop&) = delete;
  RingLoop& operator=(const RingLoop&) = delete;

  /// Sends one burst from port A to port B. Allocates a buffer for each packet, writes Ethernet, IPv4 and UDP headers
  /// without checksums, reads a word of each received header and frees the buffers. Returns the number of packets
  /// received.
  std::size_t round();

  /// Does the same as round(), and copies a payload into each packet. The receiver does not read the payload.
  std::size_t round_with_copy();

  /// Returns the number of packet buffers in use, which is 0 after every round.
  [[nodiscard]] std::uint32_t buffers_in_use() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mltcp::bench
