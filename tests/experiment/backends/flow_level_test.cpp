// Tests flow_level.cpp: compares the backend "flow" with the backend "sim", and tests jobs that come and go.
#include "mltcp/lab/experiment/backends/flow_level.h"

#include <cmath>

#include "../../message_of.h"
#include "../../workload/phases.h"
#include "../written.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace mltcp::experiment {
namespace {

using namespace mltcp::literals;

const std::string kLink = R"([bottleneck]
rate = "1 Gbps"
delay = "10 us"
buffer = "75 kB"
)";
const std::string kFabric = R"([topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 2
host_rate = "10 Gbps"
delay = "1 us"
buffer = "75 kB"
)";

Experiment parse(const std::string& text) {
  FileOptions options;
  options.datapaths = {"sim", "flow"};
  return parse_experiment(text, "e.toml", options);
}

struct Both {
  Results packets;
  Results flows;
};
Both run_both(const std::string& text) {
  const Experiment experiment = parse(text);
  return {run_experiment(experiment, *make_sim_datapath()), run_experiment(experiment, *make_flow_datapath())};
}

double ratio(Nanos a, Nanos b) { return static_cast<double>(a.count) / static_cast<double>(b.count); }
double later_slowdown(const JobResult& job) { return ratio(job.second_half_mean, job.isolated); }

/// Returns the mean over all jobs.
double later_slowdown(const Run& run) {
  double sum = 0;
  for (const JobResult& job : run.jobs) sum += later_slowdown(job);
  return sum / static_cast<double>(run.jobs.size());
}

// ---- Against packets ----

TEST(FlowLevel, isolated__agrees_with_packets_within_seven_thousandths) {
  const std::string few = "iterations = 4\npolicies = [\"fair\"]\n";
  for (const std::string& text : {
           few + kLink + "[[job]]\nname = \"a\"\ncompute = \"150 ms\"\ncommunicate = \"13.5 MB\"\n",
           few + kLink + "[[job]]\nname = \"a\"\ncompute = \"5 ms\"\ncommunicate = \"3 MB\"\nflows = 3\n",
           few + kLink +
               "[[job]]\nname = \"a\"\nphases = [{ compute = \"20 ms\" }, { communicate = \"2 MB\", overlap = true }, "
               "{ "
               "compute = \"10 ms\" }, { communicate = \"3 MB\", rate = \"500 Mbps\" }]\n",
           few + kLink + "[[job]]\nname = \"a\"\ncompute = \"10 ms\"\ncommunicate = \"3 MB\"\nrate = \"300 Mbps\"\n",
           few + "[bottleneck]\nrate = \"10 Gbps\"\ndelay = \"200 us\"\nbuffer = \"2 MB\"\nmtu = 9000\n[[job]]\nname = "
                 "\"a\"\ncompute = \"20 ms\"\ncommunicate = \"40 MB\"\n",
           few + kFabric + "[[job]]\nname = \"a\"\ncompute = \"5 ms\"\ncommunicate = \"10 MB\"\nhosts = [0, 2, 4]\n",
           few + kFabric + "[[job]]\nname = \"a\"\ncompute = \"5 ms\"\ncommunicate = \"10 MB\"\nhosts = [0, 1]\n",
           few + kFabric + "[[job]]\nname = \"a\"\ncompute = \"5 ms\"\ncommunicate = \"10 MB\"\n",
       }) {
    const Both both = run_both(text);
    const Nanos packets = both.packets.runs[0].jobs[0].isolated;
    EXPECT_NEAR(ratio(both.flows.runs[0].jobs[0].isolated, packets), 1, 0.007) << text;
  }
}

