// From a pattern of communication to the programs of its ranks (see rank_program.h).
#include "mltcp/workload/rank_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "mltcp/base/error.h"

namespace mltcp::workload {
namespace {

constexpr Bytes kChunk = Bytes{256} * 1024;
constexpr Bytes kMostDefaultChunks = 1024;
constexpr unsigned kStepBits = 12;  // 2 (n-1) steps of a ring of kMostRanks
constexpr unsigned kChunkBits = 20;

/// Operations that have to be done first.
using Waits = std::vector<std::uint32_t>;

Waits both(Waits a, const Waits& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Slice {
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// Blocks `from` up to `to` of `count` that make up `whole` as evenly as can be.
Slice blocks(Slice whole, std::uint64_t count, std::uint64_t from, std::uint64_t to) {
  const auto edge = [&](std::uint64_t block) { return static_cast<Bytes>(Uint128{whole.bytes} * block / count); };
  return {whole.offset + edge(from), edge(to) - edge(from)};
}
Slice block(Slice whole, std::uint64_t count, std::uint64_t number) { return blocks(whole, count, number, number + 1); }

/// The number-th of `count` parts of `time`.
Nanos part(Nanos time, std::uint64_t count, std::uint64_t number) {
  return Nanos(static_cast<std::int64_t>(block({0, static_cast<Bytes>(time.count)}, count, number).bytes));
}

std::uint64_t tag_of(std::uint64_t sequence, std::uint64_t step, std::uint64_t chunk = 0) {
  return sequence << (kStepBits + kChunkBits) | step << kChunkBits | chunk;
}

/// Ranks that run collectives together, one after the other.
struct Group {
  std::vector<std::uint32_t> ranks;
  std::uint32_t me = 0;        ///< index of the program's rank
  std::uint64_t sequence = 0;  ///< of the next collective
  Waits last{};                ///< what ended the one before

  [[nodiscard]] auto size() const { return static_cast<std::uint32_t>(ranks.size()); }
};

/// A binary tree over 0..n-1 in which, but for the root 0, odd numbers are leaves. Mirrored (n even) or shifted by one
/// (n odd), even numbers are.
class Tree {
 public:
  Tree(std::uint32_t n, bool second) : parents_(n), depths_(n), heights_(n), root_(place(0, n, second)) {
    // Away from the root, lowest set bits fall: parents come before their children.
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

/// Writes a rank's program. What is empty is left out, and whoever would wait for it waits for what it waits for.
class Writer {
 public:
  Writer(const Pattern& pattern, std::uint32_t rank) : pattern_(pattern) {
    program_.rank = rank;
    program_.ranks = pattern.ranks;
  }
  RankProgram take() { return std::move(program_); }

  Waits compute(Nanos time, const Waits& waits) {
    Operation operation;
    operation.compute = time;
    return time.count > 0 ? add(operation, waits) : waits;
  }
  Waits send(std::uint32_t peer, Slice slice, std::uint64_t tag, const Waits& waits) {
    return transfer(Operation::Kind::send, peer, slice, tag, false, waits);
  }
  Waits receive(std::uint32_t peer, Slice slice, std::uint64_t tag, bool reduce, const Waits& waits) {
    return transfer(Operation::Kind::receive, peer, slice, tag, reduce, waits);
  }

  // Each collective begins after `waits` and returns what it is done with on this rank.

  Waits all_reduce(Group& group, Bytes size, const Waits& waits) {
    if (group.size() == 1) return waits;
    Waits at = begin(group, waits);
    if (pattern_.algorithm == Algorithm::tree) {
      at = trees(group, {{0, size / 2}, {size / 2, size - size / 2}}, true, at);
    } else {
      at = reduce_scatter_steps(group, {0, size}, at);
      at = all_gather_steps(group, {0, size}, at);
    }
    return end(group, at);
  }
  Waits reduce_scatter(Group& group, Bytes size, const Waits& waits) {
    return end(group, reduce_scatter_steps(group, {0, size}, begin(group, waits)));
  }
  Waits all_gather(Group& group, Bytes size, const Waits& waits) {
    return end(group, all_gather_steps(group, {0, size}, begin(group, waits)));
  }

  Waits all_to_all(Group& group, Bytes size, const Waits& waits) {
    const std::uint32_t n = group.size();
    const Bytes mine = block({0, size}, n, group.me).bytes;  // of everyone's
    Waits sent = begin(group, waits);
    Waits received = sent;
    for (std::uint32_t k = 1; k < n; ++k) {
      const bool exchange = std::has_single_bit(n);
      const std::uint32_t to = exchange ? group.me ^ k : (group.me + k) % n;
      const std::uint32_t from = exchange ? group.me ^ k : (group.me + n - k) % n;
      const Waits step = k == 1 ? received : both(sent, received);
      sent = send(group.ranks[to], block({0, size}, n, to), tag_of(group.sequence, k), step);
      received = receive(group.ranks[from], {from * mine, mine}, tag_of(group.sequence, k), false, step);
    }
    return end(group, received);
  }

  Waits broadcast(Group& group, Bytes size, const Waits& waits) {
    Waits at = begin(group, waits);
    if (pattern_.algorithm == Algorithm::tree) return end(group, trees(group, {{0, size}}, false, at));
    const std::uint64_t count = chunks(size);
    for (std::uint64_t chunk = 0; chunk < count; ++chunk) {
      const Slice slice = block({0, size}, count, chunk);
      const std::uint64_t tag = tag_of(group.sequence, 0, chunk);
      if (group.me > 0) at = receive(group.ranks[group.me - 1], slice, tag, false, at);
      if (group.me + 1 < group.size()) send(group.ranks[group.me + 1], slice, tag, at);
    }
    return end(group, at);
  }

 private:
  Waits add(Operation operation, const Waits& waits) {
    if (program_.operations.size() == kMostOperations)
      throw InputError(
          fmt::format("rank {} has more than {} operations in an iteration; lower ranks, micro-batches, "
                      "layers or buckets, or raise the size of chunks",
                      program_.rank, kMostOperations));
    operation.first_wait = static_cast<std::uint32_t>(program_.waits.size());
    operation.waits = static_cast<std::uint32_t>(waits.size());
    program_.waits.insert(program_.waits.end(), waits.begin(), waits.end());
    program_.operations.push_back(operation);
    return {static_cast<std::uint32_t>(program_.operations.size() - 1)};
  }
  Waits transfer(Operation::Kind kind, std::uint32_t peer, Slice slice, std::uint64_t tag, bool reduce,
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

  static Waits begin(const Group& group, const Waits& waits) { return both(waits, group.last); }
  static Waits end(Group& group, const Waits& waits) {
    ++group.sequence;
    return group.last = waits;
  }

  // In the end, rank r has the sum of block r.
  Waits reduce_scatter_steps(const Group& group, Slice all, Waits received) {
    const std::uint32_t n = group.size();
    const std::uint32_t me = group.me;
    std::uint32_t step = 0;
    if (pattern_.algorithm == Algorithm::halving_doubling) {
      std::uint32_t first = 0;  // of the blocks that are still this rank's business, 2 * half of them
      for (std::uint32_t half = n / 2; half > 0; half /= 2, ++step) {
        const std::uint32_t keep = first + (me & half);
        const std::uint32_t give = first + (~me & half);
        const std::uint32_t peer = group.ranks[me ^ half];
        send(peer, blocks(all, n, give, give + half), tag_of(group.sequence, step), received);
        received = receive(peer, blocks(all, n, keep, keep + half), tag_of(group.sequence, step), true, received);
        first = keep;
      }
      return received;
    }
    for (; step + 1 < n; ++step) {
      const std::uint64_t tag = tag_of(group.sequence, step);
      send(group.ranks[(me + 1) % n], block(all, n, (me + n - 1 - step) % n), tag, received);
      received =
          receive(group.ranks[(me + n - 1) % n], block(all, n, (me + 2 * n - 2 - step) % n), tag, true, received);
    }
    return received;
  }

  // In the beginning, rank r has block r.
  Waits all_gather_steps(const Group& group, Slice all, Waits received) {
    const std::uint32_t n = group.size();
    const std::uint32_t me = group.me;
    std::uint32_t step = n;  // tags differ from those of a reduce-scatter before
    if (pattern_.algorithm == Algorithm::halving_doubling) {
      for (std::uint32_t half = 1; half < n; half *= 2, ++step) {
        const std::uint32_t mine = me & ~(half - 1);
        const std::uint32_t peer = group.ranks[me ^ half];
        send(peer, blocks(all, n, mine, mine + half), tag_of(group.sequence, step), received);
        const std::uint32_t other = mine ^ half;
        received = receive(peer, blocks(all, n, other, other + half), tag_of(group.sequence, step), false, received);
      }
      return received;
    }
    for (std::uint32_t k = 0; k + 1 < n; ++k, ++step) {
      const std::uint64_t tag = tag_of(group.sequence, step);
      send(group.ranks[(me + 1) % n], block(all, n, (me + n - k) % n), tag, received);
      received = receive(group.ranks[(me + n - 1) % n], block(all, n, (me + 2 * n - 1 - k) % n), tag, false, received);
    }
    return received;
  }

  [[nodiscard]] std::uint64_t chunks(Bytes size) const {
    const Bytes chunk =
        pattern_.chunk > 0 ? pattern_.chunk : std::max(kChunk, (size + kMostDefaultChunks - 1) / kMostDefaultChunks);
    const Bytes count = std::max<Bytes>(1, (size + chunk - 1) / chunk);
    if (count > kMostOperations)
      throw InputError(fmt::format("{} chunks are more than {}; raise the size of chunks", count, kMostOperations));
    return count;
  }

  // Slice t goes over tree t: up to its root if `reduce`, and from there down to all. Two ranks may be neighbours in
  // both trees, and what they send each other then must not hold up the pipeline. So operations are written in the
  // order of time, in which each hop of a chunk takes a unit.
  Waits trees(const Group& group, const std::vector<Slice>& slices, bool reduce, const Waits& waits) {
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
    // By tree and chunk: what this rank's part of it waits for, which is what has arrived from below, then from above.
    std::vector<Waits> have(slices.size() * count, waits);
    std::map<std::tuple<std::uint32_t, bool, std::uint32_t>, Waits> last;  // received, by tree, direction and peer
    for (const Step& step : steps) {
      const Slice slice = block(slices[step.tree], count, step.chunk);
      const std::uint64_t tag = tag_of(group.sequence, 2 * step.tree + (step.down ? 1 : 0), step.chunk);
      Waits& chunk = have[step.tree * count + step.chunk];
      if (step.is_send) {
        send(group.ranks[step.peer], slice, tag, chunk);
        continue;
      }
      Waits& before = last.try_emplace({step.tree, step.down, step.peer}, waits).first->second;
      before = receive(group.ranks[step.peer], slice, tag, !step.down, before);
      chunk = chunk == waits || step.down ? before : both(chunk, before);
    }
    // The end of a tree is the last chunk from above, or from all below for its root.
    Waits done;
    for (std::uint32_t t = 0; t < slices.size(); ++t) done = both(std::move(done), have[t * count + count - 1]);
    return done;
  }

  const Pattern& pattern_;
  RankProgram program_;
};

/// One rank's part in a training iteration.
class Training {
 public:
  Training(const Pattern& pattern, std::uint32_t rank, Writer& writer)
      : pattern_(pattern), training_(pattern.training), writer_(writer) {
    const std::uint32_t t = training_.tensor;
    const std::uint32_t d = pattern.data();
    stage_ = rank / (t * d);
    tensor_ = group(rank - rank % t, t, 1, rank % t);
    data_ = group(stage_ * t * d + rank % t, d, t, rank / t % d);
    next_ = rank + t * d;
    previous_ = rank - t * d;
  }

  // 1F1B: as many forward passes first as there are stages behind this one.
  void write() {
    const std::uint32_t all = training_.micro_batches;
    const std::uint32_t first = std::min(training_.pipeline - 1 - stage_, all);
    for (std::uint32_t m = 0; m < first; ++m) forward(m);
    for (std::uint32_t m = first; m < all; ++m) {
      forward(m);
      backward(m - first);
    }
    for (std::uint32_t m = all - first; m < all; ++m) backward(m);
    if (!training_.overlap) reduce_gradients(training_.layers);
  }

 private:
  static constexpr std::uint64_t kBlocks = 2;  // of a layer

  static Group group(std::uint32_t first, std::uint32_t size, std::uint32_t stride, std::uint32_t me) {
    Group result;
    result.me = me;
    for (std::uint32_t i = 0; i < size; ++i) result.ranks.push_back(first + i * stride);
    return result;
  }

  /// What block `block` of the pass over a micro-batch computes.
  [[nodiscard]] Nanos compute(std::uint32_t micro_batch, bool is_backward, std::uint64_t block) const {
    const Nanos both_passes = part(pattern_.compute, training_.micro_batches, micro_batch);
    const Nanos forward_pass = both_passes / 3;
    return part(is_backward ? both_passes - forward_pass : forward_pass, kBlocks * training_.layers, block);
  }

  void layer(std::uint32_t micro_batch, bool is_backward, std::uint32_t number) {
    const bool blocking = tensor_.size() > 1 || (training_.experts > 0 && data_.size() > 1);
    Nanos time;
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      time += compute(micro_batch, is_backward, kBlocks * number + i);
      if (!blocking && i + 1 < kBlocks) continue;
      at_ = writer_.compute(time, at_);
      at_ = writer_.all_reduce(tensor_, training_.activations, at_);
      if (training_.experts > 0 && data_.size() > 1) at_ = writer_.all_to_all(data_, training_.experts, at_);
      time = {};
    }
  }

  void forward(std::uint32_t m) {
    if (stage_ > 0) at_ = both(at_, writer_.receive(previous_, {0, training_.activations}, tag_of(m, 0), false, {}));
    for (std::uint32_t i = 0; i < training_.layers; ++i) layer(m, false, i);
    if (stage_ + 1 < training_.pipeline) writer_.send(next_, {0, training_.activations}, tag_of(m, 0), at_);
  }

  void backward(std::uint32_t m) {
    if (stage_ + 1 < training_.pipeline)
      at_ = both(at_, writer_.receive(next_, {0, training_.activations}, tag_of(m, 1), false, {}));
    for (std::uint32_t i = 0; i < training_.layers; ++i) {
      layer(m, true, i);
      if (training_.overlap && m + 1 == training_.micro_batches) reduce_gradients(i + 1);
    }
    if (stage_ > 0) writer_.send(previous_, {0, training_.activations}, tag_of(m, 1), at_);
  }

  /// All-reduces the buckets that are full with the gradients of so many layers.
  void reduce_gradients(std::uint64_t layers) {
    const std::uint64_t buckets = training_.buckets;
    for (; bucket_ < buckets && layers * buckets >= (bucket_ + 1) * training_.layers; ++bucket_)
      writer_.all_reduce(data_, block({0, pattern_.size}, buckets, bucket_).bytes, at_);
  }

  const Pattern& pattern_;
  const Pattern::Training& training_;
  Writer& writer_;
  std::uint32_t stage_ = 0;
  Group tensor_;
  Group data_;
  std::uint32_t next_ = 0;
  std::uint32_t previous_ = 0;
  Waits at_;  ///< what the next computation waits for
  std::uint64_t bucket_ = 0;
};

void write_parameter_server(const Pattern& pattern, std::uint32_t rank, Writer& writer) {
  const std::uint32_t servers = pattern.servers;
  const std::uint32_t workers = pattern.ranks - servers;
  const Slice all{0, pattern.size};
  if (rank < workers) {
    const Waits computed = writer.compute(pattern.compute, {});
    // Workers don't all begin with the same server.
    for (const unsigned step : {0U, 1U})
      for (std::uint32_t i = 0; i < servers; ++i) {
        const std::uint32_t server = (rank + i) % servers;
        const Slice share = block(all, servers, server);
        if (step == 0)
          writer.send(workers + server, share, tag_of(0, step), computed);
        else
          writer.receive(workers + server, share, tag_of(0, step), false, {});
      }
    return;
  }
  const Slice share = block(all, servers, rank - workers);
  Waits pushed;
  for (std::uint32_t worker = 0; worker < workers; ++worker)
    pushed = both(std::move(pushed), writer.receive(worker, share, tag_of(0, 0), true, {}));
  for (std::uint32_t worker = 0; worker < workers; ++worker) writer.send(worker, share, tag_of(0, 1), pushed);
}

void need_power_of_two(std::uint32_t ranks, std::string_view what) {
  if (!std::has_single_bit(ranks))
    throw InputError(
        fmt::format("halving-doubling is for powers of two, and there are {} {}; take another number, or "
                    "ring or tree",
                    ranks, what));
}

void check_training(const Pattern& pattern) {
  const Pattern::Training& training = pattern.training;
  for (const auto& [count, what] : {std::pair(training.tensor, "tensor"), std::pair(training.pipeline, "pipeline"),
                                    std::pair(training.micro_batches, "micro_batches"),
                                    std::pair(training.layers, "layers"), std::pair(training.buckets, "buckets")})
    if (count < 1 || count > kMostOperations)
      throw InputError(fmt::format("{} is {}; write 1 to {}", what, count, kMostOperations));
  const std::uint64_t groups = std::uint64_t{training.tensor} * training.pipeline;
  if (pattern.ranks % groups != 0)
    throw InputError(fmt::format("tensor times pipeline, {}, doesn't divide the {} ranks; take other numbers", groups,
                                 pattern.ranks));
  if (training.buckets > training.layers)
    throw InputError(fmt::format("there are {} buckets for the gradients of {} layers; write at most as many buckets",
                                 training.buckets, training.layers));
  if (groups > 1 && training.activations == 0)
    throw InputError(
        "tensor ranks and stages exchange activations, and these have no size; add activations = \"4 MB\"");
  if (pattern.data() > 1 && pattern.size == 0)
    throw InputError("data-parallel ranks exchange gradients, and these have no size; add gradients = \"100 MB\"");
  if (pattern.data() == 1 && training.experts > 0)
    throw InputError("experts are spread over data-parallel ranks, and there is one of them; leave experts out");
  if (pattern.algorithm == Algorithm::halving_doubling) {
    need_power_of_two(training.tensor, "tensor ranks");
    need_power_of_two(pattern.data(), "data-parallel ranks");
  }
}

}  // namespace

std::string_view name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::tree:
      return "tree";
    case Algorithm::halving_doubling:
      return "halving-doubling";
  }
  return "unknown";
}

std::string_view name(Pattern::Kind kind) {
  switch (kind) {
    case Pattern::Kind::all_reduce:
      return "all-reduce";
    case Pattern::Kind::reduce_scatter:
      return "reduce-scatter";
    case Pattern::Kind::all_gather:
      return "all-gather";
    case Pattern::Kind::all_to_all:
      return "all-to-all";
    case Pattern::Kind::broadcast:
      return "broadcast";
    case Pattern::Kind::point_to_point:
      return "point-to-point";
    case Pattern::Kind::parameter_server:
      return "parameter-server";
    case Pattern::Kind::training:
      return "training";
  }
  return "unknown";
}

RankProgram::Load RankProgram::load() const {
  Load load;
  for (const Operation& operation : operations) {
    load.compute += operation.compute;
    if (operation.barrier) continue;
    if (operation.kind == Operation::Kind::send) load.sent += operation.bytes;
    if (operation.kind == Operation::Kind::receive) load.received += operation.bytes;
  }
  return load;
}

void check(const Pattern& pattern) {
  using Kind = Pattern::Kind;
  if (pattern.ranks < 2 || pattern.ranks > kMostRanks)
    throw InputError(fmt::format("there are {} ranks; take 2 to {}", pattern.ranks, kMostRanks));
  if (pattern.compute.count < 0) throw InputError("the compute time is below 0; write 0 or more");
  if (pattern.kind == Kind::training) return check_training(pattern);
  if (pattern.size == 0)
    throw InputError(fmt::format("{} has no size, so nothing is sent; add size = \"100 MB\"", name(pattern.kind)));
  if (pattern.kind == Kind::parameter_server && (pattern.servers < 1 || pattern.servers >= pattern.ranks))
    throw InputError(fmt::format("{} of {} ranks are servers; leave one worker or more, and one server or more",
                                 pattern.servers, pattern.ranks));
  if (pattern.kind == Kind::parameter_server && pattern.size < pattern.servers)
    throw InputError(fmt::format("{} bytes are less than one for each server; write a larger size", pattern.size));
  const bool splits = pattern.kind == Kind::reduce_scatter || pattern.kind == Kind::all_gather;
  if ((splits && pattern.algorithm == Algorithm::tree) ||
      (pattern.kind == Kind::broadcast && pattern.algorithm == Algorithm::halving_doubling))
    throw InputError(fmt::format("{} has no algorithm {}; take ring or {}", name(pattern.kind), name(pattern.algorithm),
                                 name(splits ? Algorithm::halving_doubling : Algorithm::tree)));
  if (pattern.algorithm == Algorithm::halving_doubling && (splits || pattern.kind == Kind::all_reduce))
    need_power_of_two(pattern.ranks, "ranks");
}

Outline outline(const Pattern& pattern) {
  check(pattern);
  Outline all;
  std::vector<bool> peers(pattern.ranks);
  for (std::uint32_t rank = 0; rank < pattern.ranks; ++rank) {
    const RankProgram program = rank_program(pattern, rank);
    const RankProgram::Load load = program.load();
    all.compute = std::max(all.compute, load.compute);
    all.bytes = std::max({all.bytes, load.sent, load.received});
    all.operations += program.operations.size();
    if (all.operations > kMostOperationsInAll)
      throw InputError(
          fmt::format("ranks 0 to {} alone have more than {} operations in an iteration; lower ranks, "
                      "micro-batches, layers or buckets, or raise the size of chunks",
                      rank, kMostOperationsInAll));
    peers.assign(pattern.ranks, false);
    for (const Operation& operation : program.operations)
      if (operation.kind != Operation::Kind::compute && operation.peer > rank) peers[operation.peer] = true;
    all.pairs += static_cast<std::uint64_t>(std::count(peers.begin(), peers.end(), true));
  }
  return all;
}

double bus_factor(const Pattern& pattern) {
  using Kind = Pattern::Kind;
  const double others = pattern.ranks > 0 ? static_cast<double>(pattern.ranks - 1) / pattern.ranks : 0;
  switch (pattern.kind) {
    case Kind::all_reduce:
      return 2 * others;
    case Kind::reduce_scatter:
    case Kind::all_gather:
    case Kind::all_to_all:
      return others;
    case Kind::broadcast:
    case Kind::point_to_point:
      return 1;
    case Kind::parameter_server:
    case Kind::training:
      break;
  }
  return 0;
}

RankProgram rank_program(const Pattern& pattern, std::uint32_t rank) {
  using Kind = Pattern::Kind;
  check(pattern);
  Writer writer(pattern, rank);
  if (pattern.kind == Kind::training) {
    Training(pattern, rank, writer).write();
    return writer.take();
  }
  if (pattern.kind == Kind::parameter_server) {
    write_parameter_server(pattern, rank, writer);
    return writer.take();
  }
  const std::uint32_t n = pattern.ranks;
  Group all;
  all.me = rank;
  for (std::uint32_t i = 0; i < n; ++i) all.ranks.push_back(i);
  const Waits computed = writer.compute(pattern.compute, {});
  switch (pattern.kind) {
    case Kind::all_reduce:
      writer.all_reduce(all, pattern.size, computed);
      break;
    case Kind::reduce_scatter:
      writer.reduce_scatter(all, pattern.size, computed);
      break;
    case Kind::all_gather:
      writer.all_gather(all, pattern.size, computed);
      break;
    case Kind::all_to_all:
      writer.all_to_all(all, pattern.size, computed);
      break;
    case Kind::broadcast:
      writer.broadcast(all, pattern.size, computed);
      break;
    case Kind::point_to_point:
      writer.send(rank + 1 < n ? rank + 1 : 0, {0, pattern.size}, tag_of(0, 0), computed);
      writer.receive(rank > 0 ? rank - 1 : n - 1, {0, pattern.size}, tag_of(0, 0), false, {});
      break;
    case Kind::parameter_server:
    case Kind::training:
      break;
  }
  return writer.take();
}

}  // namespace mltcp::workload
