// A cluster's network as seen by the scheduler: the description that the simulator uses, too (base/topology.h).
#pragma once

#include "mltcp/base/topology.h"

namespace mltcp::scheduler {

using mltcp::Graph;
using mltcp::LeafSpineShape;
using mltcp::Topology;

}  // namespace mltcp::scheduler
