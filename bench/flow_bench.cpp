// Measures the speed of datapath flow. Each job is a ring of four workers on a leaf-spine network with 2:1
// oversubscription. The counters include simulated seconds and events, each per second of processor time. An event is
// the begin or end of a flow, or a change of its weight. The benchmark `packets` simulates the same network and jobs at
// packet level.
#include <benchmark/benchmark.h>

#include <memory>

#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace {

using namespace mltcp;
using namespace mltcp::literals;
using namespace mltcp::experiment;

/// Returns an experiment with 32 hosts per leaf. There are as many workers as hosts, and each job uses four leaves.
Experiment cluster_of(std::uint32_t hosts) {
  Experiment experiment;
  fabric::SwitchedNetworkConfig& network = experiment.topology.emplace();
  const LeafSpineShape shape{hosts / 32, 16, 32, Rate::from_gbps(50), {}, 1_us};
  network.topology = std::make_shared<const Topology>(Topology::leaf_spine(shape));
  network.mtu = 9000;
  experiment.bottleneck.rate = shape.host_rate;
  experiment.bottleneck.delay = shape.delay;
  experiment.bottleneck.buffer_bytes = network.buffer_bytes;
  for (std::uint32_t number = 0; number < hosts / 4; ++number) {
    workload::Job job;
    job.name = std::to_string(number);
    workload::Phase compute;
    compute.compute = 100_ms + 1_ms * (number % 40);
    workload::Phase send;
    send.kind = workload::Phase::Kind::communicate;
    send.bytes = 400'000'000;
    job.phases = {compute, send};
    job.jitter = 1_ms;
    job.start = 1_ms * (number * 7 % 150);
    for (std::uint32_t worker = 0; worker < 4; ++worker)
      job.hosts.push_back((number / 32 * 4 + worker) % shape.leaves * 32 + number % 32);
    job.rate = shape.host_rate;
    experiment.jobs.push_back(job);
  }
  return experiment;
}

void flows(benchmark::State& state) {
  const Experiment experiment = cluster_of(static_cast<std::uint32_t>(state.range(0)));
  const std::string policy = state.range(1) != 0 ? "mltcp" : "fair";
  FlowLevelCluster cluster(flow_fabric(*experiment.topology));
  const auto placements = place(experiment.jobs, experiment.topology->hosts());
  for (std::uint32_t number = 0; number < experiment.jobs.size(); ++number) {
    JobSpec job;
    job.job = experiment.jobs[number];
    job.number = number;
    job.workers = placements[number].workers;
    job.augmentation = augmentation_of(experiment::policy_named(policy), experiment.mltcp, job.job);
    cluster.add_job(std::move(job));
  }
  cluster.run(1_s);
  const auto before = cluster.counters();
  const Nanos from = cluster.now();
  for (auto _ : state) cluster.run(cluster.now() + 100_ms);
  const auto events = static_cast<double>(cluster.counters().events - before.events);
  state.counters["simulated s/s"] = benchmark::Counter((cluster.now() - from).seconds(), benchmark::Counter::kIsRate);
  state.counters["events/s"] = benchmark::Counter(events, benchmark::Counter::kIsRate);
  state.counters["flows per allocation"] =
      static_cast<double>(cluster.counters().allocated_flows - before.allocated_flows) /
      static_cast<double>(cluster.counters().allocations - before.allocations);
}

/// Simulates one iteration of each job, about 0.2 s of simulated time.
void packets(benchmark::State& state) {
  Experiment experiment = cluster_of(static_cast<std::uint32_t>(state.range(0)));
  experiment.iterations = 1;
  experiment.policies = {"fair"};
  double simulated = 0;
  for (auto _ : state) {
    const auto factory = make_sim_datapath();
    const std::vector<workload::Placement> placements = workload::place(experiment.jobs, experiment.topology->hosts());
    const auto testbed = factory->make(*experiment.topology, placements, Nanos(0));
    std::vector<std::unique_ptr<JobDriver>> drivers;
    for (std::uint32_t number = 0; number < experiment.jobs.size(); ++number) {
      JobSpec settings;
      settings.job = experiment.jobs[number];
      settings.number = number;
      settings.workers = placements[number].workers;
      drivers.push_back(std::make_unique<JobDriver>(*testbed, settings));
    }
    testbed->run(10_ms, {});
    for (const auto& driver : drivers) driver->start(10_ms);
    testbed->run(210_ms, {});
    simulated += 0.2;
  }
  state.counters["simulated s/s"] = benchmark::Counter(simulated, benchmark::Counter::kIsRate);
}

BENCHMARK(flows)->ArgNames({"hosts", "mltcp"})->ArgsProduct({{128, 1024, 8192}, {0, 1}})->Unit(benchmark::kMillisecond);
BENCHMARK(packets)->ArgName("hosts")->Arg(128)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
