// Builds the dumbbell (see dumbbell.h): one switch in the middle, and behind each shared link a switch that hands
// out packets to the hosts of that side.
#include "mltcp/sim/dumbbell.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::sim {
namespace {

constexpr std::uint32_t ethernet_bytes = 14;

NetworkOptions network_options(const fabric::DumbbellConfig& config, const DumbbellOptions& options) {
  NetworkOptions result;
  result.mtu = config.mtu;
  result.virtual_payload = options.virtual_payload;
  result.transmit_queue_packets = options.transmit_queue_packets;
  return result;
}

Address address_of(std::uint32_t side, std::uint32_t pair) {
  return Address::v4(10U << 24 | side << 16 | (pair / 250) << 8 | (pair % 250 + 1), Dumbbell::port);
}

void check_buffer(const fabric::LinkConfig& link, std::uint32_t mtu, const char* name) {
  if (link.buffer_bytes != 0 && link.buffer_bytes < mtu + ethernet_bytes)
    throw InputError(fmt::format("the buffer of the {} link, {}, holds no packet of the MTU; give at least {} B", name,
                                 bytes_to_text(link.buffer_bytes), mtu + ethernet_bytes));
}

/// Calls `make` and says of which link an InputError is.
template <typename Make>
auto named(const char* name, Make make) {
  try {
    return make();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{} link: {}", name, error.what()));
  }
}

}  // namespace

Dumbbell::Dumbbell(const fabric::DumbbellConfig& config, const DumbbellOptions& options)
    : Network(network_options(config, options)), usage_(options.usage_bin, options.usage_bins) {
  if (config.pairs < 1 || config.pairs > 1000)
    throw InputError(fmt::format("the dumbbell has {} pairs of hosts; give 1 to 1000", config.pairs));
  check_buffer(config.bottleneck, config.mtu, "bottleneck");
  check_buffer(config.reverse, config.mtu, "reverse");

  const Switch middle = add_switch();
  const Switch left_end = add_switch();
  const Switch right_end = add_switch();
  bottleneck_ = named("bottleneck", [&] { return add_link(right_end, config.bottleneck); });
  fabric::LinkConfig reverse = config.reverse;
  reverse.seed = Random::stream(config.reverse.seed, 0x7265766572736520).next();
  reverse_ = named("reverse", [&] { return add_link(left_end, reverse); });
  meter(bottleneck_, &usage_);

  fabric::LinkConfig access;
  access.rate = config.access_rate.is_zero() ? Rate(config.bottleneck.rate.bits_per_second * 10) : config.access_rate;
  access.delay = config.access_delay;
  access.buffer_bytes = 0;  // bounded in packets, by the hosts' transmit queues
  const auto add_side = [&](std::uint32_t side, Switch end, LinkId shared, std::vector<Host*>& hosts) {
    for (std::uint32_t pair = 0; pair < config.pairs; ++pair) {
      Host& host = add_host(address_of(side, pair));
      named("access", [&] { return connect(host, middle, access); });
      route(middle, host, shared);
      route_to_host(end, host);
      hosts.push_back(&host);
    }
  };
  add_side(1, left_end, reverse_, left_);
  add_side(2, right_end, bottleneck_, right_);
}

}  // namespace mltcp::sim
