// Placement of jobs on hosts (see worker_hosts.h).
#include "mltcp/lab/workload/worker_hosts.h"

namespace mltcp::workload {

std::vector<Placement> place(const std::vector<Job>& jobs, std::uint32_t hosts) {
  std::vector<Placement> placements;
  std::uint32_t without_hosts = 0;
  for (std::uint32_t number = 0; number < jobs.size(); ++number) {
    const std::vector<std::uint32_t>& ring = jobs[number].hosts;
    Placement& placement = placements.emplace_back();
    placement.job = number;
    for (std::size_t i = 0; i < ring.size(); ++i) placement.workers.push_back({ring[i], ring[(i + 1) % ring.size()]});
    if (!ring.empty()) continue;
    const std::uint32_t from = without_hosts++ % hosts;
    placement.workers.push_back({from, (from + hosts / 2) % hosts});
  }
  return placements;
}

}  // namespace mltcp::workload
