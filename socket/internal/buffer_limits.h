// Limits of the socket buffer sizes that ports and the doctor request. Not installed.
#pragma once

#include <cstdint>

namespace mltcp::socket {

/// Smallest and largest requested size in bytes. The kernel doubles the requested size, and reports the doubled size.
/// Without CAP_NET_ADMIN it grants at most twice net.core.rmem_max.
inline constexpr std::uint32_t kMinBuffer = 1 << 20;
inline constexpr std::uint32_t kMaxBuffer = 64 << 20;

}  // namespace mltcp::socket
