// What runs on a host of an experiment across hosts (see hosts.h). One thread: the loop over the port, which looks at
// the coordinator's messages once a millisecond, or every 20 ms while it sleeps.
#include "mltcp/base/error.h"
#include "mltcp/experiment/hosts/hosts.h"

#if MLTCP_HAS_DPDK
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>

#include "mltcp/base/text.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/net_interface.h"
#include "mltcp/dpdk/port.h"
#include "mltcp/dpdk/port_io.h"
#include "mltcp/dpdk/port_loop.h"
#include "mltcp/experiment/hosts/internal/hosts_protocol.h"
#include "mltcp/experiment/results/internal/json_values.h"
#include "mltcp/transport/udp_port.h"
#include "mltcp/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using protocol::Json;

constexpr Nanos look_every = 1_ms;
constexpr Nanos report_every = 200_ms;
constexpr Nanos idle_wait = 5_ms;
/// What a port keeps while the machine holds the loop up: 25 ms of 1500 bytes at 1 Gbps, and all that AF_XDP can.
constexpr std::uint32_t descriptors = 2048;
constexpr Nanos link_limit = 3_s;        // that a port may have no link: it may come back before connections give up
constexpr Nanos link_look_every = 5_ms;  // a shorter outage may pass unseen
constexpr Nanos silence_limit = 60_s;    // of a coordinator that has not said what this host is
/// A port is opened with buffers for so many ranks before their number is known, and anew if there are more.
constexpr std::uint32_t usual_ranks = 8;
/// DPDK starts before as well, and gets memory for so many in huge pages; in ordinary ones what isn't used costs none.
constexpr std::uint32_t many_ranks = 64;
constexpr std::uint32_t most_ranks = 1024;

/// The coordinator, or this user, has ended the experiment.
struct Ended {
  bool failed = false;
  std::string message;
};

Address parse_ip(const std::string& text, std::string_view option) {
  Address address;
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return Address::v4(ntohl(v4.s_addr), 0);
  if (inet_pton(AF_INET6, text.c_str(), address.ip.data()) == 1) return address;
  throw InputError(fmt::format("{} {}: no IP address; write one as in 10.0.0.1 or fd00::1", option, in_quotes(text)));
}

/// "10.0.0.1/24".
std::pair<Address, std::uint32_t> parse_prefix(const std::string& text) {
  const auto slash = text.find('/');
  const Address address = parse_ip(text.substr(0, slash), "--ip");
  std::uint32_t bits = 0;
  const std::uint32_t most = address.is_v4() ? 32 : 128;
  const char* end = text.data() + text.size();
  const auto [at, problem] = slash == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                        : std::from_chars(text.data() + slash + 1, end, bits);
  if (problem != std::errc() || at != end || bits < 1 || bits > most)
    throw InputError(
        fmt::format("--ip {}: no prefix length; write how many bits of the address the network has, 1 to {}, "
                    "as in {}",
                    in_quotes(text), most, address.is_v4() ? "10.0.0.1/24" : "fd00::1/64"));
  return {address, bits};
}

dpdk::Idle idle_of(const std::string& word) {
  return word == "spin" ? dpdk::Idle::spin : word == "sleep" ? dpdk::Idle::sleep : dpdk::Idle::pause;
}

/// Answers for the host where no rank does, and drops what comes.
class Drain final : public Pollable {
 public:
  explicit Drain(PacketIo& io) : io_(io) {}
  Nanos poll(Nanos /*now*/) override {
    std::array<RxPacket, 32> packets;
    while (io_.receive(packets) > 0) {
    }
    return Nanos::never();
  }

 private:
  PacketIo& io_;
};

/// Everything that the host has opened, in the order in which it closes.
struct Opened {
  std::unique_ptr<dpdk::Eal> eal;
  std::unique_ptr<dpdk::Port> port;
  std::unique_ptr<dpdk::PortHost> place;
};

