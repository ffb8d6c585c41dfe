// The datapaths that this build has: the one place that names them (transport/host_datapath.h).
#pragma once

namespace mltcp::experiment {

/// Has open_host_datapath() know them all. From the program's first thread.
void register_datapaths();

}  // namespace mltcp::experiment
