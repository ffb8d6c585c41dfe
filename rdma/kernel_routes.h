// The kernel's knowledge of its interfaces and of the way to other hosts: the MAC address of the next hop to an IP
// address. Used by datapaths that build frames themselves but leave ARP, Neighbour Discovery and routes to the kernel.
// The kernel then owns the host's address. Uses rtnetlink(7), in the network namespace of the thread that created the
// object.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mltcp/transport/address.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::rdma {

struct KernelInterface {
  std::uint32_t index = 0;
  std::string name;
  bool is_ethernet = false;
  bool is_vlan = false;  ///< whether frames of the interface have a VLAN tag
  encap::MacAddress mac{};
  std::uint32_t mtu = 0;
  std::vector<Address> addresses;  ///< IP addresses, with port 0
};

/// The ways from one address of an interface to other hosts.
class KernelRoutes {
 public:
  enum class State : std::uint8_t { known, asked, unreachable };
  struct Way {
    State state = State::unreachable;
    encap::MacAddress mac{};

    bool operator==(const Way&) const = default;
  };

  virtual ~KernelRoutes() = default;
  KernelRoutes() = default;
  KernelRoutes(const KernelRoutes&) = delete;
  KernelRoutes& operator=(const KernelRoutes&) = delete;

  /// Returns what the kernel knows about the way to `destination`, which may lead through a router. Makes the kernel
  /// check a neighbour that was silent for long. If `may_ask`, makes the kernel ask for an unknown neighbour. While the
  /// kernel asks, the state is State::asked.
  virtual Way find(const Address& destination, bool may_ask) = 0;
  /// Returns a file that is readable when the kernel's knowledge may have changed; -1 if it never is.
  [[nodiscard]] virtual int event_file() const = 0;
  /// Takes the events of event_file().
  virtual void take_events() = 0;
  /// Returns "cause; cure" if the interface is gone, has lost its IP address or has a changed MAC address; else empty.
  [[nodiscard]] virtual std::string why_lost() const = 0;
};

/// Access to the kernel. Tests replace this class.
class KernelNetwork {
 public:
  virtual ~KernelNetwork() = default;
  KernelNetwork() = default;
  KernelNetwork(const KernelNetwork&) = delete;
  KernelNetwork& operator=(const KernelNetwork&) = delete;

  /// Returns the interfaces with these indices that exist.
  [[nodiscard]] virtual std::vector<KernelInterface> interfaces(std::span<const std::uint32_t> indices) = 0;
  /// Throws RunError if the kernel refuses a socket.
  virtual std::unique_ptr<KernelRoutes> routes_of(const KernelInterface& interface, const Address& address) = 0;
};

std::unique_ptr<KernelNetwork> kernel_network();

}  // namespace mltcp::rdma
