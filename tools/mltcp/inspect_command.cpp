// `mltcp inspect`: shows the contents of traces or of a measured profile, as text, as a job of an experiment, or as
// JSON. It also shows the claims of jobs in a capture.
//
// All formats of traces are read as graphs (lab/workload/traces/). A profile has its own reader and summary.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "claims_table.h"
#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/trace_files.h"
#include "mltcp/lab/workload/graph_phases.h"
#include "mltcp/lab/workload/inspection.h"
#include "mltcp/lab/workload/profile.h"
#include "mltcp/transport/capture/capture_claims.h"
#include "output_file.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct InspectArguments {
  std::vector<std::string> files;
  bool toml = false;
  std::optional<std::string> name;  ///< name of the job; default: the name of the file
  workload::TraceView trace;        ///< settings that need no parsing
  std::string network;  ///< selects the collectives that cross the network; TraceOptions::network gives the default
  std::string rate = "100 Gbps";
  std::optional<std::string> json;  ///< file for the JSON, or "-" for standard output

  [[nodiscard]] const std::string& file() const { return files.front(); }
};

void add_options(Options& options, InspectArguments& arguments) {
  options
      .add("TRACE", arguments.files,
           "Traces of one job: files, archives (.tar) or folders with one trace per rank, compressed or not, in any "
           "format that docs/reference/traces.md lists; or one measured profile (.csv); or a capture (.pcapng), to "
           "show the progress that jobs claim (docs/how-to/captures.md)")
      .required();
  options.flag("--toml", arguments.toml, "Print the job as a part of an experiment file");
  options.add("--name", arguments.name, "Name of the job that --toml prints; default: the file's name");
  options
      .add("--workers", arguments.trace.workers,
           "Number of workers that reduce weight gradients, for traces in 12 columns; default: the trace's, or 2")
      .check(whole(2, 1'000'000));
  options.add("--network", arguments.network,
              "Collectives that cross the network, for traces in 12 columns: weight-gradient, inter-server or all; "
              "default: weight-gradient, or all if the trace has none of these");
  options.add("--compute-scale", arguments.trace.compute_scale, "Multiply compute times by this; default 1")
      .check(factor(1e6));
  options.add("--bytes-scale", arguments.trace.bytes_scale, "Multiply sent bytes by this; default 1")
      .check(factor(1e6));
  options.add("--rank", arguments.trace.rank,
              "Rank whose trace is shown, by its recorded number; default: the first that has a trace");
  options
      .add("--ranks", arguments.trace.ranks,
           "Number of ranks, if the trace does not state it; default: the smallest number that fits the trace")
      .check(whole(1, 1'000'000));
  options.add("--json", arguments.json, "Write the summary to this file; - is standard output");
  options.add("--rate", arguments.rate, "Rate of the link for the duty cycle; default \"100 Gbps\"");
}

void print_toml(const workload::Job& job, const std::vector<std::string>& warnings) {
  fmt::print("{}", workload::to_toml(job));
  print_warnings(warnings);
}

/// Settings of the output, for all kinds of files.
struct Wanted {
  workload::TraceView trace;
  std::string name;  ///< name of the job
};

Wanted wanted_of(const InspectArguments& arguments) {
  Wanted wanted{arguments.trace, {}};
  workload::TraceView& trace = wanted.trace;
  trace.also_known = "measured profile (columns time_ms,rate_bps), capture (pcapng)";
  trace.link = of_option("--rate", arguments.rate, parse_rate);
  if (trace.link.is_zero()) throw InputError("--rate 0: a link needs a rate above 0; give one, e.g. \"100 Gbps\"");
  if (!arguments.network.empty()) {
    trace.network = workload::network_from(arguments.network);
    if (!trace.network)
      throw InputError(
          fmt::format("--network {}: unknown; give weight-gradient, inter-server or all", arguments.network));
  }
  wanted.name = arguments.name.value_or(experiment::job_name_of(arguments.file()));
  return wanted;
}

int print_profile(const InspectArguments& arguments, const Wanted& wanted) {
  if (arguments.trace.workers != 0 || !arguments.network.empty() || arguments.trace.compute_scale != 1 ||
      arguments.trace.bytes_scale != 1)
    throw InputError(
        "--workers, --network, --compute-scale, --bytes-scale: a measured profile already states what was sent, and "
        "when; leave them out");
  const workload::Profile profile = workload::load_profile(arguments.file());
  if (!arguments.toml) {
    fmt::print("{}", workload::describe(profile, wanted.trace.link));
    return 0;
  }
  workload::Job job;
  job.name = wanted.name;
  job.phases = workload::to_phases(profile);
  print_toml(job, {});
  return 0;
}

nlohmann::ordered_json to_json(const workload::GraphSummary& summary) {
  using Json = nlohmann::ordered_json;
  Json steps = Json::array();
  for (const auto& step : summary.steps)
    steps.push_back({{"name", one_line(step.name)},
                     {"length_ns", step.length.count},
                     {"compute_ns", step.compute.count},
                     {"communicate_ns", step.communicate.count},
                     {"both_ns", step.both.count},
                     {"sent_bytes", step.sent},
                     {"communications", step.communications}});
  Json communications = Json::array();
  for (const auto& [kind, sum] : summary.communications)
    communications.push_back({{"kind", kind}, {"count", sum.count}, {"bytes", sum.size}, {"sent_bytes", sum.sent}});
  Json phases = Json::array();
  for (const workload::Phase& phase : summary.phases) {
    if (phase.kind == workload::Phase::Kind::compute)
      phases.push_back({{"compute_ns", phase.compute.count}});
    else
      phases.push_back({{"bytes", phase.bytes}, {"overlap", phase.overlap}, {"label", one_line(phase.label)}});
  }
  return {{"schema", "mltcp.inspection/1"},
          {"format", summary.format},
          {"sources", summary.sources},
          {"ranks", summary.ranks},
          {"rank", summary.rank},
          {"times", summary.recorded ? "recorded" : "laid out"},
          {"period", key_of(summary.period)},
          {"confidence", summary.confidence},
          {"typical", summary.typical},
          {"steps", std::move(steps)},
          {"communications", std::move(communications)},
          {"phases", std::move(phases)},
          {"warnings", summary.warnings}};
}

