#include "mltcp/plugins/nccl/interfaces.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::nccl {
namespace {

constexpr std::size_t kMaxDevices = 16;

std::string interface_with(const Address& address, const std::vector<Interface>& interfaces) {
  for (const Interface& one : interfaces)
    if (one.address == address) return one.name;
  return "";
}

DevicePlan plan_of(std::string device, const Address& address, std::string interface) {
  DevicePlan plan{interface.empty() ? "mltcp" : interface, std::move(device), address, std::move(interface)};
  return plan;
}

/// Returns the plan of the device "udp:INTERFACE" or "udp:ADDRESS". Used if MLTCP_ADDRESS is not set.
DevicePlan kernel_device(const std::string& device, const std::vector<Interface>& interfaces) {
  const std::string where = device.substr(device.find(':') + 1);
  try {
    Address address = Address::parse(where, 0);
    address.port = 0;
    return plan_of(device, address, interface_with(address, interfaces));
  } catch (const InputError&) {
  }
  try {
    return plan_of(device, endpoint::address_of_interface(where, interfaces), where);
  } catch (const InputError& error) {
    throw InputError(fmt::format("MLTCP_DEVICE is {}: {}", in_quotes(device), error.what()));
  }
}

DevicePlan named_device(const Settings& settings, const std::vector<Interface>& interfaces) {
  const std::string device = settings.device.empty() ? "udp:" : settings.device;
  if (!settings.address.empty()) {
    const Address address = endpoint::resolve_host(settings.address);
    return plan_of(device, address, interface_with(address, interfaces));
  }
  if (device.starts_with("udp:")) return kernel_device(device, interfaces);
  throw InputError(
      fmt::format("MLTCP_DEVICE is {}, which has no address of its own; write udp:IFACE or udp:IP, or also set "
                  "MLTCP_ADDRESS to an address that peers can reach",
                  in_quotes(device)));
}

bool of_containers(const std::string& name) {
  return name.starts_with("docker") || name.starts_with("virbr") || name.starts_with("veth");
}

}  // namespace

std::vector<DevicePlan> choose_devices(const Settings& settings, const std::vector<Interface>& interfaces) {
  if (!settings.address.empty() || (!settings.device.empty() && settings.device != "udp:"))
    return {named_device(settings, interfaces)};
  std::vector<DevicePlan> plans;
  const auto add = [&plans](const Interface& one) {
    const auto same = [&one](const DevicePlan& plan) { return plan.interface == one.name; };
    if (plans.size() < kMaxDevices && std::ranges::none_of(plans, same))
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
  const int speed = endpoint::speed_mbps(interface);
  return speed > 0 ? speed : usual;
}

std::string pci_path(const std::string& interface) {
  if (interface.empty()) return "";
  std::error_code error;
  const auto path = std::filesystem::canonical("/sys/class/net/" + interface + "/device", error);
  return error || path.string().find("/pci") == std::string::npos ? "" : path.string();
}

}  // namespace mltcp::nccl
