// The addresses that this host has, for code that has to choose one. They come from the kernel's interfaces or from
// host names.
#pragma once

#include <string>
#include <vector>

#include "mltcp/transport/address.h"

namespace mltcp::endpoint {

/// An interface of the kernel that is up, with one of its addresses.
struct Interface {
  std::string name;
  Address address;
  bool loopback = false;
};

/// Returns the interfaces that getifaddrs(3) reports, in the network namespace of the caller. IPv4 addresses come
/// first, and link-local IPv6 addresses are left out. Throws RunError if getifaddrs(3) fails.
std::vector<Interface> list_interfaces();

/// Returns a list such as "eth0 10.0.0.1, lo 127.0.0.1", or "none".
std::string to_text(const std::vector<Interface>& interfaces);

/// Returns the IP address without the port, e.g. "10.0.0.1".
std::string ip_text(const Address& address);

/// `name` is an IP address or the name of a host. Returns the IP address or the host's first address, with port 0.
/// Throws InputError with the name, the reason, and the advice to set MLTCP_ADDRESS or MLTCP_DEVICE.
Address resolve_host(const std::string& name);

/// Returns an address of the interface `name`, with port 0. Throws InputError with the available interfaces if there is
/// no such interface, or if it has no address.
Address address_of_interface(const std::string& name, const std::vector<Interface>& interfaces);

/// Returns the host's name from gethostname(2).
std::string host_name();

/// Returns the speed of a network interface in Mbit/s; 0 if the kernel does not report it.
int speed_mbps(const std::string& interface);

}  // namespace mltcp::endpoint
