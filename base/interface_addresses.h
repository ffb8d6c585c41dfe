// The addresses of the kernel's interfaces, in the network namespace of the calling thread: getifaddrs(3).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

struct sockaddr;

namespace mltcp {

using IpBytes = std::array<std::uint8_t, 16>;  ///< network byte order; IPv4 as ::ffff:a.b.c.d

struct InterfaceAddress {
  std::string interface;
  IpBytes ip;
  bool is_up = false;
  bool is_loopback = false;  ///< whether the interface is the loopback
};

/// Returns all IPv4 and IPv6 addresses in the kernel's order. If the query fails, returns an empty list and sets errno.
std::vector<InterfaceAddress> interface_addresses();

/// Returns the IP address in `name`; empty if `name` is null or of a family other than IPv4 and IPv6.
std::optional<IpBytes> ip_of(const sockaddr* name);

}  // namespace mltcp
