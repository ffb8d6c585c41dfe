// Ports as a host's datapath that is opened by name (transport/host_datapath.h).
#pragma once

namespace mltcp::dpdk {

/// Has open_host_datapath() open ports, by the names of port_name.h: an Eal, a Port and a PortHost each. DPDK starts
/// once in a process, and so one such datapath can be opened.
void register_datapath();

}  // namespace mltcp::dpdk
