// How DPDK ends. Internal to this folder.
#pragma once

namespace mltcp::dpdk {

/// Has the Eal leave DPDK's memory to the end of the process. DPDK 22.11 can't end its interrupt thread, and
/// rte_eal_cleanup() unmaps memory in which that thread may still read what drivers have registered for their files:
/// the process then ends with a segmentation fault now and then. Called before a port of such a driver is made.
void leave_memory_to_exit() noexcept;

}  // namespace mltcp::dpdk
