// Tests how the parts of a job are joined: missing and duplicate ranks, ranks that are alike or not, and contradictions
// between ranks.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../graph_text.h"
#include "mltcp/lab/workload/traces/graph_builder.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload::join_test {
namespace {

using Kind = GraphNode::Kind;

GraphNode compute(GraphBuilder& builder, std::int64_t length) {
  GraphNode node;
  node.name = builder.name("compute");
  node.lane = builder.lane("stream");
  node.length = Nanos(length);
  return node;
}
GraphNode collective(GraphBuilder& builder, Collective what, Bytes bytes, std::uint32_t group) {
  GraphNode node = compute(builder, 0);
  node.kind = Kind::collective;
  node.collective = what;
  node.bytes = bytes;
  node.group = group;
  return node;
}
GraphNode message(GraphBuilder& builder, Kind kind, Bytes bytes, std::uint32_t peer, std::uint64_t tag = 0) {
  GraphNode node = compute(builder, 0);
  node.kind = kind;
  node.bytes = bytes;
  node.peer = peer;
  node.tag = tag;
  return node;
}

/// Returns the graph of one rank, with a computation and then an all-reduce of `bytes` in `group`.
PartialGraph reducing(std::uint32_t rank, const std::vector<std::uint32_t>& group, Bytes bytes,
                      PartialGraph::Group what = {}) {
  GraphBuilder builder("test", "rank" + std::to_string(rank));
  const std::uint32_t at = builder.rank(rank);
  const std::uint32_t first = builder.add(at, compute(builder, 1000));
  builder.add(at, collective(builder, Collective::all_reduce, bytes, builder.group(group, std::move(what))),
              std::vector{first});
  return builder.take();
}

/// Returns the graph of one rank with operations that begin at the given times.
PartialGraph timed(std::uint32_t rank, const std::vector<std::int64_t>& starts) {
  GraphBuilder builder("test", "rank" + std::to_string(rank));
  const std::uint32_t at = builder.rank(rank);
  for (const std::int64_t start : starts) {
    GraphNode node = compute(builder, 1000);
    node.start = Nanos(start);
    builder.add(at, node);
  }
  PartialGraph part = builder.take();
  part.common_clock = true;
  return part;
}
std::vector<PartialGraph> both(PartialGraph one, PartialGraph other) {
  std::vector<PartialGraph> parts;
  parts.push_back(std::move(one));
  parts.push_back(std::move(other));
  return parts;
}

TEST(Join, times__that_can_not_be_are_refused) {
  const std::int64_t epoch = 1'700'000'000'000'000'000;
  EXPECT_THAT(refusal_of([&] {
                join(both(timed(0, {1, epoch}), timed(1, {epoch})));
              }),
              HasSubstr("rank0: its starts are 19676 days apart; "));
  const ExecutionGraph graph = join(both(timed(0, {5, 7}), timed(1, {epoch, epoch + 3})), {.as_recorded = true});
  EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("its ranks begin 19676 days apart, so their clocks differ")));
  EXPECT_EQ(graph.ranks[1].nodes[1].start, Nanos(3));
  EXPECT_EQ(graph.ranks[0].nodes[1].start, Nanos(2));
  GraphBuilder builder("test", "long");
  builder.rank(0);
  builder.add(0, compute(builder, kLongestTrace.count - 1));
  EXPECT_THAT(refusal_of([&] { builder.add(0, compute(builder, 2)); }),
              HasSubstr("long: node 2 lasts 2 ns, and the rank's in all"));
  EXPECT_THAT(refusal_of([&] { builder.add(0, compute(builder, -2)); }), HasSubstr("less than nothing"));
}

TEST(Join, ranks__that_do_nothing_are_said_to) {
  GraphBuilder builder("test", "idle");
  builder.rank(0);
  std::vector<PartialGraph> parts;
  parts.push_back(builder.take());
  EXPECT_THAT(refusal_of([&] { join(std::move(parts)); }), HasSubstr("idle: no rank computes or communicates in it; "));
}

