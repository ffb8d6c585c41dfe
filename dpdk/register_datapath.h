// DPDK ports as host datapaths that can be opened by name (transport/host_datapath.h).
#pragma once

namespace mltcp::dpdk {

/// Makes open_host_datapath() open ports by the names of port_name.h, with an Eal, a Port and a PortHost each. Any
/// number can be open at a time, on a device each; they share the one DPDK of the process (eal.h).
void register_datapath();

}  // namespace mltcp::dpdk
