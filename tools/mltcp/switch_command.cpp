// `mltcp switch`: the bottleneck of a testbed. Opens the ports, switches until the time is over or a signal comes, and
// tells what it counted.
#include <fmt/format.h>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/lab/experiment/files/switch_file.h"

#if MLTCP_HAS_DPDK
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "claims_table.h"
#include "end_on_signal.h"
#include "live_ends.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/base/text.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/endpoint/live/describe.h"
#include "mltcp/lab/experiment/hosts/message_stream.h"
#include "mltcp/lab/experiment/series/series_file.h"
#include "mltcp/lab/realtime/soft_switch.h"
#include "mltcp/lab/testbed/readiness.h"
#include "mltcp/transport/capture/capture.h"
#include "mltcp/transport/ethernet/claims_tap.h"
#include "mltcp/transport/job_claims.h"
#include "output_file.h"
#include "provenance.h"
#include "series_output.h"
#include "terminal.h"
#endif

namespace mltcp::tools {
namespace {

struct SwitchArguments {
  std::string file;  ///< empty: none
  experiment::SwitchWords words;
  std::optional<std::string> duration;
  std::string cores;                       ///< empty: the first that may be used
  std::optional<std::uint32_t> memory_mb;  ///< default: what the ports need
  std::optional<std::string> json;         ///< file, or "-" for standard output
  std::optional<std::string> pcap;         ///< FILE and words, see capture_options.h
  bool claims = false;                     ///< sum what jobs claim of their iterations
  std::optional<std::string> metrics;      ///< port, or IP:PORT
  std::optional<std::string> series;       ///< file, whose name says the format
  std::optional<std::string> every;        ///< counters as a series, there or in the file of series
};

/// What all ports have, unless their own words say something else.
void add_port_options(Options& options, SwitchArguments& arguments) {
  const auto word = [&](const std::string& name, const std::string& help) {
    return options.add("--" + name, arguments.words.values, help);
  };
  word("rate", "Rate of each port's output, of frames; default: as fast as the port takes them");
  word("delay", "Delay behind it, one way; default 0");
  word("buffer", "Buffer of each class; default 250kB");
  word("ecn", "Marking: KMIN[,KMAX[,PMAX]], as in 30kB or 30kB,90kB,0.1; or off, the default");
  word("loss", "Probability that a frame vanishes").check(share(1));
  word("duplicate", "Probability that it is sent twice").check(share(1));
  word("corrupt", "Probability that a bit of it is flipped").check(share(1));
  word("reorder", "Probability that it is held back").check(share(1));
  word("reorder-delay", "For how long at most; default 100us");
  word("classes", "Queues of strict priority, 1 to 8, by VLAN tag or DSCP class selector; default 1")
      .check(whole(1, 8));
  word("mtu", "Longest IP packet, 576 to 9000; default: the interface's").check(whole(576, 9000));
  word("seed", "Seed of faults and marks, 0 to 2^63 - 1; default 1").check(whole(0, INT64_MAX));
  word("idle", "Without work: spin, pause or sleep; default pause");
  word("mac-entries", "Addresses in the table; default 4096").check(whole(4, 1U << 20U));
  word("ageing", "Silence after which an address is forgotten; default 300s");
}

void add_options(Options& options, SwitchArguments& arguments) {
  options.add_each(
      "--port", arguments.words.ports,
      "A port, once for each: af_packet:IFACE, af_xdp:IFACE, tap:NAME, memif:PATH, a PCI address, ...; and "
      "what is sent there, as in af_packet:eth1,rate=1Gbps,delay=10us,buffer=75kB,ecn=30kB,loss=0.01,"
      "classes=2: the names of the next options, which are for all ports");
  options.add("--file", arguments.file, "A switch file; options stand for what it says, --port adds to it");
  add_port_options(options, arguments);
  options.add("--for", arguments.duration, "How long to run, as in 10s; default: until Ctrl-C or SIGTERM");
  options.add("--cores", arguments.cores, "The CPU to poll on; default: the first that may be used");
  options.add("--memory", arguments.memory_mb, "Memory of DPDK in MB; default: what the ports need")
      .check(whole(32, 65536));
  options.add(
      "--pcap", arguments.pcap,
      "Capture the frames of all ports: FILE[,snap=BYTES][,size=BYTES][,files=N], as pcapng (docs/captures.md)");
  options.flag("--claims", arguments.claims,
               "Sum what jobs claim of their iterations, and doubt those that claim more than they send "
               "(docs/switch.md)");
  options.add("--metrics", arguments.metrics,
              "Serve metrics for Prometheus at this port, on the loopback, or at IP:PORT (docs/metrics.md)");
  options.add("--json", arguments.json, "Write the counters to this file at the end; - is standard output");
  options.add("--series", arguments.series,
              "Write time series of every port's output (docs/series.md): a file whose name ends with .json, .csv or "
              ".trace.json");
  options.add("--every", arguments.every,
              "With --json: counters as a series, too, one entry every 100ms, say; with --series: time between its "
              "rows, 10ms by default");
}

#if MLTCP_HAS_DPDK

using Json = nlohmann::ordered_json;

struct Opened {
  experiment::SwitchSettings settings;
  std::unique_ptr<dpdk::Eal> eal;
  std::vector<std::unique_ptr<dpdk::Port>> ports;
  std::unique_ptr<capture::Capture> capture;
  std::unique_ptr<JobClaims> claims;                     ///< null: not summed
  std::vector<std::unique_ptr<encap::ClaimsTap>> looks;  ///< of each port at its claims
  std::unique_ptr<realtime::SoftSwitch> bridge;          ///< ends before all of these do

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ports.size()); }
};