TEST(GraphBuilder, memory__is_bounded_for_all_inputs_together) {
  const auto budget = std::make_shared<TraceBudget>(std::size_t{1} << 20);
  const auto fill = [&](const std::string& name, std::size_t nodes) {
    GraphBuilder builder("test", name, budget);
    const std::uint32_t at = builder.rank(0);
    for (std::size_t i = 0; i < nodes; ++i) builder.add(at, compute(builder, 1));
    return builder.take();
  };
  constexpr std::size_t half = (std::size_t{1} << 19) / sizeof(GraphNode);
  EXPECT_EQ(refusal_of([&] { fill("a", half); }), "no error");
  EXPECT_EQ(refusal_of([&] { fill("b", half); }),
            "b: this trace and those before it need more than 1 MiB; give traces of fewer steps, or of fewer ranks");
  // Texts, steps and dependencies count towards the memory limit.
  const auto alone = [](const std::function<void(GraphBuilder&, std::uint32_t)>& add) {
    return refusal_of([&] {
      GraphBuilder builder("test", "c", std::make_shared<TraceBudget>(std::size_t{1} << 16));
      const std::uint32_t at = builder.rank(0);
      for (std::uint32_t i = 0; i < 100; ++i) add(builder, at);
    });
  };
  const std::string text(1000, 'x');
  const std::vector<std::uint32_t> waits(1000);
  EXPECT_THAT(alone([&, n = 0](GraphBuilder& b, std::uint32_t) mutable { b.name(text + std::to_string(n++)); }),
              HasSubstr("need more than"));
  EXPECT_THAT(alone([&](GraphBuilder& b, std::uint32_t) { b.step(text); }), HasSubstr("need more than"));
  EXPECT_THAT(alone([&](GraphBuilder& b, std::uint32_t at) { b.add(at, compute(b, 1), waits); }),
              HasSubstr("need more than"));
  EXPECT_EQ(alone([&](GraphBuilder& b, std::uint32_t) { b.name(text); }), "no error") << "one text is kept once";
}

TEST(GraphBuilder, memory__that_a_reader_held_for_itself_is_there_for_the_next) {
  const auto budget = std::make_shared<TraceBudget>(std::size_t{1} << 20);
  const auto fill = [&](std::size_t held) {
    return refusal_of([&] {
      GraphBuilder builder("test", "a", budget);
      builder.rank(0);
      builder.hold(held);
      builder.hold(1000);
      builder.let_go(1000);
      builder.take();
    });
  };
  constexpr std::size_t max = (std::size_t{1} << 20) - 1000;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fill(max), "no error") << i;
  EXPECT_THAT(fill(max + 1), HasSubstr("need more than 1 MiB"));
}

ExecutionGraph joined(std::vector<PartialGraph> parts, const TraceOptions& options = {}) {
  return join(std::move(parts), options);
}
template <typename... Part>
std::vector<PartialGraph> list(Part... part) {
  std::vector<PartialGraph> parts;
  (parts.push_back(std::move(part)), ...);
  return parts;
}
std::string refusal(std::vector<PartialGraph> parts, const TraceOptions& options = {}) {
  return refusal_of([&] { join(std::move(parts), options); });
}

TEST(Join, ranks__in_any_order_become_one_job) {
  const ExecutionGraph graph = joined(list(reducing(1, {1, 0}, 100), reducing(0, {0, 1}, 100)));
  ASSERT_EQ(graph.ranks.size(), 2u);
  EXPECT_THAT(graph.groups, ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(graph.recorded_ranks, IsEmpty());
  EXPECT_THAT(graph.warnings, IsEmpty());
  EXPECT_THAT(graph.sources, ElementsAre("rank1", "rank0"));
  EXPECT_EQ(graph.steps.size(), 1u);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(nodes_of(graph, rank), ElementsAre("compute 1 us", "all-reduce 100 B after 0"));
    EXPECT_EQ(graph.names[graph.ranks[rank].nodes[1].name], "compute");
  }
}

TEST(Join, rank__that_is_there_twice_is_refused) {
  EXPECT_EQ(refusal(list(reducing(3, {3, 0}, 1), reducing(3, {3, 0}, 1))),
            "rank3: rank 3 is also in rank3; give one trace of each rank, of one job");
}

