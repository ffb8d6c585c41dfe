// Layout of a network for the schedule's page: nodes in rows, hosts at the bottom, each switch one row above the nodes
// over which it is nearest to hosts. Not installed.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

/// Larger networks are not drawn.
inline constexpr std::uint32_t kMaxDrawnNodes = 20'000;

/// {"names": by node, "tiers": [rows of nodes from left to right, hosts first; null = a gap], "cables": [[node,
/// node]]}. A switch is placed by the mean of those below it (Sugiyama, Tagawa and Toda, IEEE Trans. SMC 11, 1981).
nlohmann::json drawing_of(const Topology& topology);

}  // namespace mltcp::experiment
