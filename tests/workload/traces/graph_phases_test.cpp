// Tests the steps, overlap, phases and period of recorded graphs, and the confidence in the period.
#include "mltcp/lab/workload/graph_phases.h"

#include <algorithm>
#include <string>
#include <vector>

#include "../../matchers.h"
#include "../phases.h"
#include "mltcp/base/error.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::workload::graph_phases_test {
namespace {

using ::testing::DoubleEq;
using ::testing::DoubleNear;
using Kind = GraphNode::Kind;

constexpr std::int64_t kMs = 1'000'000;

/// Builds a graph of two ranks with identical nodes.
class Maker {
 public:
  Maker() {
    graph_.format = "test";
    graph_.sources = {"t"};
    graph_.names = {"op"};
    graph_.lanes = {"lane"};
    graph_.groups = {{0, 1}};
    graph_.ranks.resize(2);
  }
  Maker& step(const std::string& name) {
    graph_.steps.push_back({name, Nanos::never(), Nanos(0)});
    return *this;
  }
  std::uint32_t add(GraphNode node, const std::vector<std::uint32_t>& waits) {
    auto& rank = graph_.ranks[0];
    node.step = graph_.steps.empty() ? 0 : static_cast<std::uint32_t>(graph_.steps.size() - 1);
    node.first_wait = static_cast<std::uint32_t>(rank.waits.size());
    node.waits = static_cast<std::uint32_t>(waits.size());
    rank.waits.insert(rank.waits.end(), waits.begin(), waits.end());
    rank.nodes.push_back(node);
    return static_cast<std::uint32_t>(rank.nodes.size() - 1);
  }
  std::uint32_t compute(std::int64_t ms, const std::vector<std::uint32_t>& waits = {}, Nanos start = Nanos::never()) {
    GraphNode node;
    node.length = Nanos(ms * kMs);
    node.start = start;
    return add(node, waits);
  }
  std::uint32_t reduce(Bytes bytes, const std::vector<std::uint32_t>& waits = {}, Nanos start = Nanos::never(),
                       std::int64_t ms = 0) {
    GraphNode node;
    node.kind = Kind::collective;
    node.collective = Collective::all_reduce;
    node.bytes = bytes;
    node.start = start;
    node.length = Nanos(ms * kMs);
    return add(node, waits);
  }
  /// Adds a message to the other rank and a message from it.
  void exchange(Bytes bytes) {
    for (const Kind kind : {Kind::send, Kind::receive}) {
      GraphNode node;
      node.kind = kind;
      node.bytes = bytes;
      node.peer = 1;
      add(node, {});
    }
  }
  /// Returns a graph in which the second rank has no nodes.
  ExecutionGraph graph_of_one() {
    if (graph_.steps.empty()) step("");
    return graph_;
  }
  ExecutionGraph graph() {
    if (graph_.steps.empty()) step("");
    graph_.ranks[1] = graph_.ranks[0];
    check(graph_);
    return graph_;
  }

