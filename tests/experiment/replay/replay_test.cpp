// Tests graph replay at packet level and at flow level. On a link like that of the recording, the replay must take as
// long as the recording.

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../../message_of.h"
#include "../../workload/graphs.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/replay/replay_experiment.h"
#include "mltcp/lab/experiment/replay/replay_summary.h"
#include "mltcp/lab/experiment/replay/replay_timeline.h"
#include "mltcp/lab/experiment/run/runner.h"
#include "mltcp/lab/workload/graph_program.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using workload::Collective;
using workload::ExecutionGraph;
using workload::GraphOptions;
using workload::GraphPrograms;
using workload::SmallGraph;

constexpr Rate kRate{10'000'000'000};

/// Each rank computes, reduces a bucket while it continues to compute, and then reduces a second bucket.
ExecutionGraph training(std::uint32_t ranks, bool with_times = false) {
  SmallGraph graph(ranks);
  if (with_times) graph.step(0, 0_ms, 27_ms);
  const auto at = [&](Nanos time) { return with_times ? time : Nanos::never(); };
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto first = graph.compute(rank, 5_ms, {}, at(1_ms));
    const auto one =
        graph.collective(rank, Collective::all_reduce, 2'500'000, {first}, 0, at(6_ms), with_times ? 4_ms : Nanos());
    const auto second = graph.compute(rank, 10_ms, {first}, at(6_ms));
    const auto two =
        graph.collective(rank, Collective::all_reduce, 5'000'000, {second}, 0, at(16_ms), with_times ? 8_ms : Nanos());
    graph.compute(rank, 2_ms, {one, two}, at(24_ms));
  }
  return graph.graph();
}

Experiment on_switch(const std::vector<GraphPrograms>& programs, std::uint32_t iterations = 4) {
  Experiment experiment;
  experiment.name = "replay";
  experiment.iterations = iterations;
  experiment.policies = {"fair"};
  experiment.bottleneck.rate = kRate;
  experiment.bottleneck.delay = 1_us;
  experiment.bottleneck.buffer_bytes = 1'000'000;
  fabric::SwitchedNetworkConfig& network = experiment.topology.emplace();
  std::uint32_t hosts = 2;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    workload::Job job = workload::replayed_job("job" + std::to_string(i), programs[i]);
    job.timeline = 2;
    for (std::uint32_t rank = 0; rank < programs[i].ranks.size(); ++rank) job.hosts.push_back(rank);
    hosts = std::max(hosts, static_cast<std::uint32_t>(job.hosts.size()));
    experiment.jobs.push_back(std::move(job));
  }
  network.topology = std::make_shared<const Topology>(Topology::single_switch(hosts, kRate, 1_us));
  return experiment;
}

TEST(Replay, packets__take_as_long_as_the_recording_on_such_a_link) {
  // An all-reduce of S bytes between two ranks takes S / rate: the payloads take 2 ms and 4 ms.
  const ExecutionGraph graph = training(2, true);
  const GraphPrograms programs = workload::graph_programs(graph);
  const Experiment experiment = on_switch({programs});
  const Results results = run_experiment(experiment, *make_sim_datapath(true));
  const JobResult& job = results.runs[0].jobs[0];
  EXPECT_EQ(job.iterations.size(), 4U);
  EXPECT_EQ(job.checksum_errors, 0U);
  EXPECT_GT(job.verified_messages, 0U);
  EXPECT_EQ(job.bytes_per_iteration, 2U * 7'500'000);
  // An iteration consists of 1 ms of delay, 15 ms of computing, slightly more than 4 ms for the second all-reduce, 2 ms
  // of computing, and 1 ms until the step ends.
  for (const Nanos time : job.iterations) {
    EXPECT_GT(time, 23_ms);
    EXPECT_LT(time, 24_ms);
  }
  const ReplayResult replay = summarize_replay(graph, programs, job);
  ASSERT_EQ(replay.steps.size(), 1U);
  EXPECT_EQ(replay.steps[0].recorded, 27_ms);
  // `replayed` is the mean of the last two iterations. These iterations differ by some nanoseconds because of a skipped
  // packet number.
  EXPECT_NEAR(replay.steps[0].replayed.millis(), job.iterations.back().millis(), 0.001);
  ASSERT_EQ(replay.collectives.size(), 1U);
  EXPECT_EQ(replay.collectives[0].name, "all-reduce");
  EXPECT_EQ(replay.collectives[0].count, 2U);
  EXPECT_EQ(replay.collectives[0].bytes, 7'500'000U);
  EXPECT_EQ(replay.collectives[0].recorded, 6_ms);
  EXPECT_GT(replay.collectives[0].replayed, 3_ms);
  EXPECT_LT(replay.collectives[0].replayed, 4_ms);
  EXPECT_NEAR(replay.collectives[0].mean_error, 0.47, 0.05);
}

