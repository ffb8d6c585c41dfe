// Sockets for questions about queue pairs; see kernel_sockets.h.
#include "mltcp/rdma/kernel_sockets.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/transport/ethernet/ip_address.h"

namespace mltcp::rdma {
namespace {

union Name {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

socklen_t write_name(Name& name, const Address& address, std::uint32_t interface) {
  name = {};
  if (address.is_v4()) {
    name.v4.sin_family = AF_INET;
    name.v4.sin_port = htons(address.port);
    name.v4.sin_addr.s_addr = htonl(address.v4_ip());
    return sizeof name.v4;
  }
  name.v6.sin6_family = AF_INET6;
  name.v6.sin6_port = htons(address.port);
  std::memcpy(&name.v6.sin6_addr, address.ip.data(), address.ip.size());
  if (is_link_local(address)) name.v6.sin6_scope_id = interface;
  return sizeof name.v6;
}

Address read_name(const Name& name) {
  if (name.any.sa_family == AF_INET) return Address::v4(ntohl(name.v4.sin_addr.s_addr), ntohs(name.v4.sin_port));
  Address address;
  std::memcpy(address.ip.data(), &name.v6.sin6_addr, address.ip.size());
  address.port = ntohs(name.v6.sin6_port);
  return address;
}

}  // namespace

KernelSocket::KernelSocket(const Address& address, std::uint32_t interface)
    : file_(::socket(address.is_v4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      v4_(address.is_v4()),
      interface_(interface) {
  if (file_ < 0)
    throw RunError(
        fmt::format("cannot open a UDP socket ({}); raise the limit of open files (ulimit -n)", std::strerror(errno)));
  Name name;
  socklen_t size = write_name(name, address, interface);
  if (bind(file_, &name.any, size) != 0 || getsockname(file_, &name.any, &size) != 0) {
    const int error = errno;
    close(file_);
    const std::string place = to_text(address);
    if (error == EADDRINUSE)
      throw InputError(
          fmt::format("{}: another socket has this UDP port, which peers need to find the queue pair; end its process "
                      "(ss -ulnp names it), or give another port, e.g. by --udp-port",
                      place));
    if (error == EADDRNOTAVAIL)
      throw InputError(fmt::format("{0}: this machine has no such address; add it: ip addr add {1}/{2} dev IFACE",
                                   place, ip_text(address), v4_ ? 24 : 64));
    if (error == EACCES)
      throw InputError(fmt::format("{}: UDP ports below 1024 need privileges; give 49152 or more", place));
    throw RunError(fmt::format("{}: the UDP socket cannot be bound ({}); check whether e.g. a sandbox forbids it",
                               place, std::strerror(error)));
  }
  port_ = read_name(name).port;
}

KernelSocket::~KernelSocket() { close(file_); }

void KernelSocket::send(const Address& to, std::span<const std::byte> bytes) const {
  if (to.is_v4() != v4_) return;
  Name name;
  const socklen_t size = write_name(name, to, interface_);
  // If the kernel reports an ICMP error of an earlier datagram, it does not send this datagram. It reports each error
  // once, so try again.
  if (sendto(file_, bytes.data(), bytes.size(), MSG_DONTWAIT, &name.any, size) < 0 && errno == ECONNREFUSED)
    sendto(file_, bytes.data(), bytes.size(), MSG_DONTWAIT, &name.any, size);
}

std::optional<KernelSocket::Received> KernelSocket::receive(std::span<std::byte> into) const {
  Name name{};
  socklen_t size = sizeof name;
  ssize_t got = recvfrom(file_, into.data(), into.size(), MSG_DONTWAIT | MSG_TRUNC, &name.any, &size);
  if (got < 0 && errno != EAGAIN)
    got = recvfrom(file_, into.data(), into.size(), MSG_DONTWAIT | MSG_TRUNC, &name.any, &size);
  if (got < 0) return std::nullopt;
  return Received{read_name(name), static_cast<std::size_t>(got)};
}

}  // namespace mltcp::rdma
