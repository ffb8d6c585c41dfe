// The endpoints of this process, for `mltcp top` and Prometheus: one control socket and one port for all of them, made
// with the first where MLTCP_LIVE and MLTCP_METRICS ask for it, and there until the process ends.
#pragma once

#include <memory>

namespace mltcp::endpoint {

class Core;

/// Throws InputError or RunError, as the variables say.
void show_endpoint(const std::shared_ptr<Core>& core);

}  // namespace mltcp::endpoint