TEST(Replay, rank_whose_clock_is_off__makes_no_step_longer) {
  const ExecutionGraph graph = training(2, true);
  ExecutionGraph shifted = graph;
  for (workload::GraphNode& node : shifted.ranks[1].nodes) node.start += 3_ms;
  shifted.steps[0].length += 3_ms;
  std::vector<ReplayResult> replays;
  for (const ExecutionGraph* one : {&graph, &std::as_const(shifted)}) {
    const GraphPrograms programs = workload::graph_programs(*one);
    const Results results = run_experiment(on_switch({programs}), *make_sim_datapath());
    replays.push_back(summarize_replay(*one, programs, results.runs[0].jobs[0]));
  }
  EXPECT_EQ(replays[1].steps[0].replayed, replays[0].steps[0].replayed);
  EXPECT_EQ(replays[1].steps[0].recorded, replays[0].steps[0].recorded);
}

TEST(Replay, nodes__begin_behind_what_they_wait_for) {
  const ExecutionGraph graph = training(4);
  const GraphPrograms programs = workload::graph_programs(graph);
  const Experiment experiment = on_switch({programs});
  for (const bool flows : {false, true}) {
    const std::unique_ptr<Datapath> datapath = flows ? make_flow_datapath() : make_sim_datapath();
    const Results results = run_experiment(experiment, *datapath);
    const JobResult& job = results.runs[0].jobs[0];
    ASSERT_EQ(iterations_with_times(programs, job), 2U);
    for (std::size_t iteration = 0; iteration < 2; ++iteration) {
      const std::vector<NodeTimes> times = node_times(graph, programs, job, iteration);
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        const workload::RankGraph& of_rank = graph.ranks[rank];
        for (std::uint32_t i = 0; i < of_rank.nodes.size(); ++i) {
          const auto& node = of_rank.nodes[i];
          EXPECT_TRUE(node.kind != workload::GraphNode::Kind::compute ||
                      times[rank][i].to - times[rank][i].from == node.length);
          for (std::uint32_t k = 0; k < node.waits; ++k)
            EXPECT_GE(times[rank][i].from, times[rank][of_rank.waits[node.first_wait + k]].to);
        }
      }
    }
  }
}

TEST(Replay, flows__take_as_long_as_packets) {
  for (const std::uint32_t ranks : {2U, 5U})
    for (const std::uint32_t islands : {1U, 2U}) {
      if (ranks % islands != 0) continue;
      GraphOptions options;
      options.islands = ranks > 2 ? islands : 1;
      const GraphPrograms programs = workload::graph_programs(training(ranks), options);
      const Experiment experiment = on_switch({programs});
      const Nanos packets = run_experiment(experiment, *make_sim_datapath()).runs[0].jobs[0].mean;
      const Nanos flows = run_experiment(experiment, *make_flow_datapath()).runs[0].jobs[0].mean;
      EXPECT_NEAR(flows.millis(), packets.millis(), 0.03 * packets.millis()) << ranks;
    }
}

