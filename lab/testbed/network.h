// The hosts of a testbed: a network namespace each, with an interface eth0 whose other end is in the namespace of the
// switches, which is the caller's. Made by the commands of iproute2; all of it goes with the caller.
#pragma once

#include <cstdint>
#include <string>

#include "mltcp/lab/testbed/layout.h"

namespace mltcp::testbed {

class TestbedNetwork {
 public:
  /// Makes it, with eth0 of every host set up: an MTU, the kernel's address, no IPv6, no offloads. Throws RunError.
  TestbedNetwork(const TestbedLayout& layout, std::uint32_t mtu);

  /// The namespace of layout.hosts[index], open in this process under number(index).
  [[nodiscard]] static int host(std::size_t index) { return kFirstFile + 1 + static_cast<int>(index); }
  [[nodiscard]] static int switches() { return kFirstFile; }

  /// What is asked of iproute2, of which `host` is asked in the namespace of a host.
  [[nodiscard]] static std::string cables(const TestbedLayout& layout, std::uint32_t mtu);
  [[nodiscard]] static std::string host_setup(std::uint32_t host);

  /// Of the kernel of a host, as "10.77.0.1", and of what runs on its port, which must have one of its own.
  [[nodiscard]] static std::string kernel_address(std::uint32_t host);
  [[nodiscard]] static std::string port_address(std::uint32_t host);
  static constexpr int kPrefix = 12;  ///< of both, bits

 private:
  static constexpr int kFirstFile = 100;
};

}  // namespace mltcp::testbed
