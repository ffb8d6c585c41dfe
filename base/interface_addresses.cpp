#include "mltcp/base/interface_addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace mltcp {

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> all;
  errno = 0;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return all;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (const auto ip = ip_of(entry->ifa_addr))
      all.push_back({.interface = entry->ifa_name,
                     .ip = *ip,
                     .is_up = (entry->ifa_flags & IFF_UP) != 0,
                     .is_loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return all;
}

std::optional<IpBytes> ip_of(const sockaddr* name) {
  IpBytes ip{};
  if (name != nullptr && name->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, name, sizeof v4);
    ip[10] = ip[11] = 0xFF;
    std::memcpy(&ip[12], &v4.sin_addr, sizeof v4.sin_addr);
  } else if (name != nullptr && name->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, name, sizeof v6);
    std::memcpy(ip.data(), &v6.sin6_addr, ip.size());
  } else {
    return std::nullopt;
  }
  return ip;
}

}  // namespace mltcp