 private:
  ExecutionGraph graph_;
};

/// Returns options for a link of 1 Gbps, on which 1 MB takes 8 ms.
PhaseOptions at_a_gigabit() {
  PhaseOptions options;
  options.link = Rate(1'000'000'000);
  return options;
}

/// Returns the phases as numbers: computations in ms and communications in kB. Overlapping communications are negative.
std::vector<std::int64_t> sketch_of(const GraphSummary& summary) {
  std::vector<std::int64_t> phases;
  for (const Phase& phase : summary.phases)
    if (phase.kind == Phase::Kind::compute)
      phases.push_back(phase.compute.count / kMs);
    else
      phases.push_back(static_cast<std::int64_t>(phase.bytes / 1000) * (phase.overlap ? -1 : 1));
  return phases;
}

TEST(GraphPhases, phases__of_what_was_laid_out_hold_no_waiting_for_the_link) {
  // A computation of 10 ms is followed by a reduction of 100 ms, which overlaps a computation of 2 ms. A second
  // reduction waits for both. Only the second reduction delays a computation.
  Maker maker;
  const std::uint32_t first = maker.compute(10);
  maker.reduce(12'500'000, {first});
  const std::uint32_t second = maker.compute(2, {first});
  const std::uint32_t last = maker.reduce(1'250'000, {second});
  maker.compute(3, {last});
  const GraphSummary summary = summarise(maker.graph(), at_a_gigabit());
  EXPECT_THAT(sketch_of(summary), ElementsAre(10, -12'500, 2, 1'250, 3));
  EXPECT_EQ(ideal_iteration(summary.phases, Rate(1'000'000'000)).length, Nanos((10 + 100 + 10 + 3) * kMs));
}

TEST(GraphPhases, times__without_lengths_of_communications_are_laid_out) {
  Maker maker;
  maker.reduce(1'250'000, {}, Nanos(0));
  maker.compute(30, {}, Nanos(0));
  const GraphSummary summary = summarise(maker.graph(), at_a_gigabit());
  EXPECT_FALSE(summary.recorded);
  EXPECT_EQ(summary.steps[0].both, Nanos(10 * kMs));
  EXPECT_THAT(sketch_of(summary), ElementsAre(-1'250, 30));
}

TEST(GraphPhases, phases__let_wait_what_was_held_up_by_a_communication) {
  // The first computation overlaps the start of the reduction. The computation of 100 ms waits for the end of the
  // reduction.
  for (const std::int64_t beside : {1, 20, 99}) {
    Maker maker;
    const std::uint32_t first = maker.compute(10);
    const std::uint32_t reduce = maker.reduce(12'500'000, {first});
    const std::uint32_t small = maker.compute(beside, {first});
    maker.compute(100, {reduce, small});
    const GraphSummary summary = summarise(maker.graph(), at_a_gigabit());
    EXPECT_EQ(summary.steps[0].length, Nanos(210 * kMs));
    EXPECT_THAT(sketch_of(summary), ElementsAre(10, -125 * beside, beside, 12'500 - 125 * beside, 100));
    const IdealIteration ideal = ideal_iteration(summary.phases, Rate(1'000'000'000));
    EXPECT_EQ(ideal.length, Nanos(210 * kMs)) << beside;
    EXPECT_EQ(ideal.sending, Nanos(100 * kMs)) << beside;
  }
  // If a computation overlaps the reduction until the end of the reduction, no computation waits for the reduction.
  Maker maker;
  const std::uint32_t first = maker.compute(10);
  maker.reduce(12'500'000, {first});
  const std::uint32_t second = maker.compute(100, {first});
  maker.compute(5, {second});
  EXPECT_THAT(sketch_of(summarise(maker.graph(), at_a_gigabit())), ElementsAre(10, -12'500, 105));
}

TEST(GraphPhases, phases__take_as_long_alone_as_what_was_laid_out) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    Maker maker;
    maker.step("only");
    const std::uint64_t nodes = 2 + random.below(30);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      std::vector<std::uint32_t> waits;
      for (std::uint64_t wait = random.below(3); i > 0 && wait > 0; --wait)
        waits.push_back(static_cast<std::uint32_t>(random.below(i)));
      std::sort(waits.begin(), waits.end());
      waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
      if (random.below(2) == 0)
        maker.compute(static_cast<std::int64_t>(random.below(40)), waits);
      else
        maker.reduce(1 + random.below(5'000'000), waits);
    }
    PhaseOptions options = at_a_gigabit();
    options.any_link = round % 2 == 1;
    const GraphSummary summary = summarise(maker.graph(), options);
    ASSERT_EQ(summary.steps.size(), 1u);
    const IdealIteration ideal = ideal_iteration(summary.phases, Rate(1'000'000'000));
    EXPECT_THAT(ideal.length.millis(),
                DoubleNear(summary.steps[0].length.millis(), 0.01 * summary.steps[0].length.millis()))
        << "round " << round;
    Bytes sent = 0;
    for (const Phase& phase : summary.phases) sent += phase.bytes;
    EXPECT_EQ(sent, summary.steps[0].sent) << "round " << round;
  }
}

TEST(GraphPhases, step__without_times_is_laid_out_by_dependencies) {
  Maker maker;
  maker.step("one");
  const auto first = maker.compute(10);
  const auto bucket = maker.reduce(1'000'000, {first});
  const auto second = maker.compute(20, {first});
  maker.reduce(500'000, {second});
  maker.compute(5, {bucket, second});
  const GraphSummary summary = summarise(maker.graph(), at_a_gigabit());
  ASSERT_EQ(summary.steps.size(), 1u);
  const auto& step = summary.steps[0];
  EXPECT_FALSE(summary.recorded);
  EXPECT_EQ(step.length, Nanos(35 * kMs));
  EXPECT_EQ(step.compute, Nanos(35 * kMs));
  EXPECT_EQ(step.communicate, Nanos(12 * kMs));
  EXPECT_EQ(step.both, Nanos(12 * kMs));
  EXPECT_EQ(step.sent, 1'500'000u) << "2 (n-1)/n of what two ranks reduce";
  EXPECT_THAT(phases_of(summary.phases), ElementsAre("compute 10 ms", "send 1000000 B beside", "compute 20 ms",
                                                     "send 500000 B beside", "compute 5 ms"));
  EXPECT_EQ(ideal_iteration(summary.phases, Rate(1'000'000'000)).length, step.length) << "the phases take as long";
}

TEST(GraphPhases, step__that_waits_for_its_communication_has_no_overlap) {
  Maker maker;
  const auto first = maker.compute(10);
  const auto reduce = maker.reduce(1'000'000, {first});
  maker.compute(5, {reduce});
  const GraphSummary summary = summarise(maker.graph(), at_a_gigabit());
  EXPECT_EQ(summary.steps[0].length, Nanos(23 * kMs));
  EXPECT_EQ(summary.steps[0].both, Nanos(0));
  EXPECT_THAT(sketch_of(summary), ElementsAre(10, 1'000, 5));
  EXPECT_EQ(summary.period, GraphSummary::Period::single);
  EXPECT_EQ(summary.confidence, 0);
}

TEST(GraphPhases, recorded_times__are_taken_as_they_are) {
  Maker maker;
  maker.compute(10, {}, Nanos(0));
  maker.reduce(1'000'000, {0}, Nanos(12 * kMs), 30);
  maker.compute(10, {}, Nanos(15 * kMs));
  const GraphSummary summary = summarise(maker.graph(), at_a_gigabit());
  EXPECT_TRUE(summary.recorded);
  EXPECT_EQ(summary.steps[0].length, Nanos(42 * kMs));
  EXPECT_EQ(summary.steps[0].communicate, Nanos(30 * kMs));
  EXPECT_EQ(summary.steps[0].both, Nanos(10 * kMs));
}

TEST(GraphPhases, scales__are_those_of_time_and_of_bytes) {
  Maker maker;
  const auto first = maker.compute(10);
  maker.reduce(1'000'000, {first});
  PhaseOptions options = at_a_gigabit();
  options.compute_scale = 2;
  options.bytes_scale = 0.5;
  const GraphSummary summary = summarise(maker.graph(), options);
  EXPECT_EQ(summary.steps[0].compute, Nanos(20 * kMs));
  EXPECT_EQ(summary.steps[0].sent, 500'000u);
}

TEST(GraphPhases, marked_steps__are_as_sure_as_they_are_alike) {
  Maker even;
  Maker uneven;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "step " + std::to_string(i);
    std::uint32_t last = 0;
    last = even.step(name).compute(10, i == 0 ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{last});
    uneven.step(name).compute(i == 1 ? 30 : 10);
  }
  const GraphSummary sure = summarise(even.graph());
  EXPECT_EQ(sure.period, GraphSummary::Period::marked);
  EXPECT_THAT(sure.confidence, DoubleEq(1));
  const GraphSummary unsure = summarise(uneven.graph());
  ASSERT_EQ(unsure.steps.size(), 3u);
  EXPECT_EQ(unsure.steps[unsure.typical].length, Nanos(10 * kMs));
  // The mean length is 50/3 ms, and the standard deviation is 11.547 ms.
  EXPECT_THAT(unsure.confidence, DoubleNear(1 / (1 + 11.547 / (50.0 / 3)), 1e-3));
  Maker one;
  one.step("only").compute(10);
  EXPECT_THAT(summarise(one.graph()).confidence, DoubleEq(0.5));
}

TEST(GraphPhases, period__is_found_by_what_repeats_itself) {
  Maker maker;
  std::vector<std::uint32_t> last;
  for (int i = 0; i < 8; ++i) {
    const auto computed = maker.compute(10, last);
    const auto large = maker.reduce(1'000'000, {computed});
    const auto small = maker.reduce(1000, {large});
    last = {small};
  }
  const GraphSummary summary = summarise(maker.graph(), at_a_gigabit());
  EXPECT_EQ(summary.period, GraphSummary::Period::repeated);
  ASSERT_EQ(summary.steps.size(), 7u) << "the last one has no end";
  EXPECT_EQ(summary.steps[0].length, Nanos(18'008'000));
  EXPECT_EQ(summary.steps[0].communications, 2u);
  EXPECT_THAT(summary.confidence, DoubleNear(1 - 1.0 / 8, 1e-9));
}

TEST(GraphPhases, period__is_not_seen_in_what_is_all_the_same_or_never_repeats) {
  Maker same;
  Maker other;
  for (Bytes i = 0; i < 10; ++i) {
    same.reduce(1000);
    other.reduce(1000 + i);
  }
  Maker ring;
  for (int i = 0; i < 8; ++i) ring.exchange(1000);
  EXPECT_EQ(summarise(ring.graph_of_one()).period, GraphSummary::Period::single) << "steps of a ring";
  EXPECT_EQ(summarise(same.graph()).period, GraphSummary::Period::single);
  EXPECT_EQ(summarise(other.graph()).period, GraphSummary::Period::single);
}

TEST(GraphPhases, period__is_looked_for_in_bounded_time) {
  // These traces could take very long: in the first one, iterations differ only in their last tenth, so that each
  // comparison is long. In the second one, iterations have no computations, so that each iteration is traversed again.
  Maker nearly;
  for (int i = 0; i < 100'000; ++i) nearly.reduce(i < 89'000 ? 1 : static_cast<Bytes>(i));
  const GraphSummary given_up = summarise(nearly.graph_of_one());
  EXPECT_EQ(given_up.period, GraphSummary::Period::single);
  EXPECT_THAT(given_up.warnings, ElementsAre(HasSubstr("t: the search for repetitions takes too long")));
  Maker many;
  for (int i = 0; i < 200'001; ++i) many.reduce(1 + static_cast<Bytes>(i % 2));
  EXPECT_THAT(summarise(many.graph_of_one()).warnings, SizeIs(1));
  Maker pairs;
  for (int i = 0; i < 100'000; ++i) pairs.reduce(1 + static_cast<Bytes>(i % 2));
  const GraphSummary summary = summarise(pairs.graph_of_one());
  EXPECT_EQ(summary.period, GraphSummary::Period::repeated);
  EXPECT_EQ(summary.steps.size(), 49'999U);
}

TEST(GraphPhases, times__beyond_all_reason_are_refused) {
  Maker maker;
  maker.compute(1);
  for (int i = 0; i < 8; ++i) maker.reduce(Bytes{1} << 59U);
  PhaseOptions options;
  options.link = Rate(1000);
  EXPECT_THROW(summarise(maker.graph(), options), InputError);
  options.link = Rate(1'000'000'000);
  options.compute_scale = 1e18;
  EXPECT_THROW(summarise(maker.graph(), options), InputError);
}

TEST(GraphPhases, period__that_is_disturbed_is_less_sure) {
  Maker maker;
  for (int i = 0; i < 20; ++i) {
    maker.reduce(1'000'000);
    maker.reduce(i == 10 ? 7 : 1000);
  }
  const GraphSummary summary = summarise(maker.graph(), at_a_gigabit());
  EXPECT_EQ(summary.period, GraphSummary::Period::repeated);
  EXPECT_GT(summary.confidence, 0.8);
  EXPECT_LT(summary.confidence, 0.95 * 36 / 38 + 1e-9) << "two of 38 pairs differ";
}

TEST(GraphPhases, text__tells_iterations_bytes_and_the_circle) {
  Maker maker;
  const auto first = maker.step("ProfilerStep#3").compute(10);
  maker.reduce(1'000'000, {first});
  const std::string text = describe(summarise(maker.graph(), at_a_gigabit()), Rate(1'000'000'000));
  EXPECT_THAT(text, HasAll("iterations  1, marked by the trace, confidence 0.50",
                           "ProfilerStep#3    18.000 ms (typical): computes 10.000 ms, communicates 8.000 ms",
                           "all-reduce        1 of 1.000 MB in all; sends 1.000 MB",
                           "circle      of 18.000 ms, 1 arc: 200.0 to 360.0 degrees"));
  const Job job = to_job(summarise(maker.graph()), "j");
  EXPECT_EQ(job.bytes_per_iteration(), 1'000'000u);
}

TEST(GraphPhases, rank__that_has_nothing_is_refused) {
  ExecutionGraph graph = Maker().graph();
  EXPECT_THROW(summarise(graph), InputError);
  Maker silent;
  silent.compute(3);
  EXPECT_THROW(to_job(summarise(silent.graph()), "j"), InputError);
}

}  // namespace
}  // namespace mltcp::workload::graph_phases_test