TEST(Join, rank__without_a_number_gets_one_that_is_free) {
  PartialGraph unknown = reducing(0, {}, 8);
  unknown.rank_of = {kUnknownRank};
  const ExecutionGraph graph = joined(list(unknown, reducing(0, {}, 8), unknown));
  EXPECT_EQ(graph.ranks.size(), 3u);
  EXPECT_THAT(graph.groups, ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_THAT(graph.warnings, IsEmpty()) << "which is whose makes no difference";
}

TEST(Join, ranks_without_a_number__are_told_of_where_it_matters) {
  PartialGraph unknown = reducing(0, {0, 1, 2}, 8);
  unknown.rank_of = {kUnknownRank};
  const ExecutionGraph graph = joined(list(unknown, reducing(0, {0, 1, 2}, 8), unknown));
  EXPECT_EQ(graph.ranks.size(), 3u);
  EXPECT_THAT(graph.warnings, ElementsAre("rank0: 2 traces do not state their rank; they are numbered in the given "
                                          "order, from 1 on; end their names with the rank, e.g. trace.1.json"));
}

TEST(Join, missing_ranks__are_like_the_one_that_is_there) {
  PartialGraph part = reducing(0, {}, 100);
  part.world = 4;
  const ExecutionGraph graph = joined(list(part));
  EXPECT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(graph.groups, ElementsAre(ElementsAre(0, 1, 2, 3)));
  EXPECT_THAT(graph.warnings, ElementsAre("rank0: rank 0 is used for ranks 1, 2, 3 of 4, which have no trace"));
}

TEST(Join, missing_ranks__have_the_groups_of_their_own_digits) {
  // There are two adjacent tensor ranks, two data-parallel ranks and two pipeline stages. Only rank 5 = 1 + 2*0 + 4*1
  // has a trace.
  GraphBuilder builder("test", "rank5");
  const std::uint32_t at = builder.rank(5);
  builder.add(at, collective(builder, Collective::all_reduce, 10, builder.group({4, 5})));
  builder.add(at, collective(builder, Collective::all_reduce, 20, builder.group({5, 7})));
  PartialGraph part = builder.take();
  part.world = 8;
  const ExecutionGraph graph = joined(list(part));
  ASSERT_EQ(graph.ranks.size(), 8u);
  EXPECT_THAT(nodes_of(graph, 0), ElementsAre("all-reduce 10 B of 0 1", "all-reduce 20 B of 0 2"));
  EXPECT_THAT(nodes_of(graph, 6), ElementsAre("all-reduce 10 B of 6 7", "all-reduce 20 B of 4 6"));
  EXPECT_THAT(nodes_of(graph, 5), ElementsAre("all-reduce 10 B of 4 5", "all-reduce 20 B of 5 7"));
}

TEST(Join, missing_ranks__of_a_ring_of_messages_are_like_the_one_that_is_there) {
  GraphBuilder builder("test", "rank2");
  const std::uint32_t at = builder.rank(2);
  builder.add(at, message(builder, Kind::send, 64, 3, 9));
  builder.add(at, message(builder, Kind::receive, 64, 1, 9));
  PartialGraph part = builder.take();
  part.world = 4;
  const ExecutionGraph graph = joined(list(part));
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(nodes_of(graph, 3), ElementsAre("send 64 B to 0 tag 9", "receive 64 B from 2 tag 9"));
}

// In the forward pass, the rank receives from the previous stage and sends as many bytes to the next stage. In the
// backward pass, the directions are reversed. If all ranks did the same, they would form a ring in which every rank
// receives first.
TEST(Join, missing_ranks__are_not_made_up_of_the_middle_stage_of_a_pipeline) {
  GraphBuilder builder("test", "rank1");
  const std::uint32_t at = builder.rank(1);
  const std::vector<GraphNode> nodes{message(builder, Kind::receive, 64, 0), message(builder, Kind::send, 64, 2),
                                     message(builder, Kind::receive, 32, 2), message(builder, Kind::send, 32, 0),
                                     compute(builder, 7)};
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    builder.add(at, nodes[i], i == 0 ? std::vector<std::uint32_t>{} : std::vector{i - 1});
  PartialGraph part = builder.take();
  part.world = 4;
  const ExecutionGraph graph = joined(list(part));
  ASSERT_EQ(graph.ranks.size(), 1u);
  EXPECT_THAT(graph.recorded_ranks, ElementsAre(1));
  ASSERT_EQ(graph.ranks[0].nodes.size(), 5u);
  EXPECT_EQ(graph.ranks[0].nodes[4].length, Nanos(7));
  EXPECT_EQ(graph.names, std::vector<std::string>{"compute"});
  EXPECT_THAT(graph.warnings,
              ElementsAre(HasSubstr("were like rank 1, the job could not end"),
                          HasSubstr("no trace of ranks 0, 2, 3 of 4 (kept without them: 0 collectives; left out: 0 "
                                    "collectives, 4 messages)")));
}

TEST(Join, missing_ranks__are_as_many_as_memory_and_time_allow) {
  // There are few nodes, but their dependencies would be copied for every rank.
  GraphBuilder builder("test", "rank0");
  const std::uint32_t at = builder.rank(0);
  const std::vector<std::uint32_t> waits(2000, 0);
  builder.add(at, compute(builder, 1));
  builder.add(at, compute(builder, 1), waits);
  PartialGraph part = builder.take();
  part.world = 60'000;
  EXPECT_EQ(refusal(list(part)),
            "rank0: it is one rank of 60000, of 2 nodes that wait for 2000 others each: too much in all; give a trace "
            "of fewer steps, or say that ranks are not alike");
  // A group contains half of a million ranks. A search in it for each rank would take too long.
  std::vector<std::uint32_t> even;
  for (std::uint32_t rank = 0; rank < 1'000'000; rank += 2) even.push_back(rank);
  part = reducing(0, even, 8);
  part.world = 1'000'000;
  EXPECT_THAT(refusal(list(part)), HasSubstr("it is one rank of 1000000"));
}

TEST(Join, missing_ranks__that_are_not_alike_are_left_out_and_counted) {
  // The first two stages of a pipeline with three stages have traces.
  GraphBuilder first("test", "rank0");
  std::uint32_t at = first.rank(0);
  first.add(at, message(first, Kind::send, 64, 1));
  GraphBuilder second("test", "rank1");
  at = second.rank(1);
  second.add(at, message(second, Kind::receive, 64, 0));
  second.add(at, message(second, Kind::send, 64, 2), std::vector<std::uint32_t>{0});
  second.add(at, compute(second, 5), std::vector<std::uint32_t>{1});
  PartialGraph stage = first.take();
  stage.world = 3;
  const ExecutionGraph graph = joined(list(stage, second.take()));
  ASSERT_EQ(graph.ranks.size(), 2u);
  EXPECT_THAT(nodes_of(graph, 1), ElementsAre("receive 64 B from 0", "compute 0 ns after 0", "compute 5 ns after 1"));
  EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("no trace of rank 2 of 3")));
  EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("left out: 0 collectives, 1 message)")));
}