class HostProcess {
 public:
  explicit HostProcess(const HostOptions& options) : options_(options) {
    std::tie(address_, prefix_bits_) = parse_prefix(options.ip);
    address_.port = options.udp_port;
    if (!options.gateway.empty()) gateway_ = parse_ip(options.gateway, "--gateway");
    // What is wrong here is told here: once a host has joined, its failure is the end of the experiment for all.
    refuse_own_address();
    dpdk::Port::check_config(port_config(1));
    if (!options.cores.empty() && dpdk::parse_cores(options.cores, dpdk::usable_cpus()).size() > 1)
      throw InputError(fmt::format("--cores {}: a host polls its port on one core; give one", options.cores));
  }

  Ended run() {
    start_dpdk();
    open(std::max<std::uint32_t>(usual_ranks, options_.queues));
    join();
    try {
      take_place();
      protocol::send(*stream_, {{"type", "ready"}, {"mtu", opened_.port->mtu()}});
      tell(fmt::format("host {}: {} at {}, {}; joined the experiment at {}", number_, options_.ip,
                       one_line(opened_.port->description()), plural(ranks_, "rank"), one_line(options_.coordinator)));
      idle();
    } catch (const Ended& ended) {
      return ended;
    } catch (const StreamError& error) {
      if (const auto ended = last_words()) return *ended;
      throw RunError(fmt::format("the coordinator {} before the experiment was over; see what it said", error.what()));
    } catch (const Json::exception&) {
      complain("the coordinator sends a malformed message; install the same version of mltcp on all hosts");
    } catch (const std::exception& error) {
      tell_failure(error.what());
      throw;
    }
    return {};
  }

 private:
  /// A rank that lives here, in the run that is on.
  struct Rank {
    std::uint32_t job = 0;
    std::uint32_t rank = 0;
    std::uint32_t shard = 0;
    std::unique_ptr<RankDriver> driver;
    std::uint64_t plan_serial = 0;
  };

  /// Kernel and port would both answer for it.
  void refuse_own_address() const {
    for (const auto& [interface, address] : dpdk::kernel_addresses())
      if (address.ip == address_.ip)
        throw InputError(fmt::format(
            "--ip {}: the kernel of this host has that address on {}; give the port another one of the network",
            one_line(options_.ip), interface));
  }

  /// Ranks have a shard each, and there is one for each queue at least.
  [[nodiscard]] dpdk::PortConfig port_config(std::uint32_t shards) const {
    dpdk::PortConfig config;
    config.device = options_.device;
    config.mtu = options_.mtu;
    config.queues = options_.queues;
    config.interrupts = options_.idle == "sleep";
    config.descriptors = descriptors;
    constexpr std::uint32_t held_by_shard = 256;
    config.spare_buffers += shards * held_by_shard;
    return config;
  }

  void tell(const std::string& line) const {
    if (options_.tell) options_.tell(line);
  }
  /// What the coordinator said before it closed the stream, if this host was just sending and hasn't read it yet.
  std::optional<Ended> last_words() {
    try {
      while (const auto message = protocol::receive(*stream_))
        if (message->at("type") == "end")
          return Ended{message->at("failed").get<bool>(), one_line(message->at("message").get<std::string>())};
    } catch (const std::exception&) {  // it said nothing
    }
    return std::nullopt;
  }
  void tell_failure(const std::string& why) {
    try {
      protocol::send(*stream_, {{"type", "failed"}, {"message", one_line(why)}});
    } catch (const StreamError&) {  // it has other troubles
    }
  }
  [[noreturn]] void complain(const std::string& why) {
    tell_failure(why);
    throw RunError(why);
  }
  [[nodiscard]] std::string interrupted() const { return options_.interrupted ? options_.interrupted() : ""; }
  void check_interrupted() {
    const std::string why = interrupted();
    if (why.empty()) return;
    tell_failure(why);
    throw RunError(why + "; the coordinator was told");
  }
  void warn(const std::string& line) const {
    if (options_.warn) options_.warn(line);
  }

