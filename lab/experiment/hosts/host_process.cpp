// The process that runs on each host of an experiment across hosts (see hosts.h). One thread polls the port. The same
// thread reads the coordinator's messages, once a millisecond, or every 20 ms if it sleeps.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/base/text.h"
#include "mltcp/endpoint/live/describe.h"
#include "mltcp/lab/experiment/backends/host_datapaths.h"
#include "mltcp/lab/experiment/hosts/hosts.h"
#include "mltcp/lab/experiment/hosts/internal/hosts_protocol.h"
#include "mltcp/lab/experiment/hosts/internal/program_message.h"
#include "mltcp/lab/experiment/series/series_recorder.h"
#include "mltcp/lab/workload/phase_program.h"
#include "mltcp/transport/capture/captured_datapath.h"
#include "mltcp/transport/host_datapath.h"
#include "mltcp/transport/poll_loop.h"
#include "mltcp/transport/security/packet_key.h"
#include "mltcp/transport/udp_port.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using protocol::Json;

constexpr Nanos kLookEvery = 1_ms;
constexpr Nanos kLongestLook = 1_ms;
constexpr Nanos kReportEvery = 200_ms;
constexpr Nanos kIdleWait = 5_ms;
/// Capacity of a port's queue in packets, for times when the loop is delayed: 25 ms of 1500-byte packets at 1 Gbit/s.
/// Equals the maximum of AF_XDP.
constexpr std::uint32_t kQueuePackets = 2048;
constexpr Nanos kLinkLimit = 3_s;       // maximum time without a link; the link may return before connections end
constexpr Nanos kLinkLookEvery = 5_ms;  // interval of checks; an outage that is shorter may be missed
constexpr Nanos kCoordinatorSilenceLimit = 60_s;  // time limit for the coordinator's welcome
/// Number of ranks for which a port is opened at first. The port is reopened if this host has more ranks.
constexpr std::uint32_t kUsualRanks = 8;
/// Number of ranks for which a datapath reserves huge pages, if the datapath reserves memory when it opens. Other
/// datapaths use ordinary pages, which cost nothing while unused.
constexpr std::uint32_t kManyRanks = 64;
constexpr std::uint32_t kMaxRanks = 1024;
/// Limits for all ranks on this host together, whatever the coordinator requests.
constexpr std::size_t kMaxConnections = std::size_t{1} << 17U;
constexpr std::size_t kMaxOperations = workload::kMaxOperationsInAll;  // also limits the number of recorded iterations
constexpr std::size_t kMaxWaits = 4 * kMaxOperations;
constexpr std::size_t kMaxSeriesRows = (SeriesRecorder::kFewestRows + 1) * SeriesRecorder::kMaxEntities;

/// Thrown when the coordinator or the user of this host has ended the experiment.
struct Ended {
  bool failed = false;
  std::string message;
};

/// Returns parse(). If parse() throws an InputError, adds the name of the option in front of the error's text.
template <typename Parse>
auto of_option(std::string_view option, Parse parse) {
  try {
    return parse();
  } catch (const InputError& error) {
    throw InputError(fmt::format("{} {}", option, error.what()));
  }
}

std::vector<std::shared_ptr<const PacketKey>> keys_of(const HostOptions& options) {
  if (options.key == nullptr) return {};
  return {security::packet_key(*options.key, options.protection)};
}

Idle idle_of(const std::string& word) {
  return word == "spin" ? Idle::spin : word == "sleep" ? Idle::sleep : Idle::pause;
}

/// Polls a shard without a rank and drops its packets. Polling is necessary because receive() answers requests for the
/// host's address.
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

/// Records samples of series before it polls a shard. Only a poll changes the shard's state, so a sample that is taken
/// late is still accurate.
class Sampler final : public Pollable {
 public:
  /// Fills in the states of all connections.
  using Read = std::function<void(std::span<ConnectionState> states)>;

  Sampler(Pollable& polled, SeriesRecorder& recorder, Read read)
      : polled_(polled), recorder_(recorder), read_(std::move(read)) {}
  Nanos poll(Nanos now) override {
    if (now >= recorder_.next()) {
      read_(recorder_.states().connections);
      while (now >= recorder_.next()) recorder_.sample();
    }
    return std::min(polled_.poll(now), recorder_.next());
  }

