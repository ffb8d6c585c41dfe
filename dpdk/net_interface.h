// A network interface of the kernel, asked with ioctls in the network namespace in which the object was made, whatever
// namespace the caller is in later. (/sys/class/net shows another namespace after setns(2), unless it is mounted anew.)
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"

namespace mltcp::dpdk {

class NetInterface {
 public:
  /// Throws InputError if there is no interface `name` (at most 15 characters), RunError if no socket can be had.
  explicit NetInterface(const std::string& name);
  ~NetInterface();
  NetInterface(const NetInterface&) = delete;
  NetInterface& operator=(const NetInterface&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_ethernet() const;
  /// Set up by the administrator (IFF_UP); false too if the interface is gone.
  [[nodiscard]] bool is_up() const;
  /// Up and with a carrier.
  [[nodiscard]] bool is_running() const;
  /// 0 if the interface is gone.
  [[nodiscard]] std::uint32_t mtu() const;
  /// False if the kernel refuses.
  bool set_mtu(std::uint32_t mtu);
  [[nodiscard]] bool is_promiscuous() const;
  bool set_promiscuous(bool on);
  /// Queues that the interface receives on now (ethtool -l), and those of them that are paired with one to send; 1 if
  /// it does not tell.
  struct Queues {
    std::uint32_t receive = 1;
    std::uint32_t pairs = 1;
  };
  [[nodiscard]] Queues queues() const;
  /// 0 if the interface does not tell.
  [[nodiscard]] Rate rate() const;
  /// The kernel's driver ("veth", "ixgbe"); empty if the interface does not tell.
  [[nodiscard]] std::string driver() const;
  /// Where its device is ("0000:3b:00.0"); empty if the interface does not tell, or has none.
  [[nodiscard]] std::string bus() const;

 private:
  [[nodiscard]] unsigned flags() const;

  std::string name_;
  int socket_ = -1;
};

/// What the kernel tells of an interface of the calling thread's network namespace.
struct InterfaceState {
  std::string name;
  std::string kind;  ///< "veth", "bridge", ...; empty for hardware
  bool is_loopback = false;
  bool has_address = false;  ///< beside a link-local one of IPv6
  bool has_route = false;    ///< the same
  bool is_part = false;      ///< of a bridge, bond, or the like
  bool has_upper = false;    ///< a VLAN, macvlan or the like sits on it
  bool has_xdp = false;      ///< it runs an XDP program
  bool has_socket = false;   ///< a program has a packet socket (packet(7)) that is bound to it
};

/// All, as the kernel orders them (rtnetlink). Throws RunError if it doesn't tell.
std::vector<InterfaceState> list_interfaces();

/// The kernel's own addresses (port 0), with their interfaces; none if it doesn't tell.
std::vector<std::pair<std::string, Address>> kernel_addresses();

}  // namespace mltcp::dpdk
