// Tests rank programs with a small interpreter. It tracks, for each byte, the ranks whose data the byte contains.
#include "mltcp/lab/workload/rank_program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "../message_of.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/workload/collective.h"
#include "program_runner.h"

namespace mltcp::workload::rank_program_test {
namespace {

using Kind = Pattern::Kind;
using Buffer = ProgramRunner::Buffer;  // for each byte, one bit for each rank that has contributed to it

Pattern pattern(Kind kind, std::uint32_t ranks, Bytes size, Algorithm algorithm = Algorithm::ring) {
  Pattern result;
  result.kind = kind;
  result.ranks = ranks;
  result.size = size;
  result.algorithm = algorithm;
  return result;
}

std::vector<RankProgram> programs(const Pattern& pattern) {
  std::vector<RankProgram> all;
  for (std::uint32_t rank = 0; rank < pattern.ranks; ++rank) all.push_back(rank_program(pattern, rank));
  return all;
}

/// Runs programs and tracks which ranks have contributed to each byte of every rank's buffer.
class Interpreter : public ProgramRunner {
 public:
  Interpreter(const std::vector<RankProgram>& all, std::vector<Buffer> from, std::vector<Buffer> to, bool in_place)
      : ProgramRunner(all), from_(std::move(from)), to_(std::move(to)), in_place_(in_place) {}

  [[nodiscard]] const std::vector<Buffer>& result() const { return in_place_ ? from_ : to_; }

 private:
  Buffer sent(std::uint32_t rank, const Operation& operation) override {
    const auto at = from_[rank].begin() + static_cast<std::ptrdiff_t>(operation.offset);
    return {at, at + static_cast<std::ptrdiff_t>(operation.bytes)};
  }
  void received(std::uint32_t rank, const Operation& operation, const Buffer& bytes) override {
    Buffer& buffer = in_place_ ? from_[rank] : to_[rank];
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::uint64_t& byte = buffer[operation.offset + i];
      if (operation.reduce) {
        EXPECT_EQ(byte & bytes[i], 0U) << "a contribution is added twice";
        byte |= bytes[i];
      } else {
        byte = bytes[i];
      }
    }
  }

  std::vector<Buffer> from_;
  std::vector<Buffer> to_;
  bool in_place_;
};

std::pair<Bytes, Bytes> block(Bytes size, std::uint32_t n, std::uint32_t i) {
  return {size * i / n, size * (i + 1) / n};
}

/// Runs the pattern and returns the final buffer of every rank. Initially, each rank's own bit is set in all bytes of
/// its buffer, or only in its own block if `blocks_only`.
std::vector<Buffer> reduced(const Pattern& pattern, std::uint64_t seed, bool blocks_only = false) {
  std::vector<Buffer> buffers;
  for (std::uint32_t rank = 0; rank < pattern.ranks; ++rank) {
    Buffer& buffer = buffers.emplace_back(pattern.size, 0);
    const auto [from, to] = block(pattern.size, pattern.ranks, rank);
    for (Bytes i = 0; i < pattern.size; ++i)
      if (!blocks_only || (i >= from && i < to)) buffer[i] = std::uint64_t{1} << rank;
  }
  const std::vector<RankProgram> all = programs(pattern);
  Interpreter interpreter(all, buffers, {}, true);
  SCOPED_TRACE(testing::Message() << name(pattern.kind) << " of " << pattern.ranks);
  interpreter.run(seed);
  return interpreter.result();
}

TEST(RankProgram, all_reduce__gives_every_rank_the_sum_of_all) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling})
    for (std::uint32_t n = 2; n <= 17; ++n)
      for (const Bytes size : {1U, 5U, 97U}) {
        if (algorithm == Algorithm::halving_doubling && (n & (n - 1)) != 0) continue;
        Pattern of = pattern(Kind::all_reduce, n, size, algorithm);
        of.chunk = 7;
        for (const Buffer& buffer : reduced(of, n))
          EXPECT_EQ(buffer, Buffer(size, (std::uint64_t{1} << n) - 1)) << name(algorithm) << " of " << n;
      }
}

