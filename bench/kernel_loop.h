// What a user would write on the kernel's sockets without a transport: the ceilings of port_bench's rows over udp:.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mltcp::bench {

struct KernelLoop {
  enum class What : std::uint8_t {
    segments,  ///< UDP_SEGMENT sends without a pause, UDP_GRO receives; nobody looks at the bytes or acknowledges them
    stream,    ///< TCP, writes and reads of `size`
    echo,      ///< UDP round trips of `size`
  };
  What what = What::segments;
  std::string address;
  std::string peer;
  std::size_t size = 1472;  ///< bytes of a packet, a write or a message
  bool spins = true;        ///< echo: looks again at once, or blocks
  double seconds = 5;
  double warm_up = 1;
};

/// The receiving end; prints "ready", and at the end what it received as a line of JSON. Throws std::runtime_error.
void serve_kernel_loop(const KernelLoop& loop);
/// The sending end. Round trips are told here, as a line of JSON.
void run_kernel_loop(const KernelLoop& loop);

}  // namespace mltcp::bench
