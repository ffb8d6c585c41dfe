// Describes the network of a cluster, by the types that the simulator also uses (base/topology.h).
#pragma once

#include "mltcp/base/topology.h"

namespace mltcp::scheduler {

using mltcp::Graph;
using mltcp::LeafSpineShape;
using mltcp::Topology;

}  // namespace mltcp::scheduler
