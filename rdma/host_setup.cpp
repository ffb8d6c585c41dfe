// Set-up of datapaths on verbs; see internal/host_setup.h.
#include "mltcp/rdma/internal/host_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/thread_cpu.h"
#include "mltcp/transport/ethernet/ip_address.h"

namespace mltcp::rdma {
namespace {

constexpr std::uint32_t kMinDepth = 64;

}  // namespace

void refuse(const HostDatapathConfig& config, const std::string& why) {
  throw InputError(fmt::format("port {}: {}", in_quotes(config.device), why));
}

VerbsName check_config(const HostDatapathConfig& config) {
  VerbsName name = parse_verbs_name(config.device);
  if (config.queues > 1)
    refuse(config, fmt::format("{} queues, but each shard has a queue pair of its own here; leave their number out",
                               config.queues));
  return name;
}

void check_place(const HostDatapathConfig& config, const HostPlace& place) {
  const std::uint32_t shards = std::max<std::uint32_t>(place.shards, 1);
  if (place.address.port == 0 || place.address.port + shards - 1 > 65535)
    throw InputError(fmt::format("UDP port {} for the first of {}: give 1 to {}", place.address.port,
                                 plural(shards, "shard"), 65536 - shards));
  if (!is_unspecified(place.gateway))
    refuse(config, fmt::format("the kernel chooses routes here, so gateway {} would not be used; leave the gateway "
                               "out, and set it in the kernel: ip route add default via {}",
                               ip_text(place.gateway), ip_text(place.gateway)));
}

std::uint32_t depth_for(const HostDatapathConfig& config, const DeviceFacts& facts) {
  const std::uint32_t max = std::min(facts.max_requests, facts.max_completions);
  if (max < kMinDepth) refuse(config, fmt::format("its queues hold {} requests; the minimum is {}", max, kMinDepth));
  return std::clamp(config.queue_packets, kMinDepth, max);
}

void keep_on_named_cpu(const HostDatapathConfig& config) {
  const int cpu = named_cpu(config.cores);
  if (cpu < 0) return;
  if (const int error = keep_thread_on(static_cast<unsigned>(cpu)); error != 0)
    throw RunError(fmt::format("this thread cannot be bound to CPU {} ({}); leave it out", cpu, std::strerror(error)));
}

std::vector<std::unique_ptr<KernelSocket>> sockets_of(const Address& first, std::uint32_t interface,
                                                      std::uint32_t shards) {
  std::vector<std::unique_ptr<KernelSocket>> sockets;
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    Address address = first;
    address.port = static_cast<std::uint16_t>(address.port + shard);
    sockets.push_back(std::make_unique<KernelSocket>(address, interface));
  }
  return sockets;
}

/// The kernel chooses the first port. If one of the ports that follow is in use, the function tries again.
std::uint16_t free_ports_at(const Address& ip, std::uint32_t interface, std::uint32_t shards) {
  constexpr int kTries = 256;
  Address address = ip;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    address.port = 0;
    const KernelSocket first(address, interface);
    if (first.port() + shards - 1 > 65'535) continue;
    if (shards == 1) return first.port();
    address.port = static_cast<std::uint16_t>(first.port() + 1);
    try {
      sockets_of(address, interface, shards - 1);
      return first.port();
    } catch (const InputError&) {  // one of the ports that follow is in use
    }
  }
  throw RunError(fmt::format("{} has no {} in a row that are free; use fewer shards, or give the first port",
                             ip_text(ip), plural(shards, "UDP port")));
}

}  // namespace mltcp::rdma
