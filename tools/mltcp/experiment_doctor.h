// What `mltcp testbed`, `mltcp gen` and `mltcp gen --mpi` find on this machine, for `mltcp doctor`.
#pragma once

#include <span>
#include <vector>

#include "mltcp/dpdk/doctor.h"

namespace mltcp::tools {

/// A check for each of the three, with the first lack and its cure. `machine` is what dpdk::examine_machine() and
/// check_udp() have found. Namespaces and MPI's module are tried in child processes; call it without threads. Never
/// throws for what it finds.
std::vector<dpdk::Check> examine_experiments(std::span<const dpdk::Check> machine, std::span<const dpdk::Check> ports);

}  // namespace mltcp::tools
