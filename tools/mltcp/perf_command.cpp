// `mltcp perf`: measures throughput and delay between two endpoints, for several message lengths. The endpoints are on
// two hosts or on one. One process listens. The other one measures, and prints a row for each length.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "key_option.h"
#include "mltcp/base/error.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/cc/registry.h"
#include "mltcp/endpoint/environment.h"
#include "mltcp/lab/experiment/perf/perf.h"
#include "mltcp/transport/capture/capture_options.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

using experiment::PerfPoint;
using experiment::PerfTest;
using experiment::PerfTransfer;

struct PerfArguments {
  /// Address of the server; with --listen, the address to listen on, where empty means all addresses.
  std::string address;
  bool listen = false;
  bool once = false;
  std::vector<std::string> tests;
  std::string min_bytes = "1B";
  std::string max_bytes = "1GiB";
  std::string time = "1s";
  std::string limit = "60s";
  std::string wait = "10s";
  std::optional<std::string> every;
  experiment::PerfSettings settings;  ///< settings that need no parsing
  std::optional<std::string> json;
  experiment::PerfPlace place;  ///< settings that need no parsing
  std::string idle = "sleep";
  std::optional<std::string> key;
  bool authenticate = false;
  std::vector<std::string> for_client;  ///< names of the given options that only the measuring process accepts
};

template <typename Value>
std::string by_default(const Value& value) {
  return fmt::format("; default: {}", value);
}

void add_place(Options& options, PerfArguments& arguments) {
  options.add("--port", arguments.place.device,
              "Port of this host: udp:, af_xdp:IFACE, a PCI address, ... (docs/how-to/ports.md)" +
                  by_default(arguments.place.device));
  options.add("--ip", arguments.place.ip,
              "Address and prefix length of this host; default: the address that reaches the other host");
  options.add("--gateway", arguments.place.gateway,
              "Gateway to addresses outside the prefix; not with udp:; default: none");
  options.add("--udp-port", arguments.place.udp_port, "UDP port of this host; 0: a free one; default 0")
      .check(whole(0, 65535));
  options
      .add("--idle", arguments.idle,
           "When idle: spin, pause or sleep; spin is the fastest" + by_default(arguments.idle))
      .check(one_of({"spin", "pause", "sleep"}));
  options.add("--cores", arguments.place.cores, "CPU that this process runs on; default: any");
  options.add("--memory", arguments.place.memory_mb, "Memory of DPDK in MB; default: as much as the port needs")
      .check(whole(32, 65536));
  options.add("--mtu", arguments.place.mtu, "Longest IP packet; default: the interface's").check(whole(576, 65535));
  add_key_option(options, arguments.key, "Encrypt all traffic, at both ends,");
  add_authenticate_option(options, arguments.authenticate);
}

void add_options(Options& options, PerfArguments& arguments) {
  options.add("ADDRESS", arguments.address,
              "Address of the server: HOST or HOST:PORT. With --listen, address to listen on; default 0.0.0.0:62400. "
              "PORT is a TCP port");
  options.flag("--listen", arguments.listen, "Be the server, and run the tests that clients request");
  options.flag("--once", arguments.once, "With --listen: end after one client");
  add_place(options, arguments);
  options.group("Options of the client", arguments.for_client);
  options.add_list("--tests", arguments.tests,
                   "Tests: latency, out (to the server), in (from the server), both (both directions at once); "
                   "default: latency,out,both");
  options.add("--min", arguments.min_bytes, "Length of the shortest messages" + by_default(arguments.min_bytes));
  options.add("--max", arguments.max_bytes,
              "Length of the longest messages; up to 4GiB - 1" + by_default(arguments.max_bytes));
  options
      .add("--factor", arguments.settings.factor,
           "Factor between the lengths of messages" + by_default(arguments.settings.factor))
      .check(whole(2, 1024));
  options.add("--for", arguments.time, "Approximate time of each measurement" + by_default(arguments.time));
  options.add("--limit", arguments.limit,
              "Maximum time of a measurement, after which the run fails; messages that take longer than half of it are "
              "left out" +
                  by_default(arguments.limit));
  options.add("--every", arguments.every,
              "Report the received bytes per interval of this length, also in --json; default: no intervals");
  options
      .add("--connections", arguments.settings.connections,
           "Connections at a time" + by_default(arguments.settings.connections))
      .check(whole(1, 64));
  options
      .add("--depth", arguments.settings.depth,
           "Outstanding messages per connection, but 64MB at most" + by_default(arguments.settings.depth))
      .check(whole(1, 1024));
  options.add("--cc", arguments.settings.congestion_control,
              "Congestion control of both ends" + by_default(arguments.settings.congestion_control));
  options.add("--wait", arguments.wait, "Maximum time to wait for the server" + by_default(arguments.wait));
  options.add("--json", arguments.json, "Write the results to this file; - is standard output");
}

