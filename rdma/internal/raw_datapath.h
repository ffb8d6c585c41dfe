// Address and datapath of a host that uses the Ethernet frames of a device's port.
#pragma once

#include <memory>

#include "mltcp/rdma/device.h"
#include "mltcp/rdma/kernel_routes.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {

struct RawSite {
  KernelInterface interface;
  Address address;  ///< contains the UDP port of shard 0
  std::uint32_t mtu = 0;
};

/// Throws InputError if the port has no Ethernet interface, or if the host cannot have the requested address or MTU.
RawSite raw_site_of(const HostDatapathConfig& config, const HostPlace& place, Device& device, KernelNetwork& network);
/// HostDatapathKind::check.
void check_raw(const HostDatapathConfig& config, const HostPlace& place, Device& device, KernelNetwork& network);

std::unique_ptr<HostDatapath> make_raw_datapath(const HostDatapathConfig& config, std::unique_ptr<Device> device,
                                                std::unique_ptr<KernelNetwork> network);

/// An interface and the host's address on it. choose_interface() selects the address `wanted`. If `wanted` is 0.0.0.0
/// or ::, it selects the first address of the same IP version. If no address is suitable, it throws InputError that
/// lists the available addresses. `label` begins the error text, e.g. "port verbs:mlx5_0:1:raw".
struct RawPlace {
  KernelInterface interface;
  Address address;
};
RawPlace choose_interface(const std::string& label, const DeviceFacts& facts, const Address& wanted,
                          KernelNetwork& network);

}  // namespace mltcp::rdma
