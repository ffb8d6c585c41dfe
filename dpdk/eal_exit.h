// Shutdown of DPDK. Internal to this folder.
#pragma once

namespace mltcp::dpdk {

/// Makes the Eal keep DPDK's memory until process exit. DPDK 22.11 cannot stop its interrupt thread, and
/// rte_eal_cleanup() unmaps memory in which that thread may still read what drivers have registered, which sometimes
/// crashes the process. Call before a port with such a driver is created.
void leave_memory_to_exit() noexcept;

}  // namespace mltcp::dpdk
