// The hosts of a testbed (see network.h).
#include "mltcp/lab/testbed/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "mltcp/base/error.h"
#include "mltcp/lab/testbed/sandbox.h"

namespace mltcp::testbed {
namespace {

/// Opens the current network namespace as file descriptor `number`, so that programs which this process starts inherit
/// the descriptor.
void open_namespace(int number) {
  const int file = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  if (file < 0 || dup2(file, number) < 0)
    throw RunError(fmt::format("/proc/self/ns/net cannot be opened: {}; mount /proc, and raise the limit of open files",
                               std::strerror(errno)));
  close(file);
}

void enter(int number) {
  if (setns(number, CLONE_NEWNET) != 0)
    throw RunError(fmt::format("a network namespace cannot be entered: {}", std::strerror(errno)));
}

/// Switches off offloads, as `ethtool -K eth0 tx off tso off gso off` does. With offloads, the kernel leaves checksums
/// and segmentation to a NIC, but a veth interface has no NIC.
void switch_offloads_off() {
  const int file = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (const unsigned command : {unsigned{ETHTOOL_STSO}, unsigned{ETHTOOL_SGSO}, unsigned{ETHTOOL_STXCSUM}}) {
    ethtool_value value{command, 0};
    ifreq request{};
    std::strcpy(request.ifr_name, "eth0");  // NOLINT(clang-analyzer-security.insecureAPI.strcpy)
    request.ifr_data = reinterpret_cast<char*>(&value);
    if (ioctl(file, SIOCETHTOOL, &request) != 0) {
      const int error = errno;
      close(file);
      throw RunError(fmt::format("offloads of a host's interface cannot be switched off: {}", std::strerror(error)));
    }
  }
  close(file);
}

std::string address(std::uint32_t network, std::uint32_t host) {
  const std::uint32_t ip = network + host + 1;
  return fmt::format("{}.{}.{}.{}", ip >> 24, ip >> 16 & 0xFF, ip >> 8 & 0xFF, ip & 0xFF);
}

}  // namespace

std::string TestbedNetwork::kernel_address(std::uint32_t host) { return address(0x0A4D0000, host); }
std::string TestbedNetwork::port_address(std::uint32_t host) { return address(0x0A5D0000, host); }

std::string TestbedNetwork::cables(const TestbedLayout& layout, std::uint32_t mtu) {
  // Each interface has one queue, because AF_XDP receives only from the queues given to a port. An interface gets no
  // IPv6 address, because IPv6 sends packets to detect duplicate addresses.
  const auto end = [mtu](const std::string& name) {
    return fmt::format("name {} mtu {} numrxqueues 1 numtxqueues 1", name, mtu);
  };
  // DPDK's af_packet numbers its socket groups by process id XOR interface index. The kernel refuses equal numbers in a
  // namespace. So the interface indices of different switches differ in bits that are 0 in the process ids of all
  // switches.
  std::map<std::string, std::size_t> index;
  constexpr std::size_t apart = 1024;
  for (std::size_t i = 0; i < layout.switches.size(); ++i)
    for (const auto& port : layout.switches[i].ports) index.emplace(port.interface, apart * (i + 1) + index.size() + 1);
  const auto switch_end = [&](const std::string& name) {
    return fmt::format("{} index {}", end(name), index.at(name));
  };
  std::string text;
  for (const auto& one : layout.switches) {
    for (const auto& port : one.ports) {
      if (port.host) {
        const auto found = std::lower_bound(layout.hosts.begin(), layout.hosts.end(), *port.host);
        text += fmt::format("link add {} type veth peer {} netns /proc/self/fd/{}\n", switch_end(port.interface),
                            end("eth0"), host(static_cast<std::size_t>(found - layout.hosts.begin())));
      } else if (port.interface < port.peer) {
        text += fmt::format("link add {} type veth peer {}\n", switch_end(port.interface), switch_end(port.peer));
      }
    }
  }
  for (const auto& one : layout.switches)
    for (const auto& port : one.ports)
      text += fmt::format("link set {0} addrgenmode none\nlink set {0} up\n", port.interface);
  return text;
}

std::string TestbedNetwork::host_setup(std::uint32_t host) {
  return fmt::format("link set lo up\nlink set eth0 addrgenmode none\naddr add {}/{} dev eth0\nlink set eth0 up\n",
                     kernel_address(host), kPrefix);
}

TestbedNetwork::TestbedNetwork(const TestbedLayout& layout, std::uint32_t mtu) {
  open_namespace(switches());
  for (std::size_t i = 0; i < layout.hosts.size(); ++i) {
    if (unshare(CLONE_NEWNET) != 0)
      throw RunError(fmt::format(
          "the kernel refuses a network namespace for host {} ({}); raise /proc/sys/user/max_net_namespaces",
          layout.hosts[i], std::strerror(errno)));
    open_namespace(host(i));
  }
  enter(switches());
  run_program({"ip", "-batch", "-"}, cables(layout, mtu));
  for (std::size_t i = 0; i < layout.hosts.size(); ++i) {
    enter(host(i));
    run_program({"ip", "-batch", "-"}, host_setup(layout.hosts[i]));
    switch_offloads_off();
  }
  enter(switches());
}

}  // namespace mltcp::testbed
