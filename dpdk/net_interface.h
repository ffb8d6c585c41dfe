// A network interface of the kernel. It is queried by ioctls in the network namespace in which the object was created,
// even if the caller changes namespaces later. (/sys/class/net shows the old namespace after setns(2) unless it is
// mounted again.)
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::dpdk {

class NetInterface {
 public:
  /// Throws InputError if there is no interface `name` (at most 15 characters), RunError if no socket can be opened.
  explicit NetInterface(const std::string& name);
  ~NetInterface();
  NetInterface(const NetInterface&) = delete;
  NetInterface& operator=(const NetInterface&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_ethernet() const;
  /// Returns whether the interface is administratively up (IFF_UP). False if the interface is gone.
  [[nodiscard]] bool is_up() const;
  /// Returns whether the interface is up and has a carrier.
  [[nodiscard]] bool is_running() const;
  /// Returns the MTU in bytes, or 0 if the interface is gone.
  [[nodiscard]] std::uint32_t mtu() const;
  /// Sets the MTU in bytes. Returns false if the kernel refuses it.
  bool set_mtu(std::uint32_t mtu);
  [[nodiscard]] bool is_promiscuous() const;
  bool set_promiscuous(bool on);
  /// Number of receive queues in use (ethtool -l), and the number of them that are paired with a transmit queue. Both
  /// are 1 if not known.
  struct Queues {
    std::uint32_t receive = 1;
    std::uint32_t pairs = 1;
  };
  [[nodiscard]] Queues queues() const;
  /// Returns the link rate, or 0 if it is not known.
  [[nodiscard]] Rate rate() const;
  /// Returns the name of the kernel's driver, such as "veth" or "ixgbe"; empty if it is not known.
  [[nodiscard]] std::string driver() const;
  /// Returns the bus address of the device, such as "0000:3b:00.0"; empty if it has none or it is not known.
  [[nodiscard]] std::string bus() const;

 private:
  [[nodiscard]] unsigned flags() const;

  std::string name_;
  int socket_ = -1;
};

/// State of an interface in the calling thread's network namespace.
struct InterfaceState {
  std::string name;
  std::string kind;  ///< such as "veth" or "bridge"; empty for hardware
  bool is_loopback = false;
  bool has_address = false;  ///< the interface has an address other than an IPv6 link-local address
  bool has_route = false;    ///< the interface has a route other than an IPv6 link-local route
  bool is_part = false;      ///< the interface is a member of a bridge, bond, or the like
  bool has_upper = false;    ///< a VLAN, macvlan or the like is on top of the interface
  bool has_xdp = false;      ///< an XDP program is attached
  bool has_socket = false;   ///< a program has a packet socket (packet(7)) bound to it
};

/// Returns all interfaces, in the kernel's order (rtnetlink). Throws RunError if the query fails.
std::vector<InterfaceState> list_interfaces();

}  // namespace mltcp::dpdk
