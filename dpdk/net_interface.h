// A network interface of the kernel, queried by ioctls in the network namespace in which the object was created, even
// if the caller changes namespaces later. (/sys/class/net shows the old namespace after setns(2) unless mounted again.)
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
  /// Administratively up (IFF_UP); false if the interface is gone.
  [[nodiscard]] bool is_up() const;
  /// Up and with a carrier.
  [[nodiscard]] bool is_running() const;
  /// 0 if the interface is gone.
  [[nodiscard]] std::uint32_t mtu() const;
  /// False if the kernel refuses.
  bool set_mtu(std::uint32_t mtu);
  [[nodiscard]] bool is_promiscuous() const;
  bool set_promiscuous(bool on);
  /// Receive queues in use (ethtool -l), and the number of them that are paired with a transmit queue; 1 if not known.
  struct Queues {
    std::uint32_t receive = 1;
    std::uint32_t pairs = 1;
  };
  [[nodiscard]] Queues queues() const;
  /// 0 if not known.
  [[nodiscard]] Rate rate() const;
  /// The kernel's driver ("veth", "ixgbe"); empty if not known.
  [[nodiscard]] std::string driver() const;
  /// Bus address of the device ("0000:3b:00.0"); empty if not known or none.
  [[nodiscard]] std::string bus() const;

 private:
  [[nodiscard]] unsigned flags() const;

  std::string name_;
  int socket_ = -1;
};

/// State of an interface in the calling thread's network namespace.
struct InterfaceState {
  std::string name;
  std::string kind;  ///< "veth", "bridge", ...; empty for hardware
  bool is_loopback = false;
  bool has_address = false;  ///< other than an IPv6 link-local address
  bool has_route = false;    ///< other than an IPv6 link-local route
  bool is_part = false;      ///< member of a bridge, bond, or the like
  bool has_upper = false;    ///< a VLAN, macvlan or the like is on top of it
  bool has_xdp = false;      ///< an XDP program is attached
  bool has_socket = false;   ///< a program has a packet socket (packet(7)) bound to it
};

/// All interfaces, in the kernel's order (rtnetlink). Throws RunError if the query fails.
std::vector<InterfaceState> list_interfaces();

}  // namespace mltcp::dpdk
