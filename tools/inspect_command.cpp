// `mltcp inspect`: what traces or a measured profile hold, for people, as a job of an experiment or as JSON.
//
// Formats of phases (12-column text, a profile, PyTorch's profiler as a plain file) have readers and summaries of their
// own; all others are read as graphs (workload/traces/).
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/experiment/files/experiment_file.h"
#include "mltcp/experiment/files/file_kind.h"
#include "mltcp/workload/graph_phases.h"
#include "mltcp/workload/inspection.h"
#include "mltcp/workload/kineto.h"
#include "mltcp/workload/profile.h"
#include "mltcp/workload/trace.h"
#include "mltcp/workload/traces/read_traces.h"
#include "output_file.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct InspectArguments {
  std::vector<std::string> files;
  bool toml = false;
  std::optional<std::string> name;  ///< default: the file's
  std::uint32_t workers = 0;        ///< 0: the mapping's default
  std::string network;              ///< empty: the mapping's default
  double compute_scale = 1.0;
  double bytes_scale = 1.0;
  std::string rate = "100 Gbps";
  std::optional<std::uint32_t> rank;  ///< whose view is shown; default: the first with a trace
  std::uint32_t ranks = 0;            ///< of the job; 0: as the trace tells
  std::optional<std::string> json;    ///< file, or "-" for standard output

  [[nodiscard]] const std::string& file() const { return files.front(); }
};

void add_options(Options& options, InspectArguments& arguments) {
  options
      .add("TRACE", arguments.files,
           "Traces of one job: files, archives (.tar) or folders with one for each rank, packed or not, of any format "
           "that "
           "docs/traces.md lists; or one measured profile (.csv)")
      .required();
  options.flag("--toml", arguments.toml, "Print it as a job of an experiment file");
  options.add("--name", arguments.name, "Name of that job; default: the file's");
  options.add("--workers", arguments.workers, "Workers that reduce weight gradients; default: the trace's, or 2")
      .check(whole(2, 1'000'000));
  options.add("--network", arguments.network,
              "Collectives that cross the shared link: weight-gradient (default), inter-server, all");
  options.add("--compute-scale", arguments.compute_scale, "Factor on compute times; default 1").check(factor(1e6));
  options.add("--bytes-scale", arguments.bytes_scale, "Factor on bytes sent; default 1").check(factor(1e6));
  options.add("--rank", arguments.rank, "Rank whose view is shown, as recorded; default: the first that has a trace");
  options
      .add("--ranks", arguments.ranks, "Number of ranks of a job whose trace does not tell; default: as few as can be")
      .check(whole(1, 1'000'000));
  options.add("--json", arguments.json, "Write the summary to this file; - is standard output");
  options.add("--rate", arguments.rate, "Rate of the link for the duty cycle; default \"100 Gbps\"");
}

void print_toml(const workload::Job& job, const std::vector<std::string>& warnings) {
  fmt::print("{}", workload::to_toml(job));
  print_warnings(warnings);
}

Rate link_rate(const std::string& text) {
  try {
    return parse_rate(text);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--rate: {}", error.what()));
  }
}

workload::MappingOptions mapping_of(const InspectArguments& arguments) {
  workload::MappingOptions options;
  if (arguments.workers != 0) options.workers = arguments.workers;
  options.compute_scale = arguments.compute_scale;
  options.bytes_scale = arguments.bytes_scale;
  if (!arguments.network.empty()) {
    const auto network = workload::network_from(arguments.network);
    if (!network)
      throw InputError(
          fmt::format("--network {}: unknown; it is weight-gradient, inter-server or all", arguments.network));
    options.network = *network;
  }
  return options;
}

/// What is asked of any kind of file.
struct Wanted {
  workload::MappingOptions mapping;
  Rate rate;
  std::string name;  ///< of the job
};

int print_kineto(const InspectArguments& arguments, const Wanted& wanted) {
  if (!arguments.network.empty())
    throw InputError("--network: a trace of PyTorch's profiler tells what was sent; leave the option out");
  const workload::KinetoTrace trace = workload::load_kineto(arguments.file());
  if (arguments.toml)
    print_toml(workload::to_job(trace, wanted.name, wanted.mapping), trace.warnings);
  else
    fmt::print("{}", workload::describe(trace, wanted.mapping, wanted.rate));
  return 0;
}

int print_profile(const InspectArguments& arguments, const Wanted& wanted) {
  if (arguments.workers != 0 || !arguments.network.empty() || arguments.compute_scale != 1 ||
      arguments.bytes_scale != 1)
    throw InputError(
        "--workers, --network, --compute-scale, --bytes-scale: a measured profile tells what was sent, and when; "
        "leave them out");
  const workload::Profile profile = workload::load_profile(arguments.file());
  if (!arguments.toml) {
    fmt::print("{}", workload::describe(profile, wanted.rate));
    return 0;
  }
  workload::Job job;
  job.name = wanted.name;
  job.phases = workload::to_phases(profile);
  print_toml(job, {});
  return 0;
}