experiment::PerfSettings settings_of(const PerfArguments& arguments) {
  experiment::PerfSettings settings = arguments.settings;
  if (!arguments.tests.empty()) settings.tests.clear();
  for (const std::string& test : arguments.tests)
    settings.tests.push_back(of_option("--tests", [&] { return experiment::perf_test_of(test); }));
  settings.min_bytes = of_option("--min", arguments.min_bytes, parse_bytes);
  settings.max_bytes = of_option("--max", arguments.max_bytes, parse_bytes);
  settings.time = of_option("--for", arguments.time, parse_duration);
  settings.limit = of_option("--limit", arguments.limit, parse_duration);
  if (arguments.every) settings.every = of_option("--every", *arguments.every, parse_duration);
  check(settings);
  return settings;
}

experiment::PerfPlace place_of(const PerfArguments& arguments) {
  experiment::PerfPlace place = arguments.place;
  place.idle = arguments.idle == "spin" ? Idle::spin : arguments.idle == "pause" ? Idle::pause : Idle::sleep;
  if (const auto key = key_of(arguments.key)) place.key = std::make_shared<const security::JobKey>(*key);
  place.protection = protection_of(arguments.key, arguments.authenticate);
  return place;
}

/// Returns "64 KiB" if the length is a whole number of KiB, MiB or GiB, as the default lengths are. Otherwise returns
/// the usual text of sizes.
std::string length_text(Bytes bytes) {
  for (const auto& [unit, name] : {std::pair(Bytes{1} << 30, "GiB"), {Bytes{1} << 20, "MiB"}, {Bytes{1} << 10, "KiB"}})
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{} {}", bytes / unit, name);
  return bytes_to_text(bytes);
}

/// Returns a text such as "1.2 us" or "45.6 ms". It has three digits, the precision of the measurement.
std::string time_text(Nanos time) {
  const double nanos = static_cast<double>(time.count);
  if (nanos < 1e6) return fmt::format("{:.{}f} us", nanos * 1e-3, nanos < 1e5 ? 1 : 0);
  return fmt::format("{:.{}f} ms", nanos * 1e-6, nanos < 1e8 ? 1 : 0);
}

std::string count_text(double number) {
  if (number >= 1e6) return fmt::format("{:.2f} M", number * 1e-6);
  if (number >= 1e4) return fmt::format("{:.1f} k", number * 1e-3);
  return fmt::format("{:.0f}", number);
}

/// Prints a row for each message length, as soon as this length has been measured.
class Rows {
 public:
  Rows(const experiment::PerfSettings& settings, std::FILE* out) : tests_(settings.tests), out_(out) {}

  void show_header() const {
    std::string first = fmt::format("{:>12}", "");
    std::string second = fmt::format("{:>12}", "message");
    for (const PerfTest test : tests_) {
      if (test == PerfTest::latency) {
        first += fmt::format("{:>{}}", "latency, one way", 3 * kTime);
        second += fmt::format("{:>{}}{:>{}}{:>{}}", "median", kTime, "99%", kTime, "99.9%", kTime);
      } else {
        first += fmt::format("{:>{}}", test == PerfTest::both ? "both ways" : to_text(test), kRate + kCount);
        second += fmt::format("{:>{}}{:>{}}", "Gbps", kRate, "messages/s", kCount);
      }
    }
    fmt::print(out_, "{}\n{}\n", first, second);
    std::fflush(out_);
  }

  void show(const PerfPoint& point) const {
    fmt::print(out_, "{:>12}", length_text(point.bytes));
    for (const PerfTest test : tests_) {
      if (test == PerfTest::latency && point.latency) {
        for (const Nanos time : {point.latency->p50, point.latency->p99, point.latency->p999})
          fmt::print(out_, "{:>{}}", time_text(time), kTime);
        continue;
      }
      const auto& transfer = test == PerfTest::out ? point.out : test == PerfTest::in ? point.in : point.both;
      if (transfer)
        fmt::print(out_, "{:>{}.3f}{:>{}}", transfer->bits_per_second() * 1e-9, kRate,
                   count_text(transfer->messages_per_second()), kCount);
    }
    fmt::print(out_, "\n");
    for (const auto& [name, transfer] : {std::pair("out", &point.out), {"in", &point.in}, {"both", &point.both}})
      if (*transfer) show_intervals(name, **transfer);
    std::fflush(out_);
  }

