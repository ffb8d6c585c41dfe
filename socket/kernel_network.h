// What the kernel tells of its interfaces and addresses, in the network namespace of the calling thread: getifaddrs(3),
// netdevice(7). Nothing of it needs a privilege.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/transport/address.h"

namespace mltcp::socket {

struct KernelAddress {
  std::string interface;
  Address address;  ///< port 0
};
/// All, as the kernel orders them; none if it doesn't tell.
std::vector<KernelAddress> kernel_addresses();

/// The interface that has `address` (whose port isn't looked at); empty: none. All of 127.0.0.0/8 is the loopback's.
std::string interface_of(const Address& address);

/// "eth0 10.0.0.1, lo 127.0.0.1": those of the family of `like`, on `interface` or, if it is empty, on all.
std::string list_addresses(const Address& like, const std::string& interface);

/// An interface, asked in the namespace in which the object was made, wherever the caller is later.
class Interface {
 public:
  /// Throws InputError if there is none of that name, RunError if no socket can be had.
  explicit Interface(std::string name);
  ~Interface();
  Interface(const Interface&) = delete;
  Interface& operator=(const Interface&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint32_t index() const { return index_; }
  /// Of IP packets; 0 if the interface is gone.
  [[nodiscard]] std::uint32_t mtu() const;
  /// "cause; cure"; empty while it is up and has a carrier, of which the kernel tells up to a second late.
  [[nodiscard]] std::string why_down() const;
  /// The same, whether it has a carrier or not.
  [[nodiscard]] std::string why_unusable() const;

 private:
  [[nodiscard]] std::string why_without(unsigned flags) const;

  std::string name_;
  std::uint32_t index_ = 0;
  int socket_ = -1;
};

}  // namespace mltcp::socket
