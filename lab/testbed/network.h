// The hosts of a testbed and their cables. Each host has a network namespace with an interface eth0. A virtual cable
// connects eth0 to the namespace of the switches, which is the caller's namespace. The network is made by commands of
// iproute2. It disappears when the caller's processes have ended.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/lab/testbed/layout.h"

namespace mltcp::testbed {

class TestbedNetwork {
 public:
  /// Makes the network. Interface eth0 of every host has the MTU `mtu`, the address kernel_address(), no IPv6 address
  /// and no offloads. Throws RunError.
  TestbedNetwork(const TestbedLayout& layout, std::uint32_t mtu);

  /// File descriptors of network namespaces, which are open in this process. host() returns the descriptor for
  /// layout.hosts[index], and switches() the descriptor for the switches.
  [[nodiscard]] static int host(std::size_t index) { return kFirstFile + 1 + static_cast<int>(index); }
  [[nodiscard]] static int switches() { return kFirstFile; }

  /// Commands for iproute2. cables() returns the commands to run in the namespace of the switches, and host_setup() the
  /// commands to run in the namespace of a host.
  [[nodiscard]] static std::string cables(const TestbedLayout& layout, std::uint32_t mtu);
  [[nodiscard]] static std::string host_setup(std::uint32_t host);

  /// Addresses of a host. kernel_address() returns the address that the kernel uses, such as "10.77.0.1".
  /// port_address() returns the address for programs that use the host's port without the kernel, such as "10.93.0.1".
  [[nodiscard]] static std::string kernel_address(std::uint32_t host);
  [[nodiscard]] static std::string port_address(std::uint32_t host);
  static constexpr int kPrefix = 12;  ///< prefix length of both addresses, in bits

 private:
  static constexpr int kFirstFile = 100;
};

}  // namespace mltcp::testbed
