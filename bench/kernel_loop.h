// Bare loops on the kernel's sockets, as a user would write them. They are upper bounds for the results of port_bench
// with --device udp:.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mltcp::bench {

struct KernelLoop {
  enum class What : std::uint8_t {
    segments,  ///< sends with UDP_SEGMENT without a pause, receives with UDP_GRO; no side reads or acknowledges data
    stream,    ///< writes and reads `size` bytes over TCP
    echo,      ///< sends UDP packets of `size` bytes, and waits for the echo of each one
  };
  What what = What::segments;
  std::string address;
  std::string peer;
  std::size_t size = 1472;  ///< bytes of a packet (segments, echo) or of a write (stream)
  bool spins = true;        ///< for echo: poll the socket (true) or block (false)
  double seconds = 5;
  double warm_up = 1;
};

/// Runs the receiving end. Prints "ready", and finally the results as a line of JSON. Throws std::runtime_error on
/// failure.
void serve_kernel_loop(const KernelLoop& loop);
/// Runs the sending end. For `echo`, prints the round-trip times as a line of JSON.
void run_kernel_loop(const KernelLoop& loop);

}  // namespace mltcp::bench