TEST(RankProgram, reduce_scatter__gives_every_rank_the_sum_of_its_block) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling})
    for (std::uint32_t n = 2; n <= 17; ++n) {
      if (algorithm == Algorithm::halving_doubling && (n & (n - 1)) != 0) continue;
      const auto buffers = reduced(pattern(Kind::reduce_scatter, n, 97, algorithm), n);
      for (std::uint32_t rank = 0; rank < n; ++rank)
        for (auto [i, to] = block(97, n, rank); i < to; ++i)
          EXPECT_EQ(buffers[rank][i], (std::uint64_t{1} << n) - 1) << name(algorithm) << " of " << n;
    }
}

TEST(RankProgram, all_gather__gives_every_rank_all_blocks) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling})
    for (std::uint32_t n = 2; n <= 17; ++n) {
      if (algorithm == Algorithm::halving_doubling && (n & (n - 1)) != 0) continue;
      for (const Buffer& buffer : reduced(pattern(Kind::all_gather, n, 97, algorithm), n, true))
        for (std::uint32_t rank = 0; rank < n; ++rank)
          for (auto [i, to] = block(97, n, rank); i < to; ++i) EXPECT_EQ(buffer[i], std::uint64_t{1} << rank);
    }
}

TEST(RankProgram, broadcast__gives_every_rank_what_rank_0_has) {
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree})
    for (std::uint32_t n = 2; n <= 17; ++n) {
      Pattern of = pattern(Kind::broadcast, n, 97, algorithm);
      of.chunk = 10;
      for (const Buffer& buffer : reduced(of, n)) EXPECT_EQ(buffer, Buffer(97, 1)) << name(algorithm) << " of " << n;
    }
}

TEST(RankProgram, all_to_all__gives_every_rank_its_block_of_each) {
  constexpr Bytes size = 97;
  for (std::uint32_t n = 2; n <= 17; ++n) {
    std::vector<Buffer> from;
    for (std::uint32_t rank = 0; rank < n; ++rank) {
      Buffer& buffer = from.emplace_back(size);
      for (std::uint32_t to = 0; to < n; ++to)
        for (auto [i, end] = block(size, n, to); i < end; ++i) buffer[i] = 1000 * rank + to;
    }
    const std::vector<RankProgram> all = programs(pattern(Kind::all_to_all, n, size));
    Interpreter interpreter(all, from, std::vector<Buffer>(n, Buffer(size + n)), false);
    interpreter.run(n);
    for (std::uint32_t rank = 0; rank < n; ++rank) {
      const auto [begin, end] = block(size, n, rank);
      for (std::uint32_t source = 0; source < n; ++source)
        for (Bytes i = 0; source != rank && i < end - begin; ++i)
          EXPECT_EQ(interpreter.result()[rank][source * (end - begin) + i], 1000 * source + rank);
    }
  }
}

TEST(RankProgram, parameter_server__gives_every_worker_the_sum_of_all_workers) {
  for (std::uint32_t n = 2; n <= 17; ++n)
    for (std::uint32_t servers = 1; servers < n; ++servers) {
      Pattern of = pattern(Kind::parameter_server, n, 97);
      of.servers = servers;
      const std::vector<RankProgram> all = programs(of);
      std::vector<Buffer> buffers;
      for (std::uint32_t rank = 0; rank < n; ++rank)
        buffers.emplace_back(97, rank < n - servers ? std::uint64_t{1} << rank : 0);
      Interpreter interpreter(all, buffers, {}, true);
      interpreter.run(n);
      for (std::uint32_t rank = 0; rank < n - servers; ++rank)
        EXPECT_EQ(interpreter.result()[rank], Buffer(97, (std::uint64_t{1} << (n - servers)) - 1));
      EXPECT_EQ(all.front().load().sent, 97U);
      EXPECT_EQ(all.back().load().sent, (97 - 97 * (servers - 1) / servers) * (n - servers));
    }
}