int print_graph(const InspectArguments& arguments, const Wanted& wanted) {
  const std::vector<std::filesystem::path> paths(arguments.files.begin(), arguments.files.end());
  const workload::GraphSummary summary = experiment::summarise_job_traces(paths, wanted.trace);
  if ((wanted.trace.network || wanted.trace.workers != 0) && !workload::is_training_loop(summary))
    throw InputError("--network, --workers: this trace already states which rank sent what; leave them out");
  if (arguments.json) write_file(*arguments.json, json_text(to_json(summary), 2));
  if (arguments.json == "-") return 0;
  if (arguments.toml)
    print_toml(workload::to_job(summary, wanted.name), summary.warnings);
  else
    fmt::print("{}", workload::describe(summary, wanted.trace.link));
  return 0;
}

/// Prints the claims of the jobs in a capture. Throws InputError if options for traces are given.
int print_capture(const InspectArguments& arguments) {
  if (arguments.toml || arguments.name || arguments.trace.workers != 0 || !arguments.network.empty() ||
      arguments.trace.compute_scale != 1 || arguments.trace.bytes_scale != 1 || arguments.trace.rank ||
      arguments.trace.ranks != 0 || arguments.json)
    throw InputError(
        fmt::format("{}: options are for traces, and this file is a capture; leave them out", arguments.file()));
  std::ifstream in(arguments.file(), std::ios::binary);
  const capture::CaptureClaims claims = capture::read_claims(in, arguments.file());
  fmt::print("{} in {}\n", plural(claims.packets, "packet"), one_line(arguments.file()));
  const std::vector<JobClaim> received = claims.received.report();
  const std::vector<JobClaim> sent = claims.sent.report();
  if (received.empty() && sent.empty()) fmt::print("no packet has data of a job\n");
  if (!received.empty()) fmt::print("\nprogress that jobs claimed in received packets\n{}", claims_table(received));
  if (!sent.empty()) fmt::print("\nprogress that jobs claimed in sent packets\n{}", claims_table(sent));
  std::vector<std::string> warnings = warnings_of(received);
  for (std::string& warning : warnings_of(sent)) warnings.push_back(std::move(warning));
  if (claims.cut_packets > 0)
    warnings.push_back(fmt::format("{} cut before the claimed progress; capture {} bytes or more (snap=)",
                                   plural(claims.cut_packets, "packet"), capture::kMinCaptured));
  if (claims.deep_packets > 0)
    warnings.push_back(fmt::format("{} with more than {} VLAN tags or MPLS labels left out",
                                   plural(claims.deep_packets, "packet"), capture::kMaxTags));
  if (claims.fragments > 0)
    warnings.push_back(
        fmt::format("{} of IP left out; MLTCP does not fragment packets, so they are from other programs, or a tunnel "
                    "on the path fragmented them",
                    plural(claims.fragments, "fragment")));
  if (claims.extended > 0)
    warnings.push_back(fmt::format("{} of IPv6 with extension headers left out", plural(claims.extended, "packet")));
  if (claims.other_packets > 0)
    warnings.push_back(fmt::format("{} of links of type {} left out; capture on one interface of Ethernet (not any)",
                                   plural(claims.other_packets, "packet"), claims.other_link));
  if (claims.is_cut)
    warnings.push_back(
        fmt::format("{} ends within a packet: it is still being written, or the disk was full", arguments.file()));
  print_warnings(warnings);
  return 0;
}

int inspect(const InspectArguments& arguments) {
  for (const std::string& file : arguments.files) {
    if (capture::is_classic_capture(file))
      throw InputError(fmt::format(
          "{0}: this is a capture in the older format pcap; convert it: tshark -F pcapng -r {0} -w NEW.pcapng", file));
    if (!capture::is_capture(file)) continue;
    if (arguments.files.size() == 1) return print_capture(arguments);
    throw InputError(
        fmt::format("{}: this is a capture; give one at a time, or join them: mergecap -w ALL.pcapng FILE...", file));
  }
  const Wanted wanted = wanted_of(arguments);
  if (arguments.toml) {
    const std::string wrong = experiment::objection_to_name(wanted.name);
    if (!wrong.empty()) throw InputError(fmt::format("--name: {}", wrong));
  }
  if (arguments.json) check_writable(*arguments.json, arguments.file());
  if (arguments.files.size() > 1 || !experiment::is_measured_profile(arguments.file()))
    return print_graph(arguments, wanted);
  if (arguments.json || arguments.trace.rank || arguments.trace.ranks != 0)
    throw InputError("--json, --rank, --ranks: for traces of ranks, but this is a measured profile; leave them out");
  return print_profile(arguments, wanted);
}

}  // namespace

void add_inspect_command(CommandLine& line) {
  line.add<InspectArguments>("inspect",
                             "Show the iterations, phases and bytes of traces or a profile (docs/reference/traces.md)",
                             add_options, inspect);
}

}  // namespace mltcp::tools
