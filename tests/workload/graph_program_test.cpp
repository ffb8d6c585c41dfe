// Tests programs made from recorded graphs: they run in random orders that respect the dependencies.
#include "mltcp/lab/workload/graph_program.h"

#include <algorithm>
#include <map>
#include <string>

#include "../message_of.h"
#include "graphs.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/workload/phase_program.h"
#include "program_runner.h"

namespace mltcp::workload::graph_program_test {
namespace {

using namespace literals;
using Kind = Operation::Kind;

std::string refusal(const ExecutionGraph& graph, const GraphOptions& options = {}) {
  return refusal_of([&] { graph_programs(graph, options); });
}

/// Runs the programs in several random orders. Expects each node to end after the nodes that it waits for.
void expect_order(const ExecutionGraph& graph, const GraphPrograms& programs) {
  std::size_t done = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    // For each program and node, the position of the node's end in the order of all ends. A collective ends with the
    // last message that it receives.
    std::map<ProgramRunner::At, std::size_t> place;
    for (const auto& [rank, i] : ProgramRunner(programs.ranks).run(seed)) {
      const std::uint32_t node = programs.node_of[rank][i];
      if (node != kNoNode && (programs.ranks[rank].operations[i].kind != Kind::send ||
                              graph.ranks[programs.graph_rank[rank]].nodes[node].kind == GraphNode::Kind::send))
        place[{rank, node}] = ++done;
    }
    for (std::uint32_t program = 0; program < programs.ranks.size(); ++program) {
      const RankGraph& of_rank = graph.ranks[programs.graph_rank[program]];
      for (std::uint32_t i = 0; i < of_rank.nodes.size(); ++i) {
        const auto own = place.find({program, i});
        for (std::uint32_t k = 0; own != place.end() && k < of_rank.nodes[i].waits; ++k) {
          const auto wait = place.find({program, of_rank.waits[of_rank.nodes[i].first_wait + k]});
          // A receive may end before the nodes that it waits for, because it ends as soon as its message arrives.
          if (wait == place.end() || of_rank.nodes[i].kind == GraphNode::Kind::receive) continue;
          EXPECT_LT(wait->second, own->second);
        }
      }
    }
  }
}

/// Returns a graph of data-parallel training: forward and backward passes, with gradients reduced in buckets.
ExecutionGraph training(std::uint32_t ranks, Bytes bucket, std::uint32_t buckets = 3) {
  SmallGraph builder(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::uint32_t computed = builder.compute(rank, 10_ms);
    std::vector<std::uint32_t> reduced;
    for (std::uint32_t i = 0; i < buckets; ++i) {
      computed = builder.compute(rank, 5_ms, {computed});
      reduced.push_back(builder.collective(rank, Collective::all_reduce, bucket, {computed}));
    }
    builder.compute(rank, 1_ms, reduced);
  }
  return builder.graph();
}

TEST(GraphProgram, all_reduce__sends_what_its_algorithm_sends) {
  for (const std::uint32_t n : {2U, 3U, 4U, 8U}) {
    const ExecutionGraph graph = training(n, 8'000);
    for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling})
      for (const bool whole : {false, true}) {
        GraphOptions options;
        options.algorithm = algorithm;
        options.whole = whole;
        const GraphPrograms programs = graph_programs(graph, options);
        Bytes sent = 0;
        Bytes received = 0;
        for (const RankProgram& program : programs.ranks) {
          sent += program.load().sent;
          received += program.load().received;
          EXPECT_EQ(program.load().compute, 26_ms);
        }
        EXPECT_EQ(sent, received);
        EXPECT_EQ(sent, 3 * 2 * (n - 1) * 8'000U) << name(algorithm) << " of " << n;
        expect_order(graph, programs);
      }
  }
}

TEST(GraphProgram, collectives__all_run_to_their_end) {
  for (const Collective kind : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                Collective::all_to_all, Collective::broadcast, Collective::all_reduce_all_to_all})
    for (const std::uint32_t islands : {1U, 2U, 4U})
      for (const Algorithm algorithm : {Algorithm::ring, Algorithm::tree, Algorithm::halving_doubling}) {
        SmallGraph builder(8);
        for (std::uint32_t rank = 0; rank < 8; ++rank) {
          const auto first = builder.collective(rank, kind, 80'000, {builder.compute(rank, 1_ms)}, 0, Nanos::never(),
                                                {}, kind == Collective::broadcast ? 5 : 0);
          builder.compute(rank, 1_ms, {builder.collective(rank, kind, 801, {first})});
        }
        GraphOptions options;
        options.algorithm = algorithm;
        options.islands = islands;
        expect_order(builder.graph(), graph_programs(builder.graph(), options));
      }
}

