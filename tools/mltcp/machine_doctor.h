// What sockets, kernel TCP and RDMA devices give on this machine, for `mltcp doctor`.
#pragma once

#include <string>

#include "mltcp/dpdk/doctor.h"

namespace mltcp::tools {

/// What the next is called.
inline constexpr const char* kUdpCheck = "UDP sockets";
/// What the kernel's UDP sockets give here, as part of the machine.
dpdk::Check check_udp();
/// Whether there is MLTCP for the kernel's own TCP, or can be.
dpdk::Check check_kernel_tcp();

#if MLTCP_HAS_VERBS
/// What RDMA devices give: in place of `found`, which has only seen whether there are any.
dpdk::Check check_verbs(const dpdk::Check& found);
/// Of a port verbs:..., which is opened. Throws InputError if it can't be read.
dpdk::Check check_verbs_port(const std::string& device);
#endif

}  // namespace mltcp::tools