 private:
  Pollable& polled_;
  SeriesRecorder& recorder_;
  const Read read_;
};

class HostProcess {
 public:
  explicit HostProcess(const HostOptions& options) : options_(options), keys_(keys_of(options)) {
    register_datapaths_once();
    const AddressPrefix own = of_option("--ip", [&] { return AddressPrefix::parse(options.ip); });
    place_.address = own.address;
    place_.address.port = options.udp_port;
    place_.prefix_bits = own.bits;
    if (!options.gateway.empty())
      place_.gateway = of_option("--gateway", [&] { return Address::parse(options.gateway); });
    if (place_.gateway.port != 0)
      throw InputError(fmt::format("--gateway {}: a gateway has no port; leave it out", one_line(options.gateway)));
    // Checks the options here, because after a host has joined, its failure ends the whole experiment.
    check_host_datapath(config(), place_);
  }

  Ended run() {
    datapath_ = options_.capture ? capture::open_captured(config(), *options_.capture,
                                                          [this](const std::string& line, bool is_complete) {
                                                            if (is_complete)
                                                              tell("captured: " + line);
                                                            else
                                                              warn("captured: " + line);
                                                          })
                                 : open_host_datapath(config());
    join();
    try {
      take_place();
      protocol::send(*stream_, {{"type", "ready"}, {"mtu", datapath_->mtu()}});
      tell(fmt::format("host {}: {} at {}, {}; joined the experiment at {}", number_, options_.ip,
                       one_line(datapath_->description()), plural(ranks_, "rank"), one_line(options_.coordinator)));
      idle();
    } catch (const Ended& ended) {
      return ended;
    } catch (const StreamError& error) {
      if (const auto ended = last_words()) return *ended;
      throw RunError(fmt::format("the coordinator at {} {} before the experiment ended; read its output",
                                 one_line(options_.coordinator), error.what()));
    } catch (const Json::exception& error) {
      malformed(problem_of(error));
    } catch (const std::exception& error) {
      report_failure(error.what());
      throw;
    }
    return {};
  }

 private:
  /// A rank on this host in the current run.
  struct Rank {
    std::uint32_t job = 0;
    std::uint32_t rank = 0;
    std::uint32_t shard = 0;
    std::unique_ptr<RankDriver> driver;
    std::uint64_t plan_serial = 0;
  };

  /// Returns the datapath's settings. Each rank has a shard.
  [[nodiscard]] HostDatapathConfig config() const {
    HostDatapathConfig config;
    config.device = options_.device;
    config.mtu = options_.mtu;
    config.queues = options_.queues;
    config.queue_packets = kQueuePackets;
    config.shards = kUsualRanks;
    config.usual_shards = kManyRanks;
    config.max_shards = kMaxRanks;
    config.sleeps = options_.idle == "sleep";
    config.cores = options_.cores;
    config.memory_mb = options_.memory_mb;
    return config;
  }

  void tell(const std::string& line) const {
    if (options_.tell) options_.tell(line);
  }
  /// Returns the coordinator's end message if there is one among the unread messages. The coordinator may have closed
  /// the stream while this host was sending.
  std::optional<Ended> last_words() {
    try {
      while (const auto message = protocol::receive(*stream_))
        if (message->at("type") == "end")
          return Ended{message->at("failed").get<bool>(), protocol::words_from(*message, "message")};
    } catch (const std::exception&) {  // there is no end message
    }
    return std::nullopt;
  }
  void report_failure(const std::string& why) {
    try {
      protocol::send(*stream_, {{"type", "failed"}, {"message", one_line(why)}});
    } catch (const StreamError&) {  // the stream is broken, so the coordinator cannot be notified
    }
  }
  [[noreturn]] void complain(const std::string& why) {
    report_failure(why);
    throw RunError(why);
  }
  [[noreturn]] void malformed(const std::string& what) {
    complain(fmt::format(
        "the coordinator sends a malformed message ({}); install the same version of mltcp on all hosts", what));
  }
  [[nodiscard]] std::string interrupted() const { return options_.interrupted ? options_.interrupted() : ""; }
  void check_interrupted() {
    const std::string why = interrupted();
    if (why.empty()) return;
    report_failure(why);
    throw RunError(why + "; the coordinator was notified");
  }
  void warn(const std::string& line) const {
    if (options_.warn) options_.warn(line);
  }

