// `mltcp cluster`: reads a cluster file, runs it under each scheme, and prints a comparison of the schemes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "experiment_options.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/cluster/cluster_file.h"
#include "mltcp/lab/experiment/cluster/cluster_run.h"
#include "mltcp/lab/experiment/results/table.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/models.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct ClusterArguments {
  std::string file;
  std::optional<std::string> level;      ///< "packet" or "flow"
  experiment::ClusterFileOptions given;  ///< the given options, except `level`
  std::uint32_t threads = 0;             ///< number of threads; 0: one per core
  std::optional<std::string> json;       ///< file for the results as JSON, or "-" for standard output
  std::optional<std::string> markdown;
  bool models = false;  ///< list the models that jobs may train, without reading a file
};

void add_options(Options& options, ClusterArguments& arguments) {
  options.add("FILE.toml", arguments.file,
              "The cluster: its network, and its jobs, which are drawn at random, listed, or read from a table of "
              "Helios or Philly");
  options.flag("--models", arguments.models,
               "List the models that jobs can train, for 8 workers of 50 Gbps and the default settings, with their "
               "sources; give no file");
  options
      .add(
          "--level", arguments.level,
          "packet (simulate every packet) or flow (simulate flows, for large clusters); default: the file's, or packet")
      .check(one_of({"packet", "flow"}));
  options.add_list(
      "--scheme", arguments.given.schemes,
      fmt::format(
          "Schemes, separated by commas, e.g. locality,compatible+schedule+mltcp,ideal; default: the file's, or {}",
          fmt::join(experiment::default_schemes(), ",")));
  add_seed(options, arguments.given.seed, "The first seed, 0 to 2^63 - 1; default: the file's, or 1");
  options.add("--seeds", arguments.given.seeds, "Number of seeds that each scheme runs with; default: the file's, or 1")
      .check(whole(1, 1000));
  options.add("--threads", arguments.threads, "Runs at a time; default: one per core").check(whole(1, 10'000));
  options.add("--json", arguments.json,
              "Write all results to this file, and rewrite it after each run, so that complete runs are kept after "
              "Ctrl-C; - is standard output");
  options.add("--markdown", arguments.markdown, "Write the table to this file as Markdown; - is standard output");
}

void print_models() {
  constexpr Rate link(50'000'000'000);
  Table table({"model", "parallelism", "configuration", "parameters", "batch", "computes ms", "sends MB",
               "iteration ms", "sending"},
              3);
  for (const workload::Model& model : workload::models()) {
    const workload::Job job = workload::make_job(model);
    const workload::IdealIteration iteration = workload::ideal_iteration(job, link);
    table.add({std::string(model.name), std::string(name(model.strategy)), std::string(model.configuration),
               fmt::format("{:.1f}M", static_cast<double>(model.parameters) * 1e-6), fmt::format("{}", model.batch),
               fmt::format("{:.0f}", job.compute_per_iteration().millis()),
               fmt::format("{:.0f}", static_cast<double>(job.bytes_per_iteration()) * 1e-6),
               fmt::format("{:.0f}", iteration.length.millis()), fmt::format("{:.0f}%", iteration.duty_cycle() * 100)});
  }
  fmt::print("{}\n", table.text());
  for (const workload::Model& model : workload::models()) fmt::print("{}: {}\n", model.name, model.source);
}

experiment::ClusterExperiment load(const ClusterArguments& arguments) {
  experiment::ClusterFileOptions options = arguments.given;
  if (arguments.level)
    options.level = *arguments.level == "flow" ? experiment::ClusterExperiment::Level::flow
                                               : experiment::ClusterExperiment::Level::packet;
  return experiment::load_cluster(arguments.file, options);
}

/// Runs the experiment with a progress bar, and writes intermediate results from time to time.
experiment::ClusterResults measure(const ClusterArguments& arguments, const experiment::ClusterExperiment& experiment,
                                   const Provenance& provenance) {
  ProgressBar bar;
  experiment::ClusterRunSettings settings;
  settings.threads = arguments.threads;
  settings.progress = [&](double fraction, const std::string& what) { bar.show(fraction, what); };
  settings.interrupted = EndOnSignal::why;
  // Limits the time for writing to 1/50 of the run time, for any length of a write and any number of runs.
  using Clock = std::chrono::steady_clock;
  Clock::time_point next = Clock::now();
  if (arguments.json && replaceable(*arguments.json))
    settings.finished = [&](const std::function<const experiment::ClusterResults&()>& so_far) {
      constexpr int share = 50;
      const Clock::time_point begun = Clock::now();
      if (begun < next) return;
      experiment::ClusterResults kept = so_far();
      kept.provenance = provenance;
      try {
        write_file(*arguments.json, experiment::to_json(kept));
      } catch (const RunError& error) {
        bar.clear();
        print_warning(error.what());
      }
      next = Clock::now() + share * (Clock::now() - begun);
    };
  experiment::ClusterResults results = experiment::run_cluster(experiment, settings);
  results.provenance = provenance;
  bar.clear();
  return results;
}

void print_and_write(const ClusterArguments& arguments, const experiment::ClusterResults& results, std::FILE* out) {
  fmt::print(out, "{}\n\n", experiment::headline(results));
  const experiment::Cells cells = experiment::cells_of(results);
  Table table(cells.rows.front(), cells.left);
  for (std::size_t row = 1; row < cells.rows.size(); ++row) table.add(cells.rows[row]);
  fmt::print(out, "{}", table.text());
  if (arguments.json) write_file(*arguments.json, experiment::to_json(results));
  if (arguments.markdown) write_file(*arguments.markdown, experiment::to_markdown(cells));
}

int cluster(const ClusterArguments& arguments) {
  if (arguments.models) {
    if (!arguments.file.empty()) throw InputError("--models: lists models and runs no cluster; leave the file out");
    print_models();
    return 0;
  }
  if (arguments.file.empty()) throw InputError("FILE.toml is required; see mltcp cluster --help");
  const Outputs outputs({{"--json", arguments.json}, {"--markdown", arguments.markdown}});
  const FilesRead files;
  const experiment::ClusterExperiment experiment = load(arguments);
  outputs.check(arguments.file);
  print_warnings(experiment.warnings);
  const Provenance provenance = provenance_of(files);
  const EndOnSignal signals;
  const experiment::ClusterResults results = measure(arguments, experiment, provenance);
  print_and_write(arguments, results, outputs.text());
  if (results.unfinished.empty()) return 0;
  std::vector<std::string> missing;
  for (const auto& run : results.unfinished) missing.push_back(fmt::format("{} with seed {}", run.scheme, run.seed));
  throw RunError(fmt::format("{}: {} complete, and the table shows only {}; missing: {}", EndOnSignal::why(),
                             results.runs.size() == 1 ? "1 run is" : fmt::format("{} runs are", results.runs.size()),
                             results.runs.size() == 1 ? "it" : "these", fmt::join(missing, ", ")));
}

}  // namespace

void add_cluster_command(CommandLine& line) {
  line.add<ClusterArguments>(
      "cluster",
      "Run a stream of jobs on a cluster, once per scheme of placing and driving them (docs/how-to/cluster.md)",
      add_options, cluster);
}

}  // namespace mltcp::tools