  void join() {
    stream_ = MessageStream::connect(parse_stream_address(options_.coordinator), options_.connect_limit,
                                     [&] { return interrupted(); });
    Json hello{{"type", "join"},
               {"version", protocol::kVersion},
               {"address", protocol::to_hex(address_)},
               {"device", options_.device}};
    if (options_.host) hello["host"] = *options_.host;
    try {
      protocol::send(*stream_, hello);
      const Nanos give_up = wall_now() + silence_limit;
      std::optional<Json> answer;
      while (!(answer = protocol::receive(*stream_))) {
        if (const std::string why = interrupted(); !why.empty())
          throw RunError(why + " before the coordinator answered");
        if (wall_now() > give_up)
          throw RunError(fmt::format("{} does not answer as a coordinator; is it mltcp gen --serve?",
                                     one_line(options_.coordinator)));
        stream_->wait(50_ms);
      }
      if (answer->at("type") == "refused")
        throw RunError(
            fmt::format("the coordinator refused this host: {}", one_line(answer->at("message").get<std::string>())));
      if (answer->at("type") == "end") throw RunError(one_line(answer->at("message").get<std::string>()));
      if (answer->at("type") != "welcome" || whole_field<std::uint64_t>(*answer, "version") != protocol::kVersion)
        throw RunError(
            "the coordinator speaks another version of the protocol; install the same version of mltcp on "
            "all hosts");
      number_ = whole_field<std::uint32_t>(*answer, "host");
      ranks_ = whole_field<std::uint32_t>(*answer, "ranks", 1, most_ranks);
      stream_->set_longest(protocol::kLongest);
    } catch (const StreamError& error) {
      throw RunError(
          fmt::format("{} {}; is it the address of mltcp gen --serve?", one_line(options_.coordinator), error.what()));
    } catch (const InputError& error) {
      throw RunError(fmt::format("{} answers otherwise than a coordinator ({}); is it mltcp gen --serve?",
                                 one_line(options_.coordinator), error.what()));
    } catch (const Json::exception&) {
      throw RunError(fmt::format("{} answers otherwise than a coordinator; is it mltcp gen --serve?",
                                 one_line(options_.coordinator)));
    }
  }

  void start_dpdk() {
    dpdk::EalOptions eal;
    eal.cores = options_.cores;
    eal.memory_mb = options_.memory_mb.value_or(memory_for(many_ranks));
    if (!options_.memory_mb) eal.ordinary_memory_mb = memory_for(most_ranks);
    if (dpdk::parse_port_name(options_.device).kind == dpdk::PortName::Kind::pci) eal.pci.push_back(options_.device);
    opened_.eal = std::make_unique<dpdk::Eal>(eal);
  }

  /// In MB, if there are so many ranks.
  [[nodiscard]] std::uint32_t memory_for(std::uint32_t ranks) const {
    constexpr std::uint32_t base_mb = 32;
    constexpr std::uint32_t shards_per_mb = 32;
    const std::uint32_t shards = std::max<std::uint32_t>(ranks, options_.queues);
    return std::min(base_mb + dpdk::Port::memory_mb(port_config(shards)) + shards / shards_per_mb,
                    dpdk::Eal::most_memory_mb);
  }

  void open(std::uint32_t shards) {
    opened_.port = std::make_unique<dpdk::Port>(*opened_.eal, port_config(shards));
    opened_for_ = shards;
  }

  /// Now that the number of its ranks is known.
  void take_place() {
    const std::uint32_t shards = std::max<std::uint32_t>(ranks_, options_.queues);
    if (shards > opened_for_) {
      opened_.port.reset();
      try {
        open(shards);
      } catch (const RunError& error) {
        throw RunError(fmt::format("{}: for the {} ranks of this host, mltcp gen --join ... --memory {}", error.what(),
                                   ranks_, memory_for(shards)));
      }
    }
    if (options_.udp_port <= roce_udp_port && roce_udp_port < options_.udp_port + shards)
      warn(
          fmt::format("its UDP ports {} to {} hold {}, which is RoCEv2's: a NIC with RoCE may keep such packets, and "
                      "analysers misread them; leave --udp-port out, or give 49152 or more",
                      options_.udp_port, options_.udp_port + shards - 1, roce_udp_port));
    dpdk::PortHostConfig place;
    place.address = address_;
    place.prefix_bits = prefix_bits_;
    place.gateway = gateway_;
    place.shards = static_cast<std::uint16_t>(shards);
    opened_.place = std::make_unique<dpdk::PortHost>(*opened_.eal, *opened_.port, place);
    for (std::uint16_t shard = 0; shard < shards; ++shard)
      drains_.push_back(std::make_unique<Drain>(opened_.place->io(shard)));
  }