  void join() {
    stream_ = MessageStream::connect(
        parse_stream_address(options_.coordinator), options_.connect_limit,
        [&] {
          show();
          return interrupted();
        },
        kCoordinatorRole, options_.key,
        [this] {
          tell(fmt::format("waiting for a coordinator at {}, for at most {}", one_line(options_.coordinator),
                           to_text(options_.connect_limit)));
        });
    Json hello{{"type", "join"},
               {"version", protocol::kVersion},
               {"address", protocol::to_hex(place_.address)},
               {"device", options_.device}};
    if (options_.host) hello["host"] = *options_.host;
    try {
      protocol::send(*stream_, hello);
      const Nanos give_up = wall_now() + kCoordinatorSilenceLimit;
      std::optional<Json> answer;
      while (!(answer = protocol::receive(*stream_))) {
        if (const std::string why = interrupted(); !why.empty())
          throw RunError(why + " before the coordinator answered");
        if (wall_now() > give_up)
          throw RunError(fmt::format("{} does not answer like a coordinator; check that mltcp gen --serve runs there",
                                     one_line(options_.coordinator)));
        show();
        stream_->wait(50_ms);
      }
      if (answer->at("type") == "refused")
        throw RunError(fmt::format("the coordinator refused this host: {}", protocol::words_from(*answer, "message")));
      if (answer->at("type") == "end") throw RunError(protocol::words_from(*answer, "message"));
      if (answer->at("type") != "welcome" || whole_field<std::uint64_t>(*answer, "version") != protocol::kVersion)
        throw RunError(
            "the coordinator uses another version of the protocol; install the same version of mltcp on all hosts");
      number_ = whole_field<std::uint32_t>(*answer, "host");
      ranks_ = whole_field<std::uint32_t>(*answer, "ranks", 1, kMaxRanks);
      stream_->set_longest(protocol::kLongest);
      heard_ = wall_now();
    } catch (const KeyMismatch& error) {
      throw RunError(fmt::format("the coordinator at {} {}", one_line(options_.coordinator), error.what()));
    } catch (const StreamError& error) {
      throw RunError(fmt::format("{} {}; check that this is the address of mltcp gen --serve",
                                 one_line(options_.coordinator), error.what()));
    } catch (const InputError& error) {
      throw RunError(fmt::format("{} does not answer like a coordinator ({}); check that mltcp gen --serve runs there",
                                 one_line(options_.coordinator), error.what()));
    } catch (const Json::exception&) {
      throw RunError(fmt::format("{} does not answer like a coordinator; check that mltcp gen --serve runs there",
                                 one_line(options_.coordinator)));
    }
  }

  /// Assigns the host's address to the datapath, now that the number of ranks is known.
  void take_place() {
    place_.shards = static_cast<std::uint16_t>(ranks_);
    datapath_->take_place(place_);
    const std::uint32_t shards = datapath_->shards();
    if (options_.udp_port <= kRoceUdpPort && kRoceUdpPort < options_.udp_port + shards)
      warn(
          fmt::format("its UDP ports {} to {} include {}, the port of RoCEv2: a NIC with RoCE may consume such "
                      "packets, and analysers misread them; leave --udp-port out, or give 49152 or more",
                      options_.udp_port, options_.udp_port + shards - 1, kRoceUdpPort));
    for (std::uint16_t shard = 0; shard < shards; ++shard)
      drains_.push_back(std::make_unique<Drain>(datapath_->io(shard)));
  }

  [[nodiscard]] Nanos now() const { return datapath_->time().now(); }

