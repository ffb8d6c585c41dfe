// Which devices the plug-in offers to NCCL: the one that the environment names, or the kernel's interfaces.
#pragma once

#include <string>
#include <vector>

#include "mltcp/endpoint/host_addresses.h"
#include "mltcp/plugins/nccl/environment.h"
#include "mltcp/transport/address.h"

namespace mltcp::nccl {

using endpoint::Interface;

/// A device as NCCL sees it.
struct DevicePlan {
  std::string name;       ///< the interface; "mltcp" where it is none of the kernel's
  std::string device;     ///< for EndpointConfig
  Address address;        ///< its port is 0
  std::string interface;  ///< of the kernel; may be empty
};

/// At least one and at most 16. Without MLTCP_DEVICE and MLTCP_ADDRESS: each interface but the loopback and those of
/// containers, the loopback where there is no other. Throws InputError that names the variable and what there is.
std::vector<DevicePlan> choose_devices(const Settings& settings, const std::vector<Interface>& interfaces);

/// Of the port, in Mbit/s; 10000 where the kernel doesn't say.
int speed_mbps(const std::string& interface);
/// Below /sys; empty if it is no PCI device.
std::string pci_path(const std::string& interface);

}  // namespace mltcp::nccl
