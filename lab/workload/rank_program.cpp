// Makes the programs of ranks from a communication pattern (see rank_program.h).
#include "mltcp/lab/workload/rank_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/internal/program_writer.h"

namespace mltcp::workload {
namespace {

using internal::block;
using internal::both;
using internal::Group;
using internal::part;
using internal::ProgramWriter;
using internal::Slice;
using internal::tag_of;
using internal::Waits;

/// Writes one rank's part of a training iteration.
class Training {
 public:
  Training(const Pattern& pattern, std::uint32_t rank, ProgramWriter& writer)
      : pattern_(pattern), training_(pattern.training), writer_(writer) {
    const std::uint32_t t = training_.tensor;
    const std::uint32_t d = pattern.data();
    stage_ = rank / (t * d);
    tensor_ = group(rank - rank % t, t, 1, rank % t);
    data_ = group(stage_ * t * d + rank % t, d, t, rank / t % d);
    next_ = rank + t * d;
    previous_ = rank - t * d;
  }

  // Writes the passes in the order of 1F1B: a rank begins with as many forward passes as there are stages after its
  // own.
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
  static constexpr std::uint64_t kBlocks = 2;  // number of blocks in a layer

  static Group group(std::uint32_t first, std::uint32_t size, std::uint32_t stride, std::uint32_t me) {
    std::vector<std::uint32_t> members;
    members.reserve(size);
    for (std::uint32_t i = 0; i < size; ++i) members.push_back(first + i * stride);
    Group result;
    result.members = std::make_shared<const std::vector<std::uint32_t>>(std::move(members));
    result.me = me;
    return result;
  }

  /// Returns the compute time of block `block` in a pass over one micro-batch.
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

  /// All-reduces the buckets that are full once the gradients of `layers` layers exist.
  void reduce_gradients(std::uint64_t layers) {
    const std::uint64_t buckets = training_.buckets;
    for (; bucket_ < buckets && layers * buckets >= (bucket_ + 1) * training_.layers; ++bucket_)
      writer_.all_reduce(data_, block({0, pattern_.size}, buckets, bucket_).bytes, at_);
  }

  const Pattern& pattern_;
  const Pattern::Training& training_;
  ProgramWriter& writer_;
  std::uint32_t stage_ = 0;
  Group tensor_;
  Group data_;
  std::uint32_t next_ = 0;
  std::uint32_t previous_ = 0;
  Waits at_;  ///< operations that the next computation waits for
  std::uint64_t bucket_ = 0;
};

void write_parameter_server(const Pattern& pattern, std::uint32_t rank, ProgramWriter& writer) {
  const std::uint32_t servers = pattern.servers;
  const std::uint32_t workers = pattern.ranks - servers;
  const Slice all{0, pattern.size};
  if (rank < workers) {
    const Waits computed = writer.compute(pattern.compute, {});
    // Workers begin with different servers, to spread the load.
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
        fmt::format("halving-doubling needs a power of two, but there are {} {}; give another number, or ring or tree",
                    ranks, what));
}

void check_training(const Pattern& pattern) {
  const Pattern::Training& training = pattern.training;
  for (const auto& [count, what] : {std::pair(training.tensor, "tensor"), std::pair(training.pipeline, "pipeline"),
                                    std::pair(training.micro_batches, "micro_batches"),
                                    std::pair(training.layers, "layers"), std::pair(training.buckets, "buckets")})
    if (count < 1 || count > kMaxOperations)
      throw InputError(fmt::format("{} is {}; write 1 to {}", what, count, kMaxOperations));
  const std::uint64_t groups = std::uint64_t{training.tensor} * training.pipeline;
  if (pattern.ranks % groups != 0)
    throw InputError(fmt::format("tensor times pipeline, {}, does not divide the {} ranks; give other numbers", groups,
                                 pattern.ranks));
  if (training.buckets > training.layers)
    throw InputError(fmt::format("there are {} buckets for the gradients of {} layers; write at most as many buckets",
                                 training.buckets, training.layers));
  if (groups > 1 && training.activations == 0)
    throw InputError(
        "tensor ranks and stages exchange activations, but these have no size; add activations = \"4 MB\"");
  if (pattern.data() > 1 && pattern.size == 0)
    throw InputError("data-parallel ranks exchange gradients, but these have no size; add gradients = \"100 MB\"");
  if (pattern.data() == 1 && training.experts > 0)
    throw InputError("experts are spread over data-parallel ranks, but there is only one; leave experts out");
  if (pattern.algorithm == Algorithm::halving_doubling) {
    need_power_of_two(training.tensor, "tensor ranks");
    need_power_of_two(pattern.data(), "data-parallel ranks");
  }
}

}  // namespace

std::string_view name(Algorithm algorithm) {
  using enum Algorithm;
  return word_of<Algorithm>(algorithm, {{ring, "ring"}, {tree, "tree"}, {halving_doubling, "halving-doubling"}});
}

std::string_view name(Pattern::Kind kind) {
  using enum Pattern::Kind;
  return word_of<Pattern::Kind>(kind, {{all_reduce, "all-reduce"},
                                       {reduce_scatter, "reduce-scatter"},
                                       {all_gather, "all-gather"},
                                       {all_to_all, "all-to-all"},
                                       {broadcast, "broadcast"},
                                       {point_to_point, "point-to-point"},
                                       {parameter_server, "parameter-server"},
                                       {training, "training"}});
}

RankProgram::Load RankProgram::load() const {
  Load load;
  for (const Operation& operation : operations) {
    if (operation.kind == Operation::Kind::compute) load.compute += operation.compute;
    if (operation.barrier) continue;
    if (operation.kind == Operation::Kind::send) load.sent += operation.bytes;
    if (operation.kind == Operation::Kind::receive) load.received += operation.bytes;
  }
  return load;
}

bool RankProgram::communicates() const {
  return std::ranges::any_of(operations, [](const Operation& operation) { return operation.communicates(); });
}

void check(const Pattern& pattern) {
  using Kind = Pattern::Kind;
  if (pattern.ranks < 2 || pattern.ranks > kMaxRanks)
    throw InputError(fmt::format("there are {} ranks; give 2 to {}", pattern.ranks, kMaxRanks));
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
    throw InputError(fmt::format("{} has no algorithm {}; give ring or {}", name(pattern.kind), name(pattern.algorithm),
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
    if (all.operations > kMaxOperationsInAll)
      throw InputError(
          fmt::format("ranks 0 to {} alone have more than {} operations in an iteration; lower ranks, "
                      "micro-batches, layers or buckets, or raise the size of chunks",
                      rank, kMaxOperationsInAll));
    peers.assign(pattern.ranks, false);
    for (const Operation& operation : program.operations)
      if (operation.communicates() && operation.peer > rank) peers[operation.peer] = true;
    all.pairs += static_cast<std::uint64_t>(std::ranges::count(peers, true));
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
  ProgramWriter writer(pattern.algorithm, pattern.chunk, rank, pattern.ranks);
  if (pattern.kind == Kind::training) {
    Training(pattern, rank, writer).write();
    return writer.take();
  }
  if (pattern.kind == Kind::parameter_server) {
    write_parameter_server(pattern, rank, writer);
    return writer.take();
  }
  const std::uint32_t n = pattern.ranks;
  std::vector<std::uint32_t> members(n);
  std::iota(members.begin(), members.end(), 0U);
  Group all;
  all.members = std::make_shared<const std::vector<std::uint32_t>>(std::move(members));
  all.me = rank;
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