  /// Calls `deal` for each message from the coordinator, for up to kLongestLook. Later messages wait for the next call.
  /// Throws RunError if the coordinator has been silent for too long.
  template <typename Deal>
  void take_messages(Deal&& deal) {
    const Nanos give_up = now() + kLongestLook;
    while (const auto message = protocol::receive(*stream_)) {
      heard_ = wall_now();
      deal(*message);
      if (now() >= give_up) return;
    }
    if (wall_now() - heard_ > options_.silence_limit)
      throw RunError(
          fmt::format("the coordinator at {} has sent nothing for {}: its process hangs or cannot be reached; read its "
                      "output, and start all hosts again",
                      one_line(options_.coordinator), to_text(options_.silence_limit)));
  }

  // ---- Between runs ----

  [[noreturn]] void idle() {
    for (;;) {
      check_interrupted();
      stream_->wait(kIdleWait);
      try {
        take_messages([&](const Json& message) {
          if (message.at("type") == "setup")
            run_jobs(message);
          else if (message.at("type") == "program")
            on_program(message);
          else
            on_message(message);
        });
      } catch (const InputError& error) {
        malformed(error.what());
      }
      for (const auto& drain : drains_) drain->poll(now());
      show();
    }
  }

  // ---- A run ----

  /// Stores the program of a rank until the run is set up.
  void on_program(const Json& message) {
    const auto run = whole_field<std::uint64_t>(message, "run");
    if (run != programs_run_) programs_.clear();
    programs_run_ = run;
    workload::RankProgram program = protocol::program_from(message);
    std::size_t operations = program.operations.size();
    std::size_t waits = program.waits.size();
    for (const auto& [of, before] : programs_) {
      operations += before.operations.size();
      waits += before.waits.size();
    }
    check_capacity("operations", operations, kMaxOperations);
    check_capacity("waits of operations", waits, kMaxWaits);
    const std::pair key(whole_field<std::uint32_t>(message, "job"), program.rank);
    if (programs_.size() >= ranks_ || !programs_.emplace(key, std::move(program)).second)
      throw InputError("a program that was not requested");
  }

  /// Adds the programs of the ranks on this host to the jobs in `setup_`.
  void add_programs() {
    if (programs_run_ != run_) programs_.clear();
    for (std::uint32_t number = 0; number < setup_.jobs.size(); ++number) {
      protocol::JobSetup& job = setup_.jobs[number];
      if (!job.programmed) continue;
      auto all = std::make_shared<workload::Programs>();
      all->ranks.resize(job.hosts.size());
      for (std::uint32_t rank = 0; rank < job.hosts.size(); ++rank) {
        if (job.hosts[rank] != number_) continue;
        const auto program = programs_.find({number, rank});
        if (program == programs_.end() || program->second.ranks != job.hosts.size())
          throw InputError(fmt::format("no program for rank {} of job {}", rank, number));
        all->ranks[rank] = std::move(program->second);
      }
      job.spec.job.programs = std::move(all);
    }
    programs_.clear();
  }

  void run_jobs(const Json& message) {
    setup_ = protocol::setup_from(message);
    run_ = whole_field<std::uint64_t>(message, "run");
    add_programs();
    stop_ = started_ = false;
    down_since_.reset();
    const HostLosses before = losses();
    make_ranks();
    PollLoop loop(datapath_->time(), idle_of(options_.idle));
    recorder_ = SeriesRecorder({});
    std::optional<Sampler> sampler;
    for (std::uint16_t shard = 0; shard < datapath_->shards(); ++shard) {
      const auto rank = std::ranges::find(here_, shard, &Rank::shard);
      Pollable* pollable = rank != here_.end() ? static_cast<Pollable*>(rank->driver.get()) : drains_[shard].get();
      if (setup_.series && shard == 0)
        pollable = &sampler.emplace(*pollable, recorder_, [this](auto states) { read_states(states); });
      loop.attach(datapath_->io(shard), *pollable);
    }
    Looks looks;
    try {
      loop.run(Nanos::never(), [&] { return look(loop.now(), looks); });
    } catch (const ConnectionLost& lost) {
      throw RunError(fmt::format("{}{}", lost.what(), whereabouts(lost)));
    }
    end_outage(now());
    std::uint64_t unknown_peers = 0;
    for (const Rank& own : here_) {
      unknown_peers += own.driver->unknown_peers();
      live::add_packets(own.driver->shard_stats(), ended_);
    }
    if (unknown_peers > 0) tell(fmt::format("dropped {} from unknown peers", plural(unknown_peers, "connection")));
    if (setup_.series) send_series();
    here_.clear();
    report_end(loop.counters(), before);
  }