TEST(Replay, collective_behind_a_delay__is_sent_when_the_delay_ends) {
  // The collective begins 10 us after its dependences have ended, while both ranks are idle. If `beside` is true, both
  // ranks compute during the collective, which must not change its duration.
  for (const bool beside : {false, true}) {
    SmallGraph graph(2);
    graph.step(0, 0_ms, beside ? 55_ms : Nanos(10'010'000));
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const auto first = graph.compute(rank, 9_ms, {}, 0_ms);
      graph.collective(rank, Collective::all_reduce, 1'250'000, {first}, 0, Nanos(9'010'000), 1_ms);
      if (beside) graph.compute(rank, 46_ms, {first}, 9_ms);
    }
    const GraphPrograms programs = workload::graph_programs(graph.graph());
    const Experiment experiment = on_switch({programs});
    for (const bool flows : {false, true}) {
      const std::unique_ptr<Datapath> datapath = flows ? make_flow_datapath() : make_sim_datapath();
      const JobResult job = run_experiment(experiment, *datapath).runs[0].jobs[0];
      ASSERT_EQ(job.iterations.size(), 4U);
      for (const Nanos time : job.iterations) {
        EXPECT_GE(time, beside ? 55_ms : 10_ms + Nanos(10'000));
        EXPECT_LE(time, beside ? 55_ms : 10_ms + Nanos(300'000));
      }
      const ReplayResult replay = summarize_replay(graph.graph(), programs, job);
      EXPECT_NEAR(replay.collectives[0].replayed.millis(), 1.1, 0.15);
    }
  }
}

TEST(Replay, ranks_without_communication__delay_no_rank) {
  // Rank 2 has no operations and rank 3 only computes. The iterations of both end before those of ranks 0 and 1.
  SmallGraph graph(4);
  const std::uint32_t pair = graph.group({0, 1});
  for (const std::uint32_t rank : {0U, 1U})
    graph.collective(rank, Collective::all_reduce, 1'250'000, {graph.compute(rank, 9_ms)}, pair);
  graph.compute(3, 2_ms);
  const GraphPrograms programs = workload::graph_programs(graph.graph());
  ASSERT_TRUE(programs.ranks[2].operations.empty());
  const Experiment experiment = on_switch({programs});
  for (const bool flows : {false, true}) {
    const std::unique_ptr<Datapath> datapath = flows ? make_flow_datapath() : make_sim_datapath();
    const JobResult job = run_experiment(experiment, *datapath).runs[0].jobs[0];
    ASSERT_EQ(job.iterations.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(job.iterations[i].millis(), 10.1, 0.2);
      const Nanos before = i > 0 ? job.starts[i - 1] + job.iterations[i - 1] : Nanos(0);
      EXPECT_NEAR(job.starts[i].millis(), before.millis(), 0.05);
    }
    ASSERT_EQ(job.ranks.size(), 4U);
    EXPECT_EQ(job.ranks[2].mean, 0_ms);
    EXPECT_EQ(job.ranks[3].mean, 2_ms);
  }
}

TEST(Replay, two_jobs__share_the_links_of_their_hosts) {
  const GraphPrograms programs = workload::graph_programs(training(2));
  for (const bool flows : {false, true}) {
    Experiment experiment = on_switch({programs, programs}, 8);
    const std::unique_ptr<Datapath> datapath = flows ? make_flow_datapath() : make_sim_datapath();
    const Results together = run_experiment(experiment, *datapath);
    EXPECT_GT(together.runs[0].jobs[0].slowdown, 1.04) << flows;
    experiment.jobs[1].start = 5_ms;  // while the first job computes
    const Results apart = run_experiment(experiment, *datapath);
    EXPECT_LT(apart.runs[0].jobs[0].slowdown, 1.01) << flows;
  }
}

TEST(Replay, dumbbell__has_a_rank_at_each_side) {
  const GraphPrograms programs = workload::graph_programs(training(2));
  Experiment experiment = on_switch({programs});
  const Nanos on_a_switch = run_experiment(experiment, *make_sim_datapath()).runs[0].jobs[0].mean;
  experiment.topology.reset();
  experiment.jobs[0].hosts.clear();
  const Nanos mean = run_experiment(experiment, *make_sim_datapath()).runs[0].jobs[0].mean;
  EXPECT_NEAR(mean.millis(), on_a_switch.millis(), 0.02 * on_a_switch.millis());
  EXPECT_THROW(run_experiment(experiment, *make_flow_datapath()), InputError);
}

TEST(Replay, thousand_ranks__run_at_flow_level) {
  GraphOptions options;
  options.whole = true;
  const GraphPrograms programs = workload::graph_programs(training(1'000), options);
  const Experiment experiment = on_switch({programs}, 2);
  const JobResult job = run_experiment(experiment, *make_flow_datapath()).runs[0].jobs[0];
  // A ring all-reduce of S bytes among n ranks sends 2 (n-1)/n S bytes per rank.
  EXPECT_GT(job.mean, 17_ms + 8_ms);
  EXPECT_LT(job.mean, 17_ms + 10_ms);
}

TEST(Replay, schedule__gives_ranks_slots) {
  for (const bool flows : {false, true}) {
    const GraphPrograms programs = workload::graph_programs(training(2));
    Experiment experiment = on_switch({programs, programs}, 10);
    experiment.policies = {"fair", "schedule"};
    const std::unique_ptr<Datapath> datapath = flows ? make_flow_datapath() : make_sim_datapath();
    const Results results = run_experiment(experiment, *datapath);
    ASSERT_EQ(results.runs.size(), 2U);
    EXPECT_EQ(results.runs[1].schedule->slots.size(), 2U) << flows;
    EXPECT_LE(results.runs[1].jobs[1].slowdown, results.runs[0].jobs[1].slowdown) << flows;
  }
}

TEST(Replay, timeline__draws_recording_and_replay) {
  const ExecutionGraph graph = training(2, true);
  const GraphPrograms programs = workload::graph_programs(graph);
  const Results results = run_experiment(on_switch({programs}), *make_sim_datapath());
  const DrawnReplay drawn{&graph, &programs, &results.runs[0].jobs[0]};
  const auto json = nlohmann::json::parse(replay_timeline(std::span(&drawn, 1)));
  std::vector<std::string> processes;
  std::size_t events = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("name") == "process_name") processes.push_back(event.at("args").at("name"));
    if (event.at("ph") != "X") continue;
    ++events;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GT(event.at("dur").get<double>(), 0);
  }
  EXPECT_THAT(processes, ElementsAre("job0 recorded: rank 0", "job0 replayed: rank 0", "job0 recorded: rank 1",
                                     "job0 replayed: rank 1"));
  EXPECT_EQ(events, 2U * 2 * 5);
}

std::string refusal(const std::vector<std::string>& words) {
  return refusal_of([&] { parse_replay_jobs(words); });
}

TEST(Replay, words__name_jobs_or_files_of_one) {
  const auto one = parse_replay_jobs({"dir/resnet.0.json", "dir/resnet.1.json"});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].name, "resnet");
  EXPECT_EQ(one[0].files.size(), 2U);
  const auto two = parse_replay_jobs({"a=x.et,y.et@100ms", "b=z.et"});
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0].name, "a");
  EXPECT_THAT(two[0].files, ElementsAre("x.et", "y.et"));
  EXPECT_EQ(two[0].start, 100_ms);
  EXPECT_EQ(two[1].start, Nanos(0));
  EXPECT_THAT(refusal({"a=x.et", "y.et"}), HasSubstr("\"y.et\" names no job, but \"a=x.et\" does"));
  EXPECT_THAT(refusal({"a=x.et", "a=y.et"}), HasSubstr("two jobs are called \"a\""));
  EXPECT_THAT(refusal({"a=x.et@soon"}), HasSubstr("has a start that is not a time"));
  EXPECT_THAT(refusal({"a=x.et,"}), HasSubstr("names an empty file"));
}

}  // namespace
}  // namespace mltcp::experiment
