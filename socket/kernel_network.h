// The kernel's interfaces and addresses, in the network namespace of the calling thread: getifaddrs(3), netdevice(7).
// Needs no privileges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/transport/address.h"

namespace mltcp::socket {

struct KernelAddress {
  std::string interface;
  Address address;  ///< the IP address, with port 0
};
/// Returns all addresses, in the kernel's order; empty if the query fails.
std::vector<KernelAddress> kernel_addresses();

/// Returns the interface that has the IP address of `address`; empty if there is none. Ignores the port. All of
/// 127.0.0.0/8 belongs to the loopback interface.
std::string interface_of(const Address& address);

/// Returns a list such as "eth0 10.0.0.1, lo 127.0.0.1" of all addresses of the family of `like`. If `interface` is not
/// empty, returns only the addresses of that interface, without the interface name.
std::string list_addresses(const Address& like, const std::string& interface);

/// An interface. Queries use the network namespace in which the object was created, even if the caller changes
/// namespaces later.
class Interface {
 public:
  /// Throws InputError if there is no interface `name`, RunError if no socket can be opened.
  explicit Interface(std::string name);
  ~Interface();
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t index() const { return index_; }
  /// Returns the maximum length of IP packets in bytes; 0 if the interface is gone.
  [[nodiscard]] std::uint32_t mtu() const;
  /// Returns "cause; cure" if the interface is gone, down or without a carrier; else empty. The kernel reports a
  /// carrier change up to a second late.
  [[nodiscard]] std::string why_down() const;
  /// Like why_down(), but ignores the carrier.
  [[nodiscard]] std::string why_unusable() const;

 private:
  [[nodiscard]] std::string why_without(unsigned flags) const;

  std::string name_;
  std::uint32_t index_ = 0;
  int socket_ = -1;
};

}  // namespace mltcp::socket
