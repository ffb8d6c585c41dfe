// Programs of ranks from phases (see phase_program.h).
#include "mltcp/workload/phase_program.h"

#include <algorithm>

namespace mltcp::workload {

std::uint32_t ranks_of(const Job& job) { return job.hosts.empty() ? 2 : static_cast<std::uint32_t>(job.hosts.size()); }

RankProgram rank_program(const Job& job, std::uint32_t rank) {
  if (job.pattern) return rank_program(*job.pattern, rank);
  RankProgram program;
  program.rank = rank;
  program.ranks = ranks_of(job);
  const bool sends = !job.hosts.empty() || rank == 0;
  const bool receives = !job.hosts.empty() || rank == 1;
  std::vector<std::uint32_t> before;  // what the next phase waits for
  const auto add = [&](Operation operation) {
    operation.first_wait = static_cast<std::uint32_t>(program.waits.size());
    operation.waits = static_cast<std::uint32_t>(before.size());
    program.waits.insert(program.waits.end(), before.begin(), before.end());
    program.operations.push_back(operation);
    return static_cast<std::uint32_t>(program.operations.size() - 1);
  };
  for (std::size_t i = 0; i < job.phases.size(); ++i) {
    const Phase& phase = job.phases[i];
    Operation operation;
    if (phase.kind == Phase::Kind::compute) {
      operation.compute = phase.compute;
      if (sends && phase.compute.count > 0) before = {add(operation)};
      continue;
    }
    std::vector<std::uint32_t> added;
    operation.bytes = phase.bytes;
    operation.tag = i;
    operation.rate = phase.rate;
    if (sends) {
      operation.kind = Operation::Kind::send;
      operation.peer = (rank + 1) % program.ranks;
      added.push_back(add(operation));
    }
    if (receives) {
      operation.kind = Operation::Kind::receive;
      operation.peer = (rank + program.ranks - 1) % program.ranks;
      added.push_back(add(operation));
    }
    if (!phase.overlap) before = added;
  }
  return program;
}

}  // namespace mltcp::workload
