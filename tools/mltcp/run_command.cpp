// `mltcp run`: runs an experiment's jobs over its network, once per policy, in virtual time or on datapath ring.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "experiment_options.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/runner.h"
#include "output_file.h"
#include "provenance.h"
#include "results_output.h"
#include "series_output.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct RunArguments {
  ExperimentArguments experiment;
  std::optional<std::string> cores;  ///< CPUs for datapath ring; invalid for other datapaths
  std::optional<std::string> json;   ///< file for the results, or "-" for standard output
  std::string plan;                  ///< file with a plan; empty: plans are computed
  std::optional<std::string> report;
  std::optional<std::string> pcap;  ///< FILE and settings of a capture; see capture_options.h
  bool no_isolated = false;         ///< do not measure each job alone
  bool verify = false;              ///< carry and verify payloads even in virtual time
  SeriesArguments series;
  std::uint32_t threads = 0;  ///< number of parallel runs in virtual time; 0: one per core
};

void add_options(Options& options, RunArguments& arguments) {
  options.add("EXPERIMENT.toml", arguments.experiment.file, "The experiment (docs/reference/experiment-file.md)")
      .required();
  options
      .add("--datapath", arguments.experiment.options.datapath,
           "sim (virtual time), flow (virtual time, flows instead of packets, for large networks) or ring (DPDK, real "
           "time); default: the file's, or sim")
      .suggest(experiment::available_datapaths());
  add_experiment_options(options, arguments.experiment, " (docs/reference/algorithms.md)");
  options.add("--cores", arguments.cores, "CPUs of datapath ring: one, or two with the switch on the second, e.g. 0,1")
      .check(cpu_list());
  options.add("--plan", arguments.plan,
              "Read the slots of policies with a schedule from this file, and again whenever it changes, "
              "instead of computing them (docs/how-to/plan.md)");
  options.add("--threads", arguments.threads,
              "Runs at a time, in virtual time (jobs alone, then policies), which does not change results; default: "
              "one per core");
  options.flag("--no-isolated", arguments.no_isolated,
               "Do not also run each job alone; isolated times and slow-downs are then unknown (0)");
  options.flag("--verify", arguments.verify, "Carry and verify every byte on datapath sim too (ring always does)");
  options.add("--pcap", arguments.pcap,
              "Capture the packets of all hosts, in each policy's run: FILE[,snap=BYTES][,size=BYTES][,files=N], as "
              "pcapng (docs/how-to/captures.md)");
  options.add("--json", arguments.json,
              "Write the results to this file, and rewrite it after each policy, so that complete policies are kept "
              "after Ctrl-C (docs/reference/results-file.md); - is standard output");
  options.add(
      "--report", arguments.report,
      "Also write an HTML page of the results, with charts of --series (docs/how-to/report.md); - is standard output");
  add_series_options(options, arguments.series);
}

/// Throws InputError for options that are invalid together, before the run begins.
void check_options(const RunArguments& arguments, const experiment::Experiment& experiment) {
  if (arguments.cores && experiment.datapath != "ring")
    throw InputError(
        fmt::format("--cores is for datapath ring, but the datapath is {}; leave it out, or add --datapath ring",
                    experiment.datapath));
  if (arguments.pcap && experiment.datapath == "flow")
    throw InputError("--pcap: datapath flow has no packets; leave it out, or add --datapath sim");
  if (arguments.pcap) {
    const capture::CaptureOptions capture = capture::parse_capture("--pcap", *arguments.pcap);
    for (const std::string& policy : experiment.policies) {
      const bool alone = experiment.policies.size() == 1;
      capture::CaptureOptions own = alone ? capture : capture::with_suffix(capture, policy);
      if (own.files > 1) own = capture::with_suffix(own, "00001");
      check_writable(own.file, arguments.experiment.file);
      check_distinct({own.file, arguments.json, arguments.report}, "--pcap, --json, --report");
      if (!arguments.plan.empty()) check_distinct({own.file, arguments.plan}, "--pcap, --plan");
    }
  }
  if (!arguments.plan.empty())
    check_distinct({arguments.json, arguments.report, arguments.plan}, "--json, --report, --plan");
}

std::unique_ptr<experiment::Datapath> make_datapath(const RunArguments& arguments,
                                                    const experiment::Experiment& experiment) {
  if (experiment.datapath == "flow") {
    if (arguments.verify)
      throw InputError("--verify: datapath flow carries no bytes; leave it out, or add --datapath sim");
    print_warnings(experiment::warnings_at_flow_level(experiment));
    return experiment::make_flow_datapath();
  }
  if (experiment.datapath == "ring")
    return experiment::make_ring_datapath(arguments.cores.value_or(""), experiment::network_of(experiment));
  return experiment::make_sim_datapath(arguments.verify);
}

int run(const RunArguments& arguments) {
  const Outputs outputs({{"--json", arguments.json}, {"--report", arguments.report}});
  const FilesRead files;
  const experiment::Experiment experiment = load_experiment(arguments.experiment);
  outputs.check(arguments.experiment.file);
  check_options(arguments, experiment);
  std::FILE* const out = outputs.text();
  print_warnings(experiment.warnings);

  const std::unique_ptr<experiment::Datapath> datapath = make_datapath(arguments, experiment);
  experiment::RunOptions options;
  options.plan_file = arguments.plan;
  options.threads = arguments.threads;
  options.isolated = !arguments.no_isolated;
  options.series = check_series(arguments.series, arguments.experiment.file,
                                {arguments.json, arguments.report,
                                 arguments.plan.empty() ? std::nullopt : std::optional<std::string>(arguments.plan)});
  experiment::SeriesFile series;
  options.recorded = &series.runs;
  if (arguments.pcap) options.capture = capture::parse_capture("--pcap", *arguments.pcap);
  experiment::check(experiment, *datapath, options);
  const Provenance provenance = provenance_of(files);
  fmt::print(out, "{}\n\n", headline(experiment, *datapath));
  std::fflush(out);
  const EndOnSignal signals;
  const experiment::Results results = run_and_keep(experiment, *datapath, options, provenance, arguments.json, out);
  std::string failure;
  if (options.series) {
    series.experiment = results.experiment;
    series.provenance = provenance;
    try {
      write_series(*arguments.series.file, series, results);
    } catch (const RunError& error) {
      failure = error.what();  // thrown below, after the results are written
    }
  }
  print_results(results, *datapath, arguments.experiment.file, arguments.json, out);
  if (arguments.report) write_report(results, options.series ? &series : nullptr, *arguments.report, out);
  if (!failure.empty()) throw RunError(failure);
  if (!results.unfinished.empty())
    throw RunError(fmt::format("{}: {} of {} policies {} complete{}; {} {} missing", EndOnSignal::why(),
                               results.runs.size(), experiment.policies.size(), results.runs.size() == 1 ? "is" : "are",
                               arguments.json && *arguments.json != "-" ? " and kept in " + *arguments.json : "",
                               fmt::join(results.unfinished, ", "), results.unfinished.size() == 1 ? "is" : "are"));
  return 0;
}

}  // namespace

void add_run_command(CommandLine& line) {
  line.add<RunArguments>("run", "Run an experiment's jobs over its network, once per policy, and compare", add_options,
                         run);
}

}  // namespace mltcp::tools
