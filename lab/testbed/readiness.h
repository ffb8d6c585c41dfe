// Lets a program tell the process that started it that the program is ready. The program sends the datagram "READY=1"
// to the socket that NOTIFY_SOCKET names, as systemd's services do (sd_notify(3)). So the parent process need not parse
// the program's output, which is for people.
#pragma once

#include <string>
#include <utility>

namespace mltcp::testbed {

/// Waits until one program is ready. The socket has an abstract name (unix(7)), so it belongs to the network namespace
/// in which it was made, and no file remains.
class Readiness {
 public:
  /// `name` must be unique in the network namespace and have at most 100 characters. Throws RunError if the socket
  /// cannot be created.
  explicit Readiness(const std::string& name);
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// Returns the name and the value of the environment variable with which the program must be started.
  [[nodiscard]] std::pair<std::string, std::string> environment() const;
  /// Returns whether the program has reported that it is ready. Does not wait.
  [[nodiscard]] bool reported();

 private:
  std::string name_;
  int socket_ = -1;
  bool reported_ = false;
};

/// Reports that this program is ready, if NOTIFY_SOCKET is set. Returns the error, or an empty text if there is none.
std::string report_ready();

}  // namespace mltcp::testbed
