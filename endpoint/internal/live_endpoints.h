// Shows the endpoints of this process to `mltcp top` and Prometheus: one control socket and one port for all of them.
// They are opened with the first endpoint if MLTCP_LIVE and MLTCP_METRICS ask for it, and stay until the process ends.
#pragma once

#include <memory>

namespace mltcp::endpoint {

class Core;

/// Throws InputError or RunError if the variables are wrong or cannot be obeyed.
void show_endpoint(const std::shared_ptr<Core>& core);

}  // namespace mltcp::endpoint