  static void check_capacity(const char* what, std::size_t asked, std::size_t max) {
    if (asked > max)
      throw RunError(fmt::format(
          "the coordinator requests {} {} on this host, but the maximum is {}; use fewer ranks, flows or iterations",
          asked, what, max));
  }

  /// Throws RunError if the ranks exceed the limits of a host. Call before memory is allocated for the ranks.
  void check_capacity_for_ranks() const {
    std::size_t connections = 0;
    std::size_t operations = 0;
    std::size_t iterations = 0;
    for (const protocol::JobSetup& job : setup_.jobs)
      for (std::uint32_t rank = 0; rank < job.hosts.size(); ++rank) {
        if (job.hosts[rank] != number_) continue;
        const workload::RankProgram program = workload::rank_program(job.spec.job, rank);
        check_capacity("connections", connections += RankDriver::connections_of(job.spec, program), kMaxConnections);
        check_capacity("operations", operations += program.operations.size(), kMaxOperations);
        check_capacity("recorded iterations", iterations += job.spec.iterations, kMaxOperations);
      }
  }

  void make_ranks() {
    check_capacity_for_ranks();
    for (std::uint32_t number = 0; number < setup_.jobs.size(); ++number) {
      protocol::JobSetup& job = setup_.jobs[number];
      job.spec.pacing_quantum = kRealPacingQuantum;
      job.spec.connection.pacing_quantum = job.spec.pacing_quantum;
      job.spec.connection.keys = keys_;
      job.spec.unpredictable = true;
      std::shared_ptr<const Payload> payload;
      for (std::uint32_t rank = 0; rank < job.hosts.size(); ++rank) {
        if (job.hosts[rank] != number_) continue;
        if (job.ports[rank] >= datapath_->shards())
          throw RunError(
              "the coordinator names a rank that this host does not have; install the same version of mltcp on all "
              "hosts");
        if (!payload) payload = RankDriver::make_payload(job.spec);
        Rank& own = here_.emplace_back();
        own.job = number;
        own.rank = rank;
        own.shard = job.ports[rank];
        own.driver = std::make_unique<RankDriver>(datapath_->io(static_cast<std::uint16_t>(own.shard)), job.spec, rank,
                                                  job.addresses, payload, now());
      }
    }
  }

  /// Times of the loop's next look at messages, next look at the link and next report. `reported` is the ranks' state
  /// in the latest report.
  struct Looks {
    Nanos next;
    Nanos next_at_link;
    Nanos next_report;
    std::size_t reported = 0;
  };

  /// Handles the coordinator's messages, checks the link and reports the ranks' progress. Returns true if the run must
  /// end.
  bool look(Nanos time, Looks& looks) {
    if (time < looks.next) return false;
    looks.next = time + kLookEvery;
    check_interrupted();
    take_messages([&](const Json& message) { on_message(message); });
    show();
    if (time >= looks.next_at_link) {
      looks.next_at_link = time + kLinkLookEvery;
      check_link(time);
    }
    std::size_t state = 0;
    for (const Rank& own : here_) state += (own.driver->connected() ? 1U : 0U) + (own.driver->done() ? 1U : 0U);
    if (time >= looks.next_report || state != looks.reported) {
      looks.next_report = time + kReportEvery;
      looks.reported = state;
      report();
    }
    return stop_;
  }

  // ---- Series ----

