// Limits of requested socket buffers, for ports and for the doctor. Not installed.
#pragma once

#include <cstdint>

namespace mltcp::socket {

/// In bytes. The kernel doubles the requested size, and reports the doubled size; without CAP_NET_ADMIN it grants at
/// most net.core.rmem_max, doubled.
inline constexpr std::uint32_t kMinBuffer = 1 << 20;
inline constexpr std::uint32_t kMaxBuffer = 64 << 20;

}  // namespace mltcp::socket
