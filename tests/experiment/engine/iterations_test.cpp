// Tests that "the phase is over" (lab/workload/phase_program.h) has the same meaning for all code that runs iterations:
// workers at packet level in one process, workers as ranks on hosts, and jobs at flow level.

#include <cstdio>
#include <memory>
#include <string>

#include "../../matchers.h"
#include "../../workload/phases.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/backends/topology_network.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using workload::computes;
using workload::sends;

constexpr Rate kFast{10'000'000'000};
constexpr Rate kSlow{1'000'000'000};
constexpr Nanos kDelay{1'000};
constexpr Bytes kMegabyte = 1'000'000;

/// Returns a network of hosts on one switch. By default, the links of the last host are slow.
fabric::SwitchedNetworkConfig network_with_one_slow_host(std::uint32_t hosts, Rate of_last = kSlow,
                                                         Nanos each = kDelay) {
  Graph graph;
  for (std::uint32_t host = 0; host < hosts; ++host)
    graph.nodes.push_back({.name = "h" + std::to_string(host), .host = true});
  graph.nodes.push_back({.name = "s", .host = false});
  for (std::uint32_t host = 0; host < hosts; ++host) {
    const Rate rate = host + 1 == hosts ? of_last : kFast;
    const std::string& own = graph.nodes[host].name;
    graph.links.push_back({.from = own, .to = "s", .capacity = rate, .delay = each});
    graph.links.push_back({.from = "s", .to = own, .capacity = rate, .delay = each});
  }
  fabric::SwitchedNetworkConfig config;
  config.topology = std::make_shared<const Topology>(graph);
  config.buffer_bytes = 4 * kMegabyte;
  config.mtu = 9000;
  return config;
}

JobSpec ring_of(std::uint32_t hosts, std::vector<workload::Phase> phases) {
  JobSpec spec;
  spec.job.name = "a";
  spec.job.phases = std::move(phases);
  spec.job.rate = kFast;
  for (std::uint32_t host = 0; host < hosts; ++host) spec.job.hosts.push_back(host);
  spec.workers = workload::place({spec.job}, hosts).front().workers;
  spec.iterations = 4;
  spec.connection.initial_rtt = 1_ms;
  return spec;
}

/// Returns the time for `bytes` over the slow host's link, in full packets.
Nanos over_slow_link(Bytes bytes) { return kSlow.time_for(bytes * 9014 / 8900); }

class Iterations : public testing::TestWithParam<std::string> {
 protected:
  static JobResult run(const JobSpec& spec) {
    const auto hosts = static_cast<std::uint32_t>(spec.job.hosts.size());
    const fabric::SwitchedNetworkConfig config = network_with_one_slow_host(hosts);
    if (GetParam() == "flows") {
      FlowLevelCluster cluster(flow_fabric(config));
      const auto id = cluster.add_job(spec);
      cluster.run(10_s, [&] { return cluster.job(id).done(); });
      return cluster.job(id).result();
    }
    TopologyNetwork network(config, {.virtual_payload = true});
    network.add(spec.number, spec.workers);
    JobDriver job(network, spec, GetParam() == "ranks");
    EXPECT_TRUE(network.run(1_s, [&] { return job.connected(); }));
    job.start(network.now());
    EXPECT_TRUE(network.run(10_s, [&] { return job.done(); }));
    return job.result();
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, Iterations, testing::Values("workers", "ranks", "flows"),
                         [](const auto& backend) { return backend.param; });

double millis(Nanos time) { return time.millis(); }

TEST_P(Iterations, phase__is_over_for_all_workers_when_the_slowest_has_delivered) {
  const JobResult result = run(ring_of(5, {computes(10_ms), sends(kMegabyte)}));
  ASSERT_THAT(result.iterations, SizeIs(4));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(millis(result.iterations[i]), millis(10_ms + over_slow_link(kMegabyte)), 0.5) << i;
  // No rank begins its next iteration before all ranks have ended the current iteration. An iteration starts when its
  // first rank begins.
  for (std::size_t i = 0; i + 1 < 4; ++i)
    EXPECT_NEAR(millis(result.starts[i + 1]), millis(result.starts[i] + result.iterations[i]), 0.2) << i;
}

TEST_P(Iterations, phase__that_computes_after_another_begins_when_that_is_over_for_all) {
  // A rank that did not wait for the others would begin its second send while the slow rank is still in its first send.
  const JobResult result = run(ring_of(5, {sends(kMegabyte), computes(5_ms), sends(kMegabyte)}));
  ASSERT_THAT(result.iterations, SizeIs(4));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(millis(result.iterations[i]), millis(5_ms + over_slow_link(kMegabyte) + over_slow_link(kMegabyte)), 1)
        << i;
}

TEST_P(Iterations, overlap__holds_up_the_end_of_the_iteration_alone) {
  const JobResult result =
      run(ring_of(4, {computes(2_ms), sends(4 * kMegabyte, true), computes(10_ms), sends(kMegabyte)}));
  ASSERT_THAT(result.iterations, SizeIs(4));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(millis(result.iterations[i]), millis(2_ms + over_slow_link(5 * kMegabyte)), 1)
        << "computing costs none";
    if (i > 0) {
      EXPECT_NEAR(millis(result.starts[i]), millis(result.starts[i - 1] + result.iterations[i - 1]), 0.2) << i;
    }
  }
  // An overlapping phase delays the end of the iteration even if the last phase computes.
  const JobResult last = run(ring_of(4, {sends(4 * kMegabyte, true), computes(10_ms)}));
  ASSERT_THAT(last.iterations, SizeIs(4));
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(millis(last.iterations[i]), millis(over_slow_link(4 * kMegabyte)), 1);
    if (i > 0) {
      EXPECT_NEAR(millis(last.starts[i]), millis(last.starts[i - 1] + last.iterations[i - 1]), 0.2) << i;
    }
  }
}

TEST_P(Iterations, two_workers__go_on_together_without_a_barrier) {
  const JobResult result = run(ring_of(2, {computes(10_ms), sends(kMegabyte)}));
  ASSERT_THAT(result.starts, SizeIs(4));
  for (std::size_t i = 0; i + 1 < 4; ++i)
    EXPECT_NEAR(millis(result.starts[i + 1]), millis(result.starts[i] + result.iterations[i]), 0.2) << i;
}

TEST_P(Iterations, bytes__are_the_jobs_own) {
  const JobResult result = run(ring_of(5, {computes(1_ms), sends(kMegabyte), sends(kMegabyte / 2)}));
  EXPECT_EQ(result.bytes_per_iteration, 5 * kMegabyte * 3 / 2);
  EXPECT_EQ(result.bytes, 4 * result.bytes_per_iteration);
  EXPECT_EQ(result.compute, 1_ms);
}

TEST_P(Iterations, compute_times__are_those_of_the_seed) {
  JobSpec spec = ring_of(3, {computes(Nanos(0)), sends(kMegabyte / 10), computes(10_ms)});
  spec.job.jitter = 1_ms;
  spec.job.pause = {.iteration = 2, .time = 50_ms};
  spec.number = 3;
  spec.seed = 5;
  const JobResult result = run(spec);
  ComputeTimes expected(spec.job, spec.seed, spec.number);
  ASSERT_THAT(result.iteration_compute, SizeIs(4));
  for (std::size_t i = 0; i < 4; ++i) {
    expected.begin_iteration();
    const Nanos first = expected.of(spec.job.phases[0]);
    const Nanos second = expected.of(spec.job.phases[2]);
    EXPECT_EQ(result.iteration_compute[i], first + second) << i;
    EXPECT_NEAR(millis(result.iterations[i]), millis(first + second + over_slow_link(kMegabyte / 10)), 0.6) << i;
  }
  EXPECT_GT(result.iteration_compute[2], 50_ms) << "a phase of no length is held up, too";
}

TEST_P(Iterations, phase__of_no_bytes_is_over_at_once) {
  const JobSpec spec = ring_of(3, {sends(0), computes(5_ms), sends(kMegabyte)});
  if (GetParam() == "ranks") {  // ranks learn of each other's progress from arriving messages
    EXPECT_THROW(run(spec), InputError);
    return;
  }
  const JobResult result = run(spec);
  ASSERT_THAT(result.iterations, SizeIs(4));
  EXPECT_NEAR(millis(result.iterations[3]), millis(5_ms + over_slow_link(kMegabyte)), 0.6);
}

TEST_P(Iterations, starts__count_from_the_jobs_start) {
  JobSpec spec = ring_of(3, {computes(5_ms), sends(kMegabyte)});
  spec.job.start = 7_ms;
  const JobResult result = run(spec);
  ASSERT_THAT(result.starts, SizeIs(4));
  EXPECT_EQ(result.starts[0], 7_ms);
}

// A barrier needs at most one connection to each rank to which the job itself sends nothing.
TEST(RankDriver, barrier__takes_one_connection_to_each_rank) {
  JobSpec spec = ring_of(5, {computes(1_ms), sends(kMegabyte)});
  spec.job.flows = 4;
  TopologyNetwork network(network_with_one_slow_host(5), {.virtual_payload = true});
  network.add(spec.number, spec.workers);
  JobDriver job(network, spec, true);
  ASSERT_TRUE(network.run(1_s, [&] { return job.connected(); }));
  // The rank has 4 connections to each of its two neighbours. For barriers, it has 1 connection to each of two more
  // ranks.
  EXPECT_EQ(job.rank(0).connections(), 4U + 4U + 1U + 1U);
  job.start(network.now());
  EXPECT_TRUE(network.run(10_s, [&] { return job.done(); }));
  EXPECT_EQ(job.rank(0).progress().sent % kMegabyte, 0U) << "barriers don't count";
}

// ---- The engine alone ----

/// Records the iterations and operations that begin.
class Noting final : public IterationEngine::Carrier {
 public:
  void begin_iteration(Nanos now) override { iterations.push_back(now); }
  void begin(std::uint32_t operation, Nanos /*now*/) override { begun.push_back(operation); }
  std::vector<Nanos> iterations;
  std::vector<std::uint32_t> begun;
};

using Step = IterationEngine::Step;
using Operations = std::vector<std::uint32_t>;

TEST(IterationEngine, operation__done_at_a_time_to_come_wakes_when_it_holds_something_up) {
  workload::Job job;
  job.phases = {sends(1, true), sends(1), computes(5_ns)};
  const workload::RankProgram program = workload::phase_program(job);
  IterationEngine engine(program, job, {.iterations = 1, .stop_when_done = true});
  Noting carrier;
  EXPECT_TRUE(engine.wake().is_never()) << "it has not been started";
  engine.start(10_ns);
  EXPECT_EQ(engine.advance(9_ns, carrier), Step::waiting);
  EXPECT_EQ(engine.wake(), 10_ns);
  EXPECT_EQ(engine.advance(10_ns, carrier), Step::advanced);
  EXPECT_EQ(carrier.begun, (Operations{0, 1}));
  EXPECT_TRUE(engine.wake().is_never());
  engine.finish(0, 12_ns, 30_ns);
  EXPECT_TRUE(engine.wake().is_never()) << "only the end of the iteration waits for it";
  engine.finish(1, 13_ns, 15_ns);
  EXPECT_EQ(engine.wake(), 15_ns);
  EXPECT_EQ(engine.advance(14_ns, carrier), Step::waiting);
  EXPECT_EQ(engine.advance(15_ns, carrier), Step::waiting) << "it computes";
  EXPECT_EQ(engine.left(), 2U);
  EXPECT_EQ(engine.wake(), 20_ns);
  EXPECT_EQ(engine.advance(20_ns, carrier), Step::advanced);
  EXPECT_EQ(engine.left(), 1U);
  EXPECT_EQ(engine.wake(), 30_ns) << "nothing else is left";
  EXPECT_EQ(engine.advance(30_ns, carrier), Step::recorded);
  EXPECT_TRUE(engine.done());
  EXPECT_EQ(engine.times(), std::vector<Nanos>{20_ns});
  EXPECT_EQ(engine.advance(40_ns, carrier), Step::waiting) << "it has stopped";
  EXPECT_EQ(carrier.iterations, std::vector<Nanos>{10_ns});
}

TEST(IterationEngine, wake__is_at_once_when_an_operation_was_finished_meanwhile) {
  workload::Job job;
  job.phases = {sends(1), computes(5_ns)};
  const workload::RankProgram program = workload::phase_program(job);
  IterationEngine engine(program, job, {});
  Noting carrier;
  engine.start(0_ns);
  EXPECT_EQ(engine.advance(0_ns, carrier), Step::advanced);
  EXPECT_TRUE(engine.wake().is_never());
  engine.finish(0);
  EXPECT_EQ(engine.wake(), 0_ns);
  EXPECT_EQ(engine.advance(7_ns, carrier), Step::waiting);
  EXPECT_EQ(engine.wake(), 12_ns);
}

TEST(IterationEngine, iterations__beyond_those_asked_for_are_not_recorded) {
  workload::Job job;
  job.phases = {computes(5_ns), sends(1)};
  const workload::RankProgram program = workload::phase_program(job);
  IterationEngine engine(program, job, {.iterations = 2});
  Noting carrier;
  engine.start(0_ns);
  for (const Nanos end : {5_ns, 10_ns, 15_ns}) {
    EXPECT_EQ(engine.advance(end - 5_ns, carrier), Step::advanced);
    EXPECT_EQ(engine.advance(end, carrier), Step::advanced);
    engine.finish(1);
    EXPECT_EQ(engine.advance(end, carrier), end == 15_ns ? Step::unrecorded : Step::recorded);
    EXPECT_EQ(engine.done(), end > 5_ns);
  }
  EXPECT_EQ(engine.recorded(), 2U);
  EXPECT_EQ(engine.starts(), (std::vector<Nanos>{0_ns, 5_ns}));
  EXPECT_EQ(carrier.iterations, (std::vector<Nanos>{0_ns, 5_ns, 10_ns}));
}

TEST(IterationEngine, program_without_communication__ends_with_what_is_recorded) {
  workload::Job job;
  job.phases = {computes(5_ns)};
  const workload::RankProgram computes = workload::phase_program(job);
  const workload::RankProgram nothing;
  for (const std::uint32_t iterations : {0U, 3U}) {
    for (const workload::RankProgram* program : {&computes, &nothing}) {
      IterationEngine engine(*program, job, {.iterations = iterations});
      Noting carrier;
      engine.start(0_ns);
      Nanos now;
      for (int calls = 0; calls < 100 && !engine.done(); ++calls) {
        engine.advance(now, carrier);
        if (!engine.wake().is_never()) now = std::max(now, engine.wake());
      }
      EXPECT_EQ(engine.recorded(), std::max(iterations, 1U));
      EXPECT_EQ(engine.advance(now, carrier), Step::waiting);
      EXPECT_TRUE(engine.wake().is_never());
    }
  }
}

TEST(IterationEngine, send_behind_a_delay__is_told_to_the_carrier_s_driver) {
  workload::RankProgram program;
  workload::Operation wait;
  wait.kind = workload::Operation::Kind::delay;
  wait.compute = 5_ns;
  workload::Operation send;
  send.kind = workload::Operation::Kind::send;
  send.bytes = 1;
  send.waits = 1;
  program.operations = {wait, send};
  program.waits = {0};
  const workload::Job job;
  IterationEngine engine(program, job, {.iterations = 1});
  Noting carrier;
  engine.start(0_ns);
  EXPECT_EQ(engine.advance(0_ns, carrier), Step::advanced);
  EXPECT_EQ(engine.wake(), 5_ns);
  EXPECT_EQ(engine.advance(5_ns, carrier), Step::advanced) << "or nobody would send it";
  EXPECT_EQ(carrier.begun, Operations{1});
}

/// Returns the mean duration of an iteration on a switch. All links have the same rate and a delay of 10 us.
Nanos mean_iteration(const JobSpec& spec, bool ranks) {
  const auto hosts = static_cast<std::uint32_t>(spec.job.hosts.size());
  TopologyNetwork network(network_with_one_slow_host(hosts, kFast, 10_us), {.virtual_payload = true});
  network.add(spec.number, spec.workers);
  JobDriver job(network, spec, ranks);
  EXPECT_TRUE(network.run(1_s, [&] { return job.connected(); }));
  job.start(network.now());
  EXPECT_TRUE(network.run(10_s, [&] { return job.done(); }));
  Nanos all;
  for (const Nanos iteration : job.result().iterations) all += iteration;
  return all / spec.iterations;
}

// docs/reference/gen.md contains the numbers of this test, which runs many short phases on many hosts.
TEST(Barriers, cost__is_a_one_way_delay_for_each_doubling_of_the_ranks) {
  constexpr std::int64_t phases = 10;
  for (const auto& [hosts, rounds] : {std::pair(2U, 0), std::pair(4U, 2), std::pair(5U, 3), std::pair(16U, 4)}) {
    std::vector<workload::Phase> all;
    for (std::int64_t i = 0; i < phases; ++i) {
      all.push_back(computes(50_us));
      all.push_back(sends(10'000));
    }
    const JobSpec spec = ring_of(hosts, all);
    const Nanos each = (mean_iteration(spec, true) - mean_iteration(spec, false)) / phases;
    EXPECT_NEAR(millis(each), 0.02 * rounds, 0.002 * rounds) << hosts;
    // docs/reference/gen.md contains this line.
    std::printf("barrier of %u ranks: %.0f us\n", hosts, millis(each) * 1000);
  }
}

}  // namespace
}  // namespace mltcp::experiment