TEST(FlowLevel, mltcp__comes_to_rest_where_packets_do) {
  const auto job = [](const char* name, const char* start) {
    return std::string("[[job]]\ncompute = \"150 ms\"\ncommunicate = \"6 MB\"\nname = \"") + name + "\"\nstart = \"" +
           start + "\"\n";
  };
  const std::string pair =
      "[[job]]\nname = \"a\"\ncompute = \"150 ms\"\ncommunicate = \"13.5 MB\"\n[[job]]\nname = \"b\"\n"
      "compute = \"150 ms\"\ncommunicate = \"13.5 MB\"\nstart = \"3 ms\"\n";
  const std::string head = "iterations = 40\npolicies = [\"fair\", \"mltcp\"]\n" + kLink;
  for (const std::string& text : {head + pair, head + job("a", "0 ms") + job("b", "2 ms") + job("c", "5 ms")}) {
    const Both both = run_both(text);
    const auto& packets = both.packets.runs[1];
    const auto& flows = both.flows.runs[1];
    for (std::size_t i = 0; i < packets.jobs.size(); ++i) {
      EXPECT_NEAR(later_slowdown(flows.jobs[i]) / later_slowdown(packets.jobs[i]), 1, 0.005);
      EXPECT_TRUE(flows.jobs[i].interleaved_from.has_value());
    }
    // Under fair sharing, noise separates the jobs at packet level, but not at flow level. The order of the policies is
    // the same at both levels.
    EXPECT_GT(later_slowdown(both.packets.runs[0]), later_slowdown(packets) * 1.01);
    EXPECT_GT(later_slowdown(both.flows.runs[0]), later_slowdown(both.packets.runs[0]));
  }
}

// Before noise has accumulated, both levels agree, except for random effects of the first losses. The mean over several
// start times removes most of these effects.
TEST(FlowLevel, fair__first_iterations_agree_with_packets) {
  double flows = 0;
  double packets = 0;
  for (const char* start : {"1 ms", "2 ms", "3 ms", "5 ms", "7 ms", "10 ms", "15 ms"}) {
    const std::string job = "[[job]]\ncompute = \"150 ms\"\ncommunicate = \"13.5 MB\"\nname = \"";
    const Both both = run_both("iterations = 1\npolicies = [\"fair\"]\n" + kLink + job + "a\"\n" + job +
                               "b\"\nstart = \"" + start + "\"\n");
    for (std::size_t i = 0; i < 2; ++i) {
      flows += both.flows.runs[0].jobs[i].iterations[0].millis();
      packets += both.packets.runs[0].jobs[i].iterations[0].millis();
    }
  }
  EXPECT_NEAR(flows / packets, 1, 0.05);
}

// The host of one job stops once. Both backends then move the job's slots.
TEST(FlowLevel, schedule__slots_hold_as_they_do_for_packets) {
  const Both both = run_both(
      "iterations = 20\npolicies = [\"schedule\"]\n" + kLink +
      "[[job]]\nname = \"a\"\ncompute = \"40 ms\"\ncommunicate = \"3 MB\"\n[[job]]\nname = \"b\"\ncompute = \"40 ms\"\n"
      "communicate = \"3 MB\"\npause = { iteration = 5, time = \"30 ms\" }\n");
  for (std::size_t i = 0; i < 2; ++i) {
    const JobResult& packets = both.packets.runs[0].jobs[i];
    const JobResult& flows = both.flows.runs[0].jobs[i];
    EXPECT_EQ(flows.gate_corrections, packets.gate_corrections);
    EXPECT_NEAR(flows.time_shift.millis(), packets.time_shift.millis(), 0.5);
    EXPECT_NEAR(flows.gate_waited.millis(), packets.gate_waited.millis(), 2.0);
    EXPECT_NEAR(ratio(flows.mean, packets.mean), 1, 0.005);
  }
  EXPECT_EQ(both.flows.runs[0].schedule->repaired, 1U);
  EXPECT_EQ(both.packets.runs[0].schedule->repaired, 1U);
  EXPECT_EQ(both.flows.runs[0].jobs[1].gate_corrections, 0U);
  EXPECT_EQ(both.flows.runs[0].bottleneck.contended, Nanos(0));
}

