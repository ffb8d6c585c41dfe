// Builds the dumbbell (see dumbbell.h): one switch in the middle, and at the far end of each shared link a switch that
// delivers packets to the hosts of its side.
#include "mltcp/lab/sim/dumbbell.h"

#include <fmt/format.h>

#include <array>

#include "mltcp/base/error.h"

namespace mltcp::sim {
namespace {

NetworkOptions network_options(const fabric::DumbbellConfig& config, const DumbbellOptions& options) {
  NetworkOptions result;
  result.mtu = config.mtu;
  result.virtual_payload = options.virtual_payload;
  result.transmit_queue_packets = options.transmit_queue_packets;
  result.machines = options.machines;
  return result;
}

/// Calls `make`. If it throws InputError, prefixes the message with the name of the link.
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
  fabric::check_buffers(config);

  const Switch middle = add_switch();
  const Switch left_end = add_switch();
  const Switch right_end = add_switch();
  const auto add_shared = [&](Switch end, const fabric::LinkConfig& link) {
    return config.classes == 1 ? add_link(end, link) : add_priority_link(middle, end, link, config.classes);
  };
  bottleneck_ = named("bottleneck", [&] { return add_shared(right_end, config.bottleneck); });
  reverse_ = named("reverse", [&] { return add_shared(left_end, fabric::reverse_link(config)); });
  meter(bottleneck_, &usage_);

  const fabric::LinkConfig access = fabric::access_link(config);
  const auto add_side = [&](std::uint32_t side, Switch end, LinkId shared, std::vector<Host*>& hosts) {
    for (std::uint32_t pair = 0; pair < config.pairs; ++pair) {
      Host& host = add_host(Address::v4(fabric::host_ip(side, pair), kPort));
      named("access", [&] { return connect(host, middle, access); });
      route(middle, host, shared);
      route_to_host(end, host);
      hosts.push_back(&host);
    }
  };
  add_side(1, left_end, reverse_, left_);
  add_side(2, right_end, bottleneck_, right_);
  if (options.machines.host.on())
    for (Host* host : right_) share_loop(*host, *right_.front());
  const std::array shared{bottleneck_, reverse_};
  set_loop(middle, shared);
}

}  // namespace mltcp::sim
