// One process an interface. Kernels let several listen on one, and these then find no neighbour in each other, as what
// one sends the other doesn't hear. So who opens a port on an interface claims it first.
//
// The claim is a Unix socket with an abstract name (unix(7)) that has the interface's number in it: such names belong
// to a network namespace, like interfaces, and go with the process, however it ends.
#pragma once

#include <sys/types.h>

#include <string>

namespace mltcp::dpdk {

class InterfaceClaim {
 public:
  /// Of an interface of this network namespace. Where the kernel has no such sockets, nothing is claimed, and nobody is
  /// told off; nor is anybody by a claim of a user who could not open a port there (neither root nor this one).
  explicit InterfaceClaim(const std::string& interface);
  ~InterfaceClaim();
  InterfaceClaim(const InterfaceClaim&) = delete;
  InterfaceClaim& operator=(const InterfaceClaim&) = delete;

  [[nodiscard]] bool is_ours() const { return ours_; }
  /// Otherwise: number of the process that has it; 0 if it can't be told, as from within a container.
  [[nodiscard]] pid_t holder() const { return holder_; }
  /// "process 4711 (mltcp)", or "another process".
  [[nodiscard]] std::string holder_text() const;

 private:
  int socket_ = -1;
  bool ours_ = true;
  pid_t holder_ = 0;
};

}  // namespace mltcp::dpdk
