// The devices that the plug-in offers to NCCL: the device that the environment names, or the kernel's interfaces.
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
  std::string name;       ///< name of the interface; "mltcp" if it is not an interface of the kernel
  std::string device;     ///< name of the device for EndpointConfig
  Address address;        ///< address of this host; the port is 0
  std::string interface;  ///< the kernel's interface; may be empty
};

/// Returns the devices to offer: at least 1 and at most 16. Without MLTCP_DEVICE and MLTCP_ADDRESS these are all
/// interfaces except the loopback and those of containers, or the loopback if there is no other. Throws InputError,
/// which names the variable and the available devices.
std::vector<DevicePlan> choose_devices(const Settings& settings, const std::vector<Interface>& interfaces);

/// Returns the speed of the port in Mbit/s, or 10000 if the kernel does not report it.
int speed_mbps(const std::string& interface);
/// Returns the path of the interface below /sys, or an empty text if it is not a PCI device.
std::string pci_path(const std::string& interface);

}  // namespace mltcp::nccl
