#include "mltcp/endpoint/host_addresses.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::endpoint {
namespace {

bool address_from(const sockaddr* from, Address& out) {
  if (from == nullptr) return false;
  if (from->sa_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, from, sizeof address);
    out = Address::v4(ntohl(address.sin_addr.s_addr), 0);
    return true;
  }
  if (from->sa_family != AF_INET6) return false;
  sockaddr_in6 address{};
  std::memcpy(&address, from, sizeof address);
  std::memcpy(out.ip.data(), &address.sin6_addr, out.ip.size());
  out.port = 0;
  return !IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr);
}

}  // namespace

std::vector<Interface> list_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0)
    throw RunError(fmt::format("the kernel lists no interfaces: {}; set MLTCP_ADDRESS", std::strerror(errno)));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::vector<Interface> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    Interface interface;
    if ((one->ifa_flags & IFF_UP) == 0 || !address_from(one->ifa_addr, interface.address)) continue;
    interface.name = one->ifa_name;
    interface.loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    found.push_back(interface);
  }
  std::stable_partition(found.begin(), found.end(), [](const Interface& one) { return one.address.is_v4(); });
  return found;
}

std::string to_text(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& one : interfaces)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.name, ip_text(one.address));
  return text.empty() ? "none" : text;
}

std::string ip_text(const Address& address) {
  std::string text = ::mltcp::to_text(address);
  text.resize(text.rfind(':'));
  return text;
}

Address resolve_host(const std::string& name) {
  try {
    Address address = Address::parse(name, 0);
    address.port = 0;
    return address;
  } catch (const InputError&) {
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  Address address;
  for (const addrinfo* one = error == 0 ? found : nullptr; one != nullptr; one = one->ai_next)
    if (address_from(one->ai_addr, address)) return address;
  throw InputError(
      fmt::format("host {} stands for no address ({}); set MLTCP_ADDRESS to this host's IP address on the training "
                  "network, or MLTCP_DEVICE to its interface, as in udp:eth0",
                  in_quotes(name), error == 0 ? "it has none that can be used" : gai_strerror(error)));
}

Address address_of_interface(const std::string& name, const std::vector<Interface>& interfaces) {
  for (const Interface& one : interfaces)
    if (one.name == name) return one.address;
  if (if_nametoindex(name.c_str()) != 0)
    throw InputError(
        fmt::format("interface {} is down or has no IP address; bring it up and give it one (ip addr add "
                    "ADDRESS/24 dev {}), or take one of these: {}",
                    in_quotes(name), name, to_text(interfaces)));
  throw InputError(
      fmt::format("this machine has no interface {}; take one of these: {}", in_quotes(name), to_text(interfaces)));
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

int speed_mbps(const std::string& interface) {
  if (interface.empty() || interface.find('/') != std::string::npos) return 0;
  std::ifstream file("/sys/class/net/" + interface + "/speed");
  int speed = 0;
  return file >> speed && speed > 0 ? speed : 0;
}

}  // namespace mltcp::endpoint
