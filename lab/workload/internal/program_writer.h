// Writes the program of a rank, operation by operation. Collectives use the algorithms described in rank_program.h.
// Used for patterns and for recorded graphs. This header is not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload::internal {

/// Indices of operations that must end first.
using Waits = std::vector<std::uint32_t>;

/// Returns the sorted union of `a` and `b`, without duplicates. So repeated joins of the same operations do not make it
/// longer.
Waits both(Waits a, const Waits& b);

struct Slice {
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// Divides `whole` into `count` blocks as evenly as possible. Returns the blocks from number `from` (inclusive) to
/// number `to` (exclusive).
inline Slice blocks(Slice whole, std::uint64_t count, std::uint64_t from, std::uint64_t to) {
  const auto edge = [&](std::uint64_t block) { return static_cast<Bytes>(Uint128{whole.bytes} * block / count); };
  return {whole.offset + edge(from), edge(to) - edge(from)};
}
inline Slice block(Slice whole, std::uint64_t count, std::uint64_t number) {
  return blocks(whole, count, number, number + 1);
}

/// Divides `time` into `count` parts. Returns part `number`, counted from 0.
inline Nanos part(Nanos time, std::uint64_t count, std::uint64_t number) {
  return Nanos(static_cast<std::int64_t>(block({0, static_cast<Bytes>(time.count)}, count, number).bytes));
}

inline constexpr unsigned kStepBits = 12;  // enough for the 2 (n-1) steps of a ring of n = kMaxRanks ranks
inline constexpr unsigned kChunkBits = 20;

inline std::uint64_t tag_of(std::uint64_t sequence, std::uint64_t step, std::uint64_t chunk = 0) {
  return sequence << (kStepBits + kChunkBits) | step << kChunkBits | chunk;
}

/// A list of ranks, shared by the groups that use it.
using Members = std::shared_ptr<const std::vector<std::uint32_t>>;

/// Ranks that run collectives together, one collective at a time.
struct Group {
  Members members;
  std::uint32_t me = 0;        ///< index of the program's rank in the group
  std::uint64_t sequence = 0;  ///< number of the group's next collective
  Waits last{};                ///< operations that ended the group's previous collective
  std::uint32_t first = 0;     ///< position in `members` of the rank with index 0; indices wrap around

  [[nodiscard]] std::uint32_t size() const { return members ? static_cast<std::uint32_t>(members->size()) : 0; }
  [[nodiscard]] std::uint32_t rank(std::uint32_t index) const {
    const std::uint32_t place = first + index;  // less than twice the group's size
    return (*members)[place < size() ? place : place - size()];
  }
};

/// Leaves out an operation that has no bytes or takes no time. Operations that depend on the omitted operation wait for
/// its predecessors.
class ProgramWriter {
 public:
  /// `chunk` is the size of chunks in bytes (see Pattern::chunk).
  ProgramWriter(Algorithm algorithm, Bytes chunk, std::uint32_t rank, std::uint32_t ranks)
      : algorithm_(algorithm), chunk_(chunk) {
    program_.rank = rank;
    program_.ranks = ranks;
  }
  /// Sets the algorithm for all following collectives.
  void use(Algorithm algorithm) { algorithm_ = algorithm; }
  [[nodiscard]] Algorithm algorithm() const { return algorithm_; }
  RankProgram take() { return std::move(program_); }
  [[nodiscard]] std::uint32_t operations() const { return static_cast<std::uint32_t>(program_.operations.size()); }

  Waits compute(Nanos time, const Waits& waits);
  /// Adds an operation that takes `time`, in parallel with computations.
  Waits delay(Nanos time, const Waits& waits);
  /// Returns `waits` without duplicates. If more than 8 remain, adds an operation of length 0 that waits for all of
  /// them, and returns this operation.
  Waits joined(Waits waits);
  Waits send(std::uint32_t peer, Slice slice, std::uint64_t tag, const Waits& waits) {
    return transfer(Operation::Kind::send, peer, slice, tag, false, waits);
  }
  Waits receive(std::uint32_t peer, Slice slice, std::uint64_t tag, bool reduce, const Waits& waits) {
    return transfer(Operation::Kind::receive, peer, slice, tag, reduce, waits);
  }
  /// Sends a message of one byte that does not count as the job's bytes. await_signal() receives such a message.
  Waits signal(std::uint32_t peer, std::uint64_t tag, const Waits& waits);
  Waits await_signal(std::uint32_t peer, std::uint64_t tag, const Waits& waits);

  // Each of the next functions adds a collective that begins when the operations in `waits` have ended. The function
  // returns the operations that end the collective on this rank.

  Waits all_reduce(Group& group, Bytes size, const Waits& waits);
  Waits reduce_scatter(Group& group, Bytes size, const Waits& waits);
  Waits all_gather(Group& group, Bytes size, const Waits& waits);
  Waits all_to_all(Group& group, Bytes size, const Waits& waits);
  /// Broadcasts from the rank that has index `root` in the group.
  Waits broadcast(Group& group, Bytes size, const Waits& waits, std::uint32_t root = 0);
  /// Adds a dissemination barrier (phase_program.h). `number`, 0 to 3, distinguishes barriers within one collective.
  Waits barrier(const Group& group, const Waits& waits, std::uint32_t number = 0);

  /// Adds an all-reduce, reduce-scatter or all-gather with few operations, for many ranks. After a barrier, each rank
  /// of a ring sends the bytes of all steps to the next rank in one message.
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
