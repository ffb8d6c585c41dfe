// What datapaths on verbs have in common when they are set up, whatever their queue pairs are for.
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

/// What can be told without the device.
VerbsName check_config(const HostDatapathConfig& config);
/// That the host's UDP ports are ports, and that the way is left to the kernel.
void check_place(const HostDatapathConfig& config, const HostPlace& place);

/// Requests of a queue, each way. Throws InputError if the device has too few.
std::uint32_t depth_for(const HostDatapathConfig& config, const DeviceFacts& facts);

/// Keeps the calling thread on the CPU that is named, if one is.
void keep_on_named_cpu(const HostDatapathConfig& config);

/// One a shard: they claim the shards' UDP ports. `first` has that of shard 0.
std::vector<std::unique_ptr<KernelSocket>> sockets_of(const Address& first, std::uint32_t interface,
                                                      std::uint32_t shards);
/// The first of so many UDP ports in a row that are free at an IP address.
std::uint16_t free_ports_at(const Address& ip, std::uint32_t interface, std::uint32_t shards);

}  // namespace mltcp::rdma