  [[nodiscard]] Nanos now() const { return opened_.eal->clock().now(); }

  // ---- Between runs ----

  [[noreturn]] void idle() {
    for (;;) {
      check_interrupted();
      stream_->wait(idle_wait);
      try {
        while (const auto message = protocol::receive(*stream_)) {
          if (message->at("type") == "setup")
            run_jobs(*message);
          else
            on_message(*message);
        }
      } catch (const InputError& error) {
        complain(fmt::format(
            "the coordinator sends a malformed message ({}); install the same version of mltcp on all hosts",
            error.what()));
      }
      for (const auto& drain : drains_) drain->poll(now());
    }
  }

  // ---- A run ----

  void run_jobs(const Json& message) {
    setup_ = protocol::setup_from(message);
    run_ = whole_field<std::uint64_t>(message, "run");
    stop_ = false;
    down_since_.reset();
    const HostLosses before = losses();
    for (std::uint32_t number = 0; number < setup_.jobs.size(); ++number) {
      protocol::JobSetup& job = setup_.jobs[number];
      job.settings.pacing_quantum = kRealPacingQuantum;
      job.settings.connection.pacing_quantum = job.settings.pacing_quantum;
      std::shared_ptr<const Payload> payload;
      for (std::uint32_t rank = 0; rank < job.hosts.size(); ++rank) {
        if (job.hosts[rank] != number_) continue;
        if (job.ports[rank] >= opened_.place->shards()) throw RunError("the coordinator names a rank that isn't here");
        if (!payload) payload = RankDriver::make_payload(job.settings);
        Rank& own = here_.emplace_back();
        own.job = number;
        own.rank = rank;
        own.shard = job.ports[rank];
        own.driver = std::make_unique<RankDriver>(opened_.place->io(static_cast<std::uint16_t>(own.shard)),
                                                  job.settings, rank, job.addresses, payload, now());
      }
    }
    dpdk::PortLoop loop(*opened_.eal, idle_of(options_.idle));
    for (std::uint16_t shard = 0; shard < opened_.place->shards(); ++shard) {
      const auto rank = std::find_if(here_.begin(), here_.end(), [&](const Rank& own) { return own.shard == shard; });
      Pollable& pollable = rank != here_.end() ? static_cast<Pollable&>(*rank->driver) : *drains_[shard];
      loop.attach(*opened_.place, opened_.place->io(shard), pollable);
    }
    Nanos next_look;
    Nanos next_link_look;
    Nanos next_report;
    std::size_t told = 0;
    const auto look = [&] {
      const Nanos time = loop.now();
      if (time < next_look) return false;
      next_look = time + look_every;
      check_interrupted();
      while (const auto next = protocol::receive(*stream_)) on_message(*next);
      if (time >= next_link_look) {
        next_link_look = time + link_look_every;
        check_link(time);
      }
      std::size_t state = 0;
      for (const Rank& own : here_) state += (own.driver->connected() ? 1U : 0U) + (own.driver->done() ? 1U : 0U);
      if (time >= next_report || state != told) {
        next_report = time + report_every;
        told = state;
        report();
      }
      return stop_;
    };
    try {
      loop.run(Nanos::never(), look);
    } catch (const ConnectionLost& lost) {
      throw RunError(fmt::format("{}{}", lost.what(), whereabouts(lost)));
    }
    end_outage(now());
    std::uint64_t strangers = 0;
    for (const Rank& own : here_) strangers += own.driver->strangers();
    if (strangers > 0) tell(fmt::format("dropped {} of strangers", plural(strangers, "connection")));
    here_.clear();
    if (const dpdk::LoopCounters& slept = loop.counters(); slept.naps > 0)
      tell(fmt::format("run {}: {} naps ended {:.0f} us late on average, {:.0f} us at least; {} of {:.1f} ms in all",
                       run_, slept.naps, slept.mean_nap_overslept().millis() * 1e3,
                       slept.least_nap_overslept.millis() * 1e3, plural(slept.stalls, "stall"),
                       slept.stalled.millis()));
    HostLosses lost = losses();
    lost.missed_packets -= before.missed_packets;
    lost.port_errors -= before.port_errors;
    lost.handover_full_packets -= before.handover_full_packets;
    lost.rejected_packets -= before.rejected_packets;
    lost.unsent_packets -= before.unsent_packets;
    protocol::send(*stream_, {{"type", "stopped"},
                              {"longest_gap", loop.counters().longest_gap.count},
                              {"stalled", loop.counters().stalled.count},
                              {"losses", protocol::to_json(lost)}});
  }