realtime::SwitchIdle idle_of(const std::string& word) {
  return word == "spin"    ? realtime::SwitchIdle::spin
         : word == "sleep" ? realtime::SwitchIdle::sleep
                           : realtime::SwitchIdle::pause;
}

Opened open(const SwitchArguments& arguments) {
  Opened opened;
  // A file that can't be written is told before the ports are opened.
  if (arguments.pcap)
    opened.capture = std::make_unique<capture::Capture>(capture::parse_capture("--pcap", *arguments.pcap));
  if (arguments.claims) opened.claims = std::make_unique<JobClaims>();
  opened.settings = experiment::load_switch(arguments.file, arguments.words);
  const auto& given = opened.settings.ports;
  std::vector<realtime::SoftSwitchPort> ends;
  for (const auto& port : given) ends.push_back({0, 9014, port.config, nullptr, false});  // as far as it is known yet
  constexpr std::uint32_t max_spare = 16384;
  const std::uint32_t spare = std::min(realtime::SoftSwitch::frames_inside(ends) + 512, max_spare);
  std::vector<dpdk::PortConfig> configs;
  dpdk::EalOptions options;
  options.cores = arguments.cores;
  std::uint32_t needed = 32 + realtime::SoftSwitch::memory_mb(ends);
  for (const auto& port : given) {
    dpdk::PortConfig& config = configs.emplace_back();
    config.device = port.device;
    config.mtu = port.mtu;
    config.promiscuous = true;
    config.interrupts = idle_of(opened.settings.idle) == realtime::SwitchIdle::sleep;
    config.spare_buffers = spare;
    needed += dpdk::Port::memory_mb(config);
    options.devices.push_back(port.device);
  }
  options.memory_mb = arguments.memory_mb.value_or(needed);
  opened.eal = std::make_unique<dpdk::Eal>(options);
  if (opened.eal->cores().size() > 1)
    throw InputError(fmt::format("--cores {}: a switch polls its ports on one core; give one", arguments.cores));
  for (std::size_t i = 0; i < given.size(); ++i) {
    auto& port = *opened.ports.emplace_back(std::make_unique<dpdk::Port>(*opened.eal, configs[i]));
    const Bytes buffer = given[i].config.output.buffer_bytes;
    if (buffer < port.frame_bytes())
      throw InputError(fmt::format("port {}: its buffer, {}, holds no frame of its MTU; give at least {} B",
                                   in_quotes(port.name()), bytes_to_text(buffer), port.frame_bytes()));
    ends[i].id = port.id();
    ends[i].frame_bytes = port.frame_bytes();
    ends[i].link_is_up = [&port] { return port.link().up; };
    ends[i].has_interrupts = port.has_interrupts();
    ends[i].receive_file = port.receive_file(0);
    if (opened.capture != nullptr)
      ends[i].tap =
          &opened.capture->add_ethernet(one_line(port.name()), fmt::format("switch port {}, {}", i, port.driver()));
    if (opened.claims != nullptr)
      ends[i].tap = opened.looks.emplace_back(std::make_unique<encap::ClaimsTap>(*opened.claims, ends[i].tap)).get();
  }
  opened.bridge = std::make_unique<realtime::SoftSwitch>(
      *opened.eal, ends, realtime::SoftSwitchOptions{idle_of(opened.settings.idle), opened.settings.table});
  return opened;
}

