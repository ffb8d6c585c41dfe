#include "mltcp/plugins/nccl/interfaces.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::nccl {
namespace {

constexpr std::size_t kMostDevices = 16;

bool address_of(const sockaddr* from, Address& out) {
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

std::string ip_text(const Address& address) {
  std::string text = to_text(address);
  text.resize(text.rfind(':'));
  return text;
}

std::string list(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& one : interfaces)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.name, ip_text(one.address));
  return text.empty() ? "none" : text;
}

/// An IP address, or what the name stands for.
Address resolve(const std::string& name) {
  try {
    Address address = Address::parse(name, 0);
    address.port = 0;
    return address;
  } catch (const InputError&) {
  }
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), nullptr, nullptr, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  Address address;
  for (const addrinfo* one = error == 0 ? found : nullptr; one != nullptr; one = one->ai_next)
    if (address_of(one->ai_addr, address)) return address;
  throw InputError(
      fmt::format("MLTCP_ADDRESS is {}, which is no address and no host that is known; give the IP address of this "
                  "host on the training network",
                  in_quotes(name)));
}

std::string interface_with(const Address& address, const std::vector<Interface>& interfaces) {
  for (const Interface& one : interfaces)
    if (one.address == address) return one.name;
  return "";
}

DevicePlan plan_of(std::string device, const Address& address, std::string interface) {
  DevicePlan plan{interface.empty() ? "mltcp" : interface, std::move(device), address, std::move(interface)};
  return plan;
}

/// Of what stands behind "udp:" without MLTCP_ADDRESS: an interface, or an address.
DevicePlan kernel_device(const std::string& device, const std::vector<Interface>& interfaces) {
  const std::string where = device.substr(device.find(':') + 1);
  for (const Interface& one : interfaces)
    if (one.name == where) return plan_of(device, one.address, one.name);
  try {
    Address address = Address::parse(where, 0);
    address.port = 0;
    return plan_of(device, address, interface_with(address, interfaces));
  } catch (const InputError&) {
  }
  throw InputError(
      fmt::format("MLTCP_DEVICE is {}, and {} is no interface that is up and has an address; take one of "
                  "these: {}",
                  in_quotes(device), in_quotes(where), list(interfaces)));
}

DevicePlan named_device(const Settings& settings, const std::vector<Interface>& interfaces) {
  const std::string device = settings.device.empty() ? "udp:" : settings.device;
  if (!settings.address.empty()) {
    const Address address = resolve(settings.address);
    return plan_of(device, address, interface_with(address, interfaces));
  }
  if (device.starts_with("udp:")) return kernel_device(device, interfaces);
  throw InputError(
      fmt::format("MLTCP_DEVICE is {}, which has no address of its own; set MLTCP_ADDRESS to the one that "
                  "peers reach it at",
                  in_quotes(device)));
}

bool of_containers(const std::string& name) {
  return name.starts_with("docker") || name.starts_with("virbr") || name.starts_with("veth");
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
    if ((one->ifa_flags & IFF_UP) == 0 || !address_of(one->ifa_addr, interface.address)) continue;
    interface.name = one->ifa_name;
    interface.loopback = (one->ifa_flags & IFF_LOOPBACK) != 0;
    found.push_back(interface);
  }
  std::stable_partition(found.begin(), found.end(), [](const Interface& one) { return one.address.is_v4(); });
  return found;
}

std::vector<DevicePlan> choose_devices(const Settings& settings, const std::vector<Interface>& interfaces) {
  if (!settings.address.empty() || (!settings.device.empty() && settings.device != "udp:"))
    return {named_device(settings, interfaces)};
  std::vector<DevicePlan> plans;
  const auto add = [&plans](const Interface& one) {
    const auto same = [&one](const DevicePlan& plan) { return plan.interface == one.name; };
    if (plans.size() < kMostDevices && std::ranges::none_of(plans, same))
      plans.push_back(plan_of("udp:" + one.name, one.address, one.name));
  };
  for (const Interface& one : interfaces)
    if (!one.loopback && !of_containers(one.name)) add(one);
  if (!plans.empty()) return plans;
  for (const Interface& one : interfaces)
    if (one.loopback) add(one);
  if (plans.empty())
    throw InputError(
        "no interface of this host is up and has an address; bring one up, or set MLTCP_DEVICE and "
        "MLTCP_ADDRESS");
  return plans;
}

int speed_mbps(const std::string& interface) {
  constexpr int usual = 10'000;
  if (interface.empty()) return usual;
  std::ifstream file("/sys/class/net/" + interface + "/speed");
  int speed = 0;
  return file >> speed && speed > 0 ? speed : usual;
}

std::string pci_path(const std::string& interface) {
  if (interface.empty()) return "";
  std::error_code error;
  const auto path = std::filesystem::canonical("/sys/class/net/" + interface + "/device", error);
  return error || path.string().find("/pci") == std::string::npos ? "" : path.string();
}

}  // namespace mltcp::nccl
