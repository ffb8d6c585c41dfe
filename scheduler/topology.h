// A cluster's network as the scheduler sees it: the one description that the simulator has too (base/topology.h).
#pragma once

#include "mltcp/base/topology.h"

namespace mltcp::scheduler {

using mltcp::Graph;
using mltcp::LeafSpineShape;
using mltcp::Topology;

}  // namespace mltcp::scheduler
