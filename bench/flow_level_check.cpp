// Compares datapath flow with datapath sim: runs experiment files on both, and prints the differences as Markdown.
//
//   build/bin/flow_level_check examples/two-vgg19.toml ...
//
// For each policy, prints the largest difference between the two datapaths in a job's isolated iteration time. Also
// prints the mean slow-down of all jobs on each datapath, over all iterations and over the second half of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <span>

#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace {

using namespace mltcp;

double over_isolated(Nanos time, const experiment::JobResult& job) {
  return static_cast<double>(time.count) / static_cast<double>(job.isolated.count);
}

struct Summary {
  double slowdown = 0;
  double later = 0;
};
Summary summary(const experiment::Run& run) {
  Summary sum;
  for (const experiment::JobResult& job : run.jobs) {
    sum.slowdown += over_isolated(job.mean, job) / static_cast<double>(run.jobs.size());
    sum.later += over_isolated(job.second_half_mean, job) / static_cast<double>(run.jobs.size());
  }
  return sum;
}

void compare(const char* file) {
  experiment::FileOptions options;
  options.datapaths = experiment::available_datapaths();
  const experiment::Experiment experiment = experiment::load_experiment(file, options);
  const experiment::Results packets = run_experiment(experiment, *experiment::make_sim_datapath());
  const experiment::Results flows = run_experiment(experiment, *experiment::make_flow_datapath());
  for (std::size_t i = 0; i < packets.runs.size(); ++i) {
    const experiment::Run& sim = packets.runs[i];
    const experiment::Run& flow = flows.runs[i];
    double isolated = 0;
    for (std::size_t job = 0; job < sim.jobs.size(); ++job)
      isolated = std::max(isolated, std::abs(over_isolated(flow.jobs[job].isolated, sim.jobs[job]) - 1));
    const Summary a = summary(sim);
    const Summary b = summary(flow);
    fmt::print("| {} | {} | {:.2f}% | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:+.1f}% |\n", experiment.name, sim.policy,
               isolated * 100, a.slowdown, b.slowdown, a.later, b.later, (b.later / a.later - 1) * 100);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print(
      "| experiment | policy | isolated differs | slow-down, sim | flow | second half, sim | flow | differs |\n"
      "|---|---|---|---|---|---|---|---|\n");
  try {
    for (const char* file : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) compare(file);
  } catch (const std::exception& error) {
    fmt::print(stderr, "flow_level_check: {}\n", error.what());
    return 1;
  }
}
