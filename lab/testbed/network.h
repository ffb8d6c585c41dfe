// The hosts of a testbed: one network namespace each, with an interface eth0 whose other end is in the namespace of the
// switches, which is the caller's. Made by commands of iproute2; everything disappears with the caller.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/lab/testbed/layout.h"

namespace mltcp::testbed {

class TestbedNetwork {
 public:
  /// Makes the network. eth0 of every host has the MTU, the kernel's address, no IPv6 and no offloads. Throws RunError.
  TestbedNetwork(const TestbedLayout& layout, std::uint32_t mtu);

  /// File descriptors of namespaces, open in this process: of layout.hosts[index], and of the switches.
  [[nodiscard]] static int host(std::size_t index) { return kFirstFile + 1 + static_cast<int>(index); }
  [[nodiscard]] static int switches() { return kFirstFile; }

  /// Commands for iproute2; host_setup() is for the namespace of the host.
  [[nodiscard]] static std::string cables(const TestbedLayout& layout, std::uint32_t mtu);
  [[nodiscard]] static std::string host_setup(std::uint32_t host);

  /// Address of a host's kernel, such as "10.77.0.1", and of programs on its port, which need an address of their own.
  [[nodiscard]] static std::string kernel_address(std::uint32_t host);
  [[nodiscard]] static std::string port_address(std::uint32_t host);
  static constexpr int kPrefix = 12;  ///< prefix length of both, in bits

 private:
  static constexpr int kFirstFile = 100;
};

}  // namespace mltcp::testbed