  /// Starts recording series of the connections on which this host's ranks send. Allocates all memory for the series.
  void record(const protocol::SeriesOrder& order) {
    std::vector<SeriesConnection> connections;
    for (const Rank& own : here_) {
      if (!own.driver->sends()) continue;
      const std::vector<SeriesConnection> flows = own.driver->flows();
      connections.insert(connections.end(), flows.begin(), flows.end());
    }
    check_capacity("rows of series", order.rows * connections.size(), kMaxSeriesRows);
    recorder_ = SeriesRecorder({.interval = order.interval, .max_rows = order.rows * connections.size()});
    if (!connections.empty()) recorder_.begin(order.epoch, std::move(connections), {});
  }

  void read_states(std::span<ConnectionState> states) const {
    for (const Rank& own : here_) {
      if (!own.driver->sends()) continue;
      own.driver->read_states(states.first(own.driver->connections()));
      states = states.subspan(own.driver->connections());
    }
  }

  /// Sends the recorded series to the coordinator in pieces.
  void send_series() {
    if (!recorder_.next().is_never()) {
      read_states(recorder_.states().connections);
      recorder_.finish(now());
    }
    const RunSeries series = recorder_.take();
    const auto send = [&](Json message) {
      message["run"] = run_;
      protocol::send(*stream_, message);
    };
    send(protocol::rows_to_json(series));
    std::size_t connection = 0;
    for (const Rank& own : here_) {
      if (!own.driver->sends() || series.times.empty()) continue;
      for (const std::size_t end = connection + own.driver->connections(); connection < end; ++connection)
        for (std::size_t row = 0; row < series.times.size(); row += protocol::kSeriesPiece) {
          Json piece = protocol::piece_to_json(series, connection, row);
          piece["job"] = own.job;
          send(std::move(piece));
        }
    }
  }

  // ---- Live view ----

  /// Publishes a snapshot if another program has requested one.
  void show() {
    if (options_.exchange != nullptr && options_.exchange->is_asked()) options_.exchange->publish(snapshot());
  }

  [[nodiscard]] live::Snapshot snapshot() const {
    live::Snapshot shown;
    shown.kind = "gen";
    shown.name = one_line(fmt::format("host {} at {}", number_, options_.ip));
    shown.pid = static_cast<std::uint32_t>(getpid());
    shown.up_seconds = (wall_now() - begun_).seconds();
    if (!here_.empty()) shown.policy = one_line(setup_.policy);
    live::PortView port = ended_;
    for (const Rank& own : here_) {
      add_job(own, shown);
      live::add_packets(own.driver->shard_stats(), port);
    }
    const DatapathLosses lost = datapath_->losses();
    port.name = one_line(options_.device);
    port.is_up = datapath_->why_link_is_down().empty();
    port.dropped_packets = lost.missed + lost.handover_full + lost.unsent;
    port.bad_packets += lost.errors + lost.rejected;
    shown.ports.push_back(std::move(port));
    return shown;
  }

  /// Adds a rank and its connections to the snapshot.
  void add_job(const Rank& own, live::Snapshot& shown) const {
    const protocol::JobSetup& setup = setup_.jobs[own.job];
    live::JobView job;
    job.name = one_line(setup.spec.job.name);
    const std::string name = job.name;
    own.driver->visit_connections([&](std::uint32_t peer, const ConnectionStats& stats) {
      ++job.connections;
      if (!live::has_space(shown.connections, shown)) return;
      live::ConnectionView& view = shown.connections.emplace_back();
      view.peer = to_text(setup.addresses.at(peer));
      view.job = name;
      view.transport = stats;
    });
    const RankDriver::Progress progress = own.driver->progress();
    job.rank = own.rank;
    job.iteration = own.driver->recorded();
    job.iterations = setup.spec.iterations;
    job.last_seconds = progress.last.seconds();
    job.mean_seconds = own.driver->mean_time().seconds();
    job.sent_bytes = progress.sent;
    job.received_bytes = progress.received;
    job.is_done = own.driver->done();
    if (const cc::Augmentation* const augmentation = own.driver->augmentation()) {
      job.bytes_ratio = augmentation->tracker.bytes_ratio();
      job.gain = own.driver->gain();
    }
    if (live::has_space(shown.jobs, shown)) shown.jobs.push_back(std::move(job));
  }

