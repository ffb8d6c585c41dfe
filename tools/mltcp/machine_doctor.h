// Checks of sockets, kernel TCP and RDMA devices on this machine, for `mltcp doctor`.
#pragma once

#include <string>

#include "mltcp/dpdk/doctor.h"

namespace mltcp::tools {

/// Name of the check that check_udp() returns.
inline constexpr const char* kUdpCheck = "UDP sockets";
/// Checks whether this machine can use the kernel's UDP sockets.
dpdk::Check check_udp();
/// Checks whether MLTCP for the kernel's TCP is loaded or can be loaded.
dpdk::Check check_kernel_tcp();

#if MLTCP_HAS_VERBS
/// Checks whether this machine can use RDMA devices. `found` is the result of dpdk::examine_machine(), which only shows
/// whether devices exist.
dpdk::Check check_verbs(const dpdk::Check& found);
/// Opens and checks a port with a name verbs:... . Throws InputError if the name is invalid.
dpdk::Check check_verbs_port(const std::string& device);
#endif

}  // namespace mltcp::tools