/// Of a switch's time; above, what is measured through it is the machine's.
constexpr double kMaxHeldUp = 0.02;

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

/// 0: as fast as the port takes it.
Rate rate_of(const fabric::SwitchPortConfig& config) {
  constexpr std::uint64_t no_limit = 1'000'000'000'000'000;
  return config.output.rate.bits_per_second < no_limit ? config.output.rate : Rate();
}

void print_settings(const Opened& opened, std::FILE* out) {
  Table table({"port", "driver", "MTU", "rate", "delay", "buffer", "ECN", "classes", "faults"}, 2);
  for (std::uint32_t i = 0; i < opened.size(); ++i) {
    const dpdk::Port& port = *opened.ports[i];
    const fabric::SwitchPortConfig& config = opened.settings.ports[i].config;
    const bool limited = !rate_of(config).is_zero();
    table.add({one_line(port.name()), port.driver(), fmt::format("{}", port.mtu()),
               limited ? to_text(config.output.rate) : "the port's", to_text(config.output.delay),
               bytes_to_text(config.output.buffer_bytes), ecn_text(config.output.ecn),
               fmt::format("{}", config.classes), faults_text(config.output.faults)});
  }
  fmt::print(out, "{}, idle: {}\n{}\n", opened.eal->description(), opened.settings.idle, table.text());
}

Bytes queue_of(const fabric::PriorityLink& output, std::uint32_t classes) {
  Bytes bytes = 0;
  for (std::uint32_t number = 0; number < classes; ++number) bytes += output.queue_bytes(number);
  return bytes;
}

/// For `mltcp top` and Prometheus.
live::Snapshot snapshot_of(const Opened& opened) {
  live::Snapshot shown;
  shown.kind = "switch";
  shown.name = plural(opened.size(), "port");
  shown.pid = static_cast<std::uint32_t>(getpid());
  shown.up_seconds = opened.bridge->now().seconds();
  for (std::uint32_t i = 0; i < opened.size(); ++i) {
    if (!live::has_room(shown.ports, shown)) continue;
    const auto& in = opened.bridge->bridge().counters(i);
    const auto& own = opened.bridge->counters(i);
    const fabric::PriorityLink& output = opened.bridge->bridge().output(i);
    live::PortView& port = shown.ports.emplace_back();
    port.name = one_line(opened.ports[i]->name());
    port.is_up = opened.bridge->bridge().is_up(i);
    port.received_packets = in.received_frames;
    port.received_bytes = in.received_bytes;
    port.sent_packets = own.sent_frames;
    port.sent_bytes = own.sent_bytes;
    port.queue_bytes = queue_of(output, opened.settings.ports[i].config.classes);
    port.dropped_packets = output.counters().dropped_packets + own.transmit_full;
    port.marked_packets = output.counters().marked_packets;
    port.bad_packets = own.runts + own.bad_sources + own.cut_short + own.oversized + own.too_long;
  }
  if (opened.claims != nullptr) live::add_claims(opened.claims->report(), shown);
  return shown;
}

/// Draws a table of rates over itself, about once a second, on a terminal.
class LiveView {
 public:
  explicit LiveView(const Opened& opened) : opened_(opened), before_(opened.size()) {}

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
                 bytes_to_text(queue_of(output, opened_.settings.ports[i].config.classes)),
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
  const Opened& opened_;
  std::vector<Seen> before_;
  Nanos shown_;
  Redrawn redrawn_;
};

