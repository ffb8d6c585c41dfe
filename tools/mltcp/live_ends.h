// Live state of a long-running command: a control socket for `mltcp top`, and metrics on request.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/live/control_socket.h"
#include "mltcp/endpoint/live/exchange.h"
#include "mltcp/endpoint/live/metrics.h"

namespace mltcp::tools {

/// The help of --metrics.
inline constexpr const char* kMetricsHelp =
    "Serve metrics for Prometheus at this port, on the loopback, or at IP:PORT (docs/how-to/metrics.md)";

/// The address of --metrics; none if it is not given. Throws InputError. Warns if other machines can reach it.
std::optional<live::MetricsAddress> metrics_of(const std::optional<std::string>& given);

class LiveEnds {
 public:
  /// `kind` is "gen" or "switch". Warns if the control socket cannot be opened; throws RunError if metrics cannot be
  /// served. `exchange` must outlive it.
  LiveEnds(const std::string& kind, live::Exchange& exchange, const std::optional<live::MetricsAddress>& metrics);

 private:
  std::unique_ptr<live::ControlSocket> socket_;
  std::unique_ptr<live::MetricsServer> metrics_;
};

}  // namespace mltcp::tools
