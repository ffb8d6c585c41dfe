// Layout of a network for the page of a schedule. Hosts are in the bottom row. A switch whose nearest host is n links
// away is in the n-th row above the hosts. This header is not installed.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "mltcp/base/topology.h"

namespace mltcp::experiment {

/// Networks with more nodes are not drawn.
inline constexpr std::uint32_t kMaxDrawnNodes = 20'000;

/// Returns {"names": [name of each node], "tiers": [rows of nodes from left to right, hosts first; null is a gap],
/// "cables": [[node, node]]}. A row of switches is ordered by the mean position of each switch's neighbours in the row
/// below (Sugiyama, Tagawa and Toda, IEEE Trans. SMC 11, 1981).
nlohmann::json drawing_of(const Topology& topology);

}  // namespace mltcp::experiment
