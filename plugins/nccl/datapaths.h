// The datapaths that the plug-in can open.
#pragma once

namespace mltcp::nccl {

/// Registers those of this build. Any thread.
void register_datapaths_once();

}  // namespace mltcp::nccl
