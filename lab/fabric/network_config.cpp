// Checks network configurations and computes the headroom of PFC (see network_config.h).
#include "mltcp/lab/fabric/network_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/fabric/priority_link.h"

namespace mltcp::fabric {
namespace {

constexpr std::uint32_t kEthernetBytes = 14;
constexpr Bytes kPauseFrameBytes = 64;

/// Throws InputError if the memory of a switch cannot hold xoff bytes and the headroom for each class of each incoming
/// link.
void check_memory(const SwitchedNetworkConfig& config) {
  const Topology& topology = *config.topology;
  Bytes needed = 0;
  for (Topology::Node at = topology.hosts(); at < topology.nodes(); ++at) {
    Bytes all = 0;
    for (const Topology::Link link : topology.in(at)) all += config.memory.pfc.xoff_bytes + pfc_headroom(config, link);
    needed = std::max(needed, all * config.classes);
  }
  if (config.memory.bytes < needed)
    throw InputError(
        fmt::format("switches of {} can't keep xoff and headroom of every link and class, {} in all; give "
                    "them as much, or a smaller xoff",
                    bytes_to_text(config.memory.bytes), bytes_to_text(needed)));
}

}  // namespace

Nanos pause_time(const LinkConfig& config) { return config.delay + config.rate.time_for(kPauseFrameBytes); }

Bytes pfc_headroom(const LinkConfig& config, std::uint32_t frame_bytes) {
  return config.rate.bytes_in(pause_time(config) + config.delay) + Bytes{2} * frame_bytes + 1;
}

Bytes pfc_headroom(const SwitchedNetworkConfig& config, Topology::Link link) {
  if (config.pfc_headroom_bytes != 0) return config.pfc_headroom_bytes;
  LinkConfig ends;
  ends.rate = config.topology->capacity(link);
  ends.delay = config.topology->delay(link);
  return pfc_headroom(ends, config.mtu + kEthernetBytes);
}

void check(const SwitchedNetworkConfig& config) {
  if (config.topology == nullptr) throw InputError("the network has no topology; give it one");
  const Topology& topology = *config.topology;
  for (Topology::Host host = 0; host < topology.hosts(); ++host)
    for (const auto& [links, what] : {std::pair{topology.out(host), "from"}, std::pair{topology.in(host), "to"}})
      if (links.size() != 1)
        throw InputError(
            fmt::format("{} links lead {} {}; a host has one in each direction: join several into one of "
                        "their rate, or make it several hosts",
                        links.size(), what, in_quotes(topology.host_name(host))));
  topology.check_all_paths();
  if (config.buffer_bytes != 0 && config.buffer_bytes < config.mtu + kEthernetBytes)
    throw InputError(fmt::format("the buffer of a port, {}, can't hold a packet of the MTU; give at least {} B",
                                 bytes_to_text(config.buffer_bytes), config.mtu + kEthernetBytes));
  if (config.classes < 1 || config.classes > PriorityLink::kMaxClasses)
    throw InputError(fmt::format("a port has {} classes; give 1 to {}", config.classes, PriorityLink::kMaxClasses));
  if (config.trim_bytes != 0 && (config.classes > 1 || config.memory.bytes > 0))
    throw InputError("ports with priority classes or shared memory don't trim packets; leave trim out");
  if (config.memory.pfc.enabled) check_memory(config);
}

}  // namespace mltcp::fabric
