// Publishes the live state of a long-running command: through a control socket for `mltcp top`, and as metrics if
// --metrics is given.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/live/control_socket.h"
#include "mltcp/endpoint/live/exchange.h"
#include "mltcp/endpoint/live/metrics.h"

namespace mltcp::tools {

/// The help text of option --metrics.
inline constexpr const char* kMetricsHelp =
    "Serve metrics for Prometheus at this port, on the loopback, or at IP:PORT (docs/how-to/metrics.md)";

/// Returns the address that --metrics names; nothing if the option is not given. Throws InputError if the address is
/// invalid. Warns if other machines can reach the address.
std::optional<live::MetricsAddress> metrics_of(const std::optional<std::string>& given);

class LiveEnds {
 public:
  /// Opens the control socket and serves the metrics. `kind` is "gen" or "switch". Warns if the control socket cannot
  /// be opened. Throws RunError if the metrics cannot be served. `exchange` must outlive this object.
  LiveEnds(const std::string& kind, live::Exchange& exchange, const std::optional<live::MetricsAddress>& metrics);

 private:
  std::unique_ptr<live::ControlSocket> socket_;
  std::unique_ptr<live::MetricsServer> metrics_;
};

}  // namespace mltcp::tools
