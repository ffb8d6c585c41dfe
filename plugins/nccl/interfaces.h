// The devices that the plug-in offers to NCCL: the one in the environment, or the kernel's interfaces.
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
  std::string name;       ///< the interface; "mltcp" if it is not one of the kernel's
  std::string device;     ///< for EndpointConfig
  Address address;        ///< its port is 0
  std::string interface;  ///< of the kernel; may be empty
};

/// At least one and at most 16. Without MLTCP_DEVICE and MLTCP_ADDRESS: all interfaces except the loopback and those of
/// containers; the loopback if there is no other. Throws InputError that names the variable and the available devices.
std::vector<DevicePlan> choose_devices(const Settings& settings, const std::vector<Interface>& interfaces);

/// Speed of the port in Mbit/s; 10000 if the kernel does not report it.
int speed_mbps(const std::string& interface);
/// Path below /sys; empty if it is no PCI device.
std::string pci_path(const std::string& interface);

}  // namespace mltcp::nccl
