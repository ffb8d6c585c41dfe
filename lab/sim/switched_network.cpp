// Builds a network from its topology, and the routes to its hosts (see switched_network.h).
#include "mltcp/lab/sim/switched_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::sim {
namespace {

// Random streams below this number are for the hashes of switches, and all others for the marking on links. If there
// are more switches than this, a switch and a link may use the same stream. This is harmless, because the hash of a
// switch only takes a seed from its stream.
constexpr std::uint64_t kFirstLinkStream = 1024;
constexpr std::uint32_t kFirstIp = 10U << 24 | 1;

NetworkOptions network_options(const fabric::SwitchedNetworkConfig& config, const SwitchedNetworkOptions& options) {
  NetworkOptions result;
  result.mtu = config.mtu;
  result.virtual_payload = options.virtual_payload;
  result.transmit_queue_packets = options.transmit_queue_packets;
  return result;
}

const fabric::SwitchedNetworkConfig& checked(const fabric::SwitchedNetworkConfig& config) {
  check(config);
  return config;
}

}  // namespace

SwitchedNetworkMap::SwitchedNetworkMap(const fabric::SwitchedNetworkConfig& config) : config_(checked(config)) {
  for (std::uint32_t i = 0; i < topology().switches(); ++i)
    group_seeds_.push_back(Random::stream(config_.seed, i).next());
}

Address SwitchedNetworkMap::address(std::uint32_t host, std::uint16_t udp_port) {
  return Address::v4(kFirstIp + host, udp_port);
}

std::vector<SwitchedNetworkMap::LinkId> SwitchedNetworkMap::path(std::uint32_t from, std::uint16_t from_port,
                                                                 std::uint32_t to, std::uint16_t to_port,
                                                                 std::uint32_t connection) const {
  const std::uint64_t flow = flow_hash(address(from, from_port), address(to, to_port), connection);
  return topology().path_by(
      from, to, [&](Topology::Node at, std::size_t choices) { return pick_link(flow, group_seed(at), choices); });
}

SwitchedNetwork::SwitchedNetwork(const fabric::SwitchedNetworkConfig& config, const SwitchedNetworkOptions& options)
    : Network(network_options(config, options)), map_(config), options_(options) {
  ends_ = add_switch();
  for (std::uint32_t i = 0; i < topology().switches(); ++i)
    switches_.push_back(config.memory.bytes == 0 ? add_switch() : add_switch(config.memory));
  for (LinkId link = 0; link < topology().links(); ++link) add(link);
}

void SwitchedNetwork::add(LinkId number) {
  const fabric::SwitchedNetworkConfig& config = map_.config();
  const bool from_switch = !topology().is_host(topology().from(number));
  const std::optional<Switch> from =
      from_switch ? std::optional(switch_at(topology().from(number))) : std::optional<Switch>();
  const Switch to = topology().is_host(topology().to(number)) ? ends_ : switch_at(topology().to(number));
  fabric::LinkConfig link;
  link.rate = topology().capacity(number);
  link.delay = topology().delay(number);
  // The queue of a host's link is unlimited in bytes, because the transmit queues of the host's ports limit it in
  // packets.
  link.buffer_bytes = from_switch && config.memory.bytes == 0 ? config.buffer_bytes : 0;
  if (from_switch) {
    link.ecn = config.ecn;
    link.trim_bytes = config.trim_bytes;
  }
  for (const fabric::LinkFault& fault : config.faults)
    if (fault.link == number) link.changes.push_back(fault.change);
  std::ranges::stable_sort(link.changes, {}, &fabric::RateChange::at);
  // Each link has a separate random stream for marking.
  link.seed = Random::stream(config.seed, kFirstLinkStream + number).next();
  const bool by_class = config.classes > 1 || (from_switch ? config.memory.bytes > 0 : config.memory.pfc.enabled);
  const std::string name = topology().link_name(number);
  try {
    const LinkId id = by_class ? add_priority_link(from, to, link, config.classes,
                                                   config.memory.pfc.enabled ? fabric::pfc_headroom(config, number) : 0)
                               : add_link(to, link);
    links_.push_back({name, id, nullptr});
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", name, error.what()));
  }
  if (options_.meters) {
    links_.back().usage = &meters_.emplace_back(options_.usage_bin, options_.usage_bins);
    meter(links_.back().id, links_.back().usage);
  }
}

// Returns the routes to `host`. The routes to all hosts of a rack are equal, except for the last link.
const std::vector<SwitchedNetwork::Route>& SwitchedNetwork::routes_to(std::uint32_t host) {
  const auto [found, is_new] = routes_.try_emplace(topology().rack(host));
  if (!is_new) return found->second;
  std::vector<LinkId> choices;
  for (Topology::Node at = topology().hosts(); at < topology().nodes(); ++at) {
    topology().next(at, host, choices);
    if (choices.empty() || topology().is_host(topology().to(choices.front()))) continue;
    Route& route = found->second.emplace_back(Route{switch_at(at), choices.size() > 1, choices.front()});
    if (!route.several) continue;
    const auto [group, is_first] = groups_.try_emplace({at, choices});
    if (is_first) group->second = add_group(choices, map_.group_seed(at));
    route.to = group->second;
  }
  return found->second;
}

Host& SwitchedNetwork::add_port(std::uint32_t host, std::uint16_t udp_port) {
  if (host >= topology().hosts())
    throw InputError(fmt::format("there is no host {}; the network has hosts 0 to {}", host, topology().hosts() - 1));
  if (++ports_ * topology().switches() > kMaxRoutes)
    throw InputError(
        fmt::format("{} switches can't hold routes to {} ends of jobs; use a smaller network or fewer workers, or "
                    "simulate at flow level",
                    topology().switches(), ports_));
  Host& port = add_host(map_.address(host, udp_port));
  connect(port, topology().out(host).front());
  for (const Route& hop : routes_to(host)) {
    if (hop.several)
      route_group(hop.at, port, hop.to);
    else
      route(hop.at, port, hop.to);
  }
  const LinkId last = topology().in(host).front();
  if (const Topology::Node at = topology().from(last); !topology().is_host(at)) route(switch_at(at), port, last);
  route_to_host(ends_, port);
  return port;
}

}  // namespace mltcp::sim
