// Checks of sockets, kernel TCP and RDMA devices on this machine, for `mltcp doctor`.
#pragma once

#include <string>

#include "mltcp/dpdk/doctor.h"

namespace mltcp::tools {

/// Name of the next check.
inline constexpr const char* kUdpCheck = "UDP sockets";
/// Whether the kernel's UDP sockets can be used, as part of the machine's checks.
dpdk::Check check_udp();
/// Whether MLTCP for the kernel's own TCP is loaded, or can be.
dpdk::Check check_kernel_tcp();

#if MLTCP_HAS_VERBS
/// Whether RDMA devices can be used. Replaces `found`, which only shows whether there are any.
dpdk::Check check_verbs(const dpdk::Check& found);
/// Opens and checks a port verbs:... . Throws InputError if the name is invalid.
dpdk::Check check_verbs_port(const std::string& device);
#endif

}  // namespace mltcp::tools