TEST(FlowLevel, topology__rings_interleave_as_packets_do) {
  std::string text = "iterations = 16\npolicies = [\"mltcp\"]\n" + kFabric;
  text.replace(text.find("spines = 2"), 10, "spines = 1");
  for (const char* job :
       {"name = \"a\"\nhosts = [0, 2, 4, 6]\n", "name = \"b\"\nhosts = [1, 3, 5, 7]\nstart = \"1 ms\"\n"})
    text += std::string("[[job]]\ncompute = \"40 ms\"\ncommunicate = \"15 MB\"\nrate = \"9.8 Gbps\"\n") + job;
  const Both both = run_both(text);
  for (std::size_t i = 0; i < 2; ++i) {
    const JobResult& packets = both.packets.runs[0].jobs[i];
    const JobResult& flows = both.flows.runs[0].jobs[i];
    EXPECT_NEAR(ratio(flows.isolated, packets.isolated), 1, 0.005);
    EXPECT_NEAR(later_slowdown(flows) / later_slowdown(packets), 1, 0.01);
  }
}

TEST(FlowLevel, jitter__computes_exactly_as_long_as_packets_do) {
  const std::string text = "seed = 9\niterations = 8\npolicies = [\"fair\", \"mltcp\"]\n" + kFabric +
                           "[[job]]\nname = \"a\"\ncompute = \"5 ms\"\ncommunicate = \"1 MB\"\njitter = \"700 us\"\n"
                           "straggler = { probability = 0.3, factor = 2.5 }\nhosts = [0, 2, 4]\n"
                           "[[job]]\nname = \"b\"\ncompute = \"5 ms\"\ncommunicate = \"1 MB\"\njitter = \"700 us\"\n"
                           "start_jitter = \"3 ms\"\n";
  const Both both = run_both(text);
  for (std::size_t run = 0; run < 2; ++run)
    for (std::size_t job = 0; job < 2; ++job) {
      const JobResult& packets = both.packets.runs[run].jobs[job];
      const JobResult& flows = both.flows.runs[run].jobs[job];
      ASSERT_EQ(flows.iteration_compute.size(), 8U);
      EXPECT_EQ(flows.iteration_compute, packets.iteration_compute);
      EXPECT_EQ(flows.starts[0], packets.starts[0]);
      EXPECT_EQ(flows.bytes, packets.bytes);
    }
}

TEST(FlowLevel, run__is_the_same_again_and_tells_of_contention) {
  const std::string text = "iterations = 5\npolicies = [\"fair\", \"static\"]\ndatapath = \"flow\"\n" + kLink +
                           "[[job]]\nname = \"a\"\ncompute = \"20 ms\"\ncommunicate = \"1 MB\"\nweight = 3.0\n"
                           "[[job]]\nname = \"b\"\ncompute = \"20 ms\"\ncommunicate = \"1 MB\"\n";
  const auto json = [&] { return written(run_experiment(parse(text), *make_flow_datapath())); };
  const std::string first = json();
  EXPECT_EQ(json(), first);
  const Results results = parse_json(first, "r.json");
  const Bottleneck& fair = results.runs[0].bottleneck;
  EXPECT_EQ(results.runs[0].datapath, "flow");
  // The two jobs always send at the same time. They need 17 ms for the 2 MB of an iteration.
  EXPECT_NEAR(fair.contended.millis(), 5 * 17.0, 0.5);
  EXPECT_NEAR(static_cast<double>(fair.contended_bytes), 5 * 2e6 * 1514 / 1424, 1e3);
  EXPECT_NEAR(fair.utilization, 17.0 / 37.0, 0.01);
  Bytes metered = 0;
  for (const auto& [name, bins] : fair.usage.jobs)
    for (const Bytes bytes : bins) metered += bytes;
  EXPECT_NEAR(static_cast<double>(metered), 5 * 2e6 * 1514 / 1424, 10);
  // In the first iteration, the jobs get 3/4 and 1/4 of the link.
  const auto& weighted = results.runs[1].jobs;
  EXPECT_NEAR(weighted[0].iterations[0].millis(), 20 + 8.48 * 4 / 3, 0.1);
  EXPECT_NEAR(weighted[1].iterations[0].millis(), 20 + 17, 0.1);
}

