// The network of an experiment as a testbed on one machine builds it (see layout.h).
#include "mltcp/lab/testbed/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/hosts/host_layout.h"

namespace mltcp::testbed {
namespace {

using experiment::Experiment;

using Node = Topology::Node;

constexpr std::size_t kMaxPorts = 64;  // maximum number of ports of `mltcp switch`

[[noreturn]] void refuse(const Experiment& experiment, const std::string& why) {
  throw InputError(fmt::format("{}: {}", one_line(experiment.file), why));
}

bool is_prioritised(const Experiment& experiment) {
  return std::ranges::any_of(experiment.policies,
                             [](const std::string& policy) { return experiment::policy_named(policy).priorities; });
}

std::string host_interface(std::uint32_t host) { return fmt::format("h{}", host); }
std::string link_to_host(const std::string& from, std::uint32_t host) {
  return fmt::format("{} -> host {}", from, host);
}

/// Returns for each node whether it is one of `hosts`, or is on a shortest path between two of them.
std::vector<bool> nodes_between(const Topology& topology, const std::vector<std::uint32_t>& hosts) {
  std::vector<bool> between(topology.nodes());
  std::vector<Topology::Link> choices;
  for (const Node to : hosts) {
    std::vector<bool> seen(topology.nodes());
    std::vector<Node> open(hosts.begin(), hosts.end());
    while (!open.empty()) {
      const Node at = open.back();
      open.pop_back();
      if (seen[at]) continue;
      seen[at] = true;
      between[at] = true;
      topology.next(at, to, choices);
      for (const Topology::Link link : choices) open.push_back(topology.to(link));
    }
  }
  return between;
}

void add_switches(TestbedLayout& layout, const Experiment& experiment) {
  const fabric::SwitchedNetworkConfig& config = *experiment.topology;
  const Topology& topology = *config.topology;
  if (config.memory.bytes > 0)
    refuse(experiment, "the ports of a testbed's switch do not share memory; give buffer instead of shared_buffer");
  if (config.trim_bytes > 0) refuse(experiment, "a testbed's switch does not trim packets; leave trim out");
  if (!config.faults.empty()) refuse(experiment, "the links of a testbed have no faults; leave faults out");
  const std::vector<bool> needed = nodes_between(topology, layout.hosts);
  std::map<Node, std::size_t> numbers;
  for (Node node = topology.hosts(); node < topology.nodes(); ++node)
    if (needed[node]) numbers.emplace(node, numbers.size());
  std::size_t between = 0;
  for (const auto& [node, number] : numbers) {
    auto& made = layout.switches.emplace_back(TestbedLayout::Switch{topology.node_name(node), {}});
    for (const Topology::Link link : topology.out(node)) {
      const Node to = topology.to(link);
      if (!needed[to]) continue;
      const auto back = topology.out(to);
      if (std::ranges::none_of(back, [&, at = node](auto other) { return topology.to(other) == at; }))
        refuse(experiment, fmt::format("link {} has one direction, but a cable has both; give both directions",
                                       in_quotes(topology.link_name(link))));
      auto& port = made.ports.emplace_back();
      port.link = topology.link_name(link);
      port.config.classes = is_prioritised(experiment) ? 8 : 1;
      port.config.output = {topology.capacity(link), topology.delay(link), config.buffer_bytes, config.ecn, {}, 1};
      if (topology.is_host(to)) {
        port.interface = host_interface(to);
        port.host = to;
      } else {
        port.interface = fmt::format("s{}-{}", number, numbers.at(to));
        port.peer = fmt::format("s{}-{}", numbers.at(to), number);
        ++between;
      }
    }
    if (made.ports.size() > kMaxPorts)
      refuse(experiment,
             fmt::format("switch {} would have {} ports, but mltcp switch has at most {}; use more switches",
                         in_quotes(made.name), made.ports.size(), kMaxPorts));
  }
  // All switches are connected to each other. So they form a tree if, and only if, the number of cables between
  // switches is the number of switches minus 1.
  if (between / 2 + 1 != numbers.size())
    refuse(experiment,
           "its switches have several paths between them, but mltcp switch has no spanning tree; give a topology "
           "without loops, such as kind \"single-switch\", or \"leaf-spine\" with spines = 1");
}

}  // namespace

TestbedLayout testbed_layout(const Experiment& experiment) {
  TestbedLayout layout;
  layout.hosts = host_layout(experiment).hosts;
  if (layout.hosts.size() > TestbedLayout::kMaxHosts)
    refuse(
        experiment,
        fmt::format(
            "its jobs run on {} hosts, but a testbed has at most {}; take some jobs out, or run it on datapath \"sim\"",
            layout.hosts.size(), TestbedLayout::kMaxHosts));
  if (experiment.topology) {
    layout.mtu = experiment.topology->mtu;
    add_switches(layout, experiment);
    return layout;
  }
  layout.mtu = experiment.mtu;
  auto& made = layout.switches.emplace_back(TestbedLayout::Switch{"switch 0", {}});
  for (const std::uint32_t host : layout.hosts) {
    auto& port = made.ports.emplace_back();
    port.interface = host_interface(host);
    port.host = host;
    port.config.classes = is_prioritised(experiment) ? 8 : 1;
    if (host == layout.hosts.back()) {
      port.link = "bottleneck";
      port.config.output = experiment.bottleneck;
    } else {
      port.link = link_to_host(made.name, host);
      port.config.output.rate = Rate();
      port.config.output.delay = experiment.bottleneck.delay;
    }
  }
  return layout;
}

TestbedLayout testbed_layout(std::uint32_t hosts, std::uint32_t mtu) {
  if (hosts < 2 || hosts > TestbedLayout::kMaxHosts)
    throw InputError(fmt::format("--hosts {}: a testbed has 2 to {} hosts", hosts, TestbedLayout::kMaxHosts));
  TestbedLayout layout;
  layout.mtu = mtu;
  auto& made = layout.switches.emplace_back(TestbedLayout::Switch{"switch 0", {}});
  for (std::uint32_t host = 0; host < hosts; ++host) {
    layout.hosts.push_back(host);
    made.ports.push_back({host_interface(host), host, "", link_to_host(made.name, host), {}});
  }
  return layout;
}

std::string switch_words(const TestbedLayout::Port& port, std::string_view kind) {
  const fabric::LinkConfig& output = port.config.output;
  std::string words = fmt::format("{}:{}", kind, port.interface);
  if (output.rate.bits_per_second > 0)  // without a limit of the rate there is no queue, so no buffer
    words += fmt::format(",rate={}bps,buffer={}B", output.rate.bits_per_second, output.buffer_bytes);
  if (output.delay.count > 0) words += fmt::format(",delay={}ns", output.delay.count);
  if (output.ecn.enabled)
    words += fmt::format(",ecn={}B,{}B,{}", output.ecn.kmin_bytes, output.ecn.kmax_bytes, output.ecn.pmax);
  for (const auto& [name, share] :
       {std::pair("loss", output.faults.loss), std::pair("duplicate", output.faults.duplication),
        std::pair("corrupt", output.faults.corruption), std::pair("reorder", output.faults.reordering)})
    if (share > 0) words += fmt::format(",{}={}", name, share);
  if (output.faults.reordering > 0) words += fmt::format(",reorder-delay={}ns", output.faults.reorder_delay.count);
  if (port.config.classes > 1) words += fmt::format(",classes={}", port.config.classes);
  return words;
}

}  // namespace mltcp::testbed
