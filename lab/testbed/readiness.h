// Reports that a program is ready to the process that started it: by the datagram "READY=1" to the socket that
// NOTIFY_SOCKET names, the protocol of systemd's services (sd_notify(3)). So the program's output is for people only.
#pragma once

#include <string>
#include <utility>

namespace mltcp::testbed {

/// Waits for one program. Its socket has an abstract name (unix(7)): it belongs to the network namespace in which it
/// was made, and leaves no file.
class Readiness {
 public:
  /// `name` must be unique in the namespace; up to 100 characters. Throws RunError.
  explicit Readiness(const std::string& name);
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// The environment variable that the program needs.
  [[nodiscard]] std::pair<std::string, std::string> environment() const;
  /// Whether the program is ready. Does not wait.
  [[nodiscard]] bool told();

 private:
  std::string name_;
  int socket_ = -1;
  bool told_ = false;
};

/// Reports that this program is ready, if NOTIFY_SOCKET is set. Returns the error if that failed, otherwise nothing.
std::string tell_ready();

}  // namespace mltcp::testbed