TEST(FlowLevel, file__refuses_what_flows_lack) {
  const auto refusal = [](const std::string& head, const std::string& link, const std::string& tail) {
    return refusal_of([&] {
      parse("datapath = \"flow\"\n" + head + "[bottleneck]\nrate = \"1 Gbps\"\n" + link + tail +
            "[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\n");
    });
  };
  EXPECT_EQ(refusal("", "", ""), "no error");
  EXPECT_EQ(refusal("", "faults = { loss = 0.1 }\n", ""),
            "e.toml:4: bottleneck.faults: datapath flow has no packets for faults to act on; leave the key out, or use "
            "datapath sim");
  EXPECT_THAT(refusal("", "", "[mltcp]\ndecrease = true\n"),
              HasSubstr("e.toml:5: mltcp.decrease: datapath flow has no"));
  EXPECT_THAT(refusal("", "", "[mltcp]\niterations = \"learned\"\n"), HasSubstr("e.toml:5: mltcp.iterations: "));
  EXPECT_THAT(refusal("policies = [\"priority\"]\n", "", ""), HasSubstr("datapath flow has no priority queues"));
  EXPECT_THAT(refusal("policies = [\"turns\"]\n", "", ""),
              HasSubstr("datapath flow has no packets whose delays show a queue; leave policy \"turns\" out"));
  EXPECT_EQ(refusal("", "ecn = { kmin = \"20 kB\" }\n", "[mltcp]\niterations = \"exact\"\n"), "no error");
}

TEST(FlowLevel, run__refuses_what_flows_lack_of_callers_too) {
  Experiment experiment = parse(kLink + "[[job]]\nname = \"a\"\ncommunicate = \"1 MB\"\n");
  experiment.mltcp.scale_decrease = true;
  EXPECT_THROW(run_experiment(experiment, *make_flow_datapath()), InputError);
}

// ---- Jobs that come and go ----

/// Returns a network with one link of 1 Gbps and no round-trip time. Each payload byte uses 1514/1424 bytes of the
/// link.
FlowFabric one_link() {
  FlowFabric fabric;
  fabric.links.push_back({"link", Rate::from_gbps(1)});
  fabric.route = [](const JobSpec& job, std::uint32_t) {
    return std::vector<FlowPath>(job.job.flows, FlowPath{{0}, {}, Nanos(0)});
  };
  return fabric;
}

/// Returns a job that computes for 10 ms and then sends for 10 ms if it is alone on the link.
JobSpec small_job(const std::string& name, Nanos start = {}) {
  JobSpec job;
  job.job.name = name;
  job.job.phases = {workload::computes(10_ms), workload::sends(1'175'700)};
  job.job.start = start;
  job.workers.resize(1);
  return job;
}

PhasePlan slots(Nanos slot, Nanos period) {
  PhasePlan plan;
  plan.slot = slot;
  plan.period = period;
  return plan;
}

std::vector<double> millis(const std::vector<Nanos>& times) {
  std::vector<double> result;
  result.reserve(times.size());
  for (const Nanos time : times) result.push_back(std::round(time.millis() * 100) / 100);
  return result;
}

