// `mltcp switch`: the switch of a testbed, with its bottleneck. Opens the ports, forwards packets until the time is
// over or a signal comes, and prints the counters.
#include <fmt/format.h>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/files/switch_file.h"

#if MLTCP_HAS_DPDK
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "claims_table.h"
#include "end_on_signal.h"
#include "live_ends.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "mltcp/lab/testbed/readiness.h"
#include "mltcp/lab/testbed/switch_run.h"
#include "output_file.h"
#include "provenance.h"
#include "series_output.h"
#include "terminal.h"
#endif

namespace mltcp::tools {
namespace {

struct SwitchArguments {
  std::string file;  ///< file with the ports; empty: options describe them
  experiment::SwitchWords words;
  std::optional<std::string> duration;
  std::string cores;                       ///< CPUs; empty: the first available ones
  std::optional<std::uint32_t> memory_mb;  ///< memory in MB; default: as much as the ports need
  std::optional<std::string> json;         ///< file for the counters, or "-" for standard output
  std::optional<std::string> pcap;         ///< FILE and settings of a capture; see capture_options.h
  bool claims = false;                     ///< sum up what jobs claim about their iterations
  std::optional<std::string> metrics;      ///< PORT or IP:PORT to serve metrics at
  std::optional<std::string> series;       ///< file for the series, whose extension selects the format
  std::optional<std::string> every;        ///< interval of the counters in the JSON or series file
};

/// Adds options that apply to all ports. The settings of a single port override them.
void add_port_options(Options& options, SwitchArguments& arguments) {
  const auto word = [&](const std::string& name, const std::string& help) {
    return options.add_named("--" + name, arguments.words.values, help);
  };
  word("rate", "Rate of each port's output, counting frames; default: as fast as the port sends");
  word("delay", "Delay after each port's output, one way; default 0");
  word("buffer", "Buffer of each class of a port; default 250kB");
  word("ecn", "Queue lengths for ECN marks: KMIN[,KMAX[,PMAX]], e.g. 30kB or 30kB,90kB,0.1; or off; default off");
  word("loss", "Probability that a frame is lost").check(share(1));
  word("duplicate", "Probability that a frame is sent twice").check(share(1));
  word("corrupt", "Probability that a bit of a frame is flipped").check(share(1));
  word("reorder", "Probability that a frame is delayed, so that it is reordered").check(share(1));
  word("reorder-delay", "Maximum delay of --reorder; default 100us");
  word("classes", "Number of queues with strict priority, 1 to 8, chosen by VLAN tag or DSCP class selector; default 1")
      .check(whole(1, 8));
  word("mtu", "Longest IP packet, 576 to 9000; default: the interface's").check(whole(576, 9000));
  word("seed", "Seed of faults and marks, 0 to 2^63 - 1; default 1").check(whole(0, INT64_MAX));
  word("idle", "When idle: spin, pause or sleep; default pause");
  word("mac-entries", "Maximum number of addresses in the MAC table; default 4096").check(whole(4, 1U << 20U));
  word("ageing", "Time without frames after which an address is removed from the MAC table; default 300s");
}

void add_options(Options& options, SwitchArguments& arguments) {
  options.add_each(
      "--port", arguments.words.ports,
      "A port: af_packet:IFACE, af_xdp:IFACE, tap:NAME, memif:PATH, a PCI address, ..., and settings of its output, "
      "e.g. af_packet:eth1,rate=1Gbps,delay=10us,buffer=75kB,ecn=30kB,loss=0.01,classes=2; give the option once per "
      "port. The next options have the names of these settings, and are for all ports");
  options.add("--file", arguments.file, "A switch file; options replace its values, and --port adds ports");
  add_port_options(options, arguments);
  options.add("--for", arguments.duration, "How long to run, e.g. 10s; default: until Ctrl-C or SIGTERM");
  options.add("--cores", arguments.cores, "CPU that polls the ports; default: the first that this process may use");
  options.add("--memory", arguments.memory_mb, "Memory of DPDK in MB; default: as much as the ports need")
      .check(whole(32, 65536));
  options.add(
      "--pcap", arguments.pcap,
      "Capture the frames of all ports: FILE[,snap=BYTES][,size=BYTES][,files=N], as pcapng (docs/how-to/captures.md)");
  options.flag("--claims", arguments.claims,
               "Add up the progress that jobs claim, and warn about jobs that claim more than they send "
               "(docs/how-to/switch.md)");
  options.add("--metrics", arguments.metrics,
              "Serve metrics for Prometheus at this port, on the loopback, or at IP:PORT (docs/how-to/metrics.md)");
  options.add("--json", arguments.json, "Write the counters to this file at the end; - is standard output");
  options.add(
      "--series", arguments.series,
      "Write time series of every port's output (docs/reference/series.md): a file whose name ends with .json, .csv or "
      ".trace.json");
  options.add("--every", arguments.every,
              "With --json: also write a series of counters, at this interval, e.g. 100ms; with --series: time between "
              "rows, default 10ms");
}

#if MLTCP_HAS_DPDK

using Json = nlohmann::ordered_json;

std::string ecn_text(const fabric::EcnConfig& ecn) {
  if (!ecn.enabled) return "-";
  return ecn.kmin_bytes == ecn.kmax_bytes
             ? bytes_to_text(ecn.kmin_bytes)
             : fmt::format("{}..{}, {}", bytes_to_text(ecn.kmin_bytes), bytes_to_text(ecn.kmax_bytes), ecn.pmax);
}

std::string faults_text(const fabric::FaultConfig& faults) {
  std::string text;
  for (const auto& [name, share] : {std::pair("loss", faults.loss), std::pair("duplicate", faults.duplication),
                                    std::pair("corrupt", faults.corruption), std::pair("reorder", faults.reordering)})
    if (share > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, share);
  return text.empty() ? "-" : text;
}

void print_settings(const testbed::OpenedSwitch& opened, std::FILE* out) {
  Table table({"port", "driver", "MTU", "rate", "delay", "buffer", "ECN", "classes", "faults"}, 2);
  for (std::uint32_t i = 0; i < opened.size(); ++i) {
    const dpdk::Port& port = *opened.ports[i];
    const fabric::SwitchPortConfig& config = opened.settings.ports[i].config;
    const bool limited = !testbed::rate_of(config).is_zero();
    table.add({one_line(port.name()), port.driver(), fmt::format("{}", port.mtu()),
               limited ? to_text(config.output.rate) : "the port's", to_text(config.output.delay),
               bytes_to_text(config.output.buffer_bytes), ecn_text(config.output.ecn),
               fmt::format("{}", config.classes), faults_text(config.output.faults)});
  }
  fmt::print(out, "{}, idle: {}\n{}\n", opened.eal->description(), opened.settings.idle, table.text());
}

/// On a terminal, shows a table of rates and redraws it about once a second.
class LiveView {
 public:
  explicit LiveView(const testbed::OpenedSwitch& opened) : opened_(opened), before_(opened.size()) {}

