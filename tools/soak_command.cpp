// `mltcp soak`: random traffic that checks itself, over one datapath, for as long as one likes.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "mltcp/experiment/results/internal/provenance_json.h"
#include "mltcp/experiment/soak/soak.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

using experiment::SoakResults;
using experiment::SoakSettings;

struct SoakArguments {
  std::string datapath = "sim";
  std::string duration = "20s";
  std::uint32_t seed = 1;
  std::optional<std::uint32_t> round;
  std::string cores;
  std::optional<std::string> json;
};

void add_options(Options& options, SoakArguments& arguments) {
  options
      .add("--datapath", arguments.datapath,
           "sim (virtual time), ring (DPDK's rings) or udp (the kernel's sockets on the loopback); default sim")
      .check(one_of(experiment::soak_datapaths()));
  options.add("--duration", arguments.duration, "How long, by the clock on the wall; default 20s");
  options.add("--seed", arguments.seed, "Other traffic; default 1").check(whole(0, 4294967295));
  options.add("--round", arguments.round, "This round alone, to see again what it came to").check(whole(1, 4294967295));
  options.add("--cores", arguments.cores, "Of ring: the CPU that hosts and switch are on, or two; default: any")
      .check(cpu_list());
  options.add("--json", arguments.json, "Write the results to this file; - is standard output");
}

std::string size_text(Bytes bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6); }
std::string time_text(Nanos time) { return fmt::format("{:.1f} s", time.seconds()); }

void show(const SoakResults& results, std::FILE* out) {
  const experiment::TrafficCounts& counts = results.counts;
  const experiment::FaultCounts& faults = counts.faults;
  const auto line = [&](std::string_view what, const std::string& value) {
    fmt::print(out, "{:<14}{}\n", what, value);
  };
  line("rounds", fmt::format("{} in {}, of {} for their hosts", results.rounds, time_text(results.time),
                             time_text(results.traffic_time)));
  line("connections", fmt::format("{}, and {} that did not get in", counts.connections, counts.refused));
  line("messages", fmt::format("{} of {} operations", counts.messages, counts.operations));
  line("bytes", fmt::format("{}, each compared with what was sent", size_text(counts.bytes)));
  line("packets", fmt::format("{} received, {} payloads read in place", faults.received, faults.kept));
  line("faults",
       fmt::format("{} lost, {} doubled, {} damaged, {} delayed, {} marked, {} forged, {} bursts refused", faults.lost,
                   faults.doubled, faults.damaged, faults.delayed, faults.marked, faults.forged, faults.refused));
  line("hosts", fmt::format("{} restarts, {} that stood still, {} epochs of keys", counts.restarts, counts.stand_stills,
                            faults.epochs));
  line("failures", results.failures.empty() ? "0, nor a stall" : "1");
  for (const experiment::SoakFailure& failure : results.failures)
    fmt::print(out, "\nround {}: {}\nagain: {}\n{}", failure.round, failure.what, failure.replay, failure.state);
}

int soak(const SoakArguments& arguments) {
  SoakSettings settings;
  settings.datapath = arguments.datapath;
  settings.duration = duration_of("--duration", arguments.duration);
  settings.seed = arguments.seed;
  settings.cores = arguments.cores;
  if (arguments.round) {
    settings.first_round = *arguments.round;
    settings.rounds = 1;
  }
  if (arguments.json) check_writable(*arguments.json, "");
  // Results on standard output are alone there.
  std::FILE* const out = arguments.json == "-" ? stderr : stdout;
  const EndOnSignal signals;
  const FilesRead files;
  const experiment::Provenance provenance = provenance_of(files);
  experiment::SoakCallbacks callbacks;
  callbacks.interrupted = EndOnSignal::why;
  Nanos shown;
  callbacks.progress = [&](const SoakResults& results) {
    if (results.time - shown < Nanos(60'000'000'000)) return;
    shown = results.time;
    fmt::print(out, "{}: {} rounds, {} messages, {}\n", time_text(results.time), results.rounds,
               results.counts.messages, size_text(results.counts.bytes));
    std::fflush(out);
  };
  const SoakResults results = run_soak(settings, callbacks);
  if (!results.ended_by.empty()) fmt::print(out, "{}\n", results.ended_by);
  show(results, out);
  if (arguments.json) {
    auto json = nlohmann::ordered_json::parse(to_json_text(settings, results));
    json["provenance"] = experiment::to_json(provenance);
    write_file(*arguments.json, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  return results.failures.empty() ? 0 : 1;
}

}  // namespace

void add_soak_command(CommandLine& line) {
  line.add<SoakArguments>(
      "soak", "Random traffic, faults, restarts and new keys for hours, each byte compared (docs/testing.md)",
      add_options, soak);
}

}  // namespace mltcp::tools