  /// Reports the end of the run to the coordinator, with the loop's counters and the port's losses since `before`.
  void report_end(const LoopCounters& loop, const HostLosses& before) {
    if (loop.naps > 0)
      tell(fmt::format("run {}: {} naps ended {:.0f} us late on average, {:.0f} us at least; {} of {:.1f} ms in all",
                       run_, loop.naps, loop.mean_nap_overslept().millis() * 1e3, loop.min_nap_overslept.millis() * 1e3,
                       plural(loop.stalls, "stall"), loop.stalled.millis()));
    HostLosses lost = losses();
    lost.missed_packets -= before.missed_packets;
    lost.port_errors -= before.port_errors;
    lost.handover_full_packets -= before.handover_full_packets;
    lost.rejected_packets -= before.rejected_packets;
    lost.unsent_packets -= before.unsent_packets;
    for (const Rank& own : here_) {
      const ShardStats& stats = own.driver->shard_stats();
      lost.black_holes += stats.black_holes;
      lost.size_probes_sent += stats.size_probes_sent;
      lost.size_probes_lost += stats.size_probes_lost;
    }
    protocol::send(*stream_, {{"type", "stopped"},
                              {"longest_gap", loop.longest_gap.count},
                              {"stalled", loop.stalled.count},
                              {"losses", protocol::to_json(lost)}});
  }

  /// Reports when the port loses its link, and when the link is back. Throws RunError after kLinkLimit without a link.
  void check_link(Nanos time) {
    const std::string down = datapath_->why_link_is_down();
    if (down.empty()) {
      had_link_ = true;
      end_outage(time);
    } else if (had_link_ && !down_since_) {
      down_since_ = time;
      warn(fmt::format("port {} has no link: {}; if this lasts for {}, the experiment ends", one_line(options_.device),
                       down, to_text(kLinkLimit)));
      protocol::send(
          *stream_,
          {{"type", "link"}, {"run", run_}, {"since", time.count}, {"lasted", nullptr}, {"why", one_line(down)}});
    } else if (had_link_ && time - *down_since_ >= kLinkLimit) {
      throw RunError(fmt::format("its port {} has had no link for {}: {}, and start all hosts again",
                                 one_line(options_.device), to_text(kLinkLimit), down));
    }
  }

  /// Reports the end of the current outage, if there is one. Call when the link is up again or the run is over.
  void end_outage(Nanos time) {
    if (!down_since_) return;
    const Nanos since = *down_since_;
    down_since_.reset();
    warn(fmt::format("port {} had no link for {:.2f} s", one_line(options_.device), (time - since).seconds()));
    protocol::send(
        *stream_,
        {{"type", "link"}, {"run", run_}, {"since", since.count}, {"lasted", (time - since).count}, {"why", ""}});
  }

  /// Returns where the peer of a lost connection is, and a cure: " on host 1 (10.0.0.2:62400); ...".
  [[nodiscard]] std::string whereabouts(const ConnectionLost& lost) const {
    const auto found =
        std::ranges::find_if(setup_.jobs, [&](const protocol::JobSetup& job) { return job.spec.number == lost.job; });
    if (found == setup_.jobs.end()) return "";
    const std::uint32_t peer = found->hosts.at(lost.peer);
    const std::string down = datapath_->why_link_is_down();
    std::string cure = "read the output of that host";
    if (!down.empty())
      cure = fmt::format("the port has no link here: {}", down);
    else if (const std::string silent = lost.unreachable ? datapath_->why_silent(found->addresses.at(lost.peer)) : "";
             !silent.empty())
      cure = silent;
    else if (lost.unreachable)
      cure = fmt::format("the link is up here: check the port of host {} and the network between the hosts", peer);
    return fmt::format(" on host {} ({}); {}, and start all hosts again", peer, to_text(found->addresses.at(lost.peer)),
                       cure);
  }

  /// Returns the losses since the port was opened.
  [[nodiscard]] HostLosses losses() const {
    const DatapathLosses counted = datapath_->losses();
    HostLosses losses;
    losses.missed_packets = counted.missed;
    losses.port_errors = counted.errors;
    losses.handover_full_packets = counted.handover_full;
    losses.rejected_packets = counted.rejected;
    losses.unsent_packets = counted.unsent;
    return losses;
  }

