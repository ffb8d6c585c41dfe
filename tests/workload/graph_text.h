// Text forms of recorded graphs, to compare all nodes of a rank at once.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "mltcp/lab/workload/execution_graph.h"

namespace mltcp::workload {

/// Returns the indices of the nodes that a node waits for, in ascending order.
inline std::vector<std::uint32_t> waits_of(const RankGraph& rank, std::size_t node) {
  const auto first = rank.waits.begin() + rank.nodes.at(node).first_wait;
  std::vector<std::uint32_t> waits(first, first + rank.nodes[node].waits);
  std::sort(waits.begin(), waits.end());
  return waits;
}

/// Returns each node of a rank as text, without its start time, such as "all-reduce 8 B of 1 3 for 2 ms step 1 after 0
/// 4". "of ..." is left out if the group contains all ranks.
inline std::vector<std::string> nodes_of(const ExecutionGraph& graph, std::size_t of_rank) {
  const RankGraph& rank = graph.ranks.at(of_rank);
  std::vector<std::string> all;
  for (const GraphNode& node : rank.nodes) {
    std::string text;
    if (node.kind == GraphNode::Kind::compute) {
      text = "compute " + to_text(node.length);
    } else if (node.kind == GraphNode::Kind::collective) {
      text = fmt::format("{} {} B", name(node.collective), node.bytes);
      const std::vector<std::uint32_t>& group = graph.groups.at(node.group);
      if (group.size() != graph.ranks.size()) text += fmt::format(" of {}", fmt::join(group, " "));
      if (node.collective == Collective::broadcast) text += fmt::format(" from {}", node.peer);
    } else {
      const bool sends = node.kind == GraphNode::Kind::send;
      text = fmt::format("{} {} B {} {}", sends ? "send" : "receive", node.bytes, sends ? "to" : "from", node.peer);
      if (node.tag != 0) text += fmt::format(" tag {}", node.tag);
    }
    if (node.kind != GraphNode::Kind::compute && node.length.count != 0) text += " for " + to_text(node.length);
    if (node.step != 0) text += fmt::format(" step {}", node.step);
    if (node.waits > 0) text += fmt::format(" after {}", fmt::join(waits_of(rank, all.size()), " "));
    all.push_back(text);
  }
  return all;
}

/// Returns the sizes of a rank's communications.
inline std::vector<Bytes> bytes_of(const RankGraph& rank) {
  std::vector<Bytes> bytes;
  for (const GraphNode& node : rank.nodes)
    if (node.kind != GraphNode::Kind::compute) bytes.push_back(node.bytes);
  return bytes;
}

}  // namespace mltcp::workload
