// Serves snapshots to Prometheus over HTTP. The text format comes from prometheus-cpp and the HTTP server from
// libmicrohttpd, in a module that is loaded on demand: other programs don't need these packages.
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
  bool is_loopback = true;  ///< only this machine can connect

  /// "9470", which is 127.0.0.1:9470, "127.0.0.1:9470" or "[::1]:9470". Throws InputError that begins with `what`, the
  /// name of the option or variable.
  static MetricsAddress parse(std::string_view what, std::string_view text);
  [[nodiscard]] std::string text() const;
};

class MetricsServer {
 public:
  /// Called for requests, by the server's own thread; nothing if there is no snapshot at this time.
  using Look = std::function<std::optional<Snapshot>()>;

  /// Serves GET /metrics until it is destroyed. Throws RunError, one line that begins with `what`, if the port is in
  /// use or the module cannot be loaded.
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