TEST(FlowLevelCluster, run__jobs_arrive_and_leave) {
  FlowLevelCluster cluster(one_link());
  const auto first = cluster.add_job(small_job("first"));
  cluster.run(25_ms);
  EXPECT_EQ(cluster.now(), 25_ms);
  // The first job sends from 30 ms on, the second from 35 ms on.
  const auto second = cluster.add_job(small_job("second"));
  cluster.run(101_ms);
  // The first job sends half of its bytes with the link for itself and the rest at half the rate. It therefore ends 5
  // ms late. In each later iteration, the jobs share the link except for 5 ms.
  EXPECT_THAT(millis(cluster.job(first).result().iterations), ElementsAre(20, 25, 25, 25));
  EXPECT_THAT(millis(cluster.job(second).result().starts), ElementsAre(25, 50, 75));
  EXPECT_THAT(millis(cluster.job(second).result().iterations), ElementsAre(25, 25, 25));
  cluster.remove(first);
  EXPECT_EQ(cluster.jobs(), 1U);
  cluster.run(121_ms);
  EXPECT_THAT(millis(cluster.job(second).result().iterations), ElementsAre(25, 25, 25, 20));
  EXPECT_EQ(cluster.job(second).result().bytes, 4 * 1'175'700U);
  EXPECT_THROW((void)cluster.job(first).result(), InputError);
  EXPECT_THROW(cluster.remove(first), InputError);
  EXPECT_EQ(cluster.jobs_on(0), 2U);
}

TEST(FlowLevelCluster, contended__is_the_link_while_workers_could_together_send_more_than_it_carries) {
  const auto contended = [](std::initializer_list<JobSpec> jobs) {
    FlowLevelCluster cluster(one_link());
    for (const JobSpec& job : jobs) cluster.add_job(job);
    cluster.run(30_ms);
    EXPECT_NEAR(cluster.use(0).contended_wire_bytes, cluster.use(0).contended.seconds() * 125e6, 1);
    return std::round(cluster.use(0).contended.millis());
  };
  const auto with = [](auto change) {
    JobSpec job = small_job("a");
    change(job);
    return job;
  };
  EXPECT_EQ(contended({small_job("a")}), 0);
  EXPECT_EQ(contended({with([](JobSpec& job) { job.job.flows = 2; })}), 0) << "flows of one worker";
  EXPECT_EQ(contended({with([](JobSpec& job) { job.workers.resize(2); })}), 20) << "workers of one job";
  EXPECT_EQ(contended({small_job("a"), small_job("b")}), 20) << "from 10 ms to 30 ms";
  EXPECT_EQ(contended({small_job("a"), small_job("b", 5_ms)}), 10) << "from 15 ms to 25 ms";
  const auto slow = with([](JobSpec& job) { job.job.rate = Rate(400'000'000); });
  EXPECT_EQ(contended({slow, slow}), 0) << "they have room";
}

TEST(FlowLevelCluster, on_iteration__may_remove_its_job_and_add_others) {
  FlowLevelCluster cluster(one_link());
  JobSpec job = small_job("a");
  job.iterations = 2;
  std::vector<double> ends;
  int more = 2;
  cluster.on_iteration([&](FlowLevelCluster::JobId id, const FlowLevelCluster::Iteration& iteration) {
    EXPECT_EQ(iteration.start + iteration.length, cluster.now());
    if (!iteration.last) return;
    ends.push_back(std::round(cluster.now().millis()));
    EXPECT_TRUE(cluster.job(id).done());
    cluster.remove(id);
    if (more-- > 0) cluster.add_job(job);
  });
  cluster.add_job(job);
  EXPECT_FALSE(cluster.run(Nanos::never()));
  EXPECT_THAT(ends, ElementsAre(40, 80, 120));
  EXPECT_EQ(cluster.jobs(), 0U);
}

TEST(FlowLevelCluster, run__stops_when_asked) {
  FlowLevelCluster cluster(one_link());
  const auto job = cluster.add_job(small_job("a", 5_ms));
  EXPECT_TRUE(cluster.run(1_s, [&] { return cluster.job(job).recorded() == 3; }));
  EXPECT_NEAR(cluster.now().millis(), 65, 0.1);
}

