// Jobs arrive at a cluster one by one. Each job is placed where it fits best (docs/explanation/scheduler-cluster.md).
#include <cstdio>

#include "mltcp/scheduler/placement.h"

using namespace mltcp;
using namespace mltcp::literals;
using namespace mltcp::scheduler;

int main() {
  // 4 racks of 6 hosts, 50 Gbps, 2:1 oversubscribed; two workers fit on a host.
  Cluster cluster(Topology::leaf_spine({4, 3, 6, Rate::from_gbps(50), Rate::from_gbps(50)}));
  Occupancy slots(cluster.topology().hosts(), 2);
  const Demand vgg{255_ms, {{150_ms, 255_ms, Rate::from_gbps(40)}}};
  const Demand dlrm{150_ms, {{20_ms, 60_ms, Rate::from_gbps(45)}, {90_ms, 130_ms, Rate::from_gbps(45)}}};

  for (const auto& [name, demand] : {std::pair{"vgg-a", vgg}, {"vgg-b", vgg}, {"dlrm", dlrm}}) {
    const auto places = generate_placements(cluster, slots, demand, 15);
    std::vector<Candidate> candidates;
    for (const WorkerPlacement& place : places) candidates.push_back({{{name, demand, ring(place.workers)}}});
    const auto best = cluster.rank(candidates).front();
    slots.take(name, places[best.candidate].workers);
    const Joined joined = cluster.join(candidates[best.candidate].jobs[0]);
    std::printf("%-6s score %.3f, shift %.1f ms of %.1f ms, %zu others moved\n", name, best.score,
                joined.time_shift.millis(), joined.slot_period.millis(), joined.moves.size());
  }
}