  /// Tells when the port loses its link and when it has one again. Throws RunError when it has been without for long.
  void check_link(Nanos time) {
    const std::string down = opened_.port->why_link_is_down();
    if (down.empty()) {
      had_link_ = true;
      end_outage(time);
    } else if (had_link_ && !down_since_) {
      down_since_ = time;
      warn(fmt::format("port {} has no link: {}; after {} that ends the experiment", one_line(options_.device), down,
                       to_text(link_limit)));
      protocol::send(
          *stream_,
          {{"type", "link"}, {"run", run_}, {"since", time.count}, {"lasted", nullptr}, {"why", one_line(down)}});
    } else if (had_link_ && time - *down_since_ >= link_limit) {
      throw RunError(fmt::format("its port {} has had no link for {}: {}, and start all again",
                                 one_line(options_.device), to_text(link_limit), down));
    }
  }

  /// If one is on: the link is there again, or the run is over.
  void end_outage(Nanos time) {
    if (!down_since_) return;
    const Nanos since = *down_since_;
    down_since_.reset();
    warn(fmt::format("port {} had no link for {:.2f} s", one_line(options_.device), (time - since).seconds()));
    protocol::send(
        *stream_,
        {{"type", "link"}, {"run", run_}, {"since", since.count}, {"lasted", (time - since).count}, {"why", ""}});
  }

  /// Where the other end of a connection is, and what to look at: " on host 1 (10.0.0.2:62400); ...".
  [[nodiscard]] std::string whereabouts(const ConnectionLost& lost) const {
    const auto found = std::find_if(setup_.jobs.begin(), setup_.jobs.end(),
                                    [&](const protocol::JobSetup& job) { return job.settings.number == lost.job; });
    if (found == setup_.jobs.end()) return "";
    const std::uint32_t peer = found->hosts.at(lost.peer);
    const std::string down = opened_.port->why_link_is_down();
    std::string cure = "see what that said";
    if (!down.empty())
      cure = fmt::format("the port has no link here: {}", down);
    else if (lost.unreachable)
      cure = fmt::format("the link is up here, so see host {}'s port, and what is between", peer);
    return fmt::format(" on host {} ({}); {}, and start all again", peer, to_text(found->addresses.at(lost.peer)),
                       cure);
  }

  /// Since the port was opened.
  [[nodiscard]] HostLosses losses() const {
    HostLosses losses;
    for (const auto& [name, count] : opened_.port->statistics()) {
      if (name == "rx_missed_errors" || name == "xdp_rx_ring_full") losses.missed_packets += count;
      if (name == "rx_errors" || name == "tx_errors") losses.port_errors += count;
    }
    for (std::uint16_t shard = 0; shard < opened_.place->shards(); ++shard) {
      const dpdk::PortIoCounters& counters = opened_.place->io(shard).counters();
      losses.handover_full_packets += counters.handover_full;
      losses.rejected_packets += std::accumulate(counters.rejected.begin(), counters.rejected.end(), std::uint64_t{0});
      losses.unsent_packets += counters.unsendable + counters.waiting_full + counters.unreachable;
    }
    return losses;
  }

