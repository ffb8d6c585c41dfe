// What `mltcp testbed`, `mltcp gen` and `mltcp gen --mpi` find on this machine, for `mltcp doctor`.
#pragma once

#include <span>
#include <string>
#include <vector>

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

/// A check for each of the three, with the first lack and its cure. `machine` is what dpdk::examine_machine() and
/// check_udp() have found. Namespaces and MPI's module are tried in child processes; call it without threads. Never
/// throws for what it finds.
std::vector<dpdk::Check> examine_experiments(std::span<const dpdk::Check> machine, std::span<const dpdk::Check> ports);

}  // namespace mltcp::tools
