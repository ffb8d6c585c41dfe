// Serves snapshots to Prometheus over HTTP. A module that is loaded on demand contains prometheus-cpp, for the text
// format, and libmicrohttpd, the HTTP server. So programs that serve no metrics do not need these packages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live {

/// Address at which metrics are served.
struct MetricsAddress {
  std::string host;  ///< an IP address, without brackets
  std::uint16_t port = 0;
  bool is_loopback = true;  ///< true if only this machine can connect

  /// Reads "9470", which means 127.0.0.1:9470, or a host and a port, such as "127.0.0.1:9470" or "[::1]:9470". Throws
  /// InputError whose message begins with `what`, the name of the option or variable.
  static MetricsAddress parse(std::string_view what, std::string_view text);
  [[nodiscard]] std::string text() const;
};

class MetricsServer {
 public:
  /// Called by the server's own thread for requests. Returns nothing if there is no snapshot at this time.
  using Look = std::function<std::optional<Snapshot>()>;

  /// Serves GET /metrics until the server is destroyed. Throws RunError if the port is in use or the module cannot be
  /// loaded. The message is one line that begins with `what`.
  MetricsServer(std::string_view what, const MetricsAddress& address, Look look);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

 private:
  struct Module;
  const Look look_;
  std::unique_ptr<Module> module_;
};

}  // namespace mltcp::live
