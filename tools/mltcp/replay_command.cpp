// `mltcp replay`: runs jobs whose ranks follow recorded traces, on a network in virtual time or on datapath ring.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithm_lists.h"
#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "experiment_options.h"
#include "gen_command.h"
#include "key_option.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/flow_level.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/replay/replay_experiment.h"
#include "mltcp/lab/experiment/replay/replay_summary.h"
#include "mltcp/lab/experiment/replay/replay_timeline.h"
#include "mltcp/lab/experiment/run/runner.h"
#include "mltcp/transport/capture/capture_options.h"
#include "output_file.h"
#include "provenance.h"
#include "results_output.h"
#include "series_output.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct ReplayArguments {
  std::vector<std::string> words;
  ExperimentArguments experiment;
  std::optional<std::string> cores;
  std::optional<std::string> serve;
  std::string wait = "60s";
  std::optional<std::string> key;
  std::optional<std::string> rate;
  std::optional<std::string> delay;
  std::optional<std::string> buffer;
  std::optional<std::string> ecn;
  std::uint32_t mtu = 0;  ///< bytes; 0: the option is not given
  std::string steps = "all";
  std::string ranks;  ///< ranks to replay; empty: all
  std::string algorithm = "ring";
  std::string island_rate;            ///< rate within an island; empty: transfers within an island take no time
  experiment::ReplayRequest request;  ///< settings that need no parsing
  bool no_delays = false;
  bool verify = false;
  std::uint32_t threads = 0;
  std::optional<std::string> json;
  std::optional<std::string> report;
  std::optional<std::string> timeline;
  std::optional<std::string> pcap;
  SeriesArguments series;
};

constexpr std::uint32_t kIterationsAlone = 3;
constexpr std::uint32_t kIterationsTogether = 20;

std::vector<std::string> ring_tree_halving() {
  std::vector<std::string> names;
  for (const auto algorithm :
       {workload::Algorithm::ring, workload::Algorithm::tree, workload::Algorithm::halving_doubling})
    names.emplace_back(name(algorithm));
  return names;
}

