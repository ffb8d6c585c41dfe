// `mltcp inspect`: what a trace or a measured profile holds, for people or as a job of an experiment.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/units.h"
#include "mltcp/experiment/files/experiment_file.h"
#include "mltcp/experiment/files/file_kind.h"
#include "mltcp/workload/inspection.h"
#include "mltcp/workload/kineto.h"
#include "mltcp/workload/profile.h"
#include "mltcp/workload/trace.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct InspectArguments {
  std::string file;
  bool toml = false;
  std::optional<std::string> name;  ///< default: the file's
  std::uint32_t workers = 0;        ///< 0: the mapping's default
  std::string network;              ///< empty: the mapping's default
  double compute_scale = 1.0;
  double bytes_scale = 1.0;
  std::string rate = "100 Gbps";
};

void add_options(Options& options, InspectArguments& arguments) {
  options
      .add("TRACE", arguments.file,
           "A trace in the 12-column text format, or of PyTorch's profiler (.json), or a measured profile (.csv)")
      .required();
  options.flag("--toml", arguments.toml, "Print it as a job of an experiment file");
  options.add("--name", arguments.name, "Name of that job; default: the file's");
  options.add("--workers", arguments.workers, "Workers that reduce weight gradients; default: the trace's, or 2")
      .check(whole(2, 1'000'000));
  options.add("--network", arguments.network,
              "Collectives that cross the shared link: weight-gradient (default), inter-server, all");
  options.add("--compute-scale", arguments.compute_scale, "Factor on compute times; default 1").check(factor(1e6));
  options.add("--bytes-scale", arguments.bytes_scale, "Factor on bytes sent; default 1").check(factor(1e6));
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
  const workload::KinetoTrace trace = workload::load_kineto(arguments.file);
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
  const workload::Profile profile = workload::load_profile(arguments.file);
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
  const workload::Trace trace = workload::load_trace(arguments.file);
  if (arguments.toml)
    print_toml(workload::to_job(trace, wanted.name, wanted.mapping), trace.warnings);
  else
    fmt::print("{}", workload::describe(workload::inspect(trace, wanted.mapping), wanted.rate));
  return 0;
}

int print_inspection(const InspectArguments& arguments) {
  Wanted wanted;
  wanted.mapping = mapping_of(arguments);
  wanted.rate = link_rate(arguments.rate);
  if (wanted.rate.is_zero()) throw InputError("--rate 0: a link needs a rate above 0, as in \"100 Gbps\"");
  wanted.name = arguments.name.value_or(std::filesystem::path(arguments.file).stem().string());
  if (arguments.toml) {
    const std::string wrong = experiment::objection_to_name(wanted.name);
    if (!wrong.empty()) throw InputError(fmt::format("--name: {}", wrong));
  }
  if (workload::is_kineto(arguments.file)) return print_kineto(arguments, wanted);
  if (workload::is_profile(arguments.file)) return print_profile(arguments, wanted);
  return print_trace(arguments, wanted);
}

int inspect(const InspectArguments& arguments) {
  try {
    return print_inspection(arguments);
  } catch (const InputError&) {
    // What a pipe held is gone, and nothing can be said about it.
    std::error_code error;
    if (std::filesystem::is_regular_file(arguments.file, error)) {
      constexpr TextFile trace{"a trace or a demand profile", std::size_t{1} << 30};
      using experiment::FileKind;
      experiment::refuse_other_kind(read_text_file(arguments.file, arguments.file, trace), arguments.file, trace.what,
                                    {FileKind::trace, FileKind::kineto_trace, FileKind::profile});
    }
    throw;
  }
}

}  // namespace

void add_inspect_command(CommandLine& line) {
  line.add<InspectArguments>("inspect", "What a trace or profile holds: iterations, phases, bytes (docs/workload.md)",
                             add_options, inspect);
}

}  // namespace mltcp::tools
