// `mltcp kernel`: MLTCP for the kernel's TCP. Loads it, configures its jobs, and shows its state.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#ifndef MLTCP_KERNEL_LACKS
#include "mltcp/base/json/provenance.h"
#include "mltcp/plugins/kernel/loader.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"
#endif

namespace mltcp::tools {
namespace {

struct KernelArguments {
  std::string action;
  std::vector<std::string> algorithms;
  std::optional<std::string> function;
  std::optional<std::string> gap;
  std::optional<std::string> bytes;
  std::optional<std::string> marks;
  std::optional<std::uint32_t> job;
  std::optional<std::string> cgroup;
  bool forget = false;
  std::optional<std::string> json;  ///< file for the JSON, or "-" for standard output
  std::vector<std::string> of_settings;
  std::vector<std::string> of_job;
};

void add_options(Options& options, KernelArguments& arguments) {
  options
      .add("ACTION", arguments.action,
           "load puts mltcp_reno, mltcp_cubic and mltcp_dctcp into the kernel, set changes the settings of jobs, "
           "status shows settings and connections, unload removes the algorithms")
      .check(one_of({"load", "set", "status", "unload"}))
      .required();
  options
      .add_list("--cc", arguments.algorithms,
                "With load and unload: only these of reno, cubic and dctcp; default: all that the kernel has")
      .suggest({"reno", "cubic", "dctcp"});
  options.add("--json", arguments.json, "With status: write the status to this file; - is standard output");
  options.group("Settings of jobs, for load and set", arguments.of_settings);
  options
      .add("--function", arguments.function,
           "F of bytes_ratio: F1 to F6, a constant, fair, \"polynomial A B C\", or \"table 0 0.25 1 2\", with pairs of "
           "x and gain; default F1")
      .suggest({"F1", "F2", "F3", "F4", "F5", "F6", "fair"});
  options.add("--gap", arguments.gap, "A pause of at least this length separates iterations; 0s: learn it; default 0s");
  options.add("--bytes", arguments.bytes,
              "Bytes that the job's connections on this machine send per iteration; 0B: learn them; default 0B");
  options.add(
      "--marks", arguments.marks,
      "With load: the bits of SO_MARK that hold the job's number; 0: SO_MARK does not number jobs; default 0xffffffff");
  options.group("The job, for set; default: all jobs without settings of their own", arguments.of_job);
  options.add("--job", arguments.job, "The job whose sockets have this SO_MARK, in the bits of --marks, not shifted")
      .check(whole(1, 0xffff'ffff));
  options.add("--cgroup", arguments.cgroup,
              "The job whose sockets are in this cgroup or below it: a folder; with --forget, the number of a cgroup "
              "that no longer exists");
  options.flag("--forget", arguments.forget, "Remove the job's own settings, so that the common ones apply again");
}

#ifdef MLTCP_KERNEL_LACKS

int kernel_command(const KernelArguments&) {
  throw InputError("MLTCP for kernel TCP is not available: " MLTCP_KERNEL_LACKS "; " MLTCP_KERNEL_CURE);
}

#else

kernel::SettingsChange change_of(const KernelArguments& arguments) {
  kernel::SettingsChange change;
  change.function = arguments.function;
  if (arguments.gap) change.gap = of_option("--gap", *arguments.gap, parse_duration);
  if (arguments.bytes) change.iteration_bytes = of_option("--bytes", *arguments.bytes, parse_bytes);
  return change;
}

std::optional<std::uint32_t> marks_of(const KernelArguments& arguments) {
  if (!arguments.marks) return std::nullopt;
  std::string_view digits = *arguments.marks;
  const int base = digits.starts_with("0x") ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  std::uint32_t bits = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, base);
  if (problem != std::errc() || end != digits.data() + digits.size() || digits.empty())
    throw InputError(
        fmt::format("--marks: {} is not a number of 32 bits; write one, e.g. 0xffff", in_quotes(*arguments.marks)));
  return bits;
}

// Throws InputError if an option is given that belongs to another action.
void check_options(const KernelArguments& arguments) {
  const auto refuse = [&](bool given, std::string_view option, std::string_view actions) {
    if (given)
      throw InputError(fmt::format("{} is an option of mltcp kernel {}, not of {}; leave it out", option, actions,
                                   arguments.action));
  };
  const bool load = arguments.action == "load";
  const bool set = arguments.action == "set";
  refuse(!arguments.algorithms.empty() && !load && arguments.action != "unload", "--cc", "load and unload");
  refuse(arguments.json.has_value() && arguments.action != "status", "--json", "status");
  refuse(arguments.function.has_value() && !load && !set, "--function", "load and set");
  refuse(arguments.gap.has_value() && !load && !set, "--gap", "load and set");
  refuse(arguments.bytes.has_value() && !load && !set, "--bytes", "load and set");
  refuse(arguments.marks.has_value() && !load, "--marks", "load");
  refuse(arguments.job.has_value() && !set, "--job", "set");
  refuse(arguments.cgroup.has_value() && !set, "--cgroup", "set");
  refuse(arguments.forget && !set, "--forget", "set");
}

int load(const KernelArguments& arguments) {
  const std::vector<kernel::LeftOut> left_out =
      kernel::load(arguments.algorithms, change_of(arguments), marks_of(arguments));
  std::vector<std::string> loaded;
  for (const kernel::AlgorithmStatus& algorithm : kernel::status().algorithms)
    if (algorithm.loaded) loaded.push_back(algorithm.name);
  for (const kernel::LeftOut& one : left_out)
    print_warning(fmt::format("mltcp_{} is not loaded: {}", one.algorithm, one.reason));
  fmt::print("loaded: {}\n", fmt::join(loaded, ", "));
  fmt::print(
      "to use it: in a program, setsockopt TCP_CONGESTION; for a route, ip route ... congctl; for all connections, "
      "sysctl -w net.ipv4.tcp_congestion_control={}\n",
      loaded.front());
  return 0;
}

// Returns the cgroup that `text` names by its folder or its number. A removed cgroup has only a number. Digits are a
// number only if no folder has this name.
kernel::JobName cgroup_of(const std::string& text, bool may_be_gone) {
  const auto number = number_from<std::uint64_t>(text);
  if (may_be_gone && number && access(text.c_str(), F_OK) != 0) return kernel::JobName::cgroup_with_number(*number);
  return kernel::JobName::cgroup(text);
}

int set(const KernelArguments& arguments) {
  const kernel::SettingsChange change = change_of(arguments);
  if (arguments.job && arguments.cgroup) throw InputError("--job, --cgroup: each names a job; give one of them");
  std::optional<kernel::JobName> job;
  if (arguments.job) job = kernel::JobName::mark(*arguments.job);
  if (arguments.cgroup) job = cgroup_of(*arguments.cgroup, arguments.forget);
  if (arguments.forget) {
    if (!job) throw InputError("--forget: the job is missing; give --job N or --cgroup FOLDER");
    if (!change.empty())
      throw InputError("--forget: removes settings, so it excludes --function, --gap and --bytes; leave these out");
    kernel::forget_job(*job);
    return 0;
  }
  // A cgroup without settings is valid: all connections of the cgroup become one job.
  if (change.empty() && !job)
    throw InputError("mltcp kernel set: no setting is given; give --function, --gap or --bytes");
  if (job)
    kernel::set_job(*job, change);
  else
    kernel::set_common(change);
  return 0;
}

int unload(const KernelArguments& arguments) {
  const std::uint64_t users = kernel::unload(arguments.algorithms);
  if (users > 0)
    fmt::print("{} still {} an unloaded algorithm until {}; new connections cannot choose it\n",
               plural(users, "connection"), users == 1 ? "uses" : "use", users == 1 ? "it ends" : "they end");
  return 0;
}

std::string learned_or(bool given, const std::string& text) { return given ? text : "learned"; }

std::string described(const mltcp_settings& settings) {
  return fmt::format("{}, gap {}, bytes {}", kernel::function_of(settings),
                     learned_or(settings.gap_ns > 0, to_text(Nanos(static_cast<std::int64_t>(settings.gap_ns)))),
                     learned_or(settings.iteration_bytes > 0, bytes_to_text(settings.iteration_bytes)));
}

void print(const kernel::Status& status) {
  Table algorithms({"algorithm", "", "connections"}, 2);
  for (const kernel::AlgorithmStatus& one : status.algorithms)
    algorithms.add({one.name,
                    one.lost      ? "lost: registered, but not pinned; run mltcp kernel unload to remove it"
                    : !one.loaded ? "not loaded"
                    : one.name == status.default_algorithm ? "loaded, the default"
                                                           : "loaded",
                    one.loaded ? fmt::format("{}", one.connections) : ""});
  fmt::print("{}", algorithms.text());
  if (!status.loaded) {
    fmt::print("\nto load them: mltcp kernel load\n");
    return;
  }
  fmt::print("\ncommon settings: {}\n", described(status.settings));
  if (status.jobs.empty()) {
    fmt::print("no jobs yet\n");
    return;
  }
  Table jobs({"job", "settings", "connections", "in flight", "iterations", "bytes each", "gap", "ratio", "gain"}, 2);
  for (const kernel::JobStatus& job : status.jobs)
    jobs.add({job.name, job.own_settings ? described(job.settings) : "common", fmt::format("{}", job.connections),
              fmt::format("{}", job.in_flight), fmt::format("{}", job.iterations),
              job.iteration_bytes > 0 ? bytes_to_text(job.iteration_bytes) : "-",
              job.gap.count > 0 ? fmt::format("{:.1f} ms", job.gap.millis()) : "-",
              job.iteration_bytes > 0 ? fmt::format("{:.3f}", job.bytes_ratio) : "-", fmt::format("{:.3f}", job.gain)});
  fmt::print("\n{}", jobs.text());
}

nlohmann::ordered_json json_of(const mltcp_settings& settings) {
  return {{"function", kernel::function_of(settings)},
          {"gap_ns", settings.gap_ns},
          {"bytes_per_iteration", settings.iteration_bytes}};
}

void write(const kernel::Status& status, const Provenance& provenance, const std::string& file) {
  nlohmann::ordered_json all = {{"schema", "mltcp.kernel/1"},
                                {"loaded", status.loaded},
                                {"default_algorithm", status.default_algorithm},
                                {"algorithms", nlohmann::json::array()},
                                {"jobs", nlohmann::json::array()}};
  if (status.loaded) {
    all["mark_mask"] = status.mark_mask;
    all["settings"] = json_of(status.settings);
  }
  for (const kernel::AlgorithmStatus& one : status.algorithms)
    all["algorithms"].push_back({{"name", one.name}, {"loaded", one.loaded}, {"connections", one.connections}});
  for (const kernel::JobStatus& job : status.jobs)
    all["jobs"].push_back({{"name", job.name},
                           {"settings", json_of(job.settings)},
                           {"own_settings", job.own_settings},
                           {"seen", job.seen},
                           {"connections", job.connections},
                           {"in_flight", job.in_flight},
                           {"iterations", job.iterations},
                           {"bytes_per_iteration", job.iteration_bytes},
                           {"sent_bytes", job.sent_bytes},
                           {"gap_ns", job.gap.count},
                           {"bytes_ratio", job.bytes_ratio},
                           {"gain", job.gain}});
  write_json(file, std::move(all), provenance);
}

int show(const KernelArguments& arguments) {
  if (arguments.json) check_writable(*arguments.json, "");
  const FilesRead files;
  const kernel::Status status = kernel::status();
  if (arguments.json) write(status, provenance_of(files), *arguments.json);
  if (arguments.json != "-") print(status);
  return 0;
}

int kernel_command(const KernelArguments& arguments) {
  check_options(arguments);
  if (arguments.action == "load") return load(arguments);
  if (arguments.action == "set") return set(arguments);
  if (arguments.action == "unload") return unload(arguments);
  return show(arguments);
}

#endif

}  // namespace

void add_kernel_command(CommandLine& line) {
  line.add<KernelArguments>(
      "kernel", "MLTCP for kernel TCP, for programs that cannot change their transport (docs/how-to/kernel.md)",
      add_options, kernel_command);
}

}  // namespace mltcp::tools
