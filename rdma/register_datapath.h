// The verbs of RDMA devices as a host's datapath that is opened by name (transport/host_datapath.h).
#pragma once

namespace mltcp::rdma {

/// Has open_host_datapath() open verbs:, by the names of verbs_name.h.
void register_datapath();

}  // namespace mltcp::rdma
