// Claims of interfaces (see interface_claim.h).
#include "mltcp/dpdk/interface_claim.h"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>

#include "mltcp/base/text.h"

namespace mltcp::dpdk {

InterfaceClaim::InterfaceClaim(const std::string& interface) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) return;  // the interface does not exist; opening the port reports that
  const std::string name = fmt::format("mltcp-interface-{}", index);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // the leading zero byte makes the name abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return;
  if (bind(socket_, generic, size) == 0) {
    // This socket never accepts a connection. At worst, processes that connect and disconnect fill its queue.
    constexpr int asking = 128;
    listen(socket_, asking);
    return;
  }
  if (errno != EADDRINUSE) return;
  // A socket that does not listen, or does not exist, is no valid claim.
  if (connect(socket_, generic, size) != 0) return;
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return;
  // The user of that process cannot open the interface, so its claim is ignored.
  if (peer.uid != 0 && peer.uid != geteuid()) return;
  holder_ = peer.pid;
  ours_ = false;
}

InterfaceClaim::~InterfaceClaim() {
  if (socket_ >= 0) close(socket_);
}

std::string InterfaceClaim::holder_text() const {
  if (holder_ <= 0) return "another process";
  std::ifstream file(fmt::format("/proc/{}/comm", holder_));
  std::string command;
  std::getline(file, command);
  return command.empty() ? fmt::format("process {}", holder_)
                         : fmt::format("process {} ({})", holder_, one_line(command));
}

}  // namespace mltcp::dpdk
