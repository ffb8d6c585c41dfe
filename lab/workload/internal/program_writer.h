// Writes the program of a rank, operation by operation; collectives use the algorithms described in rank_program.h.
// Used for patterns and for recorded graphs. Not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload::internal {

/// Operations that must end first.
using Waits = std::vector<std::uint32_t>;

/// The union, sorted, so that repeated joins of the same operations do not grow.
Waits both(Waits a, const Waits& b);

struct Slice {
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// Blocks `from` (inclusive) to `to` (exclusive) of `whole`, divided into `count` blocks as evenly as possible.
inline Slice blocks(Slice whole, std::uint64_t count, std::uint64_t from, std::uint64_t to) {
  const auto edge = [&](std::uint64_t block) { return static_cast<Bytes>(Uint128{whole.bytes} * block / count); };
  return {whole.offset + edge(from), edge(to) - edge(from)};
}
inline Slice block(Slice whole, std::uint64_t count, std::uint64_t number) {
  return blocks(whole, count, number, number + 1);
}

/// The number-th of `count` parts of `time`.
inline Nanos part(Nanos time, std::uint64_t count, std::uint64_t number) {
  return Nanos(static_cast<std::int64_t>(block({0, static_cast<Bytes>(time.count)}, count, number).bytes));
}

inline constexpr unsigned kStepBits = 12;  // 2 (n-1) steps of a ring of kMaxRanks
inline constexpr unsigned kChunkBits = 20;

inline std::uint64_t tag_of(std::uint64_t sequence, std::uint64_t step, std::uint64_t chunk = 0) {
  return sequence << (kStepBits + kChunkBits) | step << kChunkBits | chunk;
}

/// A list of ranks, shared by the groups that use it.
using Members = std::shared_ptr<const std::vector<std::uint32_t>>;

/// Ranks that run collectives together, one after the other.
struct Group {
  Members members;
  std::uint32_t me = 0;        ///< index of the program's rank
  std::uint64_t sequence = 0;  ///< of the next collective
  Waits last{};                ///< operations that ended the previous collective
  std::uint32_t first = 0;     ///< place in `members` of index 0; indices wrap around

  [[nodiscard]] std::uint32_t size() const { return members ? static_cast<std::uint32_t>(members->size()) : 0; }
  [[nodiscard]] std::uint32_t rank(std::uint32_t index) const {
    const std::uint32_t place = first + index;  // below twice the size
    return (*members)[place < size() ? place : place - size()];
  }
};

/// Empty operations are left out. Operations that would wait for one wait for its predecessors instead.
class ProgramWriter {
 public:
  /// `chunk`: see Pattern::chunk.
  ProgramWriter(Algorithm algorithm, Bytes chunk, std::uint32_t rank, std::uint32_t ranks)
      : algorithm_(algorithm), chunk_(chunk) {
    program_.rank = rank;
    program_.ranks = ranks;
  }
  /// Sets the algorithm of later collectives.
  void use(Algorithm algorithm) { algorithm_ = algorithm; }
  [[nodiscard]] Algorithm algorithm() const { return algorithm_; }
  RankProgram take() { return std::move(program_); }
  [[nodiscard]] std::uint32_t operations() const { return static_cast<std::uint32_t>(program_.operations.size()); }

  Waits compute(Nanos time, const Waits& waits);
  /// Takes time in parallel with computations.
  Waits delay(Nanos time, const Waits& waits);
  /// The same waits without duplicates. If there are more than 8, an operation of length 0 that waits for all of them.
  Waits joined(Waits waits);
  Waits send(std::uint32_t peer, Slice slice, std::uint64_t tag, const Waits& waits) {
    return transfer(Operation::Kind::send, peer, slice, tag, false, waits);
  }
  Waits receive(std::uint32_t peer, Slice slice, std::uint64_t tag, bool reduce, const Waits& waits) {
    return transfer(Operation::Kind::receive, peer, slice, tag, reduce, waits);
  }
  /// A message of one byte that carries none of the job's bytes.
  Waits signal(std::uint32_t peer, std::uint64_t tag, const Waits& waits);
  Waits await_signal(std::uint32_t peer, std::uint64_t tag, const Waits& waits);

  // Each collective begins after `waits` and returns the operations that end it on this rank.

  Waits all_reduce(Group& group, Bytes size, const Waits& waits);
  Waits reduce_scatter(Group& group, Bytes size, const Waits& waits);
  Waits all_gather(Group& group, Bytes size, const Waits& waits);
  Waits all_to_all(Group& group, Bytes size, const Waits& waits);
  /// Broadcasts from the group's rank of index `root`.
  Waits broadcast(Group& group, Bytes size, const Waits& waits, std::uint32_t root = 0);
  /// A dissemination barrier (phase_program.h). `number` identifies the barrier within its collective, 0 to 3.
  Waits barrier(const Group& group, const Waits& waits, std::uint32_t number = 0);

  /// After a barrier, each rank of a ring sends the bytes of all steps to the next one in one message (all-reduce,
  /// reduce-scatter, all-gather): few operations for many ranks.
  Waits whole_ring(Group& group, bool reduce, bool gather, Bytes size, const Waits& waits);

  static Waits begin(const Group& group, const Waits& waits) { return both(waits, group.last); }
  Waits end(Group& group, Waits waits) {
    ++group.sequence;
    return group.last = joined(std::move(waits));
  }

 private:
  Waits add(Operation operation, const Waits& waits);
  Waits transfer(Operation::Kind kind, std::uint32_t peer, Slice slice, std::uint64_t tag, bool reduce,
                 const Waits& waits);
  Waits reduce_scatter_steps(const Group& group, Slice all, Waits received);
  Waits all_gather_steps(const Group& group, Slice all, Waits received);
  [[nodiscard]] std::uint64_t chunks(Bytes size) const;
  Waits trees(const Group& group, const std::vector<Slice>& slices, bool reduce, const Waits& waits);

  Algorithm algorithm_;
  Bytes chunk_;
  RankProgram program_;
};

}  // namespace mltcp::workload::internal
