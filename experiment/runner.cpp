// Running of experiments (see runner.h).
#include "mltcp/experiment/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/experiment/job_driver.h"
#include "mltcp/workload/inspection.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

// Isolated iterations: enough for a median; the first one, with its slow start, is not counted where there are more.
constexpr std::uint32_t isolated_iterations = 7;
// A run is given up when a job's iteration takes this many times what all jobs one after the other would take.
constexpr std::int64_t patience = 50;
constexpr Nanos setup_limit = 10_s;
constexpr Nanos slice = 50_ms;  // between two reports of progress

cc::Augmentation augmentation_of(const std::string& policy, const Experiment& experiment, const workload::Job& job) {
  if (policy == "static") return cc::Augmentation::constant(job.weight);
  if (policy == "mltcp") return cc::Augmentation::mltcp({experiment.mltcp.slope, experiment.mltcp.intercept});
  if (policy == "fair") return {};
  throw InputError(fmt::format("policy \"{}\" can't be run by this version", policy));
}

struct RunPlan {
  std::string policy;
  std::vector<workload::Job> jobs;
  std::uint32_t iterations = 0;
};

/// One run on a fresh network. `tick` is told the share of the iterations that are done.
Run run_once(const Experiment& experiment, const RunPlan& plan, TestbedFactory& factory,
             const std::function<void(double)>& tick) {
  fabric::DumbbellConfig network = network_of(experiment);
  network.pairs = static_cast<std::uint32_t>(plan.jobs.size());
  const std::unique_ptr<Testbed> testbed = factory.make(network);

  std::vector<std::unique_ptr<JobDriver>> drivers;
  Nanos longest;
  for (std::uint32_t number = 0; number < plan.jobs.size(); ++number) {
    JobDriver::Settings settings;
    settings.job = plan.jobs[number];
    if (settings.job.rate.is_zero()) settings.job.rate = experiment.bottleneck.rate;
    settings.number = number;
    settings.iterations = plan.iterations;
    settings.seed = experiment.seed;
    settings.real_payload = factory.real_payload();
    settings.connection.congestion_control = experiment.cc;
    settings.connection.ecn = experiment.bottleneck.ecn.enabled;
    // A link that damages packets damages some beyond what UDP's 16-bit sum finds.
    settings.connection.full_integrity = experiment.bottleneck.faults.corruption > 0;
    // Before the first measurement, a round trip with a full buffer is the safe guess.
    settings.connection.initial_rtt =
        std::max(1_ms, experiment.bottleneck.delay * 4 +
                           experiment.bottleneck.rate.time_for(experiment.bottleneck.buffer_bytes));
    settings.augmentation = augmentation_of(plan.policy, experiment, settings.job);
    longest += workload::ideal_iteration(settings.job, experiment.bottleneck.rate).length;
    drivers.push_back(std::make_unique<JobDriver>(*testbed, settings));
  }

  const auto all = [&](auto&& predicate) {
    return std::all_of(drivers.begin(), drivers.end(), [&](const auto& driver) { return predicate(*driver); });
  };
  if (!testbed->run(testbed->now() + setup_limit,
                    [&] { return all([](const JobDriver& d) { return d.connected(); }); }))
    throw RunError(fmt::format("the jobs' connections were not open after {}; is the link losing almost everything?",
                               to_text(setup_limit)));
  // Time 0 of the experiment falls on the edge of a bin of the usage meter.
  const Nanos bin = testbed->usage().bin();
  const Nanos epoch((testbed->now().count / bin.count + 2) * bin.count);
  for (const auto& driver : drivers) driver->start(epoch);

  const auto all_done = [&] { return all([](const JobDriver& d) { return d.done(); }); };
  std::size_t recorded = 0;
  Nanos last_progress = epoch;
  const double total = static_cast<double>(plan.iterations) * static_cast<double>(drivers.size());
  Nanos first_start = Nanos::never();
  for (const workload::Job& job : plan.jobs) first_start = std::min(first_start, job.start);
  while (!testbed->run(testbed->now() + slice, all_done)) {
    std::size_t now_recorded = 0;
    for (const auto& driver : drivers) now_recorded += driver->recorded();
    if (now_recorded != recorded) last_progress = testbed->now();
    recorded = now_recorded;
    if (tick) tick(static_cast<double>(recorded) / total);
    if (testbed->now() > std::max(last_progress, epoch + first_start) + longest * patience)
      throw RunError(
          fmt::format("no job has finished an iteration for {}, {} times what all of them need one after "
                      "the other; give the link a higher rate, a larger buffer or fewer faults",
                      to_text(longest * patience), patience));
  }

  Run run;
  run.policy = plan.policy;
  run.cc = experiment.cc;
  run.datapath = factory.datapath();
  run.seed = experiment.seed;
  run.duration = testbed->now() - epoch;
  run.stalls = testbed->stalls();
  for (const auto& driver : drivers) run.jobs.push_back(driver->result());

  const fabric::LinkCounters& link = testbed->bottleneck().counters();
  run.bottleneck.rate = experiment.bottleneck.rate;
  run.bottleneck.ecn_marked_packets = link.marked_packets;
  run.bottleneck.dropped_packets = link.dropped_packets;
  run.bottleneck.max_queue_bytes = link.max_queue_bytes;
  const fabric::UsageMeter& usage = testbed->usage();
  run.bottleneck.usage.bin = usage.bin();
  Bytes carried = 0;
  // The meter may have widened its bins since; what set-up used lies in the first of them.
  const auto skip = static_cast<std::size_t>((epoch.count + usage.bin().count / 2) / usage.bin().count);
  for (const auto& [number, bins] : usage.jobs()) {
    auto& kept = run.bottleneck.usage.jobs[plan.jobs[number].name];
    if (bins.size() > skip) kept.assign(bins.begin() + static_cast<std::ptrdiff_t>(skip), bins.end());
    for (const Bytes bytes : kept) carried += bytes;
  }
  const Bytes possible = experiment.bottleneck.rate.bytes_in(run.duration);
  if (possible > 0)
    run.bottleneck.utilization = std::min(1.0, static_cast<double>(carried) / static_cast<double>(possible));
  return run;
}

