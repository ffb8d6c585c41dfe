// Builds the leaf-spine network and routes to its hosts (see leaf_spine.h).
#include "mltcp/sim/leaf_spine.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::sim {
namespace {

constexpr std::uint32_t most_of_each = 1024;
constexpr std::uint32_t most_hosts = 1U << 16;
constexpr std::uint32_t first_ip = 10U << 24 | 1;
constexpr std::uint32_t ethernet_bytes = 14;

NetworkOptions network_options(const LeafSpineConfig& config, const LeafSpineOptions& options) {
  NetworkOptions result;
  result.mtu = config.mtu;
  result.virtual_payload = options.virtual_payload;
  result.transmit_queue_packets = options.transmit_queue_packets;
  return result;
}

LeafSpineConfig checked(LeafSpineConfig config) {
  check(config);
  if (config.uplink_rate.is_zero()) config.uplink_rate = config.host_rate;
  return config;
}

/// What a switch keeps of each class of a link of `rate` beyond xoff.
Bytes headroom(const LeafSpineConfig& config, Rate rate) {
  if (config.pfc_headroom_bytes != 0) return config.pfc_headroom_bytes;
  fabric::LinkConfig link;
  link.rate = rate;
  link.delay = config.delay;
  return Network::pfc_headroom(link, config.mtu + ethernet_bytes);
}

/// With PFC, all classes of all links into a switch may be full at once.
void check_memory(const LeafSpineConfig& config) {
  const fabric::SwitchMemoryConfig& memory = config.memory;
  const Bytes from_host = memory.pfc.xoff_bytes + headroom(config, config.host_rate);
  const Bytes from_switch =
      memory.pfc.xoff_bytes + headroom(config, config.uplink_rate.is_zero() ? config.host_rate : config.uplink_rate);
  const Bytes needed = config.classes * std::max(config.hosts_per_leaf * from_host + config.spines * from_switch,
                                                 config.leaves * from_switch);
  if (memory.bytes < needed)
    throw InputError(
        fmt::format("switches of {} can't keep xoff and headroom of every link and class, {} in all; give "
                    "them as much, or a smaller xoff",
                    bytes_to_text(memory.bytes), bytes_to_text(needed)));
}

}  // namespace

void check(const LeafSpineConfig& config) {
  for (const auto& [count, what] : {std::pair{config.leaves, "leaves"}, std::pair{config.spines, "spines"},
                                    std::pair{config.hosts_per_leaf, "hosts per leaf"}})
    if (count < 1 || count > most_of_each)
      throw InputError(fmt::format("the network has {} {}; give 1 to {}", count, what, most_of_each));
  if (config.hosts() > most_hosts)
    throw InputError(fmt::format("the network has {} hosts; give at most {}", config.hosts(), most_hosts));
  if (config.buffer_bytes != 0 && config.buffer_bytes < config.mtu + ethernet_bytes)
    throw InputError(fmt::format("the buffer of a port, {}, holds no packet of the MTU; give at least {} B",
                                 bytes_to_text(config.buffer_bytes), config.mtu + ethernet_bytes));
  if (config.classes < 1 || config.classes > fabric::PriorityLink::most_classes)
    throw InputError(
        fmt::format("a port has {} classes; give 1 to {}", config.classes, fabric::PriorityLink::most_classes));
  if (config.memory.pfc.enabled) check_memory(config);
}

LeafSpineMap::LeafSpineMap(const LeafSpineConfig& config)
    : config_(checked(config)), hosts_(config_.hosts()), uplinks_(config_.leaves * config_.spines) {
  for (std::uint32_t leaf = 0; leaf < config_.leaves; ++leaf)
    group_seeds_.push_back(Random::stream(config_.seed, leaf).next());
}

Rate LeafSpineMap::rate(LinkId link) const {
  const bool of_host = link < hosts_ || (link >= hosts_ + uplinks_ && link < 2 * hosts_ + uplinks_);
  return of_host ? config_.host_rate : config_.uplink_rate;
}

std::string LeafSpineMap::name(LinkId link) const {
  if (link < hosts_) return fmt::format("host {} -> leaf {}", link, link / config_.hosts_per_leaf);
  link -= hosts_;
  if (link < uplinks_) return fmt::format("leaf {} -> spine {}", link / config_.spines, link % config_.spines);
  link -= uplinks_;
  if (link < hosts_) return fmt::format("leaf {} -> host {}", link / config_.hosts_per_leaf, link);
  link -= hosts_;
  return fmt::format("spine {} -> leaf {}", link / config_.leaves, link % config_.leaves);
}

