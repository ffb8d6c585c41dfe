// Ensures that at most one process uses an interface. The kernel lets several processes listen on an interface. But
// packets sent by one of these processes do not arrive at the others, so the processes could not reach each other.
// Therefore a process claims an interface before it opens a port.
//
// The claim is a Unix socket with an abstract name (unix(7)) that contains the interface's index. Abstract names belong
// to a network namespace, like interfaces, and vanish with the process.
#pragma once

#include <sys/types.h>

#include <string>

namespace mltcp::dpdk {

class InterfaceClaim {
 public:
  /// Claims an interface of this network namespace. Has no effect if the kernel lacks Unix sockets with abstract names.
  /// Ignores claims of users other than root and this user, because those users could not open a port on the interface.
  explicit InterfaceClaim(const std::string& interface);
  ~InterfaceClaim();
  InterfaceClaim(const InterfaceClaim&) = delete;
  InterfaceClaim& operator=(const InterfaceClaim&) = delete;

  [[nodiscard]] bool is_ours() const { return ours_; }
  /// If the claim failed, returns the process id of the holder. 0 if it cannot be determined, for example from within a
  /// container.
  [[nodiscard]] pid_t holder() const { return holder_; }
  /// Describes the holder, such as "process 4711 (mltcp)", or "another process" if the process id is not known.
  [[nodiscard]] std::string holder_text() const;

 private:
  int socket_ = -1;
  bool ours_ = true;
  pid_t holder_ = 0;
};

}  // namespace mltcp::dpdk
