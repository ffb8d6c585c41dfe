// For `mltcp doctor`: whether this machine can run `mltcp testbed`, `mltcp gen` and `mltcp gen --mpi`.
#pragma once

#include <span>
#include <vector>

#include "mltcp/dpdk/doctor.h"

namespace mltcp::tools {

/// A check for each of the three, with the first missing part and its cure. `machine` contains the results of
/// dpdk::examine_machine() and check_udp(). Namespaces and MPI's module are tried in child processes, so call it
/// without threads. Problems are returned, not thrown.
std::vector<dpdk::Check> examine_experiments(std::span<const dpdk::Check> machine, std::span<const dpdk::Check> ports);

}  // namespace mltcp::tools