TEST(Join, missing_ranks__are_not_made_up_when_ranks_are_not_alike) {
  const auto parts = list(reducing(1, {0, 1, 2, 3}, 100), reducing(3, {0, 1, 2, 3}, 100));
  const ExecutionGraph graph = joined(parts, {.ranks = 0, .alike = false, .as_recorded = false});
  EXPECT_THAT(graph.recorded_ranks, ElementsAre(1, 3));
  EXPECT_THAT(graph.groups, ElementsAre(ElementsAre(0, 1)));
  EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("(kept without them: 2 collectives; left out")));
}

TEST(Join, as_recorded__keeps_what_goes_to_ranks_without_a_trace) {
  const ExecutionGraph graph =
      joined(list(reducing(1, {0, 1, 2, 3}, 100)), {.ranks = 0, .alike = true, .as_recorded = true});
  ASSERT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(graph.ranks[0].nodes, IsEmpty());
  EXPECT_EQ(graph.ranks[1].nodes.size(), 2u);
  EXPECT_THAT(graph.groups, ElementsAre(ElementsAre(0, 1, 2, 3)));
}

TEST(Join, groups__of_one_name_have_the_ranks_that_use_it) {
  const auto part = [](std::uint32_t rank, const char* id) { return reducing(rank, {}, 8, {2, id}); };
  const ExecutionGraph graph = joined(list(part(0, "even"), part(1, "odd"), part(2, "even"), part(3, "odd")));
  EXPECT_THAT(graph.groups, ElementsAre(ElementsAre(0, 2), ElementsAre(1, 3)));
  EXPECT_THAT(graph.warnings, IsEmpty());
}

