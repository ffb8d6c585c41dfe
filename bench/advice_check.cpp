// Measures the error of `mltcp advise`. Prints its predictions and the results of packet-level simulations as a
// Markdown table.
//
//   build/bin/advice_check [--seeds N] examples/multi-phase.toml ...
//
// Each file is a mix of jobs on its own network. The reference is N packet-level simulations (default: 24), with 60
// iterations of each job. Each simulation starts the jobs at random times within their periods. The reference and the
// advice use different seeds. ± is the 95% confidence interval of the reference. Differences smaller than this interval
// mean nothing. Values are means over the jobs, except that the last column is the error of the worst job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/parallel.h"
#include "mltcp/base/random.h"
#include "mltcp/lab/experiment/advice/advice.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/results/estimate.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace {

using namespace mltcp;

constexpr std::uint64_t kOtherSeeds = 1000;

/// Returns the slow-downs of the jobs, by policy, job and seed.
std::vector<std::vector<std::vector<double>>> measured(const experiment::Experiment& experiment,
                                                       const experiment::Advice& advice, std::uint32_t seeds) {
  std::vector result(advice.policies.size(), std::vector(experiment.jobs.size(), std::vector<double>(seeds)));
  in_parallel(0, seeds, [&](std::size_t i) {
    experiment::Experiment run = experiment;
    run.policies.clear();
    for (const auto& policy : advice.policies) run.policies.push_back(policy.name);
    run.iterations = 60;
    run.seed = kOtherSeeds + i;
    Random random(run.seed);
    for (std::size_t k = 0; k < run.jobs.size(); ++k) {
      workload::Job& job = run.jobs[k];
      job.start =
          Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(advice.jobs[k].isolated.count))));
      job.start_jitter = Nanos(0);
      job.iterations = 0;
      if (!job.compute_varies())
        job.jitter = Nanos(
            std::llround(experiment::AdviceOptions{}.jitter * static_cast<double>(job.compute_per_iteration().count)));
    }
    const experiment::Results results = run_experiment(run, *experiment::make_sim_datapath());
    for (std::size_t policy = 0; policy < results.runs.size(); ++policy)
      for (std::size_t job = 0; job < run.jobs.size(); ++job)
        result[policy][job][i] = results.runs[policy].jobs[job].slowdown;
  });
  return result;
}

void check(const char* file, std::uint32_t seeds) {
  const experiment::Experiment experiment = experiment::load_experiment(file);
  const experiment::Advice advice = experiment::advise(experiment);
  experiment::AdviceOptions by_flows;
  by_flows.level = experiment::AdviceOptions::Level::flow;
  const experiment::Advice flows = experiment::advise(experiment, by_flows);
  const std::vector<std::vector<std::vector<double>>> packets = measured(experiment, advice, seeds);
  for (std::size_t policy = 0; policy < advice.policies.size(); ++policy) {
    std::vector<double> means(seeds);
    double off = 0;  // the largest error of a job so far
    for (std::size_t job = 0; job < experiment.jobs.size(); ++job) {
      for (std::uint32_t i = 0; i < seeds; ++i)
        means[i] += packets[policy][job][i] / static_cast<double>(experiment.jobs.size());
      const double differs =
          advice.policies[policy].jobs[job].mean / experiment::estimate_of(packets[policy][job]).mean - 1;
      if (std::abs(differs) > std::abs(off)) off = differs;
    }
    const experiment::Estimate reference = experiment::estimate_of(means);
    const double advised = advice.policies[policy].mean();
    const auto alone =
        std::ranges::find(flows.policies, advice.policies[policy].name, &experiment::Advice::Policy::name);
    fmt::print("| {} | {} | {:.3f} | {} | {} | {:.3f} ±{:.3f} | {:+.1f}% | {:+.1f}% |\n", experiment.name,
               advice.policies[policy].name, advised, advice.policies[policy].packets ? "packets" : "flows",
               alone == flows.policies.end() ? "-" : fmt::format("{:.3f}", alone->mean()), reference.mean,
               reference.ci95.value_or(0), (advised / reference.mean - 1) * 100, off * 100);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::span<char*> words = std::span(argv, static_cast<std::size_t>(argc)).subspan(1);
  std::uint32_t seeds = 24;
  if (words.size() > 1 && std::string_view(words[0]) == "--seeds") {
    seeds = static_cast<std::uint32_t>(std::strtoul(words[1], nullptr, 10));
    words = words.subspan(2);
  }
  if (words.empty() || seeds < 2) {
    fmt::print(stderr, "usage: advice_check [--seeds N] EXPERIMENT.toml ...; N is 2 or more\n");
    return 2;
  }
  fmt::print(
      "| mix | policy | advised | by | by flows alone | packets | differs | of the worst job "
      "|\n|---|---|---|---|---|---|---|---|\n");
  try {
    for (const char* file : words) check(file, seeds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "advice_check: {}\n", error.what());
    return 1;
  }
}
