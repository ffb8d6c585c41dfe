// Which addresses a host has, for those who are to choose one: the kernel's interfaces, and what names stand for.
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

/// getifaddrs(3), in the network namespace of the caller: IPv4 addresses first, link-local ones of IPv6 left out.
/// Throws RunError.
std::vector<Interface> list_interfaces();

/// "eth0 10.0.0.1, lo 127.0.0.1", or "none".
std::string to_text(const std::vector<Interface>& interfaces);

/// "10.0.0.1", without a port.
std::string ip_text(const Address& address);

/// An IP address, or the first that a host's name stands for, with port 0. Throws InputError: `name`, why, and that
/// MLTCP_ADDRESS or MLTCP_DEVICE can name another.
Address resolve_host(const std::string& name);

/// Port 0. Throws InputError that names those which there are.
Address address_of_interface(const std::string& name, const std::vector<Interface>& interfaces);

/// gethostname(2).
std::string host_name();

/// Of a network port, in Mbit/s; 0 where the kernel doesn't say.
int speed_mbps(const std::string& interface);

}  // namespace mltcp::endpoint