TEST(Join, groups__of_which_the_size_alone_is_known_are_neighbours) {
  PartialGraph part = reducing(5, {}, 8, {2, ""});
  part.world = 8;
  const ExecutionGraph graph = joined(list(part));
  EXPECT_THAT(graph.groups, Contains(ElementsAre(4, 5)));
  EXPECT_EQ(graph.groups.size(), 4u);
  EXPECT_THAT(graph.warnings, Contains(HasSubstr("assuming neighbours")));
}

TEST(Join, number_of_ranks__is_what_is_given_where_the_trace_does_not_tell) {
  EXPECT_EQ(joined(list(reducing(0, {}, 8)), {.ranks = 5}).ranks.size(), 5u);
  const ExecutionGraph two = joined(list(reducing(0, {}, 8)));
  EXPECT_EQ(two.ranks.size(), 2u);
  EXPECT_THAT(two.warnings, Contains(HasSubstr("does not state the job's number of ranks; assuming 2")));
  EXPECT_THAT(refusal(list(reducing(0, {0, 7}, 8)), {.ranks = 5}), HasSubstr("it needs 8 ranks, but 5 are given"));
}

TEST(Join, number_of_ranks__is_the_trace_s_where_it_tells_and_another_one_is_said_not_to_be_taken) {
  PartialGraph part = reducing(0, {}, 8);
  part.world = 4;
  const ExecutionGraph graph = joined(list(part), {.ranks = 5});
  EXPECT_EQ(graph.ranks.size(), 4u);
  EXPECT_THAT(graph.warnings, Contains("rank0: the trace states that the job has 4 ranks; ignoring the given 5"));
  EXPECT_THAT(joined(list(part), {.ranks = 4}).warnings, ElementsAre(HasSubstr("is used for")));
}

TEST(Join, roots_that_differ__are_the_lowest_rank_s_with_a_warning) {
  const auto part = [](std::uint32_t rank, std::uint32_t root) {
    GraphBuilder builder("test", "rank" + std::to_string(rank));
    GraphNode node = collective(builder, Collective::broadcast, 100, builder.group({0, 1}));
    node.peer = root;
    builder.add(builder.rank(rank), node);
    return builder.take();
  };
  const ExecutionGraph graph = joined(list(part(0, 1), part(1, 0)));
  EXPECT_EQ(graph.ranks[1].nodes[0].peer, 1u);
  EXPECT_THAT(graph.warnings,
              ElementsAre("rank0: 1 broadcast whose ranks state different roots: using those of the lowest rank"));
  EXPECT_THAT(joined(list(part(0, 1), part(1, 1))).warnings, IsEmpty());
}

TEST(Join, bytes_that_differ__become_the_most_of_them) {
  const ExecutionGraph graph = joined(list(reducing(0, {0, 1}, 100), reducing(1, {0, 1}, 120)));
  EXPECT_EQ(graph.ranks[0].nodes[1].bytes, 120u);
  EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("1 collective whose ranks state different bytes")));
}

TEST(Join, collectives__that_another_rank_lacks_are_left_out) {
  GraphBuilder builder("test", "rank1");
  const std::uint32_t at = builder.rank(1);
  const std::uint32_t group = builder.group({0, 1});
  builder.add(at, collective(builder, Collective::all_reduce, 100, group));
  builder.add(at, collective(builder, Collective::all_gather, 100, group));
  const ExecutionGraph graph = joined(list(reducing(0, {0, 1}, 100), builder.take()));
  EXPECT_EQ(graph.ranks[1].nodes[1].kind, Kind::compute);
  EXPECT_THAT(graph.warnings, ElementsAre(HasSubstr("1 collective that other ranks of the group do not run")));
}

TEST(Join, warnings__of_several_files_are_one) {
  PartialGraph parts[] = {reducing(0, {0, 1}, 8), reducing(1, {0, 1}, 8)};
  for (PartialGraph& part : parts) part.graph.warnings = {part.graph.sources[0] + ": it has no times"};
  EXPECT_THAT(joined(list(parts[0], parts[1])).warnings, ElementsAre("rank0 and 1 more: it has no times"));
}

