// What the kernel knows of its interfaces, and of the way to other hosts: which MAC address frames to an IP address go
// to. For datapaths that build their own frames, but leave ARP, Neighbour Discovery and routes to the kernel, which
// has the host's address. Asked by rtnetlink(7), in the network namespace of the thread that made the object.
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
  bool is_vlan = false;  ///< frames of it have a tag
  encap::MacAddress mac{};
  std::uint32_t mtu = 0;
  std::vector<Address> addresses;  ///< port 0
};

/// The way from one address of an interface to others.
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

  /// What the kernel knows, of the next hop if that is a router. It is made to check what it has not heard of for long,
  /// and, if `may_ask`, to ask for whom it does not know: `asked` then, until it has given up.
  virtual Way find(const Address& destination, bool may_ask) = 0;
  /// Readable when what is known may have changed; -1: never.
  [[nodiscard]] virtual int event_file() const = 0;
  /// Takes what the file is readable for.
  virtual void take_events() = 0;
  /// "cause; cure" if the address is no longer the interface's; else empty.
  [[nodiscard]] virtual std::string why_lost() const = 0;
};

/// The kernel, or a test in its place.
class KernelNetwork {
 public:
  virtual ~KernelNetwork() = default;
  KernelNetwork() = default;
  KernelNetwork(const KernelNetwork&) = delete;
  KernelNetwork& operator=(const KernelNetwork&) = delete;

  /// Those of these indices that there are.
  [[nodiscard]] virtual std::vector<KernelInterface> interfaces(std::span<const std::uint32_t> indices) = 0;
  /// Throws RunError.
  virtual std::unique_ptr<KernelRoutes> routes_of(const KernelInterface& interface, const Address& address) = 0;
};

std::unique_ptr<KernelNetwork> kernel_network();

}  // namespace mltcp::rdma