  void show() {
    const Nanos now = opened_.bridge->now();
    const double seconds = (now - shown_).seconds();
    shown_ = now;
    Table table({"port", "link", "in Mbps", "in frames/s", "out Mbps", "out frames/s", "queue", "dropped", "marked",
                 "bad sums"},
                2);
    for (std::uint32_t i = 0; i < opened_.size(); ++i) {
      const auto& in = opened_.bridge->bridge().counters(i);
      const auto& out = opened_.bridge->counters(i);
      const fabric::PriorityLink& output = opened_.bridge->bridge().output(i);
      const Seen seen{in.received_frames, in.received_bytes, out.sent_frames, out.sent_bytes};
      const Seen& last = before_[i];
      table.add({one_line(opened_.ports[i]->name()), opened_.bridge->bridge().is_up(i) ? "up" : "down",
                 fmt::format("{:.1f}", static_cast<double>(seen.bytes_in - last.bytes_in) * 8e-6 / seconds),
                 fmt::format("{:.0f}", static_cast<double>(seen.frames_in - last.frames_in) / seconds),
                 fmt::format("{:.1f}", static_cast<double>(seen.bytes_out - last.bytes_out) * 8e-6 / seconds),
                 fmt::format("{:.0f}", static_cast<double>(seen.frames_out - last.frames_out) / seconds),
                 bytes_to_text(testbed::queue_of(opened_, i)),
                 fmt::format("{}", output.counters().dropped_packets + out.transmit_full),
                 fmt::format("{}", output.counters().marked_packets), fmt::format("{}", out.bad_checksums)});
      before_[i] = seen;
    }
    redrawn_.show(table.text());
  }
  void clear() { redrawn_.clear(); }

