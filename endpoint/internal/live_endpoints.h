// Shows the endpoints of this process to `mltcp top` and Prometheus. All endpoints share one control socket and one
// port. The first endpoint opens them, if MLTCP_LIVE and MLTCP_METRICS request them. They stay open until the process
// ends.
#pragma once

#include <memory>

namespace mltcp::endpoint {

class Core;

/// Throws InputError or RunError if MLTCP_LIVE or MLTCP_METRICS is wrong, or if a server cannot start.
void show_endpoint(const std::shared_ptr<Core>& core);

}  // namespace mltcp::endpoint
