// Registers the verbs of RDMA devices as a host datapath, which programs open by name (transport/host_datapath.h).
#pragma once

namespace mltcp::rdma {

/// Makes open_host_datapath() open "verbs:" devices (verbs_name.h).
void register_datapath();

}  // namespace mltcp::rdma
