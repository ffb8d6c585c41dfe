// `mltcp advise`: predicts whether jobs will slow each other down, and what would help.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithm_lists.h"
#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "experiment_options.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/advice/advice.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/file_kind.h"
#include "mltcp/lab/experiment/files/job_file.h"
#include "mltcp/lab/experiment/files/trace_files.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/profile.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct AdviseArguments {
  std::vector<std::string> files;
  std::optional<std::string> network;  ///< an experiment file that describes the network
  std::string rate = "100 Gbps";  ///< this option and the next three describe the link; only used without --network
  std::string delay = "10 us";
  std::optional<std::string> buffer;
  std::optional<std::string> ecn;
  std::optional<std::string> cc;
  std::optional<std::uint64_t> seed;
  experiment::AdviceOptions advice;  ///< only the settings for which there are options
  std::string level = "auto";
  std::uint32_t workers = 0;  ///< number of workers; 0: as in the trace
  std::optional<std::string> json;
};

void add_options(Options& options, AdviseArguments& arguments) {
  options
      .add("FILE", arguments.files,
           "The jobs: traces or profiles that mltcp inspect reads, jobs that mltcp inspect --toml prints, or "
           "experiments (all of their jobs)")
      .required()
      .words(1, 64);
  options.add("--network", arguments.network,
              "An experiment file, whose network and settings are used, but not its jobs; default: one link");
  options.add("--rate", arguments.rate, "Rate of the one link; default \"100 Gbps\"");
  options.add("--delay", arguments.delay, "Delay of the one link, one way, at each hop; default \"10 us\"");
  options.add("--buffer", arguments.buffer,
              "Buffer of the one link; default: what the link sends in 1 ms, and at least 75 kB");
  options.add("--ecn", arguments.ecn,
              "Queue length from which on the one link marks packets; default: no marks, or a fifth of the buffer if "
              "--cc needs marks");
  options.add("--cc", arguments.cc, "Congestion control; default: that of --network, or reno")
      .suggest(algorithm_names());
  add_seed(options, arguments.seed, "Seed of compute times; default: that of --network, or 1");
  options
      .add("--starts", arguments.advice.starts,
           "Number of combinations of start times that are tried; default 8, or fewer if that takes long")
      .check(whole(1, 1000));
  options
      .add("--iterations", arguments.advice.iterations,
           "Iterations of the job with the shortest iteration, per combination of start times; the other jobs run for "
           "the same time; default 40, or fewer if that takes long")
      .check(whole(2, 1'000'000));
  options
      .add("--jitter", arguments.advice.jitter,
           "Standard deviation of compute times, as a share of them, for jobs that state none; default 0.005")
      .check(share(0.5));
  options
      .add("--level", arguments.level,
           "packet (simulate packets), flow (simulate flows, without policy turns), or auto: packets unless there are "
           "too "
           "many; default auto")
      .check(one_of({"auto", "flow", "packet"}));
  options
      .add("--workers", arguments.workers,
           "Number of workers that reduce weight gradients, for traces in the 12-column text format; default: the "
           "trace's, or 2")
      .check(whole(2, 1'000'000));
  options.add("--threads", arguments.advice.threads,
              "Runs at a time, which does not change results; default: one per core");
  options.add("--json", arguments.json, "Write the advice to this file (docs/how-to/advise.md); - is standard output");
}

/// Returns the text as a string of TOML.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      result += c;
  }
  return result + "\"";
}