int print_trace(const InspectArguments& arguments, const Wanted& wanted) {
  const workload::Trace trace = workload::load_trace(arguments.file());
  if (arguments.toml)
    print_toml(workload::to_job(trace, wanted.name, wanted.mapping), trace.warnings);
  else
    fmt::print("{}", workload::describe(workload::inspect(trace, wanted.mapping), wanted.rate));
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
  constexpr std::string_view period[] = {"marked", "repeated", "single"};
  return {{"schema", "mltcp.inspection/1"},
          {"format", summary.format},
          {"sources", summary.sources},
          {"ranks", summary.ranks},
          {"rank", summary.rank},
          {"times", summary.recorded ? "recorded" : "laid out"},
          {"period", period[static_cast<std::size_t>(summary.period)]},
          {"confidence", summary.confidence},
          {"typical", summary.typical},
          {"steps", std::move(steps)},
          {"communications", std::move(communications)},
          {"phases", std::move(phases)},
          {"warnings", summary.warnings}};
}

/// The rank of the graph that is wanted.
std::uint32_t chosen_rank(const workload::ExecutionGraph& graph, const InspectArguments& arguments) {
  std::uint32_t first = 0;
  while (first + 1 < graph.ranks.size() && graph.ranks[first].nodes.empty()) ++first;
  if (!arguments.rank) return first;
  if (*arguments.rank >= graph.ranks.size() || graph.ranks[*arguments.rank].nodes.empty())
    throw InputError(
        fmt::format("--rank {}: there is no trace of it; one of rank {} is there", *arguments.rank, first));
  return *arguments.rank;
}

int print_graph(const InspectArguments& arguments, const Wanted& wanted) {
  if (!arguments.network.empty() || arguments.workers != 0)
    throw InputError("--network, --workers: this trace tells what was sent, and by whom; leave them out");
  const std::vector<std::filesystem::path> paths(arguments.files.begin(), arguments.files.end());
  workload::TraceOptions options;
  options.ranks = arguments.ranks;
  options.as_recorded = true;
  const workload::ExecutionGraph graph = workload::read_traces(paths, options);
  workload::PhaseOptions phases;
  phases.rank = chosen_rank(graph, arguments);
  phases.link = wanted.rate;
  phases.compute_scale = arguments.compute_scale;
  phases.bytes_scale = arguments.bytes_scale;
  const workload::GraphSummary summary = workload::summarise(graph, phases);
  if (arguments.json)
    write_file(*arguments.json,
               to_json(summary).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
  if (arguments.json == "-") return 0;
  if (arguments.toml)
    print_toml(workload::to_job(summary, wanted.name), summary.warnings);
  else
    fmt::print("{}", workload::describe(summary, wanted.rate));
  return 0;
}

/// Whether the one file is of a format whose phases are read, or of none that is known. A pipe is not looked into: what
/// has been read of it is gone.
bool has_phases(const InspectArguments& arguments) {
  if (arguments.files.size() > 1) return false;
  const std::filesystem::path file(arguments.file());
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) return false;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::is_empty(file, error)) return true;
  const workload::TraceFormat* format = workload::format_of(file);
  if (format == nullptr) return true;
  if (arguments.json || arguments.rank || arguments.ranks != 0) return false;
  return format->name.starts_with("ASTRA-sim") || (workload::is_kineto(file) && format->name == "Kineto");
}

int print_inspection(const InspectArguments& arguments) {
  Wanted wanted;
  wanted.mapping = mapping_of(arguments);
  wanted.rate = link_rate(arguments.rate);
  if (wanted.rate.is_zero()) throw InputError("--rate 0: a link needs a rate above 0, as in \"100 Gbps\"");
  wanted.name = arguments.name.value_or(std::filesystem::path(arguments.file()).stem().string());
  if (arguments.toml) {
    const std::string wrong = experiment::objection_to_name(wanted.name);
    if (!wrong.empty()) throw InputError(fmt::format("--name: {}", wrong));
  }
  if (arguments.json) check_writable(*arguments.json, arguments.file());
  if (!has_phases(arguments)) return print_graph(arguments, wanted);
  if (arguments.json || arguments.rank || arguments.ranks != 0)
    throw InputError(
        "--json, --rank, --ranks: for traces of ranks (docs/traces.md), which this file is not; leave them out");
  if (workload::is_kineto(arguments.file())) return print_kineto(arguments, wanted);
  if (workload::is_profile(arguments.file())) return print_profile(arguments, wanted);
  return print_trace(arguments, wanted);
}

int inspect(const InspectArguments& arguments) {
  try {
    return print_inspection(arguments);
  } catch (const InputError&) {
    // What a pipe held is gone, and nothing can be said about it.
    std::error_code error;
    if (arguments.files.size() == 1 && std::filesystem::is_regular_file(arguments.file(), error) &&
        has_phases(arguments)) {
      constexpr TextFile trace{"a trace or a demand profile", std::size_t{1} << 30};
      using experiment::FileKind;
      experiment::refuse_other_kind(read_text_file(arguments.file(), arguments.file(), trace), arguments.file(),
                                    trace.what, {FileKind::trace, FileKind::kineto_trace, FileKind::profile});
    }
    throw;
  }
}

}  // namespace

void add_inspect_command(CommandLine& line) {
  line.add<InspectArguments>("inspect", "What traces or a profile hold: iterations, phases, bytes (docs/traces.md)",
                             add_options, inspect);
}

}  // namespace mltcp::tools