 private:
  struct Seen {
    std::uint64_t frames_in = 0;
    Bytes bytes_in = 0;
    std::uint64_t frames_out = 0;
    Bytes bytes_out = 0;
  };
  const testbed::OpenedSwitch& opened_;
  std::vector<Seen> before_;
  Nanos shown_;
  Redrawn redrawn_;
};

void print_counters(const testbed::OpenedSwitch& opened, Nanos duration, std::FILE* out) {
  Table table({"port", "received", "sent", "mean Mbps", "dropped", "marked", "longest queue", "lost", "flooded", "full",
               "malformed"},
              1);
  for (std::uint32_t i = 0; i < opened.size(); ++i) {
    const auto& in = opened.bridge->bridge().counters(i);
    const auto& own = opened.bridge->counters(i);
    const fabric::LinkCounters& link = opened.bridge->bridge().output(i).counters();
    const auto number = [](std::uint64_t value) { return fmt::format("{}", value); };
    table.add({one_line(opened.ports[i]->name()), number(in.received_frames), number(own.sent_frames),
               fmt::format("{:.1f}", static_cast<double>(own.sent_bytes) * 8e-6 / duration.seconds()),
               number(link.dropped_packets), number(link.marked_packets), bytes_to_text(link.max_queue_bytes),
               number(link.lost_packets), number(in.flooded_frames), number(own.transmit_full + own.too_long),
               number(own.runts + own.bad_sources + own.cut_short + own.oversized)});
  }
  const LoopCounters& loop = opened.bridge->loop();
  fmt::print(out,
             "{}\n{} rounds in {:.1f} s; the machine delayed the switch {} for {:.1f} ms in all, {:.1f} ms at worst\n",
             table.text(), loop.rounds, duration.seconds(), plural(loop.stalls, "time"), loop.stalled.millis(),
             loop.longest_gap.millis());
}

void print_claims(const std::vector<JobClaim>& claims, std::FILE* out) {
  if (claims.empty())
    fmt::print(out, "no packet claimed the progress of a job\n");
  else
    fmt::print(out, "\nprogress that jobs claimed\n{}", claims_table(claims));
}

std::optional<Nanos> every_of(const SwitchArguments& arguments) {
  constexpr Nanos min{1'000'000};  // the switch does not check the time more often
  constexpr Nanos max{3'600'000'000'000};
  constexpr Nanos usual{10'000'000};
  if (!arguments.every) return arguments.series ? std::optional(usual) : std::nullopt;
  if (!arguments.json && !arguments.series) throw InputError("--every: only for --json and --series; add one of them");
  const Nanos every = of_option("--every", *arguments.every, parse_duration);
  if (every > max)
    throw InputError(fmt::format("--every {}: too long; give at most {}", *arguments.every, to_text(max)));
  if (every < min)
    throw InputError(fmt::format("--every {}: too short; give at least {}", *arguments.every, to_text(min)));
  return every;
}

/// Forwards packets until `end` or until a signal comes, and shows the progress.
void forward(testbed::OpenedSwitch& opened, Nanos end, std::optional<testbed::SwitchSeries>& series,
             live::Exchange& exchange) {
  constexpr Nanos view_every{1'000'000'000};
  const bool terminal = isatty(STDERR_FILENO) != 0;
  LiveView view(opened);
  testbed::ChecksumWatch checksums(opened);
  const auto stop = [&] {
    if (series) series->look(experiment::wall_now());
    if (exchange.is_asked()) exchange.publish(testbed::snapshot_of(opened));
    return EndOnSignal::came();
  };
  for (;;) {
    const Nanos until = std::min(end, opened.bridge->now() + view_every);
    if (opened.bridge->run(until, stop) || until == end) return;
    checksums.look([&](const std::string& warning) {
      if (terminal) view.clear();
      print_warning(warning);
    });
    if (terminal) view.show();
  }
}

int run_switch(const SwitchArguments& arguments) {
  Nanos end = arguments.duration ? of_option("--for", *arguments.duration, parse_duration) : Nanos::never();
  const std::optional<Nanos> every = every_of(arguments);
  if (arguments.json) check_writable(*arguments.json, arguments.file);
  testbed::SwitchOptions options{arguments.cores, arguments.memory_mb, std::nullopt, arguments.claims};
  if (arguments.pcap) options.capture = capture::parse_capture("--pcap", *arguments.pcap);
  const std::optional<std::string> capture = options.capture ? std::optional(options.capture->file) : std::nullopt;
  check_distinct({arguments.json, capture}, "--json and --pcap");
  if (arguments.series) check_series({arguments.series, std::nullopt}, arguments.file, {arguments.json, capture});
  // If the counters go to standard output, text for people goes to standard error.
  std::FILE* const out = arguments.json == "-" ? stderr : stdout;
  const EndOnSignal signals;
  const std::optional<live::MetricsAddress> metrics = metrics_of(arguments.metrics);
  live::Exchange exchange;
  std::optional<FilesRead> files(std::in_place);
  testbed::OpenedSwitch opened =
      testbed::open_switch(experiment::load_switch(arguments.file, arguments.words), options);
  const Provenance provenance = provenance_of(*files);
  files.reset();
  if (opened.capture != nullptr) opened.capture->start();
  const LiveEnds ends("switch", exchange, metrics);
  print_settings(opened, out);
  std::string names;
  for (const auto& port : opened.ports) names += fmt::format(" {}", one_line(port->name()));
  fmt::print(out, "ready{}\n", names);
  std::fflush(out);
  if (const std::string wrong = testbed::report_ready(); !wrong.empty()) print_warning(wrong);

  const Nanos begun = opened.bridge->now();
  if (!end.is_never()) end += begun;
  std::optional<testbed::SwitchSeries> series;
  if (every) series.emplace(opened, *every);
  forward(opened, end, series, exchange);
  const Nanos duration = opened.bridge->now() - begun;
  fmt::print(out, "\n");
  print_counters(opened, duration, out);
  std::vector<std::string> warnings = testbed::warnings_of(opened, duration);
  const std::vector<JobClaim> claims = opened.claims != nullptr ? opened.claims->report() : std::vector<JobClaim>();
  if (opened.claims != nullptr) {
    print_claims(claims, out);
    for (std::string& warning : warnings_of(claims)) warnings.push_back(std::move(warning));
  }
  std::fflush(out);
  if (opened.capture != nullptr) {
    bool is_complete = false;
    const std::string line = "captured " + capture::Capture::to_text(opened.capture->finish(), is_complete);
    if (is_complete)
      fmt::print(out, "{}\n", line);
    else
      warnings.push_back(line);
    std::fflush(out);
  }
  print_warnings(warnings);
  if (series) series->add(experiment::wall_now());
  // Write the counters before the series, so that a failed write of the series does not lose them.
  if (arguments.json) {
    Json all = testbed::to_json(opened, duration);
    if (arguments.claims) all["claims"] = testbed::to_json(claims);
    all["warnings"] = warnings;
    if (arguments.every) all["series"] = series->to_json();
    write_json(*arguments.json, std::move(all), provenance);
  }
  if (arguments.series) write_series(*arguments.series, {"switch", {series->links()}, provenance}, {});
  return 0;
}

#else

int run_switch(const SwitchArguments& /*arguments*/) {
  throw RunError("built without DPDK, which mltcp switch needs; build with -DMLTCP_DPDK=ON");
}

#endif

}  // namespace

void add_switch_command(CommandLine& line) {
  line.add<SwitchArguments>(
      "switch", "Run a software switch between DPDK ports, e.g. as the bottleneck of a testbed (docs/how-to/switch.md)",
      add_options, run_switch);
}

}  // namespace mltcp::tools