/// What outputs had counted, every so often; half as often each time that there are too many entries.
class Series {
 public:
  Series(Opened& opened, Nanos every)
      : opened_(opened), max_((std::min<std::size_t>(16384, 131'072 / opened.size()) - 1) | 1U), every_(every) {
    times_.reserve(max_);
    counts_.reserve(max_ * opened.size());
  }

  /// For an entry, if it is time for one.
  void look(Nanos now) {
    if (now < next_) return;
    next_ = now + every_;
    if (times_.size() < max_)
      add(now);
    else
      thin();  // and the next entry is twice as far from the last as before
  }
  /// Now, whatever the time.
  void add(Nanos now) {
    if (times_.empty()) begun_ = now;
    if (times_.size() == max_) thin();
    times_.push_back(now);
    for (std::uint32_t i = 0; i < opened_.size(); ++i) {
      const fabric::LinkCounters& link = opened_.bridge->bridge().output(i).counters();
      const auto& own = opened_.bridge->counters(i);
      counts_.push_back({own.sent_frames, own.sent_bytes, link.dropped_packets, link.marked_packets, own.bad_checksums,
                         opened_.bridge->take_longest_queue(i),
                         queue_of(opened_.bridge->bridge().output(i), opened_.settings.ports[i].config.classes)});
    }
  }

  [[nodiscard]] Json to_json() const {
    Json times = Json::array();
    for (const Nanos time : times_) times.push_back(time.count);
    Json ports = Json::array();
    for (std::uint32_t port = 0; port < opened_.size(); ++port) {
      Json& lists = ports.emplace_back(Json::object());
      for (std::size_t entry = 0; entry < times_.size(); ++entry) {
        const Counts& counts = counts_[entry * opened_.size() + port];
        lists["sent_frames"].push_back(counts.sent_frames);
        lists["sent_bytes"].push_back(counts.sent_bytes);
        lists["dropped_frames"].push_back(counts.dropped_frames);
        lists["marked_frames"].push_back(counts.marked_frames);
        lists["bad_checksum_frames_seen"].push_back(counts.bad_checksums);
        lists["max_queue_bytes"].push_back(counts.longest_queue);
        lists["queue_bytes"].push_back(counts.queue);
      }
    }
    return {{"every_ns", every_.count}, {"time_ns", std::move(times)}, {"ports", std::move(ports)}};
  }

  /// The same as series of links, from the first entry on.
  [[nodiscard]] experiment::RunSeries links() const {
    experiment::RunSeries series;
    series.policy = "switch";
    series.cc = "none";
    series.datapath = "switch";
    series.interval = series.sampled_every = every_;
    series.duration = times_.back() - begun_;
    for (const Nanos time : times_) series.times.push_back(time - begun_);
    for (std::uint32_t port = 0; port < opened_.size(); ++port)
      series.links.push_back({one_line(opened_.ports[port]->name()), rate_of(opened_.settings.ports[port].config)});
    for (const Counts& counts : counts_)
      series.link_states.push_back({.queue_bytes = counts.queue,
                                    .queue_most_bytes = counts.longest_queue,
                                    .sent_bytes = counts.sent_bytes,
                                    .sent_packets = counts.sent_frames,
                                    .marked_packets = counts.marked_frames,
                                    .dropped_packets = counts.dropped_frames});
    return series;
  }

 private:
  struct Counts {
    std::uint64_t sent_frames = 0;
    Bytes sent_bytes = 0;
    std::uint64_t dropped_frames = 0;
    std::uint64_t marked_frames = 0;
    std::uint64_t bad_checksums = 0;  ///< of frames received
    Bytes longest_queue = 0;          ///< since the entry before
    Bytes queue = 0;
  };

  /// Leaves the second of each two out, and its queue is then that of the next one, too: the first entry, at the
  /// beginning, stays, and so does the last.
  void thin() {
    const std::size_t ports = opened_.size();
    const std::size_t left = (max_ + 1) / 2;
    for (std::size_t kept = 1; kept < left; ++kept) {
      times_[kept] = times_[2 * kept];
      for (std::size_t port = 0; port < ports; ++port) {
        Counts counts = counts_[2 * kept * ports + port];
        counts.longest_queue = std::max(counts.longest_queue, counts_[(2 * kept - 1) * ports + port].longest_queue);
        counts_[kept * ports + port] = counts;
      }
    }
    times_.resize(left);
    counts_.resize(left * ports);
    every_ = every_ * 2;
  }

  Opened& opened_;
  const std::size_t max_;  ///< odd; fewer for many ports, as thinning must not hold the switch up
  Nanos every_;
  Nanos next_;
  Nanos begun_;  ///< time of the first entry
  std::vector<Nanos> times_;
  std::vector<Counts> counts_;  ///< by entry and port
};

void print_counters(const Opened& opened, Nanos duration, std::FILE* out) {
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
             "{}\n{} rounds in {:.1f} s; the machine held the switch up {} for {:.1f} ms in all, {:.1f} ms at worst\n",
             table.text(), loop.rounds, duration.seconds(), plural(loop.stalls, "time"), loop.stalled.millis(),
             loop.longest_gap.millis());
}

void print_claims(const std::vector<JobClaim>& claims, std::FILE* out) {
  if (claims.empty())
    fmt::print(out, "no packet claimed the progress of a job\n");
  else
    fmt::print(out, "\nwhat jobs claimed\n{}", claims_table(claims));
}

constexpr std::string_view kOffloadsCure =
    "on the host's interface at the other end: ethtool -K IFACE tx off tso off gso off";

std::string of_port(const dpdk::Port& port, const std::string& text) {
  return fmt::format("port {}: {}", one_line(port.name()), text);
}

std::string bad_checksums_text(const dpdk::Port& port, std::uint64_t frames) {
  return fmt::format(
      "at least {} came with a wrong TCP or UDP checksum, and its receiver drops such; {}", plural(frames, "frame"),
      port.is_of_kernel() ? fmt::format("if the sender left it to a NIC, switch that off {}", kOffloadsCure)
                          : "its sender leaves it to a NIC that isn't there");
}

/// Tells once of each port, while it runs, that wrong checksums come in there: whoever waits for a connection that does
/// not come to be would otherwise hear it when he has given up.
class ChecksumWatch {
 public:
  explicit ChecksumWatch(const Opened& opened) : opened_(opened), told_(opened.size()) {}

