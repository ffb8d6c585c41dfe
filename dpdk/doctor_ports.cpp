// Examines the ports of a machine; see doctor.h. DPDK opens unused interfaces, and devices that the caller names, in
// child processes. For other interfaces and NICs, only the state is reported.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_config.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <thread>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/doctor_checks.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/nic_binding.h"
#include "mltcp/dpdk/port.h"

namespace mltcp::dpdk {
namespace {

namespace fs = std::filesystem;

/// Longest MTU that an AF_XDP port carries; see docs/reference/ports.md.
constexpr std::uint32_t kXdpMtu = 3502;
/// Maximum time to wait until a NIC's link is up: copper at 1 Gbps and more negotiates for 2 to 4 s.
constexpr std::chrono::seconds kLinkPatience{5};

/// The result of opening a port.
struct Trial {
  bool works = false;
  std::string what;  ///< the port's description, or the reason for the failure
  std::string cure;
};

Trial try_port(const std::string& device, std::uint16_t queues) {
  const std::string result = in_child('e', [&] {
    PortConfig config;
    config.device = device;
    config.queues = queues;
    config.descriptors = 512;
    config.spare_buffers = 512;
    EalOptions options;
    options.devices = {device};
    options.memory_mb = 32 + Port::memory_mb(config);
    const Eal eal(options);
    const Port port(eal, config);
    // Waits, because a NIC that has just started first negotiates its link.
    LinkState link = port.link();
    for (const auto end = std::chrono::steady_clock::now() + kLinkPatience;
         !link.up && port.reads_by_dma() && std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      link = port.link();
    }
    return fmt::format("o{}, link {}", port.description(), link.up ? "up" : "down");
  });
  Trial trial;
  trial.works = result[0] == 'o';
  trial.what = result.substr(1);
  // Removes the port's name from the message, because the check already contains the name.
  for (const std::string& before : {fmt::format("port \"{}\": ", device), device + ": "}) {
    if (trial.what.starts_with(before)) trial.what.erase(0, before.size());
  }
  if (const std::size_t end = trial.what.find("; "); !trial.works && end != std::string::npos) {
    trial.cure = trial.what.substr(end + 2);
    trial.what.resize(end);
  }
  if (!trial.works && trial.cure.empty()) trial.cure = "see the lines above about DPDK, memory and permissions";
  return trial;
}

/// Returns the reason why an interface must not be opened unless the caller names it; empty if it may be opened.
std::string why_in_use(const InterfaceState& state) {
  if (state.has_address) return "it has an address";
  if (state.has_route) return "it has a route";
  if (state.is_part) return "it is part of a bridge or bond";
  if (state.has_upper) return "other interfaces are built on it";
  if (state.has_xdp) return "it runs an XDP program, usually for another AF_XDP program";
  if (state.has_socket) return "a program listens on it with a packet socket";
  if (state.kind == "tun" || state.kind == "macvtap" || state.kind == "ipvtap") {
    return "a program uses its other end, such as a virtual machine";
  }
  return {};
}

Check examine_interface(const InterfaceState& state) {
  const std::string name = "interface " + state.name;
  std::string detail = fmt::format("{}, ", state.kind.empty() ? "hardware" : state.kind);
  NetInterface::Queues queues;
  std::uint32_t mtu = 0;
  try {
    const NetInterface interface(state.name);
    queues = interface.queues();
    mtu = interface.mtu();
    detail += fmt::format("MTU {}, {} of {}", mtu,
                          queues.pairs == 1 ? "1 queue pair" : fmt::format("{} queue pairs", queues.pairs),
                          queues.receive == 1 ? "1 receive queue" : fmt::format("{} receive queues", queues.receive));
    if (!interface.is_ethernet()) {
      return warn(name, detail + ": no Ethernet",
                  "use an Ethernet interface, or make a pair: ip link add mltcp0 type veth peer name mltcp1");
    }
    if (!interface.is_up()) {
      return warn(name, detail + ": it is down", fmt::format("bring it up: ip link set dev {} up", state.name));
    }
  } catch (const std::exception& error) {
    return warn(name, error.what(), "it has just disappeared; run this command again");
  }
  if (const std::string use = why_in_use(state); !use.empty()) {
    return as_port(
        warn(name, fmt::format("{}: not tried, since {}", detail, use),
             fmt::format("af_packet:{0} shares it with the kernel, under another IP address; af_xdp takes its traffic "
                         "away from the kernel: if nothing else uses the interface, try --port af_xdp:{0}",
                         state.name)));
  }
  if (Eal::was_started()) return as_port(ok(name, detail + ": not tried, DPDK runs in this process"));

  const Trial packet = try_port("af_packet:" + state.name, 1);
  detail += packet.works ? "; af_packet works" : fmt::format("; af_packet: {}", packet.what);
  // Tries all queues, because an AF_XDP socket receives only from its own queue.
  Trial xdp;
  if (queues.receive > queues.pairs) {
    xdp.what = fmt::format("of {} receive queues AF_XDP can use only {}", queues.receive, queues.pairs);
    xdp.cure = fmt::format("ethtool -L {} rx 1 tx 1, or combined {}", state.name, queues.pairs);
  } else {
    xdp = try_port("af_xdp:" + state.name, static_cast<std::uint16_t>(std::min(queues.pairs, 64U)));
  }
  detail += xdp.works ? fmt::format("; af_xdp works with {} and MTU {}",
                                    queues.pairs == 1 ? "1 queue" : fmt::format("{} queues", queues.pairs),
                                    std::min(mtu, kXdpMtu))
                      : fmt::format("; af_xdp: {}", xdp.what);
  if (!packet.works && !xdp.works) return missing(name, detail, packet.cure);
  if (!xdp.works) return as_port(warn(name, detail, xdp.cure));
  if (!packet.works) return as_port(warn(name, detail, packet.cure));
  if (mtu > kXdpMtu) {
    return as_port(warn(name, detail,
                        fmt::format("AF_XDP lowers the interface's MTU and receives no longer frames: ip link set dev "
                                    "{} mtu {}, or use af_packet for {}",
                                    state.name, kXdpMtu, mtu)));
  }
  return as_port(ok(name, detail));
}

/// Returns whether `interface` belongs to this network namespace and to the PCI device `address`. A /sys that was
/// mounted in another namespace lists that namespace's interfaces, which may have the same names.
bool is_here(const std::string& interface, const std::string& address, const std::vector<InterfaceState>& interfaces) {
  if (std::ranges::none_of(interfaces, [&](const InterfaceState& state) { return state.name == interface; }))
    return false;
  try {
    const std::string bus = NetInterface(interface).bus();
    return bus.empty() || bus == address;
  } catch (const std::exception&) {
    return false;  // the interface has just disappeared
  }
}

/// Examines a network device on the PCI bus. Returns nothing if its interfaces are in other network namespaces.
std::optional<Check> examine_nic(const std::string& address, const std::vector<InterfaceState>& interfaces) {
  const fs::path device = fs::path("/sys/bus/pci/devices") / address;
  const std::string name = "NIC " + address;
  const NicBinding nic = look_at_nic(address);
  const std::string& driver = nic.driver;
  auto names = entries(device / "net");
  // The folder net/ is empty if the interface is in another network namespace, and does not exist if there is no
  // interface.
  bool has_interface = fs::exists(device / "net");
  bool is_virtio = false;
  for (const auto& entry : entries(device)) {  // the interfaces of a virtio NIC are listed in a subfolder
    if (!entry.starts_with("virtio")) continue;
    is_virtio = true;
    has_interface = has_interface || fs::exists(device / entry / "net");
    const auto more = entries(device / entry / "net");
    names.insert(names.end(), more.begin(), more.end());
  }
  if (driver.empty()) return warn(name, "no driver is bound to it", "for DPDK: " + how_to_hand_over(nic));
  std::erase_if(names, [&](const std::string& one) { return !is_here(one, address, interfaces); });
  if (names.empty() && !nic.is_for_dpdk()) {
    if (has_interface) return std::nullopt;
    return warn(
        name, fmt::format("driver {} is bound to it, but it has no interface", driver),
        fmt::format("to get an interface, load {}; for DPDK: {}",
                    is_virtio ? "virtio's driver (modprobe virtio_net)" : "its driver again", how_to_hand_over(nic)));
  }
  std::string detail = "driver " + driver;
  if (!names.empty()) detail += fmt::format(", interface {}", fmt::join(names, ", "));
  if (nic.is_for_dpdk()) {
    if (const std::string why = why_not_usable(nic); !why.empty()) {
      const std::size_t end = why.find("; ");
      return warn(name, fmt::format("{}, but {}", detail, why.substr(0, end)), why.substr(end + 2));
    }
    return as_port(
        ok(name, fmt::format("{}: DPDK can take it as {}; try it with --port {}", detail, address, address)));
  }
  if (driver.starts_with("mlx4") || driver.starts_with("mlx5")) {
    const std::string library = fmt::format("librte_net_{}.so.", driver.substr(0, 4));
    const auto files = entries(RTE_EAL_PMD_PATH);
    if (std::ranges::any_of(files, [&](const std::string& file) { return file.starts_with(library); })) {
      return as_port(ok(name, fmt::format("{}: DPDK and the kernel can share it, as {}; try it with --port {}", detail,
                                          address, address)));
    }
    return missing(name, detail + ": DPDK's driver for it is not installed",
                   fmt::format("install Debian's librte-net-{}-23", driver.substr(0, 4)));
  }
  const bool is_used = std::ranges::any_of(interfaces, [&](const InterfaceState& state) {
    return std::ranges::find(names, state.name) != names.end() && !why_in_use(state).empty();
  });
  if (is_used) {
    return warn(name, detail + ": the kernel uses it",
                "leave it alone if it carries this machine's own traffic; its interface can be a port of kind "
                "af_packet or af_xdp");
  }
  return warn(
      name, detail + ": the kernel has it",
      fmt::format(
          "use its interface as af_packet or af_xdp; or take it from the kernel, if DPDK has a driver for it: {}",
          how_to_hand_over(nic)));
}

}  // namespace

std::vector<Check> examine_ports(std::span<const std::string> devices) {
  std::vector<PortName> names;
  for (const std::string& device : devices) names.push_back(parse_port_name(device));
  std::vector<Check> checks;
  std::vector<InterfaceState> interfaces;
  try {
    interfaces = list_interfaces();
  } catch (const RunError& error) {
    checks.push_back(missing("interfaces", error.what(), "try as root"));
  }
  for (const InterfaceState& state : interfaces) {
    if (state.is_loopback) continue;
    checks.push_back(examine_interface(state));
    checks.back().is_interface = true;
  }
  std::size_t nics = 0;
  std::size_t elsewhere = 0;
  for (const auto& address : entries("/sys/bus/pci/devices")) {
    // PCI class 02 contains network controllers.
    if (first_line(fs::path("/sys/bus/pci/devices") / address / "class").rfind("0x02", 0) != 0) continue;
    ++nics;
    if (auto check = examine_nic(address, interfaces))
      checks.push_back(std::move(*check));
    else
      ++elsewhere;
  }
  if (elsewhere > 0) {
    checks.push_back(
        warn("NICs elsewhere",
             fmt::format("{} on the PCI bus without an interface here: another network namespace has it",
                         elsewhere == 1 ? "1 network device" : fmt::format("{} network devices", elsewhere)),
             "to use such a device, run this where its interface is: nsenter --net=..., or outside of the "
             "container"));
  }
  if (nics == 0) {
    checks.push_back(warn("NICs", "no network device on the PCI bus",
                          "ring ports and the simulator need none; for full speed add a NIC that DPDK supports"));
  }
  const auto add = [&](Check check) { checks.emplace_back(std::move(check)).was_asked_for = true; };
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string name = "port " + devices[i];
    if (Eal::was_started()) {
      add(missing(name, "not tried, DPDK runs in this process", "check it in a separate process: mltcp doctor"));
      continue;
    }
    std::uint32_t queues = 1;
    if (names[i].kind == PortName::Kind::af_xdp) {
      try {
        queues = std::clamp(NetInterface(names[i].target).queues().pairs, 1U, 64U);
      } catch (const std::exception&) {
        queues = 1;  // the trial reports the problem
      }
    }
    const Trial trial = try_port(devices[i], static_cast<std::uint16_t>(queues));
    add(trial.works ? ok(name, trial.what) : missing(name, trial.what, trial.cure));
  }
  return checks;
}

}  // namespace mltcp::dpdk
