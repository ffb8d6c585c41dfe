// A host on the Ethernet frames of a device's port: its address, and its datapath.
#pragma once

#include <memory>

#include "mltcp/rdma/device.h"
#include "mltcp/rdma/kernel_routes.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {

struct RawSite {
  KernelInterface interface;
  Address address;  ///< of shard 0
  std::uint32_t mtu = 0;
};

/// Throws InputError if frames are not available, or the host cannot have that address.
RawSite raw_site_of(const HostDatapathConfig& config, const HostPlace& place, Device& device, KernelNetwork& network);
/// HostDatapathKind::check.
void check_raw(const HostDatapathConfig& config, const HostPlace& place, Device& device, KernelNetwork& network);

std::unique_ptr<HostDatapath> make_raw_datapath(const HostDatapathConfig& config, std::unique_ptr<Device> device,
                                                std::unique_ptr<KernelNetwork> network);

/// The address of a host whose user gave `wanted`: that address, or the first of its kind if it is 0.0.0.0 or ::.
/// Throws InputError that lists the available ones; `label` is "port verbs:mlx5_0:1:raw".
struct RawPlace {
  KernelInterface interface;
  Address address;
};
RawPlace choose_interface(const std::string& label, const DeviceFacts& facts, const Address& wanted,
                          KernelNetwork& network);

}  // namespace mltcp::rdma