/// Returns an experiment with the network of the file --network or, without it, with one link.
experiment::Experiment network_of(const AdviseArguments& arguments) {
  experiment::FileOptions options = file_options();
  options.cc = arguments.cc;
  options.seed = arguments.seed;
  options.datapath = "sim";
  if (arguments.network) return experiment::load_experiment(*arguments.network, options);
  const Rate rate = of_option("--rate", arguments.rate, parse_rate);
  if (rate.is_zero()) throw InputError("--rate 0: a link needs a rate above 0; give one, e.g. \"100 Gbps\"");
  std::string text = fmt::format("name = \"advice\"\n[bottleneck]\nrate = {}\ndelay = {}\n", quoted(arguments.rate),
                                 quoted(arguments.delay));
  // By default, the buffer holds what the link sends in 1 ms, as in switches for clusters, but at least 75 kB.
  const std::uint64_t millisecond = rate.bits_per_second / 8 / 1000;
  text += "buffer = " +
          (arguments.buffer ? quoted(*arguments.buffer)
                            : fmt::format("\"{} B\"", std::max<std::uint64_t>(75'000, millisecond))) +
          "\n";
  const bool marks = arguments.cc && (*arguments.cc == "dctcp" || *arguments.cc == "dcqcn");
  if (arguments.ecn || marks) {
    const std::string threshold = arguments.ecn
                                      ? quoted(*arguments.ecn)
                                      : fmt::format("\"{} B\"", std::max<std::uint64_t>(30'000, millisecond / 5));
    text += fmt::format("ecn = {{ kmin = {0}, kmax = {0}, pmax = 1.0 }}\n", threshold);
  }
  // A placeholder, because the reader refuses files without jobs.
  text += "[[job]]\nname = \"none\"\ncompute = \"1 ms\"\ncommunicate = \"1 B\"\n";
  return experiment::parse_experiment(text, "--rate, --delay, --buffer, --ecn, --cc", options);
}

using Period = std::optional<experiment::Advice::Period>;

/// Returns the job that the first rank of a trace describes, on a link of the given rate.
workload::Job job_of_trace(const std::string& file, Rate link, std::uint32_t workers, Period& period,
                           std::vector<std::string>& warnings) {
  const std::filesystem::path path(file);
  const workload::TraceView view{
      .link = link, .workers = workers, .also_known = "measured profile (columns time_ms,rate_bps)"};
  const workload::GraphSummary summary = experiment::summarise_job_traces(std::span(&path, 1), view);
  warnings.insert(warnings.end(), summary.warnings.begin(), summary.warnings.end());
  constexpr double sure = 0.5;  // confidence in a single step that the trace marks
  const Nanos length = summary.steps[summary.typical].length;
  if (summary.confidence < sure)
    warnings.push_back(
        summary.period == workload::GraphSummary::Period::single
            ? fmt::format(
                  "{0}: no iterations were found, so the whole trace, {1:.3f} ms, is taken as one iteration "
                  "(confidence {2:.2f}); check it with mltcp inspect {0}, or record the trace with marked steps",
                  file, length.millis(), summary.confidence)
            : fmt::format("{0}: its iterations of {1:.3f} ms, {3}, have a confidence of {2:.2f}; check them with mltcp "
                          "inspect {0}, or record the trace with marked steps",
                          file, length.millis(), summary.confidence, name(summary.period)));
  period = experiment::Advice::Period{length, std::string(key_of(summary.period)), summary.confidence};
  return workload::to_job(summary, experiment::job_name_of(file));
}

workload::Job job_of_profile(const std::string& file) {
  workload::Job job;
  job.name = experiment::job_name_of(file);
  job.phases = workload::to_phases(workload::load_profile(file));
  return job;
}

/// Returns the jobs of a file. If it is a trace, also stores its period in `period`. `link` is the rate of the
/// network's links; it gives the length of those parts of a trace that have no times.
std::vector<workload::Job> jobs_of(const std::string& file, Rate link, const AdviseArguments& arguments, Period& period,
                                   std::vector<std::string>& warnings) {
  constexpr TextFile kind{"a trace, a job or an experiment", std::size_t{1} << 30};
  std::vector<workload::Job> jobs;
  std::error_code error;
  const auto holds_jobs = [&] {
    return std::filesystem::is_regular_file(file, error) && workload::format_of(file) == nullptr &&
           experiment::kind_of(read_text_file(file, file, kind)) == experiment::FileKind::experiment;
  };
  if (std::filesystem::path(file).extension() != ".toml" && !holds_jobs()) {
    jobs.push_back(experiment::is_measured_profile(file)
                       ? job_of_profile(file)
                       : job_of_trace(file, link, arguments.workers, period, warnings));
    return jobs;
  }
  const std::string text = read_text_file(file, file, kind);
  // The file is an experiment if it describes a network. A single job, as mltcp inspect prints it, has a table [[job]]
  // but no network.
  const bool network = text.starts_with("[bottleneck") || text.starts_with("[topology") ||
                       text.find("\n[bottleneck") != std::string::npos ||
                       text.find("\n[topology") != std::string::npos ||
                       text.find("\nbottleneck") != std::string::npos || text.find("\ntopology") != std::string::npos;
  if (network && experiment::kind_of(text) == experiment::FileKind::experiment) {
    experiment::FileOptions options = file_options();
    options.datapath = "sim";
    experiment::Experiment all = experiment::load_experiment(file, options);
    warnings.insert(warnings.end(), all.warnings.begin(), all.warnings.end());
    if (!arguments.network && arguments.rate == AdviseArguments{}.rate)
      warnings.push_back(fmt::format("{0}: its network is not used, but one link of {1}; give --network {0}, or --rate",
                                     file, arguments.rate));
    return std::move(all.jobs);
  }
  workload::Job job;
  try {
    job = experiment::parse_job(text, file);
  } catch (const InputError&) {
    experiment::refuse_other_kind(text, file, kind.what, {experiment::FileKind::experiment});
    throw;
  }
  if (job.name.empty()) job.name = experiment::job_name_of(file);
  jobs.push_back(std::move(job));
  return jobs;
}

/// Returns the experiment with the jobs of all files. Appends one period per job to `periods`. The period of a job that
/// does not come from a trace is empty.
experiment::Experiment experiment_of(const AdviseArguments& arguments, std::vector<Period>& periods) {
  experiment::Experiment experiment = network_of(arguments);
  experiment.name = "advice";
  if (!arguments.network) experiment.warnings.clear();
  experiment.jobs.clear();
  experiment.places.clear();
  std::set<std::string> names;
  for (const std::string& file : arguments.files) {
    Period period;
    for (workload::Job& job : jobs_of(file, experiment.bottleneck.rate, arguments, period, experiment.warnings)) {
      periods.push_back(period);
      const std::string name = job.name;
      for (int i = 2; !names.insert(job.name).second; ++i) job.name = fmt::format("{}-{}", name, i);
      if (!experiment.topology) job.hosts.clear();
      experiment.places.push_back(fmt::format("{}: job {}", file, in_quotes(job.name)));
      experiment.jobs.push_back(std::move(job));
    }
  }
  return experiment;
}

void print_advice(const experiment::Advice& advice, std::FILE* out) {
  std::vector<std::string> header{"job", "alone ms", "busy"};
  for (const auto& policy : advice.policies) header.push_back(policy.name);
  Table jobs(header, 1);
  for (std::size_t i = 0; i < advice.jobs.size(); ++i) {
    const auto& job = advice.jobs[i];
    std::vector<std::string> row{one_line(job.name), fmt::format("{:.2f}", job.isolated.millis()),
                                 fmt::format("{:.1f}%", 100 * job.busy)};
    for (const auto& policy : advice.policies)
      row.push_back(
          fmt::format("{:.3f} ({:.2f} to {:.2f})", policy.jobs[i].mean, policy.jobs[i].best, policy.jobs[i].worst));
    jobs.add(std::move(row));
  }
  std::vector<std::string> means{"all", "", ""};
  std::vector<std::string> by{"by", "", ""};
  for (const auto& policy : advice.policies) {
    means.push_back(fmt::format("{:.3f}", policy.mean()));
    by.push_back(policy.packets ? "packets" : "flows");
  }
  jobs.add(std::move(means));
  jobs.add(std::move(by));
  fmt::print(out, "{}, {}, {} iterations from {}; slow-downs: mean (best to worst start)\n\n{}\n",
             plural(advice.jobs.size(), "job"), advice.cc, advice.iterations,
             advice.starts == 1 ? "one start" : fmt::format("each of {} starts", advice.starts), jobs.text());
  bool any = false;
  for (const auto& job : advice.jobs) {
    if (!job.period) continue;
    fmt::print(out, "period of {}: {:.3f} ms, {}, confidence {:.2f}\n", one_line(job.name), job.period->length.millis(),
               job.period->found, job.period->confidence);
    any = true;
  }
  if (any) fmt::print(out, "\n");
  if (!advice.pairs.empty()) {
    Table pairs({"pair", "", "score", "bound", "fair", "mltcp"}, 2);
    for (const auto& pair : advice.pairs)
      pairs.add({one_line(advice.jobs[pair.a].name), one_line(advice.jobs[pair.b].name),
                 experiment::score_text(pair.score), experiment::score_text(pair.upper_bound),
                 fmt::format("{:.3f}", pair.fair), fmt::format("{:.3f}", pair.mltcp)});
    fmt::print(out, "{}\n", pairs.text());
  }
  fmt::print(out, "compatibility of all: score {}, bound {}{}\n", experiment::score_text(advice.score),
             experiment::score_text(advice.upper_bound), advice.proven ? ", proven" : "");
  fmt::print(out, "{}\n", advice.sentence);
}

int advise(const AdviseArguments& arguments) {
  const Outputs outputs({{"--json", arguments.json}});
  if (arguments.network && (arguments.rate != AdviseArguments{}.rate || arguments.delay != AdviseArguments{}.delay ||
                            arguments.buffer || arguments.ecn))
    throw InputError("--network already describes the links; leave out --rate, --delay, --buffer and --ecn");
  outputs.check(arguments.files.front());
  const FilesRead files;
  std::vector<Period> periods;
  const experiment::Experiment experiment = experiment_of(arguments, periods);
  experiment::AdviceOptions options = arguments.advice;
  using Level = experiment::AdviceOptions::Level;
  options.level = arguments.level == "flow"     ? Level::flow
                  : arguments.level == "packet" ? Level::packet
                                                : Level::automatic;
  const EndOnSignal signals;
  options.stop = [] { return !EndOnSignal::why().empty(); };
  ProgressBar bar;
  options.progress = [&](double fraction) { bar.show(fraction, "running"); };
  const Provenance provenance = provenance_of(files);
  experiment::Advice advice;
  try {
    advice = experiment::advise(experiment, options);
  } catch (const RunError&) {
    bar.clear();
    if (!EndOnSignal::why().empty())
      throw RunError(fmt::format("{} before all runs were complete, so there is no advice; run the same command again",
                                 EndOnSignal::why()));
    throw;
  }
  bar.clear();
  advice.provenance = provenance;
  for (std::size_t i = 0; i < advice.jobs.size(); ++i) advice.jobs[i].period = periods[i];
  std::set<std::string> printed;
  for (const std::string& warning : advice.warnings)
    if (printed.insert(warning).second) print_warning(warning);
  print_advice(advice, outputs.text());
  if (arguments.json) write_file(*arguments.json, to_json(advice));
  return 0;
}

}  // namespace

void add_advise_command(CommandLine& line) {
  line.add<AdviseArguments>(
      "advise",
      "Predict how much jobs slow each other down on a shared network, and which policy helps (docs/how-to/advise.md)",
      add_options, advise);
}

}  // namespace mltcp::tools