  void on_message(const Json& message) {
    const auto type = message.at("type").get<std::string>();
    if (type == "alive") return;
    if (type == "ping") {
      protocol::send(*stream_, {{"type", "pong"}, {"id", message.at("id")}, {"time", now().count}});
    } else if (type == "end") {
      throw Ended{message.at("failed").get<bool>(), protocol::words_from(message, "message")};
    } else if (type == "start") {
      if (std::exchange(started_, true)) throw InputError("a second start");
      if (setup_.series) record(protocol::series_order_from(message.at("series")));
      for (const Rank& own : here_)
        own.driver->start(Nanos(whole_value(message.at("at").at(own.job), "at", -kMaxTime.count, kMaxTime.count)));
    } else if (type == "plan") {
      on_plan(message);
    } else if (type == "collect") {
      for (const Rank& own : here_) {
        Json result = protocol::to_json(own.driver->result());
        result["type"] = "result";
        result["run"] = run_;
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
        own.driver->set_plan(protocol::plan_from(message.at("plan")), time, lead_of(setup_.jobs[own.job]));
    }
  }

  /// Returns the job's time to its first send if the coordinator has sent it. Empty for jobs without programs, for
  /// which the driver computes the time.
  static std::optional<Nanos> lead_of(const protocol::JobSetup& job) {
    return job.programmed ? std::optional(job.lead) : std::nullopt;
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
                 {"connections", own.driver->sends() ? own.driver->connections() : 0},
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
    const bool known = datapath_->resolve(static_cast<std::uint16_t>(own.shard), address);
    if (const std::string down = datapath_->why_link_is_down(); !down.empty())
      return fmt::format("no connection to host {} ({}): its port {} has no link: {}", job.hosts[*peer],
                         to_text(address), one_line(options_.device), down);
    if (const std::string silent = datapath_->why_silent(address); !silent.empty())
      return fmt::format("no connection to host {} ({}): {}", job.hosts[*peer], to_text(address), silent);
    const std::string cure = place_.gateway == Address{}
                                 ? "check that both ports are on the same network, and that their --ip are in it"
                                 : "check that both ports are on the same network, or that the gateway works";
    return fmt::format("no connection to host {} ({}): {}; {}", job.hosts[*peer], to_text(address),
                       known ? "its address is known, but it does not answer"
                             : "no host answers for its address (ARP or neighbour discovery)",
                       cure);
  }

  const HostOptions& options_;
  /// Keys for the packets of all connections; empty if packets are not protected.
  const std::vector<std::shared_ptr<const PacketKey>> keys_;
  HostPlace place_;
  std::unique_ptr<MessageStream> stream_;
  std::uint32_t number_ = 0;
  std::uint32_t ranks_ = 0;
  Nanos heard_;  ///< time of the coordinator's latest message
  std::unique_ptr<HostDatapath> datapath_;
  std::vector<std::unique_ptr<Drain>> drains_;
  protocol::RunSetup setup_;  ///< must outlive the ranks
  std::vector<Rank> here_;
  /// Programs of ranks for the next run, by job and rank.
  std::map<std::pair<std::uint32_t, std::uint32_t>, workload::RankProgram> programs_;
  std::uint64_t programs_run_ = 0;
  std::uint64_t run_ = 0;
  SeriesRecorder recorder_{{}};  ///< recorder of this run's series, if any
  live::PortView ended_;         ///< packets of finished runs
  const Nanos begun_ = wall_now();
  bool stop_ = false;
  bool started_ = false;
  bool had_link_ = false;            ///< whether the port has ever had a link
  std::optional<Nanos> down_since_;  ///< start of the current outage in this run; empty if the link is up
};

}  // namespace

void run_host(const HostOptions& options) {
  HostProcess process(options);
  const Ended ended = process.run();
  if (ended.failed) throw RunError(fmt::format("the experiment has failed: {}", ended.message));
}

}  // namespace mltcp::experiment