/// What makes two jobs alike when each runs alone.
bool alike(const workload::Job& a, const workload::Job& b) {
  const auto same_phase = [](const workload::Phase& p, const workload::Phase& q) {
    return p.kind == q.kind && p.compute == q.compute && p.bytes == q.bytes && p.rate == q.rate &&
           p.overlap == q.overlap;
  };
  return a.flows == b.flows && a.rate == b.rate &&
         std::equal(a.phases.begin(), a.phases.end(), b.phases.begin(), b.phases.end(), same_phase);
}

Nanos isolated_time(const Experiment& experiment, workload::Job job, TestbedFactory& factory,
                    const std::function<void(double)>& tick) {
  job.start = {};
  job.jitter = {};
  const std::uint32_t iterations = std::min(isolated_iterations, std::max(experiment.iterations, 2U));
  const Run run = run_once(experiment, {"fair", {job}, iterations}, factory, tick);
  const std::vector<Nanos>& times = run.jobs.front().iterations;
  return iteration_stats(std::span(times).subspan(1)).p50;
}

}  // namespace

const std::vector<std::string>& available_policies() {
  static const std::vector<std::string> names{"fair", "static", "mltcp"};
  return names;
}

fabric::DumbbellConfig network_of(const Experiment& experiment) {
  fabric::DumbbellConfig network;
  network.pairs = static_cast<std::uint32_t>(experiment.jobs.size());
  network.bottleneck = experiment.bottleneck;
  network.bottleneck.seed = experiment.seed;
  network.reverse = network.bottleneck;
  network.access_delay = experiment.bottleneck.delay;
  return network;
}

Results run_experiment(const Experiment& experiment, TestbedFactory& factory, const Progress& progress) {
  Results results;
  results.experiment = experiment.name;

  // Shares of the whole, by iterations to run.
  std::vector<std::size_t> representative(experiment.jobs.size());
  std::size_t distinct = 0;
  for (std::size_t i = 0; i < experiment.jobs.size(); ++i) {
    representative[i] = i;
    for (std::size_t j = 0; j < i && representative[i] == i; ++j)
      if (alike(experiment.jobs[i], experiment.jobs[j])) representative[i] = j;
    if (representative[i] == i) ++distinct;
  }
  const double alone_share = static_cast<double>(std::min(isolated_iterations, experiment.iterations));
  const double total = alone_share * static_cast<double>(distinct) +
                       static_cast<double>(experiment.iterations) * static_cast<double>(experiment.policies.size());
  double finished = 0;
  const auto ticker = [&](double share, std::string what) {
    return [&progress, finished, total, share, what = std::move(what)](double fraction) {
      if (progress) progress((finished + share * fraction) / total, what);
    };
  };

  std::vector<Nanos> isolated(experiment.jobs.size());
  for (std::size_t i = 0; i < experiment.jobs.size(); ++i) {
    if (representative[i] != i) {
      isolated[i] = isolated[representative[i]];
      continue;
    }
    const auto tick = ticker(alone_share, fmt::format("{} alone", experiment.jobs[i].name));
    tick(0);
    isolated[i] = isolated_time(experiment, experiment.jobs[i], factory, tick);
    finished += alone_share;
  }
  const InterleaveRule rule = factory.real_time() ? InterleaveRule::real_time() : InterleaveRule::virtual_time();
  for (const std::string& policy : experiment.policies) {
    const auto tick = ticker(static_cast<double>(experiment.iterations), "policy " + policy);
    tick(0);
    Run run = run_once(experiment, {policy, experiment.jobs, experiment.iterations}, factory, tick);
    for (std::size_t i = 0; i < run.jobs.size(); ++i) run.jobs[i].isolated = isolated[i];
    summarize(run, rule);
    results.runs.push_back(std::move(run));
    finished += static_cast<double>(experiment.iterations);
  }
  if (progress) progress(1.0, "done");
  return results;
}

}  // namespace mltcp::experiment
