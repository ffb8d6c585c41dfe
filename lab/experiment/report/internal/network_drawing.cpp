// Arranges the nodes of a network in rows (see network_drawing.h).
#include "mltcp/lab/experiment/report/internal/network_drawing.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

namespace mltcp::experiment {

nlohmann::json drawing_of(const Topology& topology) {
  using Node = Topology::Node;
  constexpr auto unknown = std::numeric_limits<std::size_t>::max();
  nlohmann::json names = nlohmann::json::array();
  for (Node node = 0; node < topology.nodes(); ++node) names.push_back(topology.node_name(node));

  // A cable is drawn once for both directions.
  std::vector<std::vector<Node>> neighbours(topology.nodes());
  std::set<std::pair<Node, Node>> cables;
  for (Topology::Link link = 0; link < topology.links(); ++link) {
    const auto [from, to] = std::minmax({topology.from(link), topology.to(link)});
    if (!cables.emplace(from, to).second) continue;
    neighbours[from].push_back(to);
    neighbours[to].push_back(from);
  }

  std::vector<std::size_t> tier(topology.nodes(), unknown);
  std::vector<std::vector<Node>> tiers(1);
  for (Node host = 0; host < topology.hosts(); ++host) {
    tier[host] = 0;
    tiers[0].push_back(host);
  }
  for (std::size_t row = 0; row < tiers.size(); ++row) {
    std::vector<Node> above;
    for (const Node node : tiers[row])
      for (const Node next : neighbours[node])
        if (tier[next] == unknown) {
          tier[next] = row + 1;
          above.push_back(next);
        }
    if (!above.empty()) tiers.push_back(std::move(above));
  }

  std::vector<double> x(topology.nodes());
  const auto spread = [&](const std::vector<Node>& row) {
    for (std::size_t i = 0; i < row.size(); ++i)
      x[row[i]] = (static_cast<double>(i) + 0.5) / static_cast<double>(row.size());
  };
  std::ranges::stable_sort(tiers[0], [&](Node a, Node b) { return topology.rack(a) < topology.rack(b); });
  spread(tiers[0]);
  for (std::size_t row = 1; row < tiers.size(); ++row) {
    for (const Node node : tiers[row]) {
      double below = 0;
      for (const Node next : neighbours[node])
        if (tier[next] + 1 == row) {
          x[node] += x[next];
          ++below;
        }
      x[node] /= below;
    }
    std::ranges::sort(tiers[row], [&](Node a, Node b) { return std::pair(x[a], a) < std::pair(x[b], b); });
    spread(tiers[row]);
  }

  nlohmann::json rows = nlohmann::json::array();
  for (const std::vector<Node>& row : tiers) {
    nlohmann::json& nodes = rows.emplace_back(nlohmann::json::array());
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0 && topology.is_host(row[i]) && topology.rack(row[i]) != topology.rack(row[i - 1]))
        nodes.push_back(nullptr);
      nodes.push_back(row[i]);
    }
  }
  return {{"names", std::move(names)}, {"tiers", std::move(rows)}, {"cables", cables}};
}

}  // namespace mltcp::experiment
