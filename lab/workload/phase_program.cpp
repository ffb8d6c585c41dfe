// Builds programs of jobs and of their ranks from phases (see phase_program.h).
#include "mltcp/lab/workload/phase_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

/// Builds the program of a rank, operation by operation.
class Builder {
 public:
  Builder(std::uint32_t rank, std::uint32_t ranks) {
    program_.rank = rank;
    program_.ranks = ranks;
  }

  void compute(Nanos time) {
    Operation operation;
    operation.compute = time;
    before_ = {add(operation, before_)};
  }

  /// Adds the operations of a phase. If the phase does not overlap, later operations wait for them.
  void communicate(const Phase& phase, std::uint64_t tag, bool sends, bool receives) {
    Operation operation;
    operation.bytes = phase.bytes;
    operation.tag = tag;
    operation.rate = phase.rate;
    std::vector<std::uint32_t> added;
    if (sends) added.push_back(send(operation, 1, before_));
    if (receives) added.push_back(receive(operation, 1, before_));
    unfinished_.insert(unfinished_.end(), added.begin(), added.end());
    if (!phase.overlap) before_ = added;
  }

  /// Makes later operations wait until all ranks have reached this barrier. Its messages have tags from `tags` on.
  void barrier(std::uint64_t tags) {
    Operation operation;
    operation.bytes = 1;
    operation.barrier = true;
    for (std::uint32_t distance = 1; distance < program_.ranks; distance *= 2) {
      operation.tag = tags++;
      send(operation, distance, before_);
      before_.push_back(receive(operation, distance, {}));
    }
  }

  /// Makes later operations wait for all sends and receives so far.
  void wait_for_all() {
    before_.insert(before_.end(), unfinished_.begin(), unfinished_.end());
    std::ranges::sort(before_);
    before_.erase(std::unique(before_.begin(), before_.end()), before_.end());
  }

  [[nodiscard]] RankProgram take() { return std::move(program_); }

 private:
  std::uint32_t add(Operation operation, const std::vector<std::uint32_t>& waits) {
    operation.first_wait = static_cast<std::uint32_t>(program_.waits.size());
    operation.waits = static_cast<std::uint32_t>(waits.size());
    program_.waits.insert(program_.waits.end(), waits.begin(), waits.end());
    program_.operations.push_back(operation);
    return static_cast<std::uint32_t>(program_.operations.size() - 1);
  }
  std::uint32_t send(Operation operation, std::uint32_t distance, const std::vector<std::uint32_t>& waits) {
    operation.kind = Operation::Kind::send;
    operation.peer = (program_.rank + distance) % program_.ranks;
    return add(operation, waits);
  }
  std::uint32_t receive(Operation operation, std::uint32_t distance, const std::vector<std::uint32_t>& waits) {
    operation.kind = Operation::Kind::receive;
    operation.peer = (program_.rank + program_.ranks - distance) % program_.ranks;
    return add(operation, waits);
  }

  RankProgram program_;
  std::vector<std::uint32_t> before_;      ///< operations that the next operation waits for
  std::vector<std::uint32_t> unfinished_;  ///< all sends and receives so far
};

}  // namespace

std::uint32_t ranks_of(const Job& job) {
  if (job.programs) return static_cast<std::uint32_t>(job.programs->ranks.size());
  return job.hosts.empty() ? 2 : static_cast<std::uint32_t>(job.hosts.size());
}

RankProgram phase_program(const Job& job) {
  Builder builder(0, 1);
  for (std::size_t i = 0; i < job.phases.size(); ++i) {
    const Phase& phase = job.phases[i];
    if (phase.kind == Phase::Kind::compute)
      builder.compute(phase.compute);
    else
      builder.communicate(phase, i, true, false);
  }
  return builder.take();
}

RankProgram rank_program(const Job& job, std::uint32_t rank) {
  if (job.programs) return job.programs->ranks.at(rank);
  if (job.pattern) return rank_program(*job.pattern, rank);
  const std::uint32_t ranks = ranks_of(job);
  const bool sends = !job.hosts.empty() || rank == 0;
  const bool receives = !job.hosts.empty() || rank == 1;
  const bool barriers = ranks > 2;  // two ranks know each other's progress without barriers
  const auto rounds = static_cast<std::uint64_t>(barriers ? std::bit_width(ranks - 1) : 0);
  if ((job.phases.size() + 1) * (2 + 2 * rounds) > kMaxOperations)
    throw InputError(fmt::format("{} phases of {} ranks are more than {} operations of a rank; give fewer phases",
                                 job.phases.size(), ranks, kMaxOperations));
  constexpr std::uint64_t tags_of_barriers = std::uint64_t{1} << 32U;
  constexpr std::uint64_t tags_of_a_barrier = 32;
  Builder builder(rank, ranks);
  bool open = false;  // whether an overlapping phase may still run on some rank
  for (std::size_t i = 0; i < job.phases.size(); ++i) {
    const Phase& phase = job.phases[i];
    if (phase.kind == Phase::Kind::compute) {
      if (sends) builder.compute(phase.compute);
      continue;
    }
    if (phase.bytes == 0)
      throw InputError(
          fmt::format("phase {} of {} sends no bytes; leave it out, or give it some", i + 1, in_quotes(job.name)));
    builder.communicate(phase, i, sends, receives);
    if (phase.overlap)
      open = true;
    else if (barriers)
      builder.barrier(tags_of_barriers + i * tags_of_a_barrier);
  }
  if (open && barriers) {
    builder.wait_for_all();
    builder.barrier(tags_of_barriers + job.phases.size() * tags_of_a_barrier);
  }
  return builder.take();
}

}  // namespace mltcp::workload