TEST(GraphProgram, all_to_all_of_fewer_bytes_than_ranks__has_few_dependencies) {
  // Blocks of 0 bytes are not sent. Nodes that wait for such a block wait for the block's own dependencies instead.
  for (const std::uint32_t ranks : {64U, 100U}) {
    SmallGraph graph(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      SmallGraph::Waits waits;
      for (int i = 0; i < 70; ++i) waits = {graph.collective(rank, Collective::all_to_all, i % 2 == 0 ? 30 : 3, waits)};
    }
    const GraphPrograms programs = graph_programs(graph.graph());
    Bytes sent = 0;
    for (const RankProgram& program : programs.ranks) {
      EXPECT_LE(program.waits.size(), 8 * program.operations.size());
      sent += program.load().sent;
    }
    // A rank does not send its own block.
    EXPECT_EQ(sent, ranks * 35 * (30 + 3) - 35 * (30 + 3));
  }
}

TEST(GraphProgram, broadcast__begins_with_its_root) {
  SmallGraph builder(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank)
    builder.collective(rank, Collective::broadcast, 1'000, {}, 0, Nanos::never(), {}, 2);
  const GraphPrograms programs = graph_programs(builder.graph());
  EXPECT_EQ(programs.ranks[2].load().received, 0U);
  for (const std::uint32_t rank : {0U, 1U, 3U}) EXPECT_EQ(programs.ranks[rank].load().received, 1'000U);
}

TEST(GraphProgram, islands__leave_their_share_to_the_network) {
  const ExecutionGraph graph = training(8, 8'000, 1);
  GraphOptions options;
  options.islands = 4;
  options.island_rate = Rate(8'000'000'000);  // the rate is one byte per nanosecond
  const GraphPrograms programs = graph_programs(graph, options);
  for (const RankProgram& program : programs.ranks) {
    EXPECT_EQ(program.load().sent, 2'000U);  // an all-reduce of a quarter of the bytes, between two ranks
    Nanos delayed;
    for (const Operation& operation : program.operations)
      if (operation.kind == Kind::delay) delayed += operation.compute;
    EXPECT_EQ(delayed, Nanos(2 * 6'000));
    for (const Operation& operation : program.operations)
      EXPECT_TRUE(!operation.communicates() || operation.barrier || operation.peer % 4 == program.rank % 4);
  }
  expect_order(graph, programs);
  EXPECT_THAT(programs.warnings, ElementsAre(HasSubstr("ranks of an island")));
}

TEST(GraphProgram, islands__are_of_recorded_ranks) {
  const ExecutionGraph graph = training(32, 8'000, 1);
  GraphOptions options;
  options.islands = 8;
  options.ranks = {0, 8, 16, 24};  // one rank of each island
  for (const RankProgram& program : graph_programs(graph, options).ranks)
    EXPECT_EQ(program.load().sent, 2U * 3 * 2'000);
  options.ranks = {0, 1, 8, 9};  // two ranks of each of two islands
  for (const RankProgram& program : graph_programs(graph, options).ranks) EXPECT_EQ(program.load().sent, 4'000U);
  ExecutionGraph few = training(4, 8'000, 1);  // a graph in which the reader has found only four ranks
  few.recorded_ranks = {0, 8, 16, 24};
  options.ranks.clear();
  for (const RankProgram& program : graph_programs(few, options).ranks) EXPECT_EQ(program.load().sent, 2U * 3 * 2'000);
}

TEST(GraphProgram, ranks__are_called_as_recorded) {
  ExecutionGraph graph = training(4, 8'000, 1);
  graph.recorded_ranks = {4, 5, 6, 9};
  GraphOptions options;
  options.ranks = {4, 9};
  EXPECT_THAT(graph_programs(graph, options).graph_rank, ElementsAre(0, 3));
  options.ranks = {0, 4};
  EXPECT_THAT(refusal(graph, options), HasSubstr("there is no rank 0; the trace has 4 ranks, from 4 to 9"));
  SmallGraph lost(2);
  lost.send(0, 1, 10, 3);
  lost.graph().recorded_ranks = {4, 5};
  EXPECT_THAT(refusal(lost.graph()),
              HasSubstr("\"send\" of rank 4 sends a message with tag 3 that rank 5 doesn't receive"));
}

TEST(GraphProgram, islands__that_ranks_are_spread_unevenly_over_are_told) {
  SmallGraph builder(4);
  const std::uint32_t group = builder.group({0, 1, 2});
  for (std::uint32_t rank = 0; rank < 3; ++rank) builder.collective(rank, Collective::all_reduce, 900, {}, group);
  GraphOptions options;
  options.islands = 2;
  const GraphPrograms programs = graph_programs(builder.graph(), options);
  EXPECT_EQ(programs.ranks[0].load().sent, 1'200U);
  EXPECT_THAT(programs.warnings, Contains(HasSubstr("1 collective of ranks that are spread unevenly")));
}

TEST(GraphProgram, collective_of_no_bytes__is_a_barrier) {
  SmallGraph builder(5);
  for (std::uint32_t rank = 0; rank < 5; ++rank) {
    const auto barrier = builder.collective(rank, Collective::all_reduce, 0, {builder.compute(rank, 1_ms)});
    builder.collective(rank, Collective::all_reduce, 10, {barrier});
  }
  const GraphPrograms programs = graph_programs(builder.graph());
  for (const RankProgram& program : programs.ranks) {
    EXPECT_EQ(program.load().sent, 16U);
    EXPECT_EQ(std::count_if(program.operations.begin(), program.operations.end(),
                            [](const Operation& operation) { return operation.barrier; }),
              6);
  }
  expect_order(builder.graph(), programs);
}

TEST(GraphProgram, messages__that_are_received_in_another_order_than_sent_arrive) {
  SmallGraph builder(2);
  const auto first = builder.send(0, 1, 100, 1);
  builder.send(0, 1, 200, 2, {first});
  const auto second = builder.receive(1, 0, 200, 2);
  builder.compute(1, 1_ms, {builder.receive(1, 0, 100, 1, {second})});
  const GraphPrograms programs = graph_programs(builder.graph());
  expect_order(builder.graph(), programs);
  // The computation waits for both messages.
  const RankProgram& program = programs.ranks[1];
  ASSERT_EQ(program.operations.back().kind, Kind::compute);
  EXPECT_EQ(program.operations.back().waits, 2U);
}

TEST(GraphProgram, ranks_that_send_before_they_receive__do_not_wait_for_each_other) {
  SmallGraph builder(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto sent = builder.send(rank, 1 - rank, 1'000, 7);
    builder.compute(rank, 1_ms, {builder.receive(rank, 1 - rank, 1'000, 7, {sent})});
  }
  expect_order(builder.graph(), graph_programs(builder.graph()));
}

TEST(GraphProgram, ranks_that_wait_for_each_other__are_refused) {
  SmallGraph builder(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    builder.send(rank, 1 - rank, 1'000, 7, {builder.receive(rank, 1 - rank, 1'000, 7)});
  EXPECT_THAT(refusal(builder.graph()), HasSubstr("test.et: node 0 \"receive\" of rank 0 and nodes of other ranks wait "
                                                  "for each other in a circle; record"));
}

TEST(GraphProgram, ranks_that_do_not_fit_together__are_refused) {
  SmallGraph lost(2);
  lost.send(0, 1, 10, 3);
  EXPECT_THAT(refusal(lost.graph()), HasSubstr("sends a message with tag 3 that rank 1 doesn't receive"));
  SmallGraph never_sent(2);
  never_sent.receive(0, 1, 10, 3);
  EXPECT_THAT(refusal(never_sent.graph()), HasSubstr("receives a message with tag 3 that rank 1 doesn't send"));
  SmallGraph longer(2);
  longer.send(0, 1, 10);
  longer.receive(1, 0, 11);
  EXPECT_THAT(refusal(longer.graph()), HasSubstr("sends 10 bytes"));
  SmallGraph other_size(2);
  other_size.collective(0, Collective::all_reduce, 10);
  other_size.collective(1, Collective::all_reduce, 11);
  EXPECT_THAT(refusal(other_size.graph()), HasSubstr("both are the same collective of their group"));
  SmallGraph fewer(3);
  fewer.collective(0, Collective::all_reduce, 10);
  fewer.collective(1, Collective::all_reduce, 10);
  EXPECT_THAT(refusal(fewer.graph()), HasSubstr("2 of the 3 ranks of its group take part"));
  SmallGraph silent(2);
  silent.compute(0, 1_ms);
  EXPECT_THAT(refusal(silent.graph()), HasSubstr("nothing is sent"));
  EXPECT_THAT(refusal(SmallGraph(1).graph()), HasSubstr("1 rank of the trace is replayed"));
}

TEST(GraphProgram, options_out_of_range__are_refused) {
  const ExecutionGraph graph = training(3, 900);
  const auto with = [&](auto&& set) {
    GraphOptions options;
    set(options);
    return refusal(graph, options);
  };
  EXPECT_THAT(with([](GraphOptions& o) { o.compute_scale = 0; }), HasSubstr("scale of compute times"));
  EXPECT_THAT(with([](GraphOptions& o) { o.bytes_scale = -1; }), HasSubstr("scale of bytes"));
  EXPECT_THAT(with([](GraphOptions& o) { o.islands = 0; }), HasSubstr("islands have 0 ranks"));
  EXPECT_THAT(with([](GraphOptions& o) { o.ranks = {0, 3}; }), HasSubstr("there is no rank 3"));
  EXPECT_THAT(with([](GraphOptions& o) { o.ranks = {1, 0}; }), HasSubstr("ascending"));
  EXPECT_THAT(with([](GraphOptions& o) { o.steps = {0, 1}; }), HasSubstr("there are no steps 0 to 1"));
}

TEST(GraphProgram, subset_of_ranks__leaves_out_the_others_and_says_so) {
  SmallGraph builder(4);
  const std::uint32_t pair = builder.group({0, 3});
  for (std::uint32_t rank = 0; rank < 4; ++rank) builder.collective(rank, Collective::all_reduce, 400);
  for (const std::uint32_t rank : {0U, 3U}) builder.collective(rank, Collective::all_reduce, 100, {}, pair);
  const auto received = builder.receive(1, 2, 50);
  builder.send(2, 1, 50);
  builder.compute(1, 1_ms, {received});
  GraphOptions options;
  options.ranks = {0, 1};
  const GraphPrograms programs = graph_programs(builder.graph(), options);
  EXPECT_THAT(programs.graph_rank, ElementsAre(0, 1));
  EXPECT_EQ(programs.ranks[0].load().sent, 400U);
  EXPECT_THAT(programs.warnings,
              ElementsAre("test.et: 1 message to and from ranks that are not replayed is left out",
                          "test.et: 1 collective runs among fewer ranks than recorded, as the others are not replayed",
                          "test.et: 1 collective with a single replayed rank is left out"));
  expect_order(builder.graph(), programs);
}

TEST(GraphProgram, scales__apply_to_times_and_bytes) {
  const ExecutionGraph graph = training(2, 1'000, 1);
  GraphOptions options;
  options.compute_scale = 0.5;
  options.bytes_scale = 2;
  const RankProgram::Load load = graph_programs(graph, options).ranks[0].load();
  EXPECT_EQ(load.compute, 8_ms);
  EXPECT_EQ(load.sent, 2'000U);
}

TEST(GraphProgram, recorded_times__give_delays_and_count_overlap_once) {
  SmallGraph builder(2);
  builder.step(0, 0_ms, 22_ms);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const auto first = builder.compute(rank, 10_ms, {}, 1_ms);
    // this computation is on another stream, and 3 ms of it do not overlap the first computation
    builder.compute(rank, 6_ms, {}, 8_ms);
    builder.collective(rank, Collective::all_reduce, 100, {first}, 0, 13_ms, 4_ms);
  }
  const GraphPrograms programs = graph_programs(builder.graph());
  Nanos delayed;
  for (const Operation& operation : programs.ranks[0].operations)
    if (operation.kind == Kind::delay) delayed += operation.compute;
  EXPECT_EQ(delayed, 1_ms + 2_ms + 5_ms);
  EXPECT_EQ(programs.ranks[0].load().compute, 13_ms);
  EXPECT_THAT(programs.warnings,
              ElementsAre(HasSubstr("3 ms in which they overlapped count once"),
                          HasSubstr("each rank waits 8 ms in total for reasons that no dependency explains")));
  GraphOptions options;
  options.delays = false;
  const GraphPrograms at_once = graph_programs(builder.graph(), options);
  for (const Operation& operation : at_once.ranks[0].operations) EXPECT_NE(operation.kind, Kind::delay);
}

/// Returns a graph with one step of 16 ms. After 1 ms, each rank computes for 10 ms and then reduces for 4 ms. The
/// clock of rank i is ahead by `ahead[i]`.
ExecutionGraph by_clocks(const std::vector<Nanos>& ahead) {
  SmallGraph builder(static_cast<std::uint32_t>(ahead.size()));
  const auto [least, most] = std::minmax_element(ahead.begin(), ahead.end());
  builder.step(0, *least, *most - *least + 16_ms);
  for (std::uint32_t rank = 0; rank < ahead.size(); ++rank) {
    const auto first = builder.compute(rank, 10_ms, {}, ahead[rank] + 1_ms);
    builder.collective(rank, Collective::all_reduce, 900, {first}, 0, ahead[rank] + 11_ms, 4_ms);
  }
  return builder.graph();
}

Nanos delay_of(const RankProgram& program) {
  Nanos sum;
  for (const Operation& operation : program.operations)
    if (operation.kind == Kind::delay) sum += operation.compute;
  return sum;
}

TEST(GraphProgram, clocks_that_differ__cost_nothing) {
  for (const std::vector<Nanos>& ahead : {std::vector{0_ms, 0_ms, 0_ms}, {0_ms, 3_ms, 0_ms}, {3_ms, 0_ms, 1_ms}}) {
    const GraphPrograms programs = graph_programs(by_clocks(ahead));
    for (const RankProgram& program : programs.ranks) EXPECT_EQ(delay_of(program), 1_ms + 1_ms) << ahead[1].millis();
  }
  EXPECT_THAT(graph_programs(by_clocks({0_ms, 3_ms, 0_ms})).warnings,
              Contains("test.et: the clock of rank 1 is 3 ms ahead of the others', according to the ends of their "
                       "collectives; the clocks of 1 rank are corrected"));
  EXPECT_THAT(graph_programs(by_clocks({0_ms, 0_ms, 50_us})).clock_error, ElementsAre(0_ms, 0_ms, 0_ms));
}

TEST(GraphProgram, rank_that_is_late_by_a_clock_that_is_right__stays_late) {
  SmallGraph builder(2);
  builder.step(0, 0_ms, 16_ms);
  for (const std::uint32_t rank : {0U, 1U}) {
    const Nanos late = 3_ms * rank;
    const auto first = builder.compute(rank, 10_ms - late, {}, late);
    builder.collective(rank, Collective::all_reduce, 900, {first}, 0, 10_ms, 4_ms);
  }
  const GraphPrograms programs = graph_programs(builder.graph());
  EXPECT_EQ(delay_of(programs.ranks[0]), 2_ms);
  EXPECT_EQ(delay_of(programs.ranks[1]), 3_ms + 2_ms);
}

TEST(GraphProgram, steps__are_chosen_and_follow_each_other) {
  SmallGraph builder(2);
  for (std::uint32_t step = 0; step < 3; ++step) {
    builder.step(step, 100_ms * step, 10_ms * (step == 1 ? 5 : step + 1));
    for (std::uint32_t rank = 0; rank < 2; ++rank)
      builder.collective(rank, Collective::all_reduce, 100, {builder.compute(rank, 10_ms * (step + 1))});
  }
  EXPECT_EQ(typical_step(builder.graph()), 2U);
  GraphOptions options;
  options.steps = {1, 2};
  const GraphPrograms programs = graph_programs(builder.graph(), options);
  EXPECT_EQ(programs.ranks[0].load().compute, 50_ms);
  // The computation of the second step waits for the end of the first step.
  const RankProgram& program = programs.ranks[0];
  std::vector<std::uint32_t> computations;
  for (std::uint32_t i = 0; i < program.operations.size(); ++i)
    if (program.operations[i].kind == Kind::compute) computations.push_back(i);
  ASSERT_EQ(computations.size(), 2U);
  EXPECT_GT(program.operations[computations[1]].waits, 0U);
  expect_order(builder.graph(), programs);
}

TEST(GraphProgram, nodes_without_dependencies__begin_together_behind_the_step_before) {
  constexpr std::uint32_t many = 3'000;
  SmallGraph builder(2);
  for (std::uint32_t step = 0; step < 3; ++step) {
    builder.step(step);
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      for (std::uint32_t i = 0; i < many; ++i) builder.compute(rank, 1_us);
      builder.collective(rank, Collective::all_reduce, 100);
    }
  }
  const GraphPrograms programs = graph_programs(builder.graph());
  for (const RankProgram& program : programs.ranks) {
    EXPECT_LT(program.operations.size(), 3U * many + 100);
    // the number of waits is linear in the number of nodes, not quadratic
    EXPECT_LT(program.waits.size(), 5U * many + 100);
    // The computations of the second step wait for the whole first step.
    std::vector<std::uint32_t> computations;
    for (std::uint32_t i = 0; i < program.operations.size(); ++i)
      if (program.operations[i].kind == Kind::compute) computations.push_back(i);
    ASSERT_EQ(computations.size(), 3U * many);
    const Operation& second = program.operations[computations[many]];
    ASSERT_EQ(second.waits, 1U);
    EXPECT_GE(program.operations[program.waits[second.first_wait]].waits, many);
  }
}

TEST(GraphProgram, sums_that_overflow__are_refused) {
  SmallGraph ages(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    for (std::uint32_t i = 0; i < 50; ++i) ages.compute(rank, Nanos(100'000'000'000'000'000));
    ages.collective(rank, Collective::all_reduce, 100);
  }
  EXPECT_THAT(refusal(ages.graph()), HasSubstr("test.et: its times are more than 36 years in all; give"));
  SmallGraph late(2);  // all nodes begin years after the step, without a dependency that explains this
  late.step(0, 0_ms, 1_ms);
  for (std::uint32_t i = 0; i < 50; ++i)
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      late.send(rank, 1 - rank, 10);
      late.receive(rank, 1 - rank, 10);
    }
  for (RankGraph& rank : late.graph().ranks)
    for (GraphNode& node : rank.nodes) node.start = Nanos(100'000'000'000'000'000);
  EXPECT_THAT(refusal(late.graph()), HasSubstr("its times are more than 36 years in all"));
  SmallGraph large(2);
  for (std::uint32_t rank = 0; rank < 2; ++rank)
    for (std::uint32_t i = 0; i < 20; ++i) large.collective(rank, Collective::all_reduce, Bytes{1} << 56U);
  EXPECT_THAT(refusal(large.graph()), HasSubstr("more than 2^60 bytes in all"));
}

TEST(GraphProgram, group_without_the_ranks_of_its_collectives__is_refused) {
  SmallGraph builder(3);
  const std::uint32_t group = builder.group({0, 1});
  for (std::uint32_t rank = 0; rank < 3; ++rank) builder.collective(rank, Collective::all_reduce, 100, {}, group);
  EXPECT_THAT(refusal(builder.graph()), HasSubstr("of rank 2 has a group that its rank is not in"));
}

TEST(GraphProgram, thousands_of_ranks__have_few_operations_in_whole_rings) {
  const ExecutionGraph graph = training(2'000, 1'000'000, 2);
  EXPECT_THAT(refusal(graph), HasSubstr("a group has 2000 ranks"));
  GraphOptions options;
  options.whole = true;
  const GraphPrograms programs = graph_programs(graph, options);
  EXPECT_LT(programs.ranks[7].operations.size(), 60U);
  EXPECT_EQ(programs.ranks[7].load().sent, 2U * 1'998'999U + 2);
}

TEST(GraphProgram, replayed_job__is_summarised_by_its_phases) {
  const GraphPrograms programs = graph_programs(training(4, 8'000));
  const Job job = replayed_job("a", programs);
  EXPECT_TRUE(job.ranked());
  EXPECT_EQ(ranks_of(job), 4U);
  EXPECT_EQ(job.compute_per_iteration(), 26_ms);
  EXPECT_EQ(job.bytes_per_iteration(), 3U * 12'000);
  EXPECT_EQ(rank_program(job, 3).operations.size(), programs.ranks[3].operations.size());
  Job other = job;
  EXPECT_TRUE(alike(job, other));
  other.programs = replayed_job("b", programs).programs;
  EXPECT_FALSE(alike(job, other));
}

}  // namespace
}  // namespace mltcp::workload::graph_program_test
