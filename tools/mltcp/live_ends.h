// What a command that runs for long shows of itself: a control socket for `mltcp top`, and metrics where they are asked
// for.
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

/// What --metrics says; none where it is not given. Throws InputError; warns where others reach it.
std::optional<live::MetricsAddress> metrics_of(const std::optional<std::string>& given);

class LiveEnds {
 public:
  /// `kind` is "gen" or "switch". A control socket that can't be made is a warning; metrics that can't be served are a
  /// RunError. `exchange` outlives it.
  LiveEnds(const std::string& kind, live::Exchange& exchange, const std::optional<live::MetricsAddress>& metrics);

 private:
  std::unique_ptr<live::ControlSocket> socket_;
  std::unique_ptr<live::MetricsServer> metrics_;
};

}  // namespace mltcp::tools
