// Registers the kernel's UDP sockets as a host datapath, which programs open by name (transport/host_datapath.h).
#pragma once

namespace mltcp::socket {

/// Makes open_host_datapath() open "udp:" devices (udp_name.h).
void register_datapath();

}  // namespace mltcp::socket