void add_options(Options& options, ReplayArguments& arguments) {
  options
      .add("TRACE", arguments.words,
           "The traces of one job: a file per rank, one file for all ranks, an archive or a folder; or several jobs, "
           "e.g. a=TRACE,TRACE b=TRACE@100ms (docs/how-to/replay.md)")
      .required();
  options
      .add("--datapath", arguments.experiment.options.datapath,
           "sim (virtual time, packets), flow (virtual time, flows instead of packets, for thousands of ranks) or ring "
           "(DPDK, real time; two ranks of a job); default: sim, or flow if packets would take long")
      .suggest(experiment::available_datapaths());
  options.add("--serve", arguments.serve,
              "Replay in real time on hosts, one per rank: be the coordinator at HOST:PORT or unix:/path, which hosts "
              "join with mltcp gen --join (docs/how-to/gen.md)");
  options.add("--wait", arguments.wait, "How long the coordinator waits for hosts; default 60s");
  add_key_option(options, arguments.key,
                 "With --serve: encrypt the coordinator's connections to hosts, and all packets of jobs,");
  options.add("--rate", arguments.rate, "Rate of each link; default \"100 Gbps\"");
  options.add("--delay", arguments.delay, "Delay of each link, one way; default \"1 us\"");
  options.add("--buffer", arguments.buffer, "Buffer of each port of the switch; default \"1 MB\"");
  options.add("--ecn", arguments.ecn, "Queue length of a port from which on it marks packets; default: no marks");
  options.add("--mtu", arguments.mtu, "Size of IP packets; default 1500").check(whole(576, 9000));
  options.add("--network-of", arguments.experiment.file,
              "An experiment file, whose network and settings replace the one switch; its jobs are not used");
  options
      .add("--cc", arguments.experiment.options.cc,
           fmt::format("Congestion control: {} (docs/reference/algorithms.md); default: the file's, or reno",
                       algorithm_choices()))
      .suggest(algorithm_names());
  options
      .add_list(
          "--policy", arguments.experiment.options.policy,
          "Policies, separated by commas, e.g. fair,mltcp; default: the file's, or fair, and mltcp for several jobs")
      .suggest(experiment::policy_names());
  options
      .add("--iterations", arguments.experiment.options.iterations,
           fmt::format("Number of times that the steps are repeated; default: the file's, or {}, for several jobs {}",
                       kIterationsAlone, kIterationsTogether))
      .check(whole(1, 1'000'000));
  add_seed(options, arguments.experiment.options.seed,
           "Seed of all random values, 0 to 2^63 - 1; default: the file's, or 1");
  options.add("--steps", arguments.steps,
              "Steps of the traces that an iteration replays: all, typical (that of median length), 2 or 1-3; default: "
              "all");
  options.add("--ranks", arguments.ranks,
              "Ranks that are replayed, by their recorded numbers, e.g. 0-3,6; default: all");
  options
      .add("--trace-ranks", arguments.request.trace_ranks,
           "Number of ranks, if the trace does not state it; default: the smallest number that fits the trace")
      .check(whole(2, 65'536));
  options
      .add("--algorithm", arguments.algorithm,
           "Algorithm of collectives: ring, tree or halving-doubling; default: ring")
      .check(one_of(ring_tree_halving()));
  options.flag("--whole", arguments.request.graph.whole,
               "Replace the steps of a ring by one message per rank, for hundreds of ranks or more on datapath flow");
  options
      .add("--islands", arguments.request.graph.islands,
           "Ranks per island, i.e. ranks with a faster interconnect (NVLink): collectives cross the network once per "
           "rank of an island; default 1")
      .check(whole(1, 1024));
  options.add("--island-rate", arguments.island_rate,
              "Rate of each rank within its island; default: transfers there take no time");
  options.add("--flows", arguments.request.flows, "Connections between two ranks; default 1").check(whole(1, 64));
  options.add("--compute-scale", arguments.request.graph.compute_scale, "Multiply compute times by this; default 1")
      .check(factor(1e6));
  options.add("--bytes-scale", arguments.request.graph.bytes_scale, "Multiply sent bytes by this; default 1")
      .check(factor(1e6));
  options.flag("--no-delays", arguments.no_delays,
               "Start each operation as soon as its dependencies are complete, even if the recorded one started later");
  options.flag("--verify", arguments.verify, "Carry and verify every byte on datapath sim too (ring always does)");
  options.add("--cores", arguments.cores, "CPUs of datapath ring: one, or two with the switch on the second, e.g. 0,1")
      .check(cpu_list());
  options.add("--threads", arguments.threads,
              "Runs at a time, in virtual time, which does not change results; default: one per core");
  options.add("--json", arguments.json,
              "Write the results to this file (docs/reference/results-file.md); - is standard output");
  options.add(
      "--report", arguments.report,
      "Also write an HTML page of the results, with charts of --series (docs/how-to/report.md); - is standard output");
  options.add("--pcap", arguments.pcap,
              "Capture the packets of all hosts, in each policy's run: FILE[,snap=BYTES][,size=BYTES][,files=N], as "
              "pcapng (docs/how-to/captures.md)");
  options.add("--timeline", arguments.timeline,
              "Write the recording and its replay as a Chrome trace, for Perfetto, to this file");
  add_series_options(options, arguments.series);
}

Rate rate_of(const char* option, const std::string& text) {
  const Rate rate = of_option(option, text, parse_rate);
  if (rate.is_zero())
    throw InputError(fmt::format("{} 0: the rate must be above 0; give one, e.g. \"100 Gbps\"", option));
  return rate;
}

/// Returns the settings apart from the traces. They come from an experiment file or, without one, from options only.
experiment::Experiment settings_of(const ReplayArguments& arguments, std::size_t jobs) {
  const ExperimentArguments& given = arguments.experiment;
  if (!given.file.empty()) {
    for (const auto& [option, is_given] :
         {std::pair("--rate", arguments.rate.has_value()), std::pair("--delay", arguments.delay.has_value()),
          std::pair("--buffer", arguments.buffer.has_value()), std::pair("--ecn", arguments.ecn.has_value()),
          std::pair("--mtu", arguments.mtu != 0)})
      if (is_given)
        throw InputError(fmt::format("{}: {} already describes the network; give one of the two", option, given.file));
    return arguments.serve ? load_for_hosts(given) : load_experiment(given);
  }
  const experiment::FileOptions& options = given.options;
  experiment::Experiment settings;
  settings.datapath = options.datapath.value_or("sim");
  if (arguments.serve) {
    if (options.datapath)
      throw InputError("--serve: hosts carry the packets, so there is no datapath to choose; leave out --datapath");
    settings.datapath = "hosts";
  }
  const std::vector<std::string>& datapaths = experiment::available_datapaths();
  if (!arguments.serve && std::ranges::find(datapaths, settings.datapath) == datapaths.end())
    throw InputError(fmt::format("--datapath {}: there is no datapath of that name; give {}",
                                 in_quotes(settings.datapath), fmt::join(datapaths, ", ")));
  if (options.cc) settings.cc = of_option("--cc", [&] { return cc::algorithm_from(*options.cc).name; });
  if (cc::find_algorithm(settings.cc).capabilities.needs_ecn && !arguments.ecn)
    throw InputError(fmt::format(
        "--cc: {} needs ECN, but the switch marks no packets; add --ecn \"60 kB\", or give another congestion control",
        settings.cc));
  settings.policies = jobs > 1 ? std::vector<std::string>{"fair", "mltcp"} : std::vector<std::string>{"fair"};
  if (!options.policy.empty()) settings.policies = options.policy;
  const std::vector<std::string> policies = experiment::policy_names();
  for (const std::string& policy : settings.policies)
    if (std::ranges::find(policies, policy) == policies.end())
      throw InputError(fmt::format("--policy {}: there is no policy of that name; give one of {}", in_quotes(policy),
                                   fmt::join(policies, ", ")));
  settings.iterations = options.iterations.value_or(jobs > 1 ? kIterationsTogether : kIterationsAlone);
  settings.seed = options.seed.value_or(settings.seed);
  return settings;
}

experiment::ReplayRequest request_of(const ReplayArguments& arguments) {
  experiment::ReplayRequest request = arguments.request;
  request.jobs = experiment::parse_replay_jobs(arguments.words);
  request.steps = of_option("--steps", arguments.steps, workload::StepChoice::from_text);
  if (!arguments.ranks.empty()) request.graph.ranks = of_option("--ranks", arguments.ranks, workload::ranks_from_text);
  for (const auto algorithm :
       {workload::Algorithm::ring, workload::Algorithm::tree, workload::Algorithm::halving_doubling})
    if (arguments.algorithm == name(algorithm)) request.graph.algorithm = algorithm;
  if (!arguments.island_rate.empty()) request.graph.island_rate = rate_of("--island-rate", arguments.island_rate);
  request.graph.delays = !arguments.no_delays;
  if (arguments.rate) request.network.rate = rate_of("--rate", *arguments.rate);
  if (arguments.delay) request.network.delay = of_option("--delay", *arguments.delay, parse_duration);
  if (arguments.buffer) request.network.buffer = of_option("--buffer", *arguments.buffer, parse_bytes);
  if (arguments.ecn) {
    request.network.ecn.enabled = true;
    request.network.ecn.kmin_bytes = request.network.ecn.kmax_bytes = of_option("--ecn", *arguments.ecn, parse_bytes);
    request.network.ecn.pmax = 1;
  }
  if (arguments.mtu != 0) request.network.mtu = arguments.mtu;
  return request;
}

/// The simulation of this many bytes as packets takes about ten seconds. Simulate more bytes as flows, unless an option
/// or a policy requires packets.
constexpr Bytes kMaxByPackets = 20'000'000'000;

/// Returns the approximate number of bytes that all runs send: one run for each policy, and one run of each job in
/// isolation.
double bytes_sent(const experiment::Replay& replay) {
  double bytes = 0;
  for (const experiment::ReplayedTrace& trace : replay.traces)
    for (const workload::RankProgram& rank : trace.programs.ranks)
      for (const workload::Operation& operation : rank.operations)
        if (operation.kind == workload::Operation::Kind::send) bytes += static_cast<double>(operation.bytes);
  const std::size_t runs = replay.experiment.policies.size() + 1;
  return bytes * static_cast<double>(replay.experiment.iterations) * static_cast<double>(runs);
}

/// Selects datapath flow, and prints a note, if there are more than kMaxByPackets bytes and nothing requires packets.
void choose_datapath(const ReplayArguments& arguments, experiment::Replay& replay, std::FILE* out) {
  const std::vector<std::string>& policies = replay.experiment.policies;
  const bool only_packets = std::ranges::any_of(
      policies, [](const std::string& policy) { return experiment::policy_named(policy).priorities; });
  const bool asks = arguments.experiment.options.datapath || !arguments.experiment.file.empty() || arguments.pcap ||
                    arguments.series.file || arguments.verify || arguments.cores || arguments.ecn || arguments.buffer ||
                    arguments.mtu != 0 || only_packets;
  if (asks || arguments.serve) return;
  const double bytes = bytes_sent(replay);
  if (bytes <= static_cast<double>(kMaxByPackets)) return;
  replay.experiment.datapath = "flow";
  fmt::print(out,
             "Simulating flows, since {:.0f} GB would take long as packets (for packets, give --datapath sim{}).\n",
             bytes * 1e-9, arguments.request.graph.whole ? "" : "; faster: --whole");
}

std::unique_ptr<experiment::Datapath> make_datapath(const ReplayArguments& arguments,
                                                    const experiment::Experiment& experiment) {
  if (arguments.cores && experiment.datapath != "ring")
    throw InputError(
        fmt::format("--cores is for datapath ring, but the datapath is {}; leave it out, or add --datapath ring",
                    experiment.datapath));
  if (experiment.datapath == "flow") {
    if (arguments.verify)
      throw InputError("--verify: datapath flow carries no bytes; leave it out, or give --datapath sim");
    return experiment::make_flow_datapath();
  }
  if (experiment.datapath == "ring")
    return experiment::make_ring_datapath(arguments.cores.value_or(""), experiment::network_of(experiment));
  return experiment::make_sim_datapath(arguments.verify);
}

std::string percent(Nanos replayed, Nanos recorded) {
  if (recorded.count <= 0) return "-";
  const double ratio = static_cast<double>(replayed.count) / static_cast<double>(recorded.count);
  return fmt::format("{:+.1f}%", (ratio - 1) * 100);
}

std::string millis(Nanos time) { return time.count > 0 ? fmt::format("{:.3f}", time.millis()) : std::string("-"); }

/// Prints how the steps and collectives of a run differ from the recording.
void print_comparison(const experiment::Run& run, std::FILE* out) {
  constexpr std::size_t max_steps = 12;
  for (const experiment::JobResult& job : run.jobs) {
    if (!job.replay) continue;
    const experiment::ReplayResult& replay = *job.replay;
    fmt::print(out, "\n{} under {}, compared with its recording ({}):\n", job.name, run.policy, replay.format);
    Table table({"", "count", "recorded ms", "replayed ms", "difference", "mean error"}, 1);
    for (std::size_t i = 0; i < std::min(replay.steps.size(), max_steps); ++i) {
      const auto& step = replay.steps[i];
      table.add({step.name.empty() ? fmt::format("step {}", i) : step.name, "", millis(step.recorded),
                 millis(step.replayed), percent(step.replayed, step.recorded), ""});
    }
    if (replay.steps.size() > max_steps)
      table.add({fmt::format("and {} more", plural(replay.steps.size() - max_steps, "step")), "", "", "", "", ""});
    for (const auto& collective : replay.collectives)
      table.add({collective.name, fmt::format("{}", collective.count), millis(collective.recorded),
                 millis(collective.replayed), percent(collective.replayed, collective.recorded),
                 collective.recorded.count > 0 ? fmt::format("{:.1f}%", collective.mean_error * 100) : "-"});
    fmt::print(out, "{}", table.text());
  }
}

void print_simplified(const experiment::Replay& replay, std::FILE* out) {
  for (const experiment::ReplayedTrace& trace : replay.traces) {
    for (const std::string& warning : trace.graph->warnings) fmt::print(out, "simplified: {}\n", one_line(warning));
    for (const std::string& warning : trace.programs.warnings) fmt::print(out, "simplified: {}\n", one_line(warning));
  }
  fmt::print(out, "\n");
  std::fflush(out);
}

/// Adds to the results how each job differs from its trace.
void compare(const experiment::Replay& replay, experiment::Results& results) {
  for (experiment::Run& run : results.runs)
    for (std::size_t i = 0; i < run.jobs.size(); ++i)
      run.jobs[i].replay =
          experiment::summarize_replay(*replay.traces[i].graph, replay.traces[i].programs, run.jobs[i]);
}

int replay_on_hosts(const ReplayArguments& arguments, const experiment::StreamKey& key,
                    const experiment::Replay& replay, const FilesRead& files, std::FILE* out) {
  const EndOnSignal signals;
  Serving serving;
  serving.address = *arguments.serve;
  serving.key = key;
  serving.wait = of_option("--wait", arguments.wait, parse_duration);
  serving.json = arguments.json;
  serving.report = arguments.report;
  serving.series = arguments.series;
  serving.complete = [&](experiment::Results& results) { compare(replay, results); };
  print_simplified(replay, out);
  const experiment::Results results = serve_experiment(replay.experiment, serving, files, out);
  if (!results.runs.empty()) print_comparison(results.runs.front(), out);
  return 0;
}

int replay(const ReplayArguments& arguments) {
  const Outputs outputs(
      {{"--json", arguments.json}, {"--report", arguments.report}, {"--timeline", arguments.timeline}});
  const FilesRead files;
  experiment::ReplayRequest request = request_of(arguments);
  experiment::Experiment settings = settings_of(arguments, request.jobs.size());
  const bool own_network = arguments.experiment.file.empty();
  request.network.dumbbell = settings.datapath == "ring";
  if (own_network) settings.name = request.jobs.size() == 1 ? request.jobs.front().name : "replay";
  if (arguments.serve && arguments.timeline)
    throw InputError("--timeline: hosts do not report the times of operations; leave out --timeline, or --serve");
  if (arguments.serve && arguments.pcap)
    throw InputError("--pcap: each host captures its own packets; give --pcap to mltcp gen --join instead");
  if (!arguments.serve && arguments.wait != ReplayArguments().wait)
    throw InputError("--wait: an option of the coordinator; add --serve, or leave it out");
  if (!arguments.serve && arguments.key)
    throw InputError("--key: needs a coordinator, whose connections it encrypts; add --serve, or leave it out");
  outputs.check(request.jobs.front().files.front().string());
  const experiment::StreamKey key = arguments.serve ? stream_key_of(arguments.key) : nullptr;
  experiment::Replay replay = experiment::make_replay(request, std::move(settings), own_network);
  const experiment::Experiment& experiment = replay.experiment;

  std::FILE* const out = outputs.text();
  if (arguments.serve) return replay_on_hosts(arguments, key, replay, files, out);
  choose_datapath(arguments, replay, out);
  std::vector<std::string> ties;
  if (experiment.datapath == "flow") ties = experiment::warnings_at_flow_level(experiment);
  print_warnings(ties.empty() ? experiment::warnings_of_ties(experiment) : ties);
  const std::unique_ptr<experiment::Datapath> datapath = make_datapath(arguments, experiment);
  experiment::RunOptions options;
  options.threads = arguments.threads;
  options.series = check_series(arguments.series, request.jobs.front().files.front().string(),
                                {arguments.json, arguments.report, arguments.timeline});
  experiment::SeriesFile series;
  options.recorded = &series.runs;
  if (arguments.pcap && experiment.datapath == "flow")
    throw InputError("--pcap: datapath flow has no packets; leave it out, or give --datapath sim");
  if (options.series && experiment.datapath == "flow")
    print_warning(
        "--series: datapath flow has only series of links, not of replayed connections; for both, give --datapath sim");
  if (arguments.pcap) options.capture = capture::parse_capture("--pcap", *arguments.pcap);
  experiment::check(experiment, *datapath, options);
  fmt::print(out, "{}\n", headline(experiment, *datapath));
  print_simplified(replay, out);

  const EndOnSignal signals;
  const Provenance provenance = provenance_of(files);
  experiment::Results results = run_and_keep(experiment, *datapath, options, provenance, arguments.json, out,
                                             [&](experiment::Results& so_far) { compare(replay, so_far); });
  if (options.series) {
    series.experiment = results.experiment;
    series.provenance = provenance;
    write_series(*arguments.series.file, series, results);
  }
  print_results(results, *datapath, arguments.experiment.file, arguments.json, out);
  if (!results.runs.empty()) print_comparison(results.runs.front(), out);
  if (arguments.timeline && !results.runs.empty()) {
    std::vector<experiment::DrawnReplay> drawn;
    for (std::size_t i = 0; i < replay.traces.size(); ++i)
      drawn.push_back({replay.traces[i].graph.get(), &replay.traces[i].programs, &results.runs.front().jobs[i]});
    write_file(*arguments.timeline, experiment::replay_timeline(drawn));
    if (results.runs.size() > 1)
      fmt::print(out, "\n{} shows the run under {}.\n", *arguments.timeline, results.runs.front().policy);
  }
  if (arguments.report) write_report(results, options.series ? &series : nullptr, *arguments.report, out);
  if (!results.unfinished.empty())
    throw RunError(fmt::format("{}: {} {} missing", EndOnSignal::why(), fmt::join(results.unfinished, ", "),
                               results.unfinished.size() == 1 ? "is" : "are"));
  return 0;
}

}  // namespace

void add_replay_command(CommandLine& line) {
  line.add<ReplayArguments>("replay", "Replay recorded traces: ranks repeat their recorded operations over a network",
                            add_options, replay);
}

}  // namespace mltcp::tools
