// Snapshots for Prometheus, over HTTP when asked. The text format is prometheus-cpp's and the HTTP server
// libmicrohttpd, in a module that is loaded then: programs that are never asked don't need the packages.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live {

/// Where metrics are served.
struct MetricsAddress {
  std::string host;  ///< an IP address, without brackets
  std::uint16_t port = 0;
  bool is_loopback = true;  ///< nobody else reaches it

  /// "9470", which is 127.0.0.1:9470, "127.0.0.1:9470" or "[::1]:9470". Throws InputError, with `what`, the option or
  /// variable.
  static MetricsAddress parse(std::string_view what, std::string_view text);
  [[nodiscard]] std::string text() const;
};

class MetricsServer {
 public:
  /// Called by a thread of its own, for requests; nothing if there is no snapshot just now.
  using Look = std::function<std::optional<Snapshot>()>;

  /// Serves GET /metrics until it is destroyed. Throws RunError, one line that begins with `what`: the port is in use,
  /// the module can't be loaded.
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
