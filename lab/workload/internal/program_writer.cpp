// Writes programs of ranks (see program_writer.h).
#include "mltcp/lab/workload/internal/program_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "mltcp/base/error.h"

namespace mltcp::workload::internal {
namespace {

constexpr Bytes kChunk = Bytes{256} * 1024;
constexpr Bytes kMaxDefaultChunks = 1024;
// The lowest step number that barriers use in tags. The steps of rings have lower numbers.
constexpr std::uint64_t kFirstBarrierStep = 4000;
constexpr std::uint64_t kBarrierSteps = 16;

/// A binary tree over 0 to n-1. In the first tree, odd numbers are leaves and 0 is the root. In the second tree, even
/// numbers are leaves. The second tree is the first tree mirrored if n is even, or shifted by one if n is odd.
class Tree {
 public:
  Tree(std::uint32_t n, bool second) : parents_(n), depths_(n), heights_(n), root_(place(0, n, second)) {
    // The lowest set bit of a number decreases with its distance from the root. So in descending order of this bit,
    // parents come before their children.
    std::vector<std::uint32_t> order(n);
    for (std::uint32_t v = 0; v < n; ++v) order[v] = v;
    std::sort(order.begin() + 1, order.end(),
              [](std::uint32_t a, std::uint32_t b) { return std::tuple(b & -b, a) < std::tuple(a & -a, b); });
    for (const std::uint32_t v : order) {
      if (v == 0) continue;
      const std::uint32_t bit = v & -v;
      const std::uint32_t above = (v ^ bit) | bit << 1U;
      parents_[place(v, n, second)] = place(above < n ? above : v ^ bit, n, second);
      depths_[place(v, n, second)] = depths_[parents_[place(v, n, second)]] + 1;
    }
    for (auto v = order.rbegin(); v != order.rend(); ++v) {
      if (*v == 0) continue;
      const std::uint32_t at = place(*v, n, second);
      heights_[parents_[at]] = std::max(heights_[parents_[at]], heights_[at] + 1);
    }
  }

  [[nodiscard]] std::uint32_t root() const { return root_; }
  [[nodiscard]] std::uint32_t parent(std::uint32_t v) const { return parents_[v]; }
  [[nodiscard]] std::uint32_t depth(std::uint32_t v) const { return depths_[v]; }
  [[nodiscard]] std::uint32_t height(std::uint32_t v) const { return heights_[v]; }
  [[nodiscard]] std::vector<std::uint32_t> children(std::uint32_t v) const {
    std::vector<std::uint32_t> result;
    for (std::uint32_t u = 0; u < parents_.size(); ++u)
      if (u != root_ && parents_[u] == v) result.push_back(u);
    return result;
  }

 private:
  static std::uint32_t place(std::uint32_t v, std::uint32_t n, bool second) {
    if (!second) return v;
    return n % 2 == 0 ? n - 1 - v : (v + 1) % n;
  }