  void on_message(const Json& message) {
    const auto type = message.at("type").get<std::string>();
    if (type == "ping") {
      protocol::send(*stream_, {{"type", "pong"}, {"id", message.at("id")}, {"time", now().count}});
    } else if (type == "end") {
      throw Ended{message.at("failed").get<bool>(), one_line(message.at("message").get<std::string>())};
    } else if (type == "start") {
      for (const Rank& own : here_)
        own.driver->start(Nanos(whole_value(message.at("at").at(own.job), "at", -kMostTime.count, kMostTime.count)));
    } else if (type == "plan") {
      on_plan(message);
    } else if (type == "collect") {
      for (const Rank& own : here_) {
        Json result = protocol::to_json(own.driver->result());
        result["type"] = "result";
        result["job"] = own.job;
        result["rank"] = own.rank;
        protocol::send(*stream_, result);
      }
    } else if (type == "stop") {
      stop_ = true;
    } else {
      complain(
          fmt::format("the coordinator sends {}, which this version does not know; install the same version of "
                      "mltcp on all hosts",
                      in_quotes(type)));
    }
  }

  void on_plan(const Json& message) {
    const Nanos time = now();
    for (Rank& own : here_) {
      if (own.job != whole_field<std::uint32_t>(message, "job")) continue;
      own.plan_serial = whole_field<std::uint64_t>(message, "serial");
      if (message.at("plan").is_null())
        own.driver->clear_plan(time);
      else
        own.driver->set_plan(protocol::plan_from(message.at("plan")), time);
    }
  }

  void report() {
    Json ranks = Json::array();
    for (const Rank& own : here_) {
      const RankDriver::Progress progress = own.driver->progress();
      Json entry{{"job", own.job},
                 {"rank", own.rank},
                 {"recorded", own.driver->recorded()},
                 {"sent", progress.sent},
                 {"last", progress.last.count},
                 {"plan", static_cast<int>(own.driver->gate().state)},
                 {"plan_serial", own.plan_serial},
                 {"connected", own.driver->connected()},
                 {"done", own.driver->done()}};
      if (!own.driver->connected()) entry["unreached"] = unreached(own);
      ranks.push_back(std::move(entry));
    }
    protocol::send(*stream_, {{"type", "progress"}, {"run", run_}, {"ranks", std::move(ranks)}});
  }

  [[nodiscard]] std::string unreached(const Rank& own) {
    const auto peer = own.driver->unreached();
    if (!peer) return "";
    const protocol::JobSetup& job = setup_.jobs[own.job];
    Address address = job.addresses[*peer];
    const bool known = opened_.place->io(static_cast<std::uint16_t>(own.shard)).resolve(address);
    if (const std::string down = opened_.port->why_link_is_down(); !down.empty())
      return fmt::format("no connection to host {} ({}): its port {} has no link: {}", job.hosts[*peer],
                         to_text(address), one_line(options_.device), down);
    const std::string cure = gateway_ == Address{}
                                 ? "see that both ports are on one network, in which --ip puts them"
                                 : "see that both ports are on one network, or that the gateway works";
    return fmt::format("no connection to host {} ({}): {}; {}", job.hosts[*peer], to_text(address),
                       known ? "its address is known, but it does not answer"
                             : "nobody answers for its address (ARP or "
                               "neighbour discovery)",
                       cure);
  }

  static constexpr std::uint32_t most_ranks = 1024;

  const HostOptions& options_;
  Address address_;
  std::uint32_t prefix_bits_ = 0;
  Address gateway_{};
  std::unique_ptr<MessageStream> stream_;
  std::uint32_t number_ = 0;
  std::uint32_t ranks_ = 0;
  Opened opened_;
  std::uint32_t opened_for_ = 0;  ///< shards that its port has buffers for
  std::vector<std::unique_ptr<Drain>> drains_;
  protocol::RunSetup setup_;  ///< outlives the ranks
  std::vector<Rank> here_;
  std::uint64_t run_ = 0;
  bool stop_ = false;
  bool had_link_ = false;            ///< the port, at some time
  std::optional<Nanos> down_since_;  ///< when it was first seen, in this run, to have none any more
};

}  // namespace

void run_host(const HostOptions& options) {
  HostProcess process(options);
  const Ended ended = process.run();
  if (ended.failed) throw RunError(fmt::format("the experiment has failed: {}", ended.message));
}

}  // namespace mltcp::experiment

#else

namespace mltcp::experiment {

void run_host(const HostOptions& /*options*/) {
  throw RunError("built without DPDK, and a host needs its port; build with -DMLTCP_DPDK=ON");
}

}  // namespace mltcp::experiment

#endif
