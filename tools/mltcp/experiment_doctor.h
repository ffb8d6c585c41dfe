// For `mltcp doctor`: checks whether this machine can run `mltcp testbed`, `mltcp gen` and `mltcp gen --mpi`.
#pragma once

#include <span>
#include <vector>

#include "mltcp/dpdk/doctor.h"

namespace mltcp::tools {

/// Returns a check for each of `mltcp testbed`, `mltcp gen` and `mltcp gen --mpi`. A check names the first missing part
/// and how to get it. `machine` contains the results of dpdk::examine_machine() and check_udp(). The function tries
/// namespaces and MPI's module in child processes, so call it before the process has other threads. It reports problems
/// in the checks and does not throw.
std::vector<dpdk::Check> examine_experiments(std::span<const dpdk::Check> machine, std::span<const dpdk::Check> ports);

}  // namespace mltcp::tools