TEST(RankProgram, point_to_point__goes_around) {
  for (std::uint32_t n = 2; n <= 17; ++n) {
    std::vector<Buffer> from;
    for (std::uint32_t rank = 0; rank < n; ++rank) from.emplace_back(3, rank);
    const std::vector<RankProgram> all = programs(pattern(Kind::point_to_point, n, 3));
    Interpreter interpreter(all, from, std::vector<Buffer>(n, Buffer(3)), false);
    interpreter.run(n);
    for (std::uint32_t rank = 0; rank < n; ++rank) EXPECT_EQ(interpreter.result()[rank], Buffer(3, (rank + n - 1) % n));
  }
}

TEST(RankProgram, load__is_what_the_formulas_say) {
  constexpr Bytes size = 12'252'240;  // the least common multiple of the numbers 1 to 17
  for (std::uint32_t n = 2; n <= 17; ++n) {
    const auto all_send = [&](const Pattern& of, Collective collective) {
      for (const RankProgram& program : programs(of)) {
        EXPECT_EQ(program.load().sent, bytes_sent(collective, size, n)) << name(of.kind) << " of " << n;
        EXPECT_EQ(program.load().received, bytes_sent(collective, size, n)) << name(of.kind) << " of " << n;
      }
    };
    all_send(pattern(Kind::all_reduce, n, size), Collective::all_reduce);
    all_send(pattern(Kind::reduce_scatter, n, size), Collective::reduce_scatter);
    all_send(pattern(Kind::all_gather, n, size), Collective::all_gather);
    all_send(pattern(Kind::all_to_all, n, size), Collective::all_to_all);
    EXPECT_EQ(rank_program(pattern(Kind::broadcast, n, size), 0).load().sent,
              bytes_sent(Collective::broadcast, size, n));
    if ((n & (n - 1)) == 0) {
      all_send(pattern(Kind::all_reduce, n, size, Algorithm::halving_doubling), Collective::all_reduce);
      all_send(pattern(Kind::reduce_scatter, n, size, Algorithm::halving_doubling), Collective::reduce_scatter);
    }
    // Each edge of both trees carries half of the bytes up and down. A rank sends one half to its parent and one half
    // to each of its children, if it has any.
    Bytes sum = 0;
    for (const RankProgram& program : programs(pattern(Kind::all_reduce, n, size, Algorithm::tree))) {
      sum += program.load().sent;
      EXPECT_LE(program.load().sent, 2 * size) << n;
    }
    EXPECT_EQ(sum, 2 * (n - 1) * size);
  }
}

// ---- Training ----

