// Bare loops on the kernel's sockets, as a user would write them: upper bounds for port_bench's udp: rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mltcp::bench {

struct KernelLoop {
  enum class What : std::uint8_t {
    segments,  ///< sends with UDP_SEGMENT without a pause, receives with UDP_GRO; nothing is read or acknowledged
    stream,    ///< TCP, writes and reads of `size`
    echo,      ///< UDP round trips of `size`
  };
  What what = What::segments;
  std::string address;
  std::string peer;
  std::size_t size = 1472;  ///< bytes of a packet, a write or a message
  bool spins = true;        ///< echo: polls, or blocks
  double seconds = 5;
  double warm_up = 1;
};

/// The receiving end; prints "ready", and finally its results as a line of JSON. Throws std::runtime_error.
void serve_kernel_loop(const KernelLoop& loop);
/// The sending end. Prints the round-trip times of `echo` as a line of JSON.
void run_kernel_loop(const KernelLoop& loop);

}  // namespace mltcp::bench
