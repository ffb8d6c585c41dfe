// Assigns the workers of each job to hosts of a topology.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

/// The hosts between which a worker's traffic flows, sender first.
struct WorkerHosts {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool operator==(const WorkerHosts&) const = default;
};

struct Placement {
  std::uint32_t job = 0;  ///< index of the job in `jobs`
  std::vector<WorkerHosts> workers;
};

/// Places the workers of all jobs. A job with hosts is a ring over them, as in a ring all-reduce (Patarasuk and Yuan,
/// JPDC 2009): each worker sends to its successor. A job without hosts has one worker. Counted from 0, the k-th such
/// job sends from host k to host k + hosts / 2, modulo `hosts`, so that its bytes leave the rack if there are several
/// racks. `hosts` must be at least 2.
std::vector<Placement> place(const std::vector<Job>& jobs, std::uint32_t hosts);

}  // namespace mltcp::workload