Address LeafSpineMap::address(std::uint32_t host, std::uint16_t udp_port) const {
  return Address::v4(first_ip + host, udp_port);
}

std::vector<LeafSpineMap::LinkId> LeafSpineMap::path(std::uint32_t from, std::uint16_t from_port, std::uint32_t to,
                                                     std::uint16_t to_port, std::uint32_t connection) const {
  const std::uint32_t leaf = from / config_.hosts_per_leaf;
  const std::uint32_t far = to / config_.hosts_per_leaf;
  if (leaf == far) return {host_uplink(from), host_downlink(to)};
  const std::uint64_t flow = flow_hash(address(from, from_port), address(to, to_port), connection);
  const auto spine = static_cast<std::uint32_t>(pick_link(flow, group_seeds_[leaf], config_.spines));
  return {host_uplink(from), uplink(leaf, spine), downlink(spine, far), host_downlink(to)};
}

LeafSpine::LeafSpine(const LeafSpineConfig& config, const LeafSpineOptions& options)
    : Network(network_options(config, options)), map_(config), options_(options) {
  const auto make_switch = [&] { return config_.memory.bytes == 0 ? add_switch() : add_switch(config_.memory); };
  ends_ = add_switch();
  for (std::uint32_t i = 0; i < config_.leaves; ++i) leaf_switches_.push_back(make_switch());
  for (std::uint32_t i = 0; i < config_.spines; ++i) spine_switches_.push_back(make_switch());

  // In the order in which the map numbers them.
  const std::uint32_t hosts = config_.hosts();
  const auto leaf_of = [&](std::uint32_t host) { return leaf_switches_[host / config_.hosts_per_leaf]; };
  for (std::uint32_t host = 0; host < hosts; ++host) add(std::nullopt, leaf_of(host));
  for (const Switch leaf : leaf_switches_)
    for (const Switch spine : spine_switches_) add(leaf, spine);
  for (std::uint32_t host = 0; host < hosts; ++host) add(leaf_of(host), ends_);
  for (const Switch spine : spine_switches_)
    for (const Switch leaf : leaf_switches_) add(spine, leaf);
  for (std::uint32_t leaf = 0; leaf < config_.leaves; ++leaf) {
    std::vector<LinkId> uplinks;
    for (std::uint32_t spine = 0; spine < config_.spines; ++spine) uplinks.push_back(uplink(leaf, spine));
    groups_.push_back(add_group(uplinks, map_.group_seed(leaf)));
  }
}

void LeafSpine::add(std::optional<Switch> from, Switch to) {
  const auto number = static_cast<LinkId>(links_.size());
  const std::string name = map_.name(number);
  const Rate rate = map_.rate(number);
  fabric::LinkConfig link;
  link.rate = rate;
  link.delay = config_.delay;
  // A host's queue has no bound in bytes: the transmit queues of its ports bound it in packets.
  link.buffer_bytes = from && config_.memory.bytes == 0 ? config_.buffer_bytes : 0;
  if (from) link.ecn = config_.ecn;
  // Each link draws its marks from a stream of its own.
  link.seed = Random::stream(config_.seed, most_of_each + links_.size()).next();
  const bool by_class = config_.classes > 1 || (from ? config_.memory.bytes > 0 : config_.memory.pfc.enabled);
  try {
    const LinkId id = by_class ? add_priority_link(from, to, link, config_.classes,
                                                   config_.memory.pfc.enabled ? headroom(config_, rate) : 0)
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

Host& LeafSpine::add_port(std::uint32_t host, std::uint16_t udp_port) {
  if (host >= config_.hosts())
    throw InputError(fmt::format("there is no host {}; the network has hosts 0 to {}", host, config_.hosts() - 1));
  Host& port = add_host(map_.address(host, udp_port));
  connect(port, host_uplink(host));
  const std::uint32_t own = host / config_.hosts_per_leaf;
  for (std::uint32_t leaf = 0; leaf < config_.leaves; ++leaf) {
    if (leaf == own)
      route(leaf_switches_[leaf], port, host_downlink(host));
    else if (config_.spines == 1)
      route(leaf_switches_[leaf], port, uplink(leaf, 0));
    else
      route_group(leaf_switches_[leaf], port, groups_[leaf]);
  }
  for (std::uint32_t spine = 0; spine < config_.spines; ++spine)
    route(spine_switches_[spine], port, downlink(spine, own));
  route_to_host(ends_, port);
  return port;
}

}  // namespace mltcp::sim