TEST(Join, collectives__of_different_kinds_are_refused) {
  GraphBuilder builder("test", "rank1");
  const std::uint32_t at = builder.rank(1);
  builder.add(at, collective(builder, Collective::all_gather, 100, builder.group({0, 1})));
  EXPECT_THAT(refusal(list(reducing(0, {0, 1}, 100), builder.take())),
              HasSubstr("rank 1 runs all-gather (\"compute\") where rank 0 runs all-reduce"));
}

TEST(Join, steps__are_the_same_by_their_names_whichever_rank_began_first) {
  const auto part = [](std::uint32_t rank, std::vector<std::string> steps, std::int64_t start) {
    GraphBuilder builder("test", "rank" + std::to_string(rank));
    const std::uint32_t at = builder.rank(rank);
    for (const std::string& step : steps) {
      GraphNode node = compute(builder, 10);
      node.step = builder.step(step, Nanos(start), Nanos(100));
      node.start = Nanos(start);
      builder.add(at, node);
      start += 100;
    }
    PartialGraph result = builder.take();
    result.common_clock = true;
    return result;
  };
  const ExecutionGraph graph = joined(list(part(0, {"2", "3"}, 5100), part(1, {"1", "2"}, 5010)));
  ASSERT_EQ(graph.steps.size(), 3u);
  EXPECT_EQ(graph.steps[0].name, "1");
  EXPECT_EQ(graph.steps[0].start, Nanos(0));
  EXPECT_EQ(graph.steps[1].name, "2");
  EXPECT_EQ(graph.steps[1].start, Nanos(90)) << "of the earlier rank";
  EXPECT_EQ(graph.steps[1].length, Nanos(110)) << "to the end of the later one";
  EXPECT_EQ(graph.ranks[0].nodes[0].step, 1u);
  EXPECT_EQ(graph.ranks[1].nodes[1].step, 1u);
}

TEST(GraphBuilder, sort__puts_nodes_behind_what_they_wait_for) {
  GraphBuilder builder("test", "f");
  const std::uint32_t at = builder.rank(0);
  for (std::uint32_t i = 0; i < 4; ++i) {
    GraphNode node = compute(builder, i);
    node.name = builder.name(std::to_string(i));
    builder.add(at, node, i == 0 ? std::vector<std::uint32_t>{3, 2} : std::vector<std::uint32_t>{});
  }
  builder.sort(at);
  const ExecutionGraph graph = join(list(builder.take()));
  std::string order;
  for (const GraphNode& node : graph.ranks[0].nodes) order += graph.names[node.name];
  EXPECT_EQ(order, "1230");
  EXPECT_EQ(graph.ranks[0].nodes[3].waits, 2u);
}

// Two nodes wait for each other. One of them also waits for many other nodes, which the search must visit only once.
TEST(GraphBuilder, sort__finds_a_circle_among_many_waits) {
  GraphBuilder builder("test", "f");
  const std::uint32_t at = builder.rank(0);
  constexpr std::uint32_t others = 400'000;
  std::vector<std::uint32_t> waits(others);
  for (std::uint32_t i = 0; i < others; ++i) {
    waits[i] = i;
    builder.add(at, compute(builder, 0));
  }
  waits.push_back(others + 1);
  builder.add(at, compute(builder, 0), waits);
  builder.add(at, compute(builder, 0), std::vector<std::uint32_t>{others});
  EXPECT_FALSE(builder.try_sort(at));
}

TEST(GraphBuilder, sort__names_two_nodes_of_a_circle) {
  GraphBuilder builder("test", "f");
  const std::uint32_t at = builder.rank(0);
  const char* names[] = {"free", "a", "b", "behind"};
  const std::vector<std::uint32_t> waits[] = {{}, {2}, {1, 0}, {2}};
  for (std::size_t i = 0; i < 4; ++i) {
    GraphNode node = compute(builder, 0);
    node.name = builder.name(names[i]);
    builder.add(at, node, waits[i]);
  }
  EXPECT_THAT(refusal_of([&] { builder.sort(at); }), HasAll("f: node", "\"a\"", "\"b\"", "wait for each other; "));
}

}  // namespace
}  // namespace mltcp::workload::join_test
