// The hosts of a testbed. Each host has a network namespace with an interface eth0. A virtual cable connects eth0 to
// the namespace of the switches, which is the caller's namespace. Commands of iproute2 make the network. Everything
// disappears with the caller.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/lab/testbed/layout.h"

namespace mltcp::testbed {

class TestbedNetwork {
 public:
  /// Makes the network. eth0 of every host has the MTU `mtu`, an address of the kernel, no IPv6 and no offloads. Throws
  /// RunError.
  TestbedNetwork(const TestbedLayout& layout, std::uint32_t mtu);

  /// File descriptors of namespaces that are open in this process. host() returns that of layout.hosts[index],
  /// switches() that of the switches.
  [[nodiscard]] static int host(std::size_t index) { return kFirstFile + 1 + static_cast<int>(index); }
  [[nodiscard]] static int switches() { return kFirstFile; }

  /// Commands for iproute2. cables() returns those for the namespace of the switches, host_setup() those for the
  /// namespace of a host.
  [[nodiscard]] static std::string cables(const TestbedLayout& layout, std::uint32_t mtu);
  [[nodiscard]] static std::string host_setup(std::uint32_t host);

  /// Addresses of a host. kernel_address() returns that of its kernel, such as "10.77.0.1". port_address() returns that
  /// of programs on its port, which need their own address.
  [[nodiscard]] static std::string kernel_address(std::uint32_t host);
  [[nodiscard]] static std::string port_address(std::uint32_t host);
  static constexpr int kPrefix = 12;  ///< prefix length of both addresses, in bits

 private:
  static constexpr int kFirstFile = 100;
};

}  // namespace mltcp::testbed
