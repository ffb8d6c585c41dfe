// Which hosts of a topology the workers of each job use.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/workload/job.h"

namespace mltcp::workload {

/// A worker's traffic: from its host to the host that receives it.
struct WorkerHosts {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  bool operator==(const WorkerHosts&) const = default;
};

struct Placement {
  std::uint32_t job = 0;  ///< its number
  std::vector<WorkerHosts> workers;
};

/// A job with hosts is a ring over them, as in a ring all-reduce (Patarasuk and Yuan, JPDC 2009): each worker sends to
/// its successor. A job without is one worker: the k-th of them, from 0, sends from host k to the host half of all
/// hosts further on, so that its bytes leave their rack where there are several; after the last host comes the
/// first. `hosts` is 2 or more. Job numbers are indices of `jobs`.
std::vector<Placement> place(const std::vector<Job>& jobs, std::uint32_t hosts);

}  // namespace mltcp::workload
