// Registers the host datapaths of this build (transport/host_datapath.h). No other experiment code names a host
// datapath.
#pragma once

namespace mltcp::experiment {

/// Registers the host datapaths so that open_host_datapath() can open them (cmake/datapaths.cpp.in). Only the first
/// call has an effect. Call from the program's first thread.
void register_datapaths_once();

}  // namespace mltcp::experiment
