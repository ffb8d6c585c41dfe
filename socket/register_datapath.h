// The kernel's UDP sockets as a host's datapath that is opened by name (transport/host_datapath.h).
#pragma once

namespace mltcp::socket {

/// Has open_host_datapath() open udp:, by the names of udp_name.h.
void register_datapath();

}  // namespace mltcp::socket
