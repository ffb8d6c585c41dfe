// The kernel's knowledge of its interfaces and of the way to other hosts: the MAC address of the next hop to an IP
// address. For datapaths that build frames themselves but leave ARP, Neighbour Discovery and routes to the kernel,
// which owns the host's address. Uses rtnetlink(7), in the network namespace of the thread that created the object.
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
  bool is_vlan = false;  ///< its frames have a tag
  encap::MacAddress mac{};
  std::uint32_t mtu = 0;
  std::vector<Address> addresses;  ///< port 0
};

/// The way from one address of an interface to other hosts.
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

  /// What the kernel knows, about the next hop if that is a router. Makes the kernel check a neighbour that was silent
  /// for long. If `may_ask`, also makes it ask for an unknown one; the state is then `asked` until it has answered or
  /// given up.
  virtual Way find(const Address& destination, bool may_ask) = 0;
  /// Readable when the kernel's knowledge may have changed; -1: never.
  [[nodiscard]] virtual int event_file() const = 0;
  /// Takes the events of that file.
  virtual void take_events() = 0;
  /// "cause; cure" if the interface no longer has the address; else empty.
  [[nodiscard]] virtual std::string why_lost() const = 0;
};

/// The kernel, or a test's replacement.
class KernelNetwork {
 public:
  virtual ~KernelNetwork() = default;
  KernelNetwork() = default;
  KernelNetwork(const KernelNetwork&) = delete;
  KernelNetwork& operator=(const KernelNetwork&) = delete;

  /// Those of these interfaces that exist.
  [[nodiscard]] virtual std::vector<KernelInterface> interfaces(std::span<const std::uint32_t> indices) = 0;
  /// Throws RunError.
  virtual std::unique_ptr<KernelRoutes> routes_of(const KernelInterface& interface, const Address& address) = 0;
};

std::unique_ptr<KernelNetwork> kernel_network();

}  // namespace mltcp::rdma
