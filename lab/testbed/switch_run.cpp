// The software switch as the bottleneck of a testbed (see switch_run.h).
#include "mltcp/lab/testbed/switch_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/endpoint/live/describe.h"

namespace mltcp::testbed {
namespace {

using Json = nlohmann::ordered_json;

/// Maximum share of a run's time for which the machine may delay the switch. Above this share, measurements depend on
/// the machine.
constexpr double kMaxHeldUp = 0.02;

constexpr std::string_view kOffloadsCure =
    "on the host's interface at the other end: ethtool -K IFACE tx off tso off gso off";

std::string of_port(const dpdk::Port& port, const std::string& text) {
  return fmt::format("port {}: {}", one_line(port.name()), text);
}

std::string bad_checksums_text(const dpdk::Port& port, std::uint64_t frames) {
  return fmt::format("at least {} arrived with a wrong TCP or UDP checksum, and receivers drop such frames; {}",
                     plural(frames, "frame"),
                     port.is_of_kernel()
                         ? fmt::format("if the sender leaves checksums to a NIC, switch that off {}", kOffloadsCure)
                         : "switch checksum offloading off at its sender, as no NIC calculates them");
}

realtime::SwitchIdle idle_of(const std::string& word) {
  return word == "spin"    ? realtime::SwitchIdle::spin
         : word == "sleep" ? realtime::SwitchIdle::sleep
                           : realtime::SwitchIdle::pause;
}

Json port_to_json(const OpenedSwitch& opened, std::uint32_t i) {
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

}  // namespace

OpenedSwitch open_switch(experiment::SwitchSettings settings, const SwitchOptions& wanted) {
  OpenedSwitch opened;
  // Opens the capture before the ports, so that a capture file that cannot be written is reported early.
  if (wanted.capture) opened.capture = std::make_unique<capture::Capture>(*wanted.capture);
  if (wanted.claims) opened.claims = std::make_unique<JobClaims>();
  opened.settings = std::move(settings);
  const auto& given = opened.settings.ports;
  std::vector<realtime::SoftSwitchPort> ends;
  // Here only frame_bytes and config matter. All values are set after the ports have been opened.
  for (const auto& port : given) ends.push_back({0, 9014, port.config, nullptr, false});
  constexpr std::uint32_t max_spare = 16384;
  const std::uint32_t spare = std::min(realtime::SoftSwitch::frames_inside(ends) + 512, max_spare);
  std::vector<dpdk::PortConfig> configs;
  dpdk::EalOptions options;
  options.cores = wanted.cores;
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
  options.memory_mb = wanted.memory_mb.value_or(needed);
  opened.eal = std::make_unique<dpdk::Eal>(options);
  if (opened.eal->cores().size() > 1)
    throw InputError(fmt::format("--cores {}: a switch polls its ports on one core; give one", wanted.cores));
  for (std::size_t i = 0; i < given.size(); ++i) {
    auto& port = *opened.ports.emplace_back(std::make_unique<dpdk::Port>(*opened.eal, configs[i]));
    const Bytes buffer = given[i].config.output.buffer_bytes;
    if (buffer < port.frame_bytes())
      throw InputError(fmt::format("port {}: its buffer, {}, is smaller than a frame of its MTU; give at least {} B",
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

Rate rate_of(const fabric::SwitchPortConfig& config) {
  constexpr std::uint64_t no_limit = 1'000'000'000'000'000;
  return config.output.rate.bits_per_second < no_limit ? config.output.rate : Rate();
}

Bytes queue_of(const OpenedSwitch& opened, std::uint32_t port) {
  Bytes bytes = 0;
  for (std::uint32_t number = 0; number < opened.settings.ports[port].config.classes; ++number)
    bytes += opened.bridge->bridge().output(port).queue_bytes(number);
  return bytes;
}

live::Snapshot snapshot_of(const OpenedSwitch& opened) {
  live::Snapshot shown;
  shown.kind = "switch";
  shown.name = plural(opened.size(), "port");
  shown.pid = static_cast<std::uint32_t>(getpid());
  shown.up_seconds = opened.bridge->now().seconds();
  for (std::uint32_t i = 0; i < opened.size(); ++i) {
    if (!live::has_space(shown.ports, shown)) continue;
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
    port.queue_bytes = queue_of(opened, i);
    port.dropped_packets = output.counters().dropped_packets + own.transmit_full;
    port.marked_packets = output.counters().marked_packets;
    port.bad_packets = own.runts + own.bad_sources + own.cut_short + own.oversized + own.too_long;
  }
  if (opened.claims != nullptr) live::add_claims(opened.claims->report(), shown);
  return shown;
}

SwitchSeries::SwitchSeries(OpenedSwitch& opened, Nanos every)
    : opened_(opened), max_((std::min<std::size_t>(16384, 131'072 / opened.size()) - 1) | 1U), every_(every) {
  times_.reserve(max_);
  counts_.reserve(max_ * opened.size());
}

void SwitchSeries::look(Nanos now) {
  if (now < next_) return;
  next_ = now + every_;
  if (times_.size() < max_)
    add(now);
  else
    thin();  // doubles the interval; so the next entry follows two old intervals after the last one
}

void SwitchSeries::add(Nanos now) {
  if (times_.empty()) begun_ = now;
  if (times_.size() == max_) thin();
  times_.push_back(now);
  for (std::uint32_t i = 0; i < opened_.size(); ++i) {
    const fabric::LinkCounters& link = opened_.bridge->bridge().output(i).counters();
    const auto& own = opened_.bridge->counters(i);
    counts_.push_back({own.sent_frames, own.sent_bytes, link.dropped_packets, link.marked_packets, own.bad_checksums,
                       opened_.bridge->take_longest_queue(i), queue_of(opened_, i)});
  }
}

Json SwitchSeries::to_json() const {
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

experiment::RunSeries SwitchSeries::links() const {
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

/// Removes every second entry, but neither the first nor the last. Merges the longest queue of each removed entry into
/// the entry that follows.
void SwitchSeries::thin() {
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

void ChecksumWatch::look(const std::function<void(const std::string& warning)>& tell) {
  for (std::uint32_t i = 0; i < opened_.size(); ++i) {
    const std::uint64_t frames = opened_.bridge->counters(i).bad_checksums;
    if (frames == 0 || reported_[i]) continue;
    reported_[i] = true;
    tell(of_port(*opened_.ports[i], bad_checksums_text(*opened_.ports[i], frames)));
  }
}

std::vector<std::string> warnings_of(const OpenedSwitch& opened, Nanos duration) {
  std::vector<std::string> warnings;
  const LoopCounters& loop = opened.bridge->loop();
  if (const double share = loop.stalled.seconds() / duration.seconds(); share > kMaxHeldUp)
    warnings.push_back(
        fmt::format("the machine delayed the switch for {:.1f}% of its time: frames waited longer than the ports' "
                    "settings require; give it a CPU of its own (--cores), or a higher priority (nice -n -15)",
                    share * 100));
  for (std::uint32_t i = 0; i < opened.size(); ++i) {
    const dpdk::Port& port = *opened.ports[i];
    const auto& own = opened.bridge->counters(i);
    if (own.bad_checksums > 0) warnings.push_back(of_port(port, bad_checksums_text(port, own.bad_checksums)));
    if (own.cut_short + own.oversized > 0)
      warnings.push_back(of_port(
          port, fmt::format("{} exceeded its MTU of {} and were dropped; {}",
                            plural(own.cut_short + own.oversized, "frame"), port.mtu(),
                            port.is_of_kernel() ? fmt::format("switch segmentation by a NIC off {}", kOffloadsCure)
                                                : "lower the MTU of the hosts, or raise the port's")));
    if (own.transmit_full > 0)
      warnings.push_back(of_port(port, fmt::format("it did not accept {} in time; give it a rate that it can carry",
                                                   plural(own.transmit_full, "frame"))));
  }
  return warnings;
}

Json to_json(const std::vector<JobClaim>& claims) {
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

Json to_json(const OpenedSwitch& opened, Nanos duration) {
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

}  // namespace mltcp::testbed