Pattern training(std::uint32_t data, std::uint32_t tensor, std::uint32_t pipeline, std::uint32_t micro_batches) {
  Pattern of = pattern(Kind::training, data * tensor * pipeline, 12'252'240);
  of.compute = Nanos(12'000);
  of.training.tensor = tensor;
  of.training.pipeline = pipeline;
  of.training.micro_batches = micro_batches;
  of.training.activations = 1200;
  return of;
}

std::vector<Buffer> empty_buffers(const Pattern& of) {
  return std::vector<Buffer>(of.ranks, Buffer(std::max({of.size, of.training.activations, of.training.experts})));
}

// The bus factors of nccl-tests are the bytes that a rank sends, as a multiple of the size.
TEST(RankProgram, bus_factor__is_what_each_rank_sends) {
  for (std::uint32_t n = 2; n <= 9; ++n) {
    for (const auto& [kind, collective] :
         {std::pair(Kind::all_reduce, Collective::all_reduce),
          std::pair(Kind::reduce_scatter, Collective::reduce_scatter),
          std::pair(Kind::all_gather, Collective::all_gather), std::pair(Kind::all_to_all, Collective::all_to_all),
          std::pair(Kind::broadcast, Collective::broadcast)}) {
      constexpr Bytes size = 1'000'000'000;
      EXPECT_NEAR(bus_factor(pattern(kind, n, size)), static_cast<double>(*bytes_sent(collective, size, n)) / size,
                  1e-8)
          << name(kind) << " of " << n;
    }
    EXPECT_EQ(bus_factor(pattern(Kind::point_to_point, n, 1)), 1);
    EXPECT_EQ(bus_factor(pattern(Kind::parameter_server, n, 1)), 0);
    EXPECT_EQ(bus_factor(pattern(Kind::training, n, 1)), 0);
  }
}

// Tries different group sizes and pipeline depths, with more and fewer micro-batches than pipeline stages.
TEST(RankProgram, training__runs_to_its_end) {
  for (const std::uint32_t data : {1U, 2U, 3U})
    for (const std::uint32_t tensor : {1U, 2U})
      for (const std::uint32_t pipeline : {1U, 2U, 4U})
        for (const std::uint32_t micro_batches : {1U, 5U})
          for (const bool overlap : {false, true}) {
            if (data * tensor * pipeline < 2) continue;
            Pattern of = training(data, tensor, pipeline, micro_batches);
            of.size = 100;
            of.training.activations = 50;
            of.training.layers = 3;
            of.training.buckets = 2;
            of.training.overlap = overlap;
            if (data > 1) of.training.experts = 30;
            const std::vector<RankProgram> all = programs(of);
            // All buffers stay 0 and contributions are not tracked, because buffers are not reset between the
            // collectives.
            Interpreter interpreter(all, empty_buffers(of), {}, true);
            SCOPED_TRACE(testing::Message() << data << " " << tensor << " " << pipeline);
            interpreter.run(data + tensor);
            for (const RankProgram& program : all) EXPECT_EQ(program.load().compute, of.compute);
          }
}

TEST(RankProgram, training__sends_what_its_parts_send) {
  Pattern of = training(3, 2, 4, 5);
  of.training.layers = 2;
  const Bytes gradients = *bytes_sent(Collective::all_reduce, of.size, 3);
  // two all-reduces forward and two backward in each layer
  const Bytes tensor = 5 * 2 * 4 * *bytes_sent(Collective::all_reduce, 1200, 2);
  for (const RankProgram& program : programs(of)) {
    const std::uint32_t stage = program.rank / 6;
    const Bytes neighbours = stage == 0 || stage == 3 ? 1 : 2;
    EXPECT_EQ(program.load().sent, gradients + tensor + neighbours * 5 * 1200) << program.rank;
  }
}

// Numbers from Megatron's example: with 2 tensor, 3 data and 2 pipeline ranks, rank 3 is the second tensor rank of the
// second replica.
TEST(RankProgram, training__numbers_ranks_as_megatron_does) {
  std::map<std::uint32_t, Bytes> sent;
  for (const Operation& operation : rank_program(training(3, 2, 2, 1), 3).operations)
    if (operation.kind == Operation::Kind::send) sent[operation.peer] += operation.bytes;
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(sent[2], 4 * 1200U);                                           // bytes to the other tensor rank
  EXPECT_EQ(sent[5], *bytes_sent(Collective::all_reduce, 12'252'240, 3));  // bytes to the next data-parallel rank
  EXPECT_EQ(sent[9], 1200U);                                               // bytes to the next pipeline stage
}

// Order of figure 4 in Narayanan et al. 2021: the first of four stages begins with four forward passes, and the last
// stage alternates between forward and backward passes.
TEST(RankProgram, training__computes_in_the_order_of_1f1b) {
  const auto order = [](std::uint32_t stage) {
    std::string text;
    for (const Operation& operation : rank_program(training(1, 1, 4, 8), stage).operations)
      if (operation.kind == Operation::Kind::compute) text += operation.compute == Nanos(500) ? 'f' : 'b';
    return text;
  };
  EXPECT_EQ(order(0), "ffffbfbfbfbfbbbb");
  EXPECT_EQ(order(2), "ffbfbfbfbfbfbfbb");
  EXPECT_EQ(order(3), "fbfbfbfbfbfbfbfb");
}

// Without overlap, all all-reduces wait for the whole backward pass. With overlap, only the last all-reduce waits for
// it.
TEST(RankProgram, training__reduces_buckets_while_it_computes) {
  for (const bool overlap : {false, true}) {
    Pattern of = training(2, 1, 1, 1);
    of.training.layers = of.training.buckets = 4;
    of.training.overlap = overlap;
    const RankProgram program = rank_program(of, 0);
    const auto is_compute = [](const Operation& o) { return o.kind == Operation::Kind::compute; };
    const auto first_send = std::find_if_not(program.operations.begin(), program.operations.end(), is_compute);
    EXPECT_EQ(std::count_if(program.operations.begin(), first_send, is_compute), overlap ? 5 : 8);
    EXPECT_EQ(program.load().sent, 12'252'240U);
  }
}

TEST(RankProgram, training__overlaps_unless_told_otherwise) {
  Pattern overlapping = training(2, 1, 1, 1);
  EXPECT_TRUE(overlapping.training.overlap);
}

TEST(RankProgram, training__accumulates_gradients) {
  Pattern of = training(2, 1, 1, 6);
  const RankProgram program = rank_program(of, 1);
  EXPECT_EQ(program.load().sent, 12'252'240U);
  EXPECT_EQ(program.load().compute, Nanos(12'000));
  const auto sends = std::count_if(program.operations.begin(), program.operations.end(),
                                   [](const Operation& o) { return o.kind == Operation::Kind::send; });
  EXPECT_EQ(sends, 2);
}

// ---- Bounds ----

std::string refusal(const Pattern& of) {
  return refusal_of([&] { rank_program(of, 0); });
}

TEST(RankProgram, check__refuses_what_makes_no_sense) {
  EXPECT_THAT(refusal(pattern(Kind::all_reduce, 1, 1)), HasSubstr("there are 1 ranks; give 2 to 1024"));
  EXPECT_THAT(refusal(pattern(Kind::all_reduce, 1025, 1)), HasSubstr("there are 1025 ranks"));
  EXPECT_THAT(refusal(pattern(Kind::all_to_all, 4, 0)), HasSubstr("all-to-all has no size"));
  EXPECT_THAT(refusal(pattern(Kind::all_reduce, 6, 1, Algorithm::halving_doubling)), HasSubstr("power of two"));
  EXPECT_THAT(refusal(pattern(Kind::all_gather, 6, 1, Algorithm::tree)), HasSubstr("all-gather has no algorithm tree"));
  EXPECT_THAT(refusal(pattern(Kind::broadcast, 4, 1, Algorithm::halving_doubling)),
              HasSubstr("broadcast has no algorithm halving-doubling; give ring or tree"));
  Pattern of = pattern(Kind::parameter_server, 4, 1);
  of.servers = 4;
  EXPECT_THAT(refusal(of), HasSubstr("4 of 4 ranks are servers"));
  of = training(2, 3, 1, 1);
  of.training.tensor = 4;
  EXPECT_THAT(refusal(of), HasSubstr("does not divide the 6 ranks"));
  of = training(2, 1, 1, 1);
  of.training.buckets = 2;
  EXPECT_THAT(refusal(of), HasSubstr("2 buckets for the gradients of 1 layers"));
  of = training(1, 1, 2, 1);
  of.training.activations = 0;
  EXPECT_THAT(refusal(of), HasSubstr("add activations"));
}

TEST(RankProgram, rank_program__bounds_operations) {
  EXPECT_EQ(rank_program(pattern(Kind::all_reduce, kMaxRanks, 1'000'000'000), 5).operations.size(), 4 * 1023U);
  Pattern of = pattern(Kind::broadcast, 4, 10'000'000);
  of.chunk = 1;
  EXPECT_THAT(refusal(of), HasSubstr("10000000 chunks are more than 1000000"));
  of = training(1, 2, 1, 100'000);
  of.training.layers = 2;
  EXPECT_THAT(refusal(of), HasSubstr("more than 1000000 operations"));
}

}  // namespace
}  // namespace mltcp::workload::rank_program_test
