#include "mltcp/endpoint/host_addresses.h"

#include <fmt/format.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "mltcp/base/error.h"
#include "mltcp/base/interface_addresses.h"
#include "mltcp/base/text.h"

namespace mltcp::endpoint {
namespace {

/// Returns the address with port 0; none for link-local IPv6 addresses.
std::optional<Address> address_from(const std::optional<IpBytes>& ip) {
  if (!ip || ((*ip)[0] == 0xFE && ((*ip)[1] & 0xC0) == 0x80)) return std::nullopt;  // link-local: RFC 4291 section 2.4
  return Address{.ip = *ip};
}

}  // namespace

std::vector<Interface> list_interfaces() {
  const std::vector<InterfaceAddress> all = interface_addresses();
  if (all.empty() && errno != 0)
    throw RunError(fmt::format("the kernel lists no interfaces: {}; set MLTCP_ADDRESS", std::strerror(errno)));
  std::vector<Interface> found;
  for (const InterfaceAddress& one : all)
    if (const auto address = address_from(one.ip); address && one.is_up)
      found.push_back({one.interface, *address, one.is_loopback});
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
  for (const addrinfo* one = error == 0 ? found : nullptr; one != nullptr; one = one->ai_next)
    if (const auto address = address_from(ip_of(one->ai_addr))) return *address;
  throw InputError(
      fmt::format("host name {} has no address ({}); set MLTCP_ADDRESS to this host's IP address on the training "
                  "network, or MLTCP_DEVICE to its interface, e.g. udp:eth0",
                  in_quotes(name), error == 0 ? "none that can be used" : gai_strerror(error)));
}

Address address_of_interface(const std::string& name, const std::vector<Interface>& interfaces) {
  for (const Interface& one : interfaces)
    if (one.name == name) return one.address;
  if (if_nametoindex(name.c_str()) != 0)
    throw InputError(
        fmt::format("interface {} is down or has no IP address; bring it up and give it one (ip addr add ADDRESS/24 "
                    "dev {}), or use one of these: {}",
                    in_quotes(name), name, to_text(interfaces)));
  throw InputError(
      fmt::format("this machine has no interface {}; use one of these: {}", in_quotes(name), to_text(interfaces)));
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