  /// `before` is called before a line is printed.
  template <typename Before>
  void look(Before&& before) {
    for (std::uint32_t i = 0; i < opened_.size(); ++i) {
      const std::uint64_t frames = opened_.bridge->counters(i).bad_checksums;
      if (frames == 0 || told_[i]) continue;
      told_[i] = true;
      before();
      print_warning(of_port(*opened_.ports[i], bad_checksums_text(*opened_.ports[i], frames)));
    }
  }

 private:
  const Opened& opened_;
  std::vector<bool> told_;
};

/// What goes wrong with traffic that nobody sees, and its cure.
std::vector<std::string> warnings_of(const Opened& opened, Nanos duration) {
  std::vector<std::string> warnings;
  const LoopCounters& loop = opened.bridge->loop();
  if (const double share = loop.stalled.seconds() / duration.seconds(); share > kMaxHeldUp)
    warnings.push_back(fmt::format(
        "the machine held the switch up for {:.1f}% of its time: frames waited that no port's settings hold back; "
        "give it a CPU of its own (--cores), or a higher priority (nice -n -15)",
        share * 100));
  for (std::uint32_t i = 0; i < opened.size(); ++i) {
    const dpdk::Port& port = *opened.ports[i];
    const auto& own = opened.bridge->counters(i);
    if (own.bad_checksums > 0) warnings.push_back(of_port(port, bad_checksums_text(port, own.bad_checksums)));
    if (own.cut_short + own.oversized > 0)
      warnings.push_back(of_port(
          port, fmt::format("{} came longer than its MTU of {} allows, and were dropped; {}",
                            plural(own.cut_short + own.oversized, "frame"), port.mtu(),
                            port.is_of_kernel() ? fmt::format("switch segmentation by a NIC off {}", kOffloadsCure)
                                                : "lower the MTU of the hosts, or raise the port's")));
    if (own.transmit_full > 0)
      warnings.push_back(of_port(port, fmt::format("it did not take {} in time; give it a rate that it can carry",
                                                   plural(own.transmit_full, "frame"))));
  }
  return warnings;
}

Json claims_to_json(const std::vector<JobClaim>& claims) {
  Json list = Json::array();
  for (const JobClaim& claim : claims)
    list.push_back({{"job", claim.job},
                    {"iterations", claim.iterations},
                    {"packets", claim.packets},
                    {"bytes", claim.bytes},
                    {"bytes_at_end", claim.bytes_at_end},
                    {"mean_progress", claim.mean_progress()},
                    {"verdict", to_text(claim.verdict())}});
  return list;
}

Json port_to_json(const Opened& opened, std::uint32_t i) {
  const dpdk::Port& port = *opened.ports[i];
  const fabric::SwitchPortConfig& config = opened.settings.ports[i].config;
  const auto& in = opened.bridge->bridge().counters(i);
  const auto& own = opened.bridge->counters(i);
  const fabric::LinkCounters& link = opened.bridge->bridge().output(i).counters();
  Json statistics = Json::object();
  for (const auto& [name, value] : port.statistics()) statistics[name] = value;
  return {{"device", one_line(port.name())},
          {"driver", port.driver()},
          {"mtu", port.mtu()},
          {"link_up", opened.bridge->bridge().is_up(i)},
          {"link_changes", own.link_changes},
          {"rate_bps", config.output.rate.bits_per_second},
          {"delay_ns", config.output.delay.count},
          {"buffer_bytes", config.output.buffer_bytes},
          {"classes", config.classes},
          {"received_frames", in.received_frames},
          {"received_bytes", in.received_bytes},
          {"flooded_frames", in.flooded_frames},
          {"filtered_frames", in.filtered_frames},
          {"addresses_learnt", in.learnt},
          {"addresses_moved", in.moved},
          {"address_table_full", in.table_full},
          {"runt_frames", own.runts},
          {"bad_source_frames", own.bad_sources},
          {"cut_short_frames", own.cut_short},
          {"oversized_frames", own.oversized},
          {"bad_checksum_frames_seen", own.bad_checksums},
          {"offered_frames", link.offered_packets},
          {"dropped_frames", link.dropped_packets},
          {"marked_frames", link.marked_packets},
          {"max_queue_bytes", link.max_queue_bytes},
          {"lost_frames", link.lost_packets},
          {"duplicated_frames", link.duplicated_packets},
          {"corrupted_frames", link.corrupted_packets},
          {"reordered_frames", link.reordered_packets},
          {"copies_without_memory", in.no_copy},
          {"sent_frames", own.sent_frames},
          {"sent_bytes", own.sent_bytes},
          {"transmit_full_frames", own.transmit_full},
          {"too_long_frames", own.too_long},
          {"port_statistics", std::move(statistics)}};
}

Json to_json(const Opened& opened, Nanos duration) {
  Json ports = Json::array();
  for (std::uint32_t i = 0; i < opened.size(); ++i) ports.push_back(port_to_json(opened, i));
  const LoopCounters& loop = opened.bridge->loop();
  return {{"schema", "mltcp.switch/1"},
          {"duration_ns", duration.count},
          {"idle", opened.settings.idle},
          {"loop",
           {{"rounds", loop.rounds},
            {"stalls", loop.stalls},
            {"stalled_ns", loop.stalled.count},
            {"longest_gap_ns", loop.longest_gap.count},
            {"sleeps", loop.sleeps},
            {"slept_ns", loop.slept.count},
            {"naps", loop.naps},
            {"nap_late_ns", loop.mean_nap_overslept().count}}},
          {"ports", std::move(ports)}};
}

std::optional<Nanos> every_of(const SwitchArguments& arguments) {
  constexpr Nanos least{1'000'000};  // a switch asks no more often
  constexpr Nanos most{3'600'000'000'000};
  constexpr Nanos usual{10'000'000};
  if (!arguments.every) return arguments.series ? std::optional(usual) : std::nullopt;
  if (!arguments.json && !arguments.series)
    throw InputError("--every: it is for what --json and --series write; give one of them, too");
  const Nanos every = duration_of("--every", *arguments.every);
  if (every > most)
    throw InputError(fmt::format("--every {}: too seldom; give at most {}", *arguments.every, to_text(most)));
  if (every < least)
    throw InputError(fmt::format("--every {}: too often; give at least {}", *arguments.every, to_text(least)));
  return every;
}

/// Switches until `end` or a signal, and shows meanwhile what happens.
void forward(Opened& opened, Nanos end, std::optional<Series>& series, live::Exchange& exchange) {
  constexpr Nanos view_every{1'000'000'000};
  const bool terminal = isatty(STDERR_FILENO) != 0;
  LiveView view(opened);
  ChecksumWatch checksums(opened);
  const auto stop = [&] {
    if (series) series->look(experiment::wall_now());
    if (exchange.is_asked()) exchange.publish(snapshot_of(opened));
    return EndOnSignal::came();
  };
  for (;;) {
    const Nanos until = std::min(end, opened.bridge->now() + view_every);
    if (opened.bridge->run(until, stop) || until == end) return;
    checksums.look([&] {
      if (terminal) view.clear();
    });
    if (terminal) view.show();
  }
}

int run_switch(const SwitchArguments& arguments) {
  Nanos end = arguments.duration ? duration_of("--for", *arguments.duration) : Nanos::never();
  const std::optional<Nanos> every = every_of(arguments);
  if (arguments.json) check_writable(*arguments.json, arguments.file);
  const std::optional<std::string> capture =
      arguments.pcap ? std::optional(capture::parse_capture("--pcap", *arguments.pcap).file) : std::nullopt;
  check_distinct({arguments.json, capture}, "--json and --pcap");
  if (arguments.series) check_series({arguments.series, std::nullopt}, arguments.file, {arguments.json, capture});
  // Counters on standard output are alone there.
  std::FILE* const out = arguments.json == "-" ? stderr : stdout;
  const EndOnSignal signals;
  const std::optional<live::MetricsAddress> metrics = metrics_of(arguments.metrics);
  live::Exchange exchange;
  std::optional<FilesRead> files(std::in_place);
  Opened opened = open(arguments);
  const Provenance provenance = provenance_of(*files);
  files.reset();
  if (opened.capture != nullptr) opened.capture->start();
  const LiveEnds ends("switch", exchange, metrics);
  print_settings(opened, out);
  std::string names;
  for (const auto& port : opened.ports) names += fmt::format(" {}", one_line(port->name()));
  fmt::print(out, "ready{}\n", names);
  std::fflush(out);
  if (const std::string wrong = testbed::tell_ready(); !wrong.empty()) print_warning(wrong);

  const Nanos begun = opened.bridge->now();
  if (!end.is_never()) end += begun;
  std::optional<Series> series;
  if (every) series.emplace(opened, *every);
  forward(opened, end, series, exchange);
  const Nanos duration = opened.bridge->now() - begun;
  fmt::print(out, "\n");
  print_counters(opened, duration, out);
  std::vector<std::string> warnings = warnings_of(opened, duration);
  const std::vector<JobClaim> claims = opened.claims != nullptr ? opened.claims->report() : std::vector<JobClaim>();
  if (opened.claims != nullptr) {
    print_claims(claims, out);
    for (std::string& doubt : doubts_of(claims)) warnings.push_back(std::move(doubt));
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
  // Counters first: a failure to write series must not cost them.
  if (arguments.json) {
    Json all = to_json(opened, duration);
    if (arguments.claims) all["claims"] = claims_to_json(claims);
    all["warnings"] = warnings;
    if (arguments.every) all["series"] = series->to_json();
    all["provenance"] = to_json(provenance);
    write_file(*arguments.json, json_text(all, 2));
  }
  if (arguments.series) write_series(*arguments.series, {"switch", {series->links()}, provenance}, {});
  return 0;
}

#else

int run_switch(const SwitchArguments& /*arguments*/) {
  throw RunError("built without DPDK, and a switch needs its ports; build with -DMLTCP_DPDK=ON");
}

#endif

}  // namespace

void add_switch_command(CommandLine& line) {
  line.add<SwitchArguments>("switch",
                            "A software switch between any DPDK ports: the bottleneck of a testbed (docs/switch.md)",
                            add_options, run_switch);
}

}  // namespace mltcp::tools