 private:
  static constexpr int kTime = 10;
  static constexpr int kRate = 10;
  static constexpr int kCount = 12;

  void show_intervals(std::string_view name, const PerfTransfer& transfer) const {
    for (const auto& one : transfer.intervals)
      fmt::print(out_, "{:>12}  {:>9} to {:>9}: {:.3f} Gbps\n", name, time_text(one.begun), time_text(one.ended),
                 static_cast<double>(one.bytes) * 8 / static_cast<double>((one.ended - one.begun).count));
  }

  const std::vector<PerfTest> tests_;
  std::FILE* const out_;
};

int listen(const PerfArguments& arguments) {
  if (!arguments.for_client.empty())
    throw InputError(
        fmt::format("{}: an option of the client, but --listen starts the server; give it to the client instead",
                    arguments.for_client.front()));
  const EndOnSignal signals;
  experiment::PerfCallbacks callbacks;
  callbacks.tell = [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  callbacks.interrupted = EndOnSignal::why;
  const std::string where = arguments.address.empty() ? "0.0.0.0" : arguments.address;
  serve_perf(experiment::perf_address(where), place_of(arguments), arguments.once, callbacks, version_text());
  return 0;
}

int measure(const PerfArguments& arguments) {
  if (arguments.once) throw InputError("--once: an option of the server; leave it out, or add --listen");
  const experiment::PerfSettings settings = settings_of(arguments);
  if (arguments.json) check_writable(*arguments.json, "");
  // If the JSON goes to standard output, print text for people to standard error.
  std::FILE* const out = arguments.json == "-" ? stderr : stdout;
  const EndOnSignal signals;
  const FilesRead files;
  const Provenance provenance = provenance_of(files);
  const Rows rows(settings, out);
  experiment::PerfCallbacks callbacks;
  callbacks.tell = [&](const std::string& line) {
    fmt::print(out, "{}\n\n", line);
    rows.show_header();
  };
  callbacks.measured = [&](const PerfPoint& point) { rows.show(point); };
  callbacks.interrupted = EndOnSignal::why;
  const Nanos patience = of_option("--wait", arguments.wait, parse_duration);
  const experiment::PerfResults results = run_perf(experiment::perf_address(arguments.address), patience,
                                                   place_of(arguments), settings, callbacks, version_text());
  for (const Bytes bytes : results.left_out)
    print_warning(
        fmt::format("messages of {} are left out, since they would take longer than half of --limit {}; raise --limit "
                    "to measure them",
                    length_text(bytes), arguments.limit));
  fmt::print(out, "\n{} packets sent, {} of them with data that was sent before\n", results.packets_sent,
             results.retransmitted_packets);
  if (!arguments.json) return 0;
  write_json(*arguments.json, to_json(results), provenance);
  return 0;
}

/// Applies the environment variables of endpoints, so that errors in them appear before a process waits for its peer.
void begin_environment() {
  if (const std::string_view text = endpoint::variable(&endpoint::trusted_variable, "MLTCP_PCAP"); !text.empty()) {
    const capture::CaptureOptions options = capture::parse_capture("MLTCP_PCAP", text);
    of_option("MLTCP_PCAP", [&] { check_writable(options.file, ""); });
  }
  if (const std::string address = endpoint::begin_showing(); !address.empty())
    print_warning(
        fmt::format("MLTCP_METRICS: every program that reaches {} can read the metrics, without a password; set a "
                    "loopback address, or restrict access by a firewall",
                    address));
}

int perf(const PerfArguments& arguments) {
  if (!arguments.listen && arguments.address.empty())
    throw InputError("the other end is missing; run mltcp perf --listen on one host, and mltcp perf HOST on the other");
  begin_environment();
  return arguments.listen ? listen(arguments) : measure(arguments);
}

}  // namespace

void add_perf_command(CommandLine& line) {
  line.add<PerfArguments>(
      "perf", "Measure latency, bandwidth and message rate between two hosts, by message length (docs/how-to/perf.md)",
      add_options, perf);
}

}  // namespace mltcp::tools
