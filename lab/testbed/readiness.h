// How a program tells the one that has started it that it is ready: by the datagram "READY=1" to the socket that
// NOTIFY_SOCKET names, the protocol of systemd's services (sd_notify(3)). What it prints stays for people.
#pragma once

#include <string>
#include <utility>

namespace mltcp::testbed {

/// Waits for one program. Its socket has an abstract name (unix(7)): it is in the network namespace that this process
/// was in, and leaves no file.
class Readiness {
 public:
  /// `name` is no other's in the namespace; up to 100 characters. Throws RunError.
  explicit Readiness(const std::string& name);
  ~Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  /// What the program needs in its environment.
  [[nodiscard]] std::pair<std::string, std::string> environment() const;
  /// Whether it has said so. Does not wait.
  [[nodiscard]] bool told();

 private:
  std::string name_;
  int socket_ = -1;
  bool told_ = false;
};

/// Tells it, where NOTIFY_SOCKET is set. Returns what is wrong if nobody could be told, otherwise nothing.
std::string tell_ready();

}  // namespace mltcp::testbed
