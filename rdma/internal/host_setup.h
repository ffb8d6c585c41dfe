// The common part of the set-up of datapaths on verbs, for either type of queue pair.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mltcp/rdma/device.h"
#include "mltcp/rdma/kernel_sockets.h"
#include "mltcp/rdma/verbs_name.h"
#include "mltcp/transport/address.h"
#include "mltcp/transport/host_datapath.h"

namespace mltcp::rdma {

inline constexpr std::uint32_t kMaxSendDepth = 512;
inline constexpr std::uint32_t kInlineBytes = 256;

/// "port NAME: why".
[[noreturn]] void refuse(const HostDatapathConfig& config, const std::string& why);

/// Checks what does not depend on the device.
VerbsName check_config(const HostDatapathConfig& config);
/// Checks that the host's UDP ports are valid, and that no gateway is given: the kernel routes.
void check_place(const HostDatapathConfig& config, const HostPlace& place);

/// Requests of a queue in each direction. Throws InputError if the device supports too few.
std::uint32_t depth_for(const HostDatapathConfig& config, const DeviceFacts& facts);

/// Pins the calling thread to the configured CPU, if any.
void keep_on_named_cpu(const HostDatapathConfig& config);

/// One socket per shard, to claim the shards' UDP ports. `first` has the port of shard 0.
std::vector<std::unique_ptr<KernelSocket>> sockets_of(const Address& first, std::uint32_t interface,
                                                      std::uint32_t shards);
/// The first of `shards` consecutive UDP ports that are free at an IP address.
std::uint16_t free_ports_at(const Address& ip, std::uint32_t interface, std::uint32_t shards);

}  // namespace mltcp::rdma
