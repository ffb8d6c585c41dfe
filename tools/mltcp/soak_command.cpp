// `mltcp soak`: sends random traffic, which checks itself, over one datapath for a chosen time.
#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "mltcp/base/error.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/lab/experiment/soak/soak.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

using experiment::SoakResults;
using experiment::SoakSettings;

struct SoakArguments {
  std::optional<std::string> datapath;
  std::vector<std::string> ports;
  std::vector<std::string> ips;
  std::optional<std::string> duration;
  std::uint32_t seed = 1;
  std::optional<std::uint32_t> round;
  std::optional<std::string> cores;
  std::optional<std::string> json;
};

void add_options(Options& options, SoakArguments& arguments) {
  options
      .add("--datapath", arguments.datapath,
           "sim (virtual time), ring (DPDK's rings), udp (the kernel's sockets on the loopback) or ports (those that "
           "--port names); default: sim, or ports with --port")
      .check(one_of(experiment::soak_datapaths()));
  options.add_each("--port", arguments.ports,
                   "Port of a host; give the option once per host, for two or more hosts that reach each other: "
                   "af_packet:IFACE, verbs:DEVICE, a PCI address, ... (docs/how-to/ports.md)");
  options.add_each("--ip", arguments.ips, "Address and prefix length of a port, in the order of --port");
  options.add("--duration", arguments.duration,
              "Duration, in real time; the current round is completed first, which takes up to half a minute on "
              "real-time datapaths; default 20s");
  options.add("--seed", arguments.seed, "Seed of the traffic; default 1").check(whole(0, 4294967295));
  options.add("--round", arguments.round, "Run only this round, to repeat its result").check(whole(1, 4294967295));
  options
      .add("--cores", arguments.cores,
           "With datapath ring: the CPU of hosts and switch, or one CPU for each; default: any")
      .check(cpu_list());
  options.add("--json", arguments.json, "Write the results to this file; - is standard output");
}

std::string size_text(Bytes bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6); }
std::string seconds_text(Nanos time) { return fmt::format("{:.1f} s", time.seconds()); }

std::string times(std::size_t count) {
  return count == 0 ? "not at all" : count == 1 ? "once" : fmt::format("{} times", count);
}

void show(const SoakSettings& settings, const SoakResults& results, std::FILE* out) {
  const experiment::TrafficCounts& counts = results.counts;
  const experiment::FaultCounts& faults = counts.faults;
  const auto line = [&](std::string_view what, const std::string& value) {
    fmt::print(out, "{:<14}{}\n", what, value);
  };
  line("datapath", fmt::format("{}, seed {}", settings.datapath, settings.seed));
  for (const experiment::SoakPort& port : settings.ports) line("port", fmt::format("{}, {}", port.device, port.ip));
  line("rounds", fmt::format("{} in {}, of {} for their hosts", results.rounds, seconds_text(results.time),
                             seconds_text(results.traffic_time)));
  line("connections", fmt::format("{}, and {} refused", counts.connections, counts.refused));
  line("messages", fmt::format("{} of {} operations", counts.messages, counts.operations));
  line("bytes", fmt::format("{}, each compared with what was sent", size_text(counts.bytes)));
  line("packets", fmt::format("{} received, {} payloads read in place", faults.received, faults.kept));
  line("faults",
       fmt::format("{} lost, {} doubled, {} damaged, {} delayed, {} marked, {} forged, {} bursts refused", faults.lost,
                   faults.doubled, faults.damaged, faults.delayed, faults.marked, faults.forged, faults.refused));
  line("hosts",
       fmt::format("{} restarts, {} paused, {} epochs of keys", counts.restarts, counts.stand_stills, faults.epochs));
  line("failures", results.failures.empty() ? "0, and no stall" : "1");
  for (const experiment::SoakFailure& failure : results.failures)
    fmt::print(out, "\nround {}: {}\nagain: {}\n{}", failure.round, failure.what, failure.replay, failure.state);
}

std::vector<experiment::SoakPort> ports_of(const SoakArguments& arguments, const std::string& datapath) {
  const std::size_t count = arguments.ports.size();
  if (arguments.ips.size() != count)
    throw InputError(fmt::format("--port is given {} and --ip {}: each port needs an address; give one --ip per --port",
                                 times(count), times(arguments.ips.size())));
  if (count > 0 && datapath != "ports")
    throw InputError(
        fmt::format("--port with --datapath {}: ports use their own datapath; leave out --datapath", datapath));
  std::vector<experiment::SoakPort> ports;
  for (std::size_t i = 0; i < count; ++i) ports.push_back({arguments.ports[i], arguments.ips[i]});
  return ports;
}

int soak(const SoakArguments& arguments) {
  SoakSettings settings;
  settings.datapath = arguments.datapath.value_or(arguments.ports.empty() ? "sim" : "ports");
  settings.ports = ports_of(arguments, settings.datapath);
  if (arguments.duration && arguments.round)
    throw InputError("--duration: --round runs one round to its end; leave out --duration, or --round");
  if (arguments.cores && settings.datapath != "ring")
    throw InputError(fmt::format("--cores is for datapath ring; with {} leave it out, and choose CPUs by taskset(1)",
                                 settings.datapath));
  settings.duration = of_option("--duration", arguments.duration.value_or("20s"), parse_duration);
  settings.seed = arguments.seed;
  settings.cores = arguments.cores.value_or("");
  if (arguments.round) {
    settings.first_round = *arguments.round;
    settings.rounds = 1;
  }
  if (arguments.json) check_writable(*arguments.json, "");
  // If the JSON goes to standard output, text for people goes to standard error.
  std::FILE* const out = arguments.json == "-" ? stderr : stdout;
  const EndOnSignal signals;
  const FilesRead files;
  const Provenance provenance = provenance_of(files);
  experiment::SoakCallbacks callbacks;
  callbacks.interrupted = EndOnSignal::why;
  Nanos shown;
  callbacks.progress = [&](const SoakResults& results) {
    if (results.time - shown < Nanos(60'000'000'000)) return;
    shown = results.time;
    fmt::print(out, "{}: {} rounds, {} messages, {}\n", seconds_text(results.time), results.rounds,
               results.counts.messages, size_text(results.counts.bytes));
    std::fflush(out);
  };
  const SoakResults results = run_soak(settings, callbacks);
  if (!results.ended_by.empty()) fmt::print(out, "{}\n", results.ended_by);
  show(settings, results, out);
  if (arguments.json) {
    write_json(*arguments.json, to_json(settings, results), provenance);
  }
  return results.failures.empty() ? 0 : 1;
}

}  // namespace

void add_soak_command(CommandLine& line) {
  line.add<SoakArguments>(
      "soak",
      "Run random traffic with faults, restarts and new keys for hours, and compare each byte (docs/how-to/testing.md)",
      add_options, soak);
}

}  // namespace mltcp::tools
