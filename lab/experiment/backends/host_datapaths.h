// Registers the host datapaths of this build; the only place that names them (transport/host_datapath.h).
#pragma once

namespace mltcp::experiment {

/// Registers them for open_host_datapath() (cmake/datapaths.cpp.in); only the first call has an effect. Call from the
/// program's first thread.
void register_datapaths_once();

}  // namespace mltcp::experiment
