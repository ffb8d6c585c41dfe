// The part of the set-up of datapaths on verbs that both types of queue pairs share.
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

/// Throws InputError with the text "port NAME: WHY".
[[noreturn]] void refuse(const HostDatapathConfig& config, const std::string& why);

/// Checks everything in `config` that does not depend on the device.
VerbsName check_config(const HostDatapathConfig& config);
/// Checks that the host's UDP ports are valid, and that no gateway is given, because the kernel chooses routes.
void check_place(const HostDatapathConfig& config, const HostPlace& place);

/// Returns the number of requests in a queue. Throws InputError if the device supports too few.
std::uint32_t depth_for(const HostDatapathConfig& config, const DeviceFacts& facts);

/// Pins the calling thread to the configured CPU, if any.
void keep_on_named_cpu(const HostDatapathConfig& config);

/// Opens one socket per shard, to claim the shards' UDP ports. `first` contains the port of shard 0.
std::vector<std::unique_ptr<KernelSocket>> sockets_of(const Address& first, std::uint32_t interface,
                                                      std::uint32_t shards);
/// Returns the first of `shards` consecutive UDP ports that are free at an IP address.
std::uint16_t free_ports_at(const Address& ip, std::uint32_t interface, std::uint32_t shards);

}  // namespace mltcp::rdma