  std::vector<std::uint32_t> parents_;
  std::vector<std::uint32_t> depths_;
  std::vector<std::uint32_t> heights_;
  std::uint32_t root_;
};

void sort_unique(Waits& waits) {
  std::ranges::sort(waits);
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
}

}  // namespace

Waits both(Waits a, const Waits& b) {
  a.insert(a.end(), b.begin(), b.end());
  sort_unique(a);
  return a;
}

Waits ProgramWriter::compute(Nanos time, const Waits& waits) {
  Operation operation;
  operation.compute = time;
  return time.count > 0 ? add(operation, waits) : waits;
}
Waits ProgramWriter::delay(Nanos time, const Waits& waits) {
  Operation operation;
  operation.kind = Operation::Kind::delay;
  operation.compute = time;
  return time.count > 0 ? add(operation, waits) : waits;
}

Waits ProgramWriter::joined(Waits waits) {
  constexpr std::size_t max = 8;
  sort_unique(waits);
  if (waits.size() <= max) return waits;
  Operation operation;
  operation.kind = Operation::Kind::delay;
  return add(operation, waits);
}

Waits ProgramWriter::all_reduce(Group& group, Bytes size, const Waits& waits) {
  if (group.size() == 1) return waits;
  Waits at = begin(group, waits);
  if (algorithm_ == Algorithm::tree) {
    at = trees(group, {{0, size / 2}, {size / 2, size - size / 2}}, true, at);
  } else {
    at = reduce_scatter_steps(group, {0, size}, at);
    at = all_gather_steps(group, {0, size}, at);
  }
  return end(group, at);
}
Waits ProgramWriter::reduce_scatter(Group& group, Bytes size, const Waits& waits) {
  return end(group, reduce_scatter_steps(group, {0, size}, begin(group, waits)));
}
Waits ProgramWriter::all_gather(Group& group, Bytes size, const Waits& waits) {
  return end(group, all_gather_steps(group, {0, size}, begin(group, waits)));
}

Waits ProgramWriter::all_to_all(Group& group, Bytes size, const Waits& waits) {
  const std::uint32_t n = group.size();
  const Bytes mine = block({0, size}, n, group.me).bytes;  // size of this rank's block in the buffer of every rank
  Waits at = begin(group, waits);
  Waits received = at;
  for (std::uint32_t k = 1; k < n; ++k) {
    const bool exchange = std::has_single_bit(n);
    const std::uint32_t to = exchange ? group.me ^ k : (group.me + k) % n;
    const std::uint32_t from = exchange ? group.me ^ k : (group.me + n - k) % n;
    const Waits sent = send(group.rank(to), block({0, size}, n, to), tag_of(group.sequence, k), at);
    received = receive(group.rank(from), {from * mine, mine}, tag_of(group.sequence, k), false, at);
    // The next step waits for this step. A send or receive that is not empty already waits for `at`.
    at = sent == at ? received : received == at ? sent : both(sent, received);
  }
  return end(group, received);
}

Waits ProgramWriter::broadcast(Group& given, Bytes size, const Waits& waits, std::uint32_t root) {
  Group group = given;  // renumbered: the root has index 0
  group.first = root;
  group.me = (group.me + group.size() - root) % group.size();
  Waits at = begin(group, waits);
  if (algorithm_ == Algorithm::tree) return end(given, trees(group, {{0, size}}, false, at));
  const std::uint64_t count = chunks(size);
  for (std::uint64_t chunk = 0; chunk < count; ++chunk) {
    const Slice slice = block({0, size}, count, chunk);
    const std::uint64_t tag = tag_of(group.sequence, 0, chunk);
    if (group.me > 0) at = receive(group.rank(group.me - 1), slice, tag, false, at);
    if (group.me + 1 < group.size()) send(group.rank(group.me + 1), slice, tag, at);
  }
  return end(given, at);
}

Waits ProgramWriter::barrier(const Group& group, const Waits& waits, std::uint32_t number) {
  Waits at = waits;
  std::uint64_t step = kFirstBarrierStep + number * kBarrierSteps;
  for (std::uint32_t distance = 1; distance < group.size(); distance *= 2, ++step) {
    const std::uint32_t to = group.rank((group.me + distance) % group.size());
    const std::uint32_t from = group.rank((group.me + group.size() - distance) % group.size());
    signal(to, tag_of(group.sequence, step), at);
    at = both(std::move(at), await_signal(from, tag_of(group.sequence, step), {}));
  }
  return at;
}

Waits ProgramWriter::whole_ring(Group& group, bool reduce, bool gather, Bytes size, const Waits& waits) {
  const std::uint32_t n = group.size();
  if (n == 1) return waits;
  const Slice all{0, size};
  // Returns the bytes that the rank with this index sends: all blocks except its own if `reduce`, plus all blocks
  // except the next rank's block if `gather`.
  const auto sent_by = [&](std::uint32_t index) {
    Bytes bytes = 0;
    if (reduce) bytes += size - block(all, n, index).bytes;
    if (gather) bytes += size - block(all, n, (index + 1) % n).bytes;
    return bytes;
  };
  const std::uint32_t before = (group.me + n - 1) % n;
  const Waits ready = barrier(group, begin(group, waits));
  const Waits sent = send(group.rank((group.me + 1) % n), {0, sent_by(group.me)}, tag_of(group.sequence, 0), ready);
  const Waits received = receive(group.rank(before), {0, sent_by(before)}, tag_of(group.sequence, 0), reduce, ready);
  return end(group, both(sent, received));
}

Waits ProgramWriter::signal(std::uint32_t peer, std::uint64_t tag, const Waits& waits) {
  Operation operation;
  operation.kind = Operation::Kind::send;
  operation.barrier = true;
  operation.peer = peer;
  operation.bytes = 1;
  operation.tag = tag;
  return add(operation, waits);
}

Waits ProgramWriter::await_signal(std::uint32_t peer, std::uint64_t tag, const Waits& waits) {
  Operation operation;
  operation.kind = Operation::Kind::receive;
  operation.barrier = true;
  operation.peer = peer;
  operation.bytes = 1;
  operation.tag = tag;
  return add(operation, waits);
}

Waits ProgramWriter::add(Operation operation, const Waits& waits) {
  if (program_.operations.size() == kMaxOperations)
    throw InputError(
        fmt::format("rank {} has more than {} operations in an iteration; lower ranks, micro-batches, "
                    "layers or buckets, or raise the size of chunks",
                    program_.rank, kMaxOperations));
  operation.first_wait = static_cast<std::uint32_t>(program_.waits.size());
  operation.waits = static_cast<std::uint32_t>(waits.size());
  program_.waits.insert(program_.waits.end(), waits.begin(), waits.end());
  program_.operations.push_back(operation);
  return {static_cast<std::uint32_t>(program_.operations.size() - 1)};
}
Waits ProgramWriter::transfer(Operation::Kind kind, std::uint32_t peer, Slice slice, std::uint64_t tag, bool reduce,
                              const Waits& waits) {
  if (slice.bytes == 0) return waits;
  Operation operation;
  operation.kind = kind;
  operation.peer = peer;
  operation.bytes = slice.bytes;
  operation.offset = slice.offset;
  operation.tag = tag;
  operation.reduce = reduce;
  return add(operation, waits);
}

// Writes the steps of a reduce-scatter. At their end, rank r holds the sum of block r.
Waits ProgramWriter::reduce_scatter_steps(const Group& group, Slice all, Waits received) {
  const std::uint32_t n = group.size();
  const std::uint32_t me = group.me;
  std::uint32_t step = 0;
  if (algorithm_ == Algorithm::halving_doubling) {
    std::uint32_t first = 0;  // first of the 2 * half blocks that remain for this rank to reduce
    for (std::uint32_t half = n / 2; half > 0; half /= 2, ++step) {
      const std::uint32_t keep = first + (me & half);
      const std::uint32_t give = first + (~me & half);
      const std::uint32_t peer = group.rank(me ^ half);
      send(peer, blocks(all, n, give, give + half), tag_of(group.sequence, step), received);
      received = receive(peer, blocks(all, n, keep, keep + half), tag_of(group.sequence, step), true, received);
      first = keep;
    }
    return received;
  }
  for (; step + 1 < n; ++step) {
    const std::uint64_t tag = tag_of(group.sequence, step);
    send(group.rank((me + 1) % n), block(all, n, (me + n - 1 - step) % n), tag, received);
    received = receive(group.rank((me + n - 1) % n), block(all, n, (me + 2 * n - 2 - step) % n), tag, true, received);
  }
  return received;
}

// Writes the steps of an all-gather. At their beginning, rank r holds block r.
Waits ProgramWriter::all_gather_steps(const Group& group, Slice all, Waits received) {
  const std::uint32_t n = group.size();
  const std::uint32_t me = group.me;
  std::uint32_t step = n;  // so that tags differ from those of a preceding reduce-scatter
  if (algorithm_ == Algorithm::halving_doubling) {
    for (std::uint32_t half = 1; half < n; half *= 2, ++step) {
      const std::uint32_t mine = me & ~(half - 1);
      const std::uint32_t peer = group.rank(me ^ half);
      send(peer, blocks(all, n, mine, mine + half), tag_of(group.sequence, step), received);
      const std::uint32_t other = mine ^ half;
      received = receive(peer, blocks(all, n, other, other + half), tag_of(group.sequence, step), false, received);
    }
    return received;
  }
  for (std::uint32_t k = 0; k + 1 < n; ++k, ++step) {
    const std::uint64_t tag = tag_of(group.sequence, step);
    send(group.rank((me + 1) % n), block(all, n, (me + n - k) % n), tag, received);
    received = receive(group.rank((me + n - 1) % n), block(all, n, (me + 2 * n - 1 - k) % n), tag, false, received);
  }
  return received;
}

std::uint64_t ProgramWriter::chunks(Bytes size) const {
  const Bytes chunk = chunk_ > 0 ? chunk_ : std::max(kChunk, (size + kMaxDefaultChunks - 1) / kMaxDefaultChunks);
  const Bytes count = std::max<Bytes>(1, (size + chunk - 1) / chunk);
  if (count > kMaxOperations)
    throw InputError(fmt::format("{} chunks are more than {}; raise the size of chunks", count, kMaxOperations));
  return count;
}

// Sends slice t over tree t. If `reduce` is true, the slice first goes up to the root of the tree. It then goes down to
// all ranks. Two ranks may be neighbours in both trees, and messages of one tree must not delay those of the other
// tree. So operations are written in order of time, where each hop of a chunk takes one unit of time.
Waits ProgramWriter::trees(const Group& group, const std::vector<Slice>& slices, bool reduce, const Waits& waits) {
  struct Step {
    std::uint64_t time;
    std::uint32_t tree;
    bool down;
    std::uint64_t chunk;
    bool is_send;
    std::uint32_t peer;
    bool operator<(const Step& other) const {
      return std::tie(time, tree, down, chunk, is_send, peer) <
             std::tie(other.time, other.tree, other.down, other.chunk, other.is_send, other.peer);
    }
  };
  const std::uint32_t me = group.me;
  const std::uint64_t count = chunks(slices.front().bytes);
  std::vector<Step> steps;
  for (std::uint32_t t = 0; t < slices.size(); ++t) {
    const Tree tree(group.size(), t == 1);
    const std::vector<std::uint32_t> children = tree.children(me);
    const std::uint32_t turn = tree.height(tree.root()) + 1;
    for (std::uint64_t chunk = 0; chunk < count; ++chunk) {
      for (const std::uint32_t child : children) {
        if (reduce) steps.push_back({chunk + tree.height(child), t, false, chunk, false, child});
        steps.push_back({chunk + turn + tree.depth(me), t, true, chunk, true, child});
      }
      if (me == tree.root()) continue;
      const std::uint32_t parent = tree.parent(me);
      if (reduce) steps.push_back({chunk + tree.height(me), t, false, chunk, true, parent});
      steps.push_back({chunk + turn + tree.depth(parent), t, true, chunk, false, parent});
    }
  }
  std::sort(steps.begin(), steps.end());
  // For each tree and chunk: operations that this rank's next send of the chunk waits for. They are first `waits`, then
  // the receives from the rank's children, and last the receive from the rank's parent.
  std::vector<Waits> have(slices.size() * count, waits);
  std::map<std::tuple<std::uint32_t, bool, std::uint32_t>, Waits> last;  // last receive, by tree, direction and peer
  for (const Step& step : steps) {
    const Slice slice = block(slices[step.tree], count, step.chunk);
    const std::uint64_t tag = tag_of(group.sequence, 2 * step.tree + (step.down ? 1 : 0), step.chunk);
    Waits& chunk = have[step.tree * count + step.chunk];
    if (step.is_send) {
      send(group.rank(step.peer), slice, tag, chunk);
      continue;
    }
    Waits& before = last.try_emplace({step.tree, step.down, step.peer}, waits).first->second;
    before = receive(group.rank(step.peer), slice, tag, !step.down, before);
    chunk = chunk == waits || step.down ? before : both(chunk, before);
  }
  // A rank's work in a tree ends when the last chunk has arrived from its parent. At the root, it ends when the last
  // chunk has arrived from all children.
  Waits done;
  for (std::uint32_t t = 0; t < slices.size(); ++t) done = both(std::move(done), have[t * count + count - 1]);
  return done;
}

}  // namespace mltcp::workload::internal