TEST(FlowLevelCluster, plan__holds_up_phases_to_their_slots) {
  FlowLevelCluster cluster(one_link());
  JobSpec first = small_job("first");
  JobSpec second = small_job("second");
  const auto a = cluster.add_job(first);
  const auto b = cluster.add_job(second);
  EXPECT_EQ(cluster.job(a).set_plan(slots(10_ms, 22_ms)), PlanState::active);
  EXPECT_EQ(cluster.job(b).set_plan(slots(21_ms, 22_ms)), PlanState::active);
  cluster.run(112_ms);
  // Without the plan, both jobs would send at the same time and take 30 ms. With the plan, each job waits for its slot
  // and has the link for itself.
  EXPECT_THAT(millis(cluster.job(a).result().iterations), ElementsAre(20, 22, 22, 22, 22));
  EXPECT_THAT(millis(cluster.job(b).result().iterations), ElementsAre(31, 22, 22, 22));
  EXPECT_EQ(cluster.use(0).contended, Nanos(0));
  EXPECT_NEAR(cluster.job(b).result().gate_waited.millis(), 11 + 4 * 2, 0.1);
  EXPECT_EQ(cluster.job(b).set_plan(slots(Nanos(0), Nanos(0))), PlanState::invalid);
  EXPECT_EQ(cluster.job(b).set_plan(slots(500_ms, 500_ms)), PlanState::active);
  cluster.run(200_ms);
  EXPECT_EQ(cluster.job(b).recorded(), 5U);  // the next iteration waits for the slot at 500 ms
  cluster.job(b).clear_plan();
  cluster.run(215_ms);
  EXPECT_EQ(cluster.job(b).recorded(), 6U);
  EXPECT_EQ(cluster.job(b).plan_state(), PlanState::removed);
}

// Both jobs end an iteration at the same moment. Setting a plan for one job at that moment must not lose the end of the
// other job's iteration.
TEST(FlowLevelCluster, plan__set_for_another_job_in_the_same_moment_stalls_no_job) {
  FlowLevelOptions options;
  options.burst_latency = Nanos(0);
  FlowLevelCluster cluster(one_link(), options);
  const auto a = cluster.add_job(small_job("a"));
  const auto b = cluster.add_job(small_job("b"));
  cluster.on_iteration([&](FlowLevelCluster::JobId job, const FlowLevelCluster::Iteration& iteration) {
    if (job == a && iteration.number == 2) cluster.job(b).set_plan(slots(cluster.now() + 30_ms, 30_ms));
  });
  cluster.run(1_s);
  EXPECT_GT(cluster.job(a).recorded(), 20U);
  EXPECT_GT(cluster.job(b).recorded(), 20U);
}

TEST(FlowLevelCluster, options__burst_latency_comes_after_each_burst) {
  FlowFabric fabric = one_link();
  fabric.route = [](const JobSpec&, std::uint32_t) { return std::vector{FlowPath{{0}, {}, 1_ms}}; };
  const auto length = [&](std::optional<Nanos> latency, bool slow_start) {
    FlowLevelOptions options;
    options.burst_latency = latency;
    FlowLevelCluster cluster(fabric, options);
    JobSpec job = small_job("a");
    job.connection.congestion_control = slow_start ? "reno" : "dcqcn";
    const auto id = cluster.add_job(job);
    cluster.run(30_ms);
    return std::round(cluster.job(id).result().iterations.at(0).millis() * 100) / 100;
  };
  EXPECT_EQ(length(Nanos(0), true), 20);
  EXPECT_EQ(length(3_ms, true), 23);
  EXPECT_EQ(length({}, false), 21);
  // The windows of slow start are 10, 20, 40 and 80 packets of 12.112 us. The link is idle for the rest of each round
  // trip of 1 ms.
  EXPECT_NEAR(length({}, true), 21 + 4 - 150 * 0.012112, 0.01);
}

