// Writes the program of a rank, operation after operation: collectives in the algorithms that rank_program.h names.
// Used for patterns and for recorded graphs. Not installed.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/rank_program.h"

namespace mltcp::workload::internal {

/// Operations that have to be done first.
using Waits = std::vector<std::uint32_t>;

/// Sorted and without duplicates, so that repeated joining of the same operations does not grow.
Waits both(Waits a, const Waits& b);

struct Slice {
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// Blocks `from` up to `to` of `count` that make up `whole` as evenly as can be.
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

/// A list of ranks that all of them share.
using Members = std::shared_ptr<const std::vector<std::uint32_t>>;

/// Ranks that run collectives together, one after the other.
struct Group {
  Members members;
  std::uint32_t me = 0;        ///< index of the program's rank
  std::uint64_t sequence = 0;  ///< of the next collective
  Waits last{};                ///< what ended the one before
  std::uint32_t first = 0;     ///< place in `members` of index 0; indices go around from there

  [[nodiscard]] std::uint32_t size() const { return members ? static_cast<std::uint32_t>(members->size()) : 0; }
  [[nodiscard]] std::uint32_t rank(std::uint32_t index) const {
    const std::uint32_t place = first + index;  // below twice the size
    return (*members)[place < size() ? place : place - size()];
  }
};

/// What is empty is left out, and whoever would wait for it waits for what it waits for.
class ProgramWriter {
 public:
  /// `chunk`: see Pattern::chunk.
  ProgramWriter(Algorithm algorithm, Bytes chunk, std::uint32_t rank, std::uint32_t ranks)
      : algorithm_(algorithm), chunk_(chunk) {
    program_.rank = rank;
    program_.ranks = ranks;
  }
  /// From now on.
  void use(Algorithm algorithm) { algorithm_ = algorithm; }
  [[nodiscard]] Algorithm algorithm() const { return algorithm_; }
  RankProgram take() { return std::move(program_); }
  [[nodiscard]] std::uint32_t operations() const { return static_cast<std::uint32_t>(program_.operations.size()); }

  Waits compute(Nanos time, const Waits& waits);
  /// Takes time beside computations.
  Waits delay(Nanos time, const Waits& waits);
  /// The same waits, without duplicates, and few of them: many become an operation of their own.
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

  // Each collective begins after `waits` and returns what it is done with on this rank.

  Waits all_reduce(Group& group, Bytes size, const Waits& waits);
  Waits reduce_scatter(Group& group, Bytes size, const Waits& waits);
  Waits all_gather(Group& group, Bytes size, const Waits& waits);
  Waits all_to_all(Group& group, Bytes size, const Waits& waits);
  /// From the group's rank of index `root`.
  Waits broadcast(Group& group, Bytes size, const Waits& waits, std::uint32_t root = 0);
  /// A dissemination barrier (phase_program.h). `number`: of the barriers of one collective, 0 to 3.
  Waits barrier(const Group& group, const Waits& waits, std::uint32_t number = 0);

  /// A ring in which each rank sends the next one in one message what the steps send (all-reduce, reduce-scatter,
  /// all-gather), behind a barrier: few operations for many ranks.
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
