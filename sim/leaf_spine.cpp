// Builds the leaf-spine network and routes to its hosts (see leaf_spine.h).
#include "mltcp/sim/leaf_spine.h"

#include <fmt/format.h>

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
  for (const auto& [count, what] : {std::pair{config.leaves, "leaves"}, std::pair{config.spines, "spines"},
                                    std::pair{config.hosts_per_leaf, "hosts per leaf"}})
    if (count < 1 || count > most_of_each)
      throw InputError(fmt::format("the network has {} {}; give 1 to {}", count, what, most_of_each));
  if (config.hosts() > most_hosts)
    throw InputError(fmt::format("the network has {} hosts; give at most {}", config.hosts(), most_hosts));
  if (config.buffer_bytes != 0 && config.buffer_bytes < config.mtu + ethernet_bytes)
    throw InputError(fmt::format("the buffer of a port, {}, holds no packet of the MTU; give at least {} B",
                                 bytes_to_text(config.buffer_bytes), config.mtu + ethernet_bytes));
  if (config.uplink_rate.is_zero()) config.uplink_rate = config.host_rate;
  return config;
}

}  // namespace

LeafSpine::LeafSpine(const LeafSpineConfig& config, const LeafSpineOptions& options)
    : Network(network_options(config, options)), config_(checked(config)), options_(options) {
  ends_ = add_switch();
  for (std::uint32_t i = 0; i < config_.leaves; ++i) leaf_switches_.push_back(add_switch());
  for (std::uint32_t i = 0; i < config_.spines; ++i) spine_switches_.push_back(add_switch());

  const std::uint32_t hosts = config_.hosts();
  for (std::uint32_t host = 0; host < hosts; ++host) {
    const std::uint32_t leaf = host / config_.hosts_per_leaf;
    host_up_.push_back(
        add(fmt::format("host {} -> leaf {}", host, leaf), leaf_switches_[leaf], config_.host_rate, Sender::host));
  }
  for (std::uint32_t leaf = 0; leaf < config_.leaves; ++leaf)
    for (std::uint32_t spine = 0; spine < config_.spines; ++spine)
      leaf_up_.push_back(add(fmt::format("leaf {} -> spine {}", leaf, spine), spine_switches_[spine],
                             config_.uplink_rate, Sender::network));
  for (std::uint32_t host = 0; host < hosts; ++host)
    host_down_.push_back(add(fmt::format("leaf {} -> host {}", host / config_.hosts_per_leaf, host), ends_,
                             config_.host_rate, Sender::network));
  for (std::uint32_t spine = 0; spine < config_.spines; ++spine)
    for (std::uint32_t leaf = 0; leaf < config_.leaves; ++leaf)
      spine_down_.push_back(add(fmt::format("spine {} -> leaf {}", spine, leaf), leaf_switches_[leaf],
                                config_.uplink_rate, Sender::network));
  for (std::uint32_t leaf = 0; leaf < config_.leaves; ++leaf)
    groups_.push_back(add_group(std::span(leaf_up_).subspan(std::size_t{leaf} * config_.spines, config_.spines),
                                Random::stream(config_.seed, leaf).next()));
}

Network::LinkId LeafSpine::add(const std::string& name, Switch far_end, Rate rate, Sender sender) {
  fabric::LinkConfig link;
  link.rate = rate;
  link.delay = config_.delay;
  // A host's queue has no bound in bytes: the transmit queues of its ports bound it in packets.
  link.buffer_bytes = sender == Sender::network ? config_.buffer_bytes : 0;
  if (sender == Sender::network) link.ecn = config_.ecn;
  // Each link draws its marks from a stream of its own.
  link.seed = Random::stream(config_.seed, most_of_each + links_.size()).next();
  try {
    links_.push_back({name, add_link(far_end, link), nullptr});
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: {}", name, error.what()));
  }
  if (options_.meters) {
    links_.back().usage = &meters_.emplace_back(options_.usage_bin, options_.usage_bins);
    meter(links_.back().id, links_.back().usage);
  }
  return links_.back().id;
}

Host& LeafSpine::add_port(std::uint32_t host, std::uint16_t udp_port) {
  if (host >= config_.hosts())
    throw InputError(fmt::format("there is no host {}; the network has hosts 0 to {}", host, config_.hosts() - 1));
  Host& port = add_host(Address::v4(first_ip + host, udp_port));
  connect(port, host_up_[host]);
  const std::uint32_t own = host / config_.hosts_per_leaf;
  for (std::uint32_t leaf = 0; leaf < config_.leaves; ++leaf) {
    if (leaf == own)
      route(leaf_switches_[leaf], port, host_down_[host]);
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
