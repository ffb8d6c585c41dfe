// Measures the speed and memory of the cluster scheduler. The benchmarks schedule 256 jobs of mixed types on 1,024
// hosts, rank ten candidates for one more job, and let one more job join. A further benchmark schedules 2,500 jobs on
// 10,000 hosts. The number in a name is the number of threads. "Time" is real time, because threads work in parallel.
// "CPU" is the sum over all threads. Jobs are placed by locality or at random. Random placement is the worst case: it
// joins all jobs to one component with thousands of loops.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/scheduler/placement.h"

namespace {

using namespace mltcp;
using namespace mltcp::scheduler;

/// Returns types of jobs like those of the published tables: data-parallel jobs with one burst, and pipelines with
/// several bursts.
std::vector<Demand> job_types() {
  struct Type {
    std::int64_t period_ms;
    std::vector<std::array<std::int64_t, 2>> bursts_ms;
    double gbps;
  };
  const std::vector<Type> types{
      {255, {{150, 255}}, 40},                         // VGG16
      {310, {{170, 310}}, 42},                         // VGG19
      {130, {{100, 130}}, 25},                         // ResNet50
      {400, {{300, 400}}, 35},                         // WideResNet101
      {320, {{200, 320}}, 30},                         // BERT
      {290, {{170, 290}}, 35},                         // RoBERTa
      {360, {{230, 360}}, 45},                         // XLM
      {200, {{20, 60}, {110, 150}}, 28},               // GPT-1
      {480, {{40, 100}, {150, 210}, {330, 480}}, 40},  // GPT-2
      {600, {{0, 80}, {160, 240}, {400, 600}}, 45},    // GPT-3
      {150, {{20, 60}, {90, 130}}, 45},                // DLRM
      {220, {{150, 220}}, 38},                         // VGG11
      {275, {{160, 275}}, 33},                         // CamemBERT
  };
  std::vector<Demand> demands;
  for (const Type& type : types) {
    Demand& demand = demands.emplace_back(Demand{Nanos(type.period_ms * 1'000'000), {}});
    for (const auto& [from, to] : type.bursts_ms)
      demand.bursts.push_back({Nanos(from * 1'000'000), Nanos(to * 1'000'000), Rate::from_gbps(type.gbps)});
  }
  return demands;
}

struct Setting {
  Cluster cluster;
  Occupancy occupancy;
  std::vector<ClusterJob> jobs;
};

/// Returns `jobs` jobs with 4 to 24 workers, and at most four workers on a host. The state is that of a cluster after
/// some time: jobs were placed by locality or at random while other jobs arrived and left.
Setting setting(const Topology& topology, std::size_t jobs, PlacementKind kind) {
  Setting result{Cluster(topology), Occupancy(topology.hosts(), 4), {}};
  const std::vector<Demand> types = job_types();
  Random random(7);
  GeneratorOptions generator;
  generator.candidates = 1;
  generator.compatible = false;
  generator.locality = kind == PlacementKind::locality;
  generator.random = kind == PlacementKind::random;
  for (std::size_t i = 0; i < 8 * jobs; ++i) {
    generator.seed = random.next();
    const Demand& demand = types[random.below(types.size())];
    const auto workers = static_cast<std::uint32_t>(4 + random.below(21));
    // Fill nine tenths of the cluster, then let random jobs leave.
    while (result.jobs.size() + 1 > jobs || result.occupancy.free() < 4 * result.occupancy.hosts() / 10 + workers) {
      const std::size_t gone = random.below(result.jobs.size());
      result.occupancy.release(result.jobs[gone].name);
      result.jobs.erase(result.jobs.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    const auto placed = generate_placements(result.cluster, result.occupancy, demand, workers, generator).front();
    const std::string name = "job " + std::to_string(i);
    result.occupancy.take(name, placed.workers);
    result.jobs.push_back({name, demand, ring(placed.workers)});
  }
  return result;
}

/// Returns 64 racks of 16 hosts, 2:1 oversubscribed.
Topology thousand_hosts() { return Topology::leaf_spine({64, 8, 16, Rate::from_gbps(50), Rate::from_gbps(50)}); }

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void describe(benchmark::State& state, const ClusterSolution& solution) {
  std::size_t competed = 0;
  std::size_t largest = 0;
  for (const ClusterSolution::Link& link : solution.links) competed += link.competed ? 1U : 0U;
  for (const ClusterSolution::Component& component : solution.components)
    largest = std::max(largest, component.jobs.size());
  state.counters["links"] = static_cast<double>(competed);
  state.counters["loops"] = solution.loops;
  state.counters["largest"] = static_cast<double>(largest);
  state.counters["score"] = solution.score;
  state.counters["bound"] = solution.upper_bound;
}

ClusterOptions with_threads(const benchmark::State& state) {
  ClusterOptions options;
  options.threads = static_cast<std::uint32_t>(state.range(0));
  return options;
}

/// Schedules all 256 jobs, starting without a schedule.
void schedule_1024_hosts(benchmark::State& state, PlacementKind kind) {
  const Setting base = setting(thousand_hosts(), 256, kind);
  for (auto _ : state) {
    Cluster cluster(thousand_hosts(), with_threads(state));
    cluster.schedule(base.jobs);
    describe(state, cluster.solution());
  }
}

/// Ranks ten candidate placements for one more job of 24 workers. Each measurement uses a new Cluster, which has not
/// ranked these candidates before.
void rank_1024_hosts(benchmark::State& state, PlacementKind kind) {
  Setting base = setting(thousand_hosts(), 255, kind);
  const Demand demand = job_types()[8];
  base.cluster.schedule(base.jobs);
  std::vector<Candidate> candidates;
  for (const WorkerPlacement& placement : generate_placements(base.cluster, base.occupancy, demand, 24))
    candidates.push_back({{{"new", demand, ring(placement.workers)}}});
  for (auto _ : state) {
    state.PauseTiming();
    Cluster cluster(thousand_hosts(), with_threads(state));
    describe(state, cluster.schedule(base.jobs));
    const std::uint64_t known = cluster.work().solved;
    state.ResumeTiming();
    const std::vector<RankedCandidate> ranked = cluster.rank(candidates);
    state.counters["candidates"] = static_cast<double>(ranked.size());
    state.counters["solved"] = static_cast<double>(cluster.work().solved - known);
  }
}

/// Lets the 256th job join. The job leaves again outside of the measured time.
void join_1024_hosts(benchmark::State& state, PlacementKind kind) {
  Setting base = setting(thousand_hosts(), 256, kind);
  const ClusterJob last = base.jobs.back();
  base.jobs.pop_back();
  for (auto _ : state) {
    state.PauseTiming();
    Cluster cluster(thousand_hosts(), with_threads(state));
    cluster.schedule(base.jobs);
    state.ResumeTiming();
    const Joined joined = cluster.join(last);
    state.counters["moves"] = static_cast<double>(joined.moves.size());
    state.counters["loss"] = joined.loss;
  }
}

/// Schedules 2,500 jobs on 313 racks of 32 hosts.
void schedule_10000_hosts(benchmark::State& state) {
  const auto topology = [] { return Topology::leaf_spine({313, 16, 32, Rate::from_gbps(50), Rate::from_gbps(50)}); };
  const Setting base = setting(topology(), 2500, PlacementKind::locality);
  for (auto _ : state) {
    Cluster cluster(topology(), with_threads(state));
    describe(state, cluster.schedule(base.jobs));
  }
  state.counters["peak_MiB"] = peak_mib();
}

constexpr auto kMs = benchmark::kMillisecond;
BENCHMARK_CAPTURE(schedule_1024_hosts, locality, PlacementKind::locality)
    ->Arg(1)
    ->Arg(2)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(kMs);
BENCHMARK_CAPTURE(schedule_1024_hosts, random, PlacementKind::random)
    ->Arg(1)
    ->Arg(2)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(kMs);
BENCHMARK_CAPTURE(rank_1024_hosts, locality, PlacementKind::locality)
    ->Arg(1)
    ->Arg(2)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(kMs);
BENCHMARK_CAPTURE(rank_1024_hosts, random, PlacementKind::random)
    ->Arg(1)
    ->Arg(2)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(kMs);
BENCHMARK_CAPTURE(join_1024_hosts, locality, PlacementKind::locality)
    ->Arg(1)
    ->Arg(2)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(kMs);
BENCHMARK_CAPTURE(join_1024_hosts, random, PlacementKind::random)
    ->Arg(1)
    ->Arg(2)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Unit(kMs);
BENCHMARK(schedule_10000_hosts)->Arg(1)->Arg(2)->MeasureProcessCPUTime()->UseRealTime()->Unit(kMs);

}  // namespace

BENCHMARK_MAIN();