TEST(FlowLevelCluster, add_job__refuses_bad_input) {
  FlowLevelCluster cluster(one_link());
  const auto refusal = [&](auto change) {
    JobSpec job = small_job("a");
    change(job);
    return refusal_of([&] { cluster.add_job(job); });
  };
  EXPECT_EQ(refusal([](JobSpec& job) { job.workers.clear(); }), "job \"a\": it has no workers; give it at least one");
  EXPECT_THAT(refusal([](JobSpec& job) { job.job.phases.pop_back(); }), HasSubstr("it sends nothing"));
  EXPECT_THAT(refusal([](JobSpec& job) { job.job.flows = 0; }), HasSubstr("no flows"));
  FlowFabric wrong = one_link();
  wrong.route = [](const JobSpec&, std::uint32_t) { return std::vector{FlowPath{{3}, {}, Nanos(0)}}; };
  FlowLevelCluster other(wrong);
  EXPECT_THROW(other.add_job(small_job("a")), InputError);
  EXPECT_THROW(FlowLevelCluster(FlowFabric{}), InputError);
  EXPECT_EQ(cluster.jobs(), 0U);
}

// ---- Jobs that nothing separates ----

std::vector<std::string> warnings(const std::string& more_of_b, const std::string& policies = "[\"fair\", \"mltcp\"]") {
  const std::string job = "compute = \"60 ms\"\ncommunicate = \"5 MB\"\n";
  return warnings_at_flow_level(parse("policies = " + policies + "\n" + kLink + "[[job]]\nname = \"a\"\n" + job +
                                      "[[job]]\nname = \"b\"\n" + job + more_of_b + "[[job]]\nname = \"c\"\n" + job +
                                      "flows = 2\n"));
}

TEST(FlowLevel, warnings__name_jobs_that_are_alike_and_start_together) {
  EXPECT_THAT(warnings(""), ElementsAre(AllOf(StartsWith("jobs \"a\", \"b\" are alike and start together"),
                                              HasSubstr("; give them different starts"))));
  for (const char* parted : {"start = \"1 ms\"", "jitter = \"1 ms\"", "start_jitter = \"1 ms\"", "unaware = true",
                             "pause = { iteration = 1, time = \"1 ms\" }", "rate = \"500 Mbps\""})
    EXPECT_THAT(warnings(std::string(parted) + "\n"), IsEmpty()) << parted;
  EXPECT_THAT(warnings("", "[\"fair\", \"schedule\"]"), IsEmpty()) << "nobody expects them to part";
  // The warning is right, because the two jobs always collide. A shift of one job by a millisecond is enough to
  // separate them.
  const auto slowdown = [](const std::string& start) {
    const std::string job = "compute = \"60 ms\"\ncommunicate = \"5 MB\"\n";
    return later_slowdown(
        run_experiment(parse("iterations = 40\npolicies = [\"mltcp\"]\n" + kLink + "[[job]]\nname = \"a\"\n" + job +
                             "[[job]]\nname = \"b\"\n" + job + start),
                       *make_flow_datapath())
            .runs[0]);
  };
  EXPECT_GT(slowdown(""), 1.35);
  EXPECT_LT(slowdown("start = \"1 ms\"\n"), 1.01);
}

TEST(FlowLevel, warnings__only_of_jobs_that_meet) {
  const auto pair = [](const std::string& hosts_of_b) {
    const std::string job = "compute = \"6 ms\"\ncommunicate = \"5 MB\"\nhosts = ";
    return warnings_at_flow_level(
        parse(kFabric + "[[job]]\nname = \"a\"\n" + job + "[0, 1]\n[[job]]\nname = \"b\"\n" + job + hosts_of_b + "\n"));
  };
  EXPECT_THAT(pair("[0, 1]"), SizeIs(1));
  EXPECT_THAT(pair("[2, 3]"), IsEmpty());
}

}  // namespace
}  // namespace mltcp::experiment
