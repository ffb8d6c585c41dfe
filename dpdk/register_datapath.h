// DPDK ports as a host datapath that is opened by name (transport/host_datapath.h).
#pragma once

namespace mltcp::dpdk {

/// Makes open_host_datapath() open DPDK ports (names: port_name.h). Any number of these ports can be open at a time,
/// each on its own device. All ports share the process's DPDK instance (eal.h).
void register_datapath();

}  // namespace mltcp::dpdk
