// What sockets' buffers may be asked for, the same for ports and for who examines the machine. Not installed.
#pragma once

#include <cstdint>

namespace mltcp::socket {

/// Bytes. The kernel doubles what it is asked for, and reports that; without CAP_NET_ADMIN it gives net.core.rmem_max
/// at most, doubled.
inline constexpr std::uint32_t kMinBuffer = 1 << 20;
inline constexpr std::uint32_t kMaxBuffer = 64 << 20;

}  // namespace mltcp::socket
