// The datapaths that the plug-in can open.
#pragma once

namespace mltcp::nccl {

/// Registers the datapaths of this build. May be called from any thread.
void register_datapaths_once();

}  // namespace mltcp::nccl
