// Examines the kernel's UDP sockets; see doctor.h.
#include "mltcp/socket/doctor.h"

#include <fmt/format.h>

#include <fstream>

#include "mltcp/base/error.h"
#include "mltcp/socket/internal/buffer_limits.h"
#include "mltcp/socket/socket_io.h"

namespace mltcp::socket {
namespace {

/// Recommended socket buffer in bytes for a port of 1 Gbps or more.
constexpr std::uint32_t kWanted = 4 << 20;

}  // namespace

Examination examine() {
  Examination found;
  try {
    // Request the maximum of a port, so that the reported size is at least what any port gets.
    const SocketIo io({.address = Address::v4(0x7F000001, 0), .buffer_bytes = kMaxBuffer});
    found.works = true;
    found.detail = fmt::format("kernel sockets, no privileges needed: {}, {}, {}, receive buffers of up to {:.1f} MB",
                               io.segments() ? "GSO" : "no GSO", io.coalesces() ? "GRO" : "no GRO",
                               io.limits().ecn ? "ECN" : "no ECN", io.receive_buffer() * 1e-6);
    if (io.receive_buffer() < 2 * kWanted)
      found.cure = fmt::format(
          "so that no packets are dropped when the machine is slow: sysctl -w net.core.rmem_max={0} "
          "net.core.wmem_max={0}",
          kWanted);
    else if (!io.segments() || !io.coalesces())
      found.cure = "for less work per packet, use Linux 5.0 or later";
  } catch (const std::exception& error) {
    found.detail = error.what();
    found.cure = "check whether a sandbox forbids UDP sockets on 127.0.0.1, or bring lo up: ip link set dev lo up";
  }
  return found;
}

}  // namespace mltcp::socket
