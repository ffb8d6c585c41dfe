// The network of datapath flow (see flow_fabric.h).
#include "mltcp/lab/experiment/backends/flow_fabric.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include "mltcp/lab/experiment/backends/topology_network.h"
#include "mltcp/transport/shard.h"

namespace mltcp::experiment {
namespace {

/// Returns the round-trip time of a full packet over links of rates `there` and its acknowledgement over links of rates
/// `back`. `delay` is the sum of the delays of all these links.
Nanos round_trip(std::span<const Rate> there, std::span<const Rate> back, Nanos delay, std::uint32_t mtu) {
  Nanos sum = delay;
  for (const Rate rate : there) sum += rate.time_for(frame_bytes(mtu));
  for (const Rate rate : back) sum += rate.time_for(kAcknowledgementBytes);
  return sum;
}

/// Returns the path of connection `id` from port `from_port` of host `from` to port `to_port` of host `to`.
FlowPath there_and_back(const sim::SwitchedNetworkMap& map, std::uint32_t from, std::uint16_t from_port,
                        std::uint32_t to, std::uint16_t to_port, ConnectionId id) {
  // NOLINTNEXTLINE(readability-suspicious-call-argument): the second path leads back
  FlowPath path{map.path(from, from_port, to, to_port, id), map.path(to, to_port, from, from_port, id), {}};
  Nanos delay;
  const auto rates = [&](const std::vector<std::uint32_t>& links) {
    std::vector<Rate> found;
    for (const std::uint32_t link : links) {
      found.push_back(map.topology().capacity(link));
      delay += map.topology().delay(link);
    }
    return found;
  };
  const std::vector<Rate> there = rates(path.data);
  const std::vector<Rate> back = rates(path.acknowledgements);
  path.round_trip = round_trip(there, back, delay, map.config().mtu);
  return path;
}

}  // namespace

FlowFabric flow_fabric(const fabric::DumbbellConfig& config) {
  FlowFabric fabric;
  fabric.links.push_back({"bottleneck", config.bottleneck.rate});
  fabric.mtu = config.mtu;
  const fabric::LinkConfig access = fabric::access_link(config);
  const std::array there = {access.rate, config.bottleneck.rate};
  const std::array back = {access.rate, config.reverse.rate};
  const FlowPath path{{0},
                      {},
                      round_trip(there, back, Nanos(0), config.mtu) + (access.delay + access.delay) +
                          config.bottleneck.delay + config.reverse.delay};
  fabric.route = [path](const JobSpec& job, std::uint32_t /*worker*/) {
    return std::vector<FlowPath>(job.job.flows, path);
  };
  return fabric;
}

FlowFabric flow_fabric(const fabric::SwitchedNetworkConfig& config) {
  const auto map = std::make_shared<const sim::SwitchedNetworkMap>(config);
  FlowFabric fabric;
  const Topology& topology = map->topology();
  for (Topology::Link link = 0; link < topology.links(); ++link)
    fabric.links.push_back({topology.link_name(link), topology.capacity(link)});
  fabric.mtu = config.mtu;
  fabric.route = [map](const JobSpec& job, std::uint32_t worker) {
    const auto [from, to] = job.workers[worker];
    const std::uint16_t from_port = sender_port(job.number);
    const std::uint16_t to_port = receiver_port(job.number);
    std::vector<FlowPath> paths;
    // Sender and receiver create their connections in the same order and with the same ids.
    for (const ConnectionId id : Shard::first_connections(shard_config(job.seed, job.number, worker, job.job.flows)))
      paths.push_back(there_and_back(*map, from, from_port, to, to_port, id));
    return paths;
  };
  fabric.between = [map](const JobSpec& job, std::uint32_t from_rank, std::uint32_t to_rank) {
    const std::uint32_t from = job.workers[from_rank].from;
    const std::uint32_t to = job.workers[to_rank].from;
    const std::uint16_t port = sender_port(job.number);
    const auto [lower, higher] = std::minmax(from_rank, to_rank);
    const ConnectionId id = lower * 0x9E3779B1U + higher;
    return there_and_back(*map, from, port, to, port, id);
  };
  return fabric;
}

}  // namespace mltcp::experiment
