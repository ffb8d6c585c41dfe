// Which hosts of a topology the workers of each job use.
#pragma once

#include <cstdint>
#include <vector>

#include "mltcp/lab/workload/job.h"

namespace mltcp::workload {

/// A worker's traffic: the sending and the receiving host.
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
/// its successor. A job without hosts has one worker: the k-th such job, from 0, sends from host k to host k + hosts /
/// 2, modulo `hosts`, so that its bytes leave the rack if there are several. `hosts` is 2 or more. Job numbers are
/// indices in `jobs`.
std::vector<Placement> place(const std::vector<Job>& jobs, std::uint32_t hosts);

}  // namespace mltcp::workload
