// The coordinator of an experiment across hosts (see hosts.h).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/backends/live_run.h"
#include "mltcp/lab/experiment/backends/packet_run.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/hosts/clock_offset.h"
#include "mltcp/lab/experiment/hosts/host_layout.h"
#include "mltcp/lab/experiment/hosts/hosts.h"
#include "mltcp/lab/experiment/hosts/internal/hosts_protocol.h"
#include "mltcp/lab/experiment/hosts/internal/program_message.h"
#include "mltcp/lab/experiment/hosts/pending_streams.h"
#include "mltcp/lab/experiment/series/series_join.h"
#include "mltcp/lab/experiment/series/series_recorder.h"
#include "mltcp/lab/workload/phase_program.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using protocol::Json;

constexpr Nanos slice = 20_ms;
constexpr Nanos kAnswerLimit = 20_s;  // time limit for the answer of an idle host
constexpr Nanos kMaxConnectLimit = 15_s;
constexpr Nanos kLead = 200_ms;  // time from sending the start message to the start of the jobs
constexpr int kPings = 16;
constexpr Nanos kViewEvery = 500_ms;
// If a host is silent for this long, the run fails. Hosts report progress several times a second. The limit is below
// the 30 s after which connections to a silent host end.
constexpr Nanos kHostSilenceLimit = 20_s;
// Minimum patience of a run. Longer than the 30 s after which a silent connection ends and its host reports the cause.
constexpr Nanos kMinPatience = 40_s;
// Maximum time to handle messages of one host, so that a host that sends without pause does not block the others.
constexpr Nanos kLongestTurn = 20_ms;
constexpr std::uint32_t kMinMtu = 68;  // RFC 791 section 3.2
constexpr std::uint32_t kMaxMtu = 65535;
// Maximum number of outages to record in a run, in case links go down and up all the time.
constexpr std::size_t kMaxOutages = 1000;

/// The latest reports of a host about one of its ranks.
struct RankState {
  std::uint32_t host = 0;
  Bytes bytes_per_iteration = 0;  ///< bytes that the rank must send
  std::uint64_t recorded = 0;
  Bytes sent = 0;
  Nanos last;
  PlanState plan = PlanState::none;
  std::uint64_t plan_serial = 0;
  bool connected = false;
  bool done = false;
  std::size_t connections = 0;  ///< number of connections on which the rank sends
  std::string unreached;        ///< reason why the rank is not connected; empty if unknown
  std::optional<RankResult> result;
  // The next three fields are for progress displays.
  Bytes sent_before = 0;
  Nanos seen_before;
  double bits_per_second = 0;
};

struct Host {
  std::unique_ptr<MessageStream> stream;
  std::uint32_t number = 0;
  std::string name;  ///< such as "host 1 (10.0.0.2, af_packet:eth0)"
  std::string device;
  Address address;
  std::uint32_t mtu = 0;
  bool ready = false;
  bool stopped = false;
  Nanos heard;
  std::uint64_t pong = 0;
  Nanos pong_time;
  ClockMap clock;
  Stalls stalls;
  HostLosses losses;
  // The next four fields are for the series of this run.
  std::optional<RunSeries> series;
  std::size_t series_connections = 0;  ///< number of connections when recording was requested
  std::size_t series_connection = 0;   ///< index of the connection to which the next piece belongs
  std::size_t series_row = 0;          ///< first row in the next piece
};

std::string ip_text(const Address& address) {
  std::string text = to_text(address);
  text.erase(text.rfind(':'));
  return text.starts_with('[') ? text.substr(1, text.size() - 2) : text;
}

class HostsDatapath final : public Coordinator {
 public:
  HostsDatapath(const Experiment& experiment, const CoordinatorOptions& options)
      : experiment_(experiment),
        options_(options),
        layout_(host_layout(experiment)),
        listener_(parse_stream_address(options.address), kCoordinatorRole, options.key),
        pending_(listener_, "host", options.tell) {}
  ~HostsDatapath() override {
    if (!ended_) end(true, "the coordinator ended");
  }
  HostsDatapath(const HostsDatapath&) = delete;
  HostsDatapath& operator=(const HostsDatapath&) = delete;

  [[nodiscard]] std::string address() const override { return to_text(listener_.address()); }
  [[nodiscard]] const DatapathKind& kind() const override { return datapath_kind("hosts"); }
  [[nodiscard]] bool real_payload() const override { return true; }
  [[nodiscard]] std::string description() const override { return plural(layout_.hosts.size(), "host"); }

  void join() override {
    const Nanos give_up = wall_now() + options_.join_limit;
    for (;;) {
      const auto ready = std::ranges::count_if(hosts_, [](const auto& host) { return host.second->ready; });
      if (static_cast<std::size_t>(ready) == layout_.hosts.size()) break;
      if (wall_now() >= give_up) throw RunError(missing());
      pump(slice);
    }
    check_mtus();
  }

  void finish() override { end(false, "done"); }
  void fail(const std::string& why) override { end(true, why); }

  std::unique_ptr<LiveRun> prepare(const Experiment& experiment, const RunPlan& plan) override {
    return std::make_unique<HostsRun>(*this, experiment, plan);
  }

 private:
  class RemoteJob final : public RunningJob {
   public:
    RemoteJob(HostsDatapath& all, std::uint32_t index) : all_(all), index_(index) {}
    PlanState set_plan(const PhasePlan& plan) override {
      all_.send_plan(index_, &plan);
      return PlanState::active;
    }
    void clear_plan() override { all_.send_plan(index_, nullptr); }
    [[nodiscard]] PlanState plan_state() const override {
      const RankState& rank = all_.jobs_[index_].ranks.front();
      return rank.plan_serial == all_.jobs_[index_].plan_serial ? rank.plan : PlanState::active;
    }
    [[nodiscard]] bool done() const override { return all_.done(all_.jobs_[index_]); }
    [[nodiscard]] std::size_t recorded() const override { return all_.recorded_of(all_.jobs_[index_]); }
    [[nodiscard]] JobResult result() const override {
      all_.collect();
      return all_.merged(index_);
    }

   private:
    HostsDatapath& all_;
    std::uint32_t index_;
  };

  struct RunJob {
    JobSpec spec;
    std::vector<RankState> ranks;
    std::uint64_t plan_serial = 0;
  };

  class HostsRun final : public LiveRun {
   public:
    HostsRun(HostsDatapath& all, const Experiment& experiment, const RunPlan& plan)
        : all_(all), experiment_(experiment), plan_(plan) {
      all_.set_up(experiment, plan);
      for (std::uint32_t i = 0; i < plan.jobs.size(); ++i) {
        jobs_.push_back(std::make_unique<RemoteJob>(all, i));
        pointers_.push_back(jobs_.back().get());
      }
    }
    [[nodiscard]] std::span<RunningJob* const> jobs() const override { return pointers_; }
    ~HostsRun() override { all_.jobs_.clear(); }
    HostsRun(const HostsRun&) = delete;
    HostsRun& operator=(const HostsRun&) = delete;
    void connect() override { all_.connect(); }
    void record(SeriesRecorder& recorder, Nanos /*epoch*/) override { all_.record(recorder); }
    Nanos choose_epoch() override { return all_.epoch_ = wall_now() + kLead; }
    void start(Nanos /*epoch*/) override { all_.start(); }
    bool run(Nanos until) override { return all_.watch(plan_, until); }
    std::vector<JobNetwork::LinkView> finish(Run& run) override {
      all_.finish(plan_, run);
      return {};
    }
    [[nodiscard]] Nanos now() const override { return wall_now(); }
    [[nodiscard]] Nanos patience() const override {
      std::vector<JobSpec> specs;
      for (const RunJob& job : all_.jobs_) specs.push_back(job.spec);
      return std::max(patience_with(experiment_, specs), kMinPatience);
    }
    /// Returns a fixed interval, because each change of a plan requires results from the hosts over the network.
    [[nodiscard]] Nanos slice(Nanos /*wanted*/) const override { return kSlice; }

   private:
    HostsDatapath& all_;
    const Experiment& experiment_;
    const RunPlan& plan_;
    std::vector<std::unique_ptr<RemoteJob>> jobs_;
    std::vector<RunningJob*> pointers_;
  };

  // ---- Joining ----

  /// Accepts at most one host per call, so that the messages of joined hosts are handled in between.
  void greet() {
    auto first = pending_.next();
    if (!first) return;
    try {
      welcome(std::move(first->stream), protocol::message_from(first->message));
    } catch (const StreamError& error) {
      pending_.tell(fmt::format("a peer that is not a host {}", error.what()));
    } catch (const InputError& error) {
      pending_.tell(
          fmt::format("a peer that is not a host sends a message that is not from mltcp gen: {}", error.what()));
    } catch (const Json::exception&) {
      pending_.tell("a peer that is not a host sends a message that is not from mltcp gen");
    }
  }

  void welcome(std::unique_ptr<MessageStream> stream, const Json& message) {
    const auto refuse = [&](const std::string& why) {
      pending_.tell(fmt::format("refused a host: {}", why));
      protocol::send(*stream, {{"type", "refused"}, {"message", why}});
    };
    if (message.at("type") != "join") throw StreamError("sends a message that is not from mltcp gen");
    if (const auto version = whole_field<std::uint64_t>(message, "version"); version != protocol::kVersion)
      return refuse(
          fmt::format("it uses version {} of the protocol, but the coordinator uses {}; install the same version of "
                      "mltcp on all hosts",
                      version, protocol::kVersion));
    auto host = std::make_unique<Host>();
    host->address = protocol::address_from(message.at("address").get<std::string>());
    const std::string device = protocol::words_from(message, "device");
    const std::string what = fmt::format("{}, {}", ip_text(host->address), device);
    const auto& all = layout_.hosts;
    if (message.contains("host")) {
      host->number = whole_field<std::uint32_t>(message, "host");
      if (!std::ranges::binary_search(all, host->number))
        return refuse(
            fmt::format("({}) has host number {}, but the experiment has hosts {}; give one of them with --host", what,
                        host->number, fmt::join(all, ", ")));
      if (hosts_.contains(host->number))
        return refuse(fmt::format("({}) and {} both have host number {}; give each its own number with --host", what,
                                  hosts_[host->number]->name, host->number));
    } else {
      const auto free = std::ranges::find_if(all, [&](std::uint32_t n) { return !hosts_.contains(n); });
      if (free == all.end())
        return refuse(fmt::format("({}) is not needed, because all {} of the experiment have joined; do not start it",
                                  what, plural(all.size(), "host")));
      host->number = *free;
    }
    for (const auto& [number, other] : hosts_)
      if (other->address.ip == host->address.ip)
        return refuse(
            fmt::format("({}) has the same address as {}; give each host its own with --ip", what, other->name));
    if (!hosts_.empty() && hosts_.begin()->second->address.is_v4() != host->address.is_v4())
      return refuse(
          fmt::format("({}) and {} have different versions of IP; give all hosts addresses of the same version", what,
                      hosts_.begin()->second->name));
    host->name = fmt::format("host {} ({})", host->number, what);
    host->device = device;
    host->stream = std::move(stream);
    host->heard = wall_now();
    protocol::send(*host->stream, {{"type", "welcome"},
                                   {"version", protocol::kVersion},
                                   {"host", host->number},
                                   {"ranks", layout_.ranks_of(host->number).size()}});
    hosts_.emplace(host->number, std::move(host));
  }

  [[nodiscard]] std::string missing() const {
    std::vector<std::string> names;
    for (const std::uint32_t number : layout_.hosts) {
      const auto host = hosts_.find(number);
      if (host == hosts_.end())
        names.push_back(describe_host(experiment_, layout_, number));
      else if (!host->second->ready)
        names.push_back(host->second->name + ", whose port is not open yet");
    }
    return fmt::format(
        "{} of {} did not join within {}: {}; run mltcp gen --join {} --port DEVICE --ip IP/PREFIX on each, and check "
        "that it reaches this address",
        names.size(), plural(layout_.hosts.size(), "host"), to_text(options_.join_limit), fmt::join(names, ", "),
        address());
  }

  void check_mtus() const {
    const Host& first = *hosts_.begin()->second;
    for (const auto& [number, host] : hosts_)
      if (host->mtu != first.mtu)
        throw RunError(fmt::format("{} has MTU {}, but {} has MTU {}; give all hosts the same with --mtu", first.name,
                                   first.mtu, host->name, host->mtu));
  }

  // ---- Messages ----

  void tell(const std::string& line) const {
    if (options_.tell) options_.tell(line);
  }

  void warn(const std::string& line) const {
    if (options_.warn) options_.warn(line);
  }

  void send_all(const Json& message) {
    for (const auto& [number, host] : hosts_) send(*host, message);
  }
  static void send(Host& host, const Json& message) {
    try {
      protocol::send(*host.stream, message);
    } catch (const StreamError& error) {
      send_last_message(host);
      lost(host, error.what());
    }
  }
  /// Throws RunError with the text of the host's failure message, if there is one among the unread messages.
  static void send_last_message(const Host& host) {
    std::string words;
    try {
      std::optional<Json> message;
      const Nanos give_up = wall_now() + kLongestTurn;
      do {
        message = protocol::receive(*host.stream);
      } while (message && message->at("type") != "failed" && wall_now() < give_up);
      if (message && message->at("type") == "failed") words = protocol::words_from(*message, "message");
    } catch (const std::exception&) {  // there is no failure message
    }
    if (!words.empty()) throw RunError(fmt::format("{}: {}", host.name, words));
  }
  [[noreturn]] static void lost(const Host& host, const std::string& what) {
    throw RunError(fmt::format(
        "{} {}; its process ended or cannot be reached: read its output, and start all hosts again", host.name, what));
  }

  [[noreturn]] static void malformed(const Host& host, const std::string& what) {
    throw RunError(fmt::format("{} sends a malformed message ({}); install the same version of mltcp on all hosts",
                               host.name, what));
  }

  /// Waits up to `limit` for messages, and handles those that have arrived.
  void pump(Nanos limit) {
    if (const std::string why = options_.interrupted ? options_.interrupted() : ""; !why.empty())
      throw RunError(why + "; the hosts end too");
    std::vector<int> files;
    pending_.add_files(files);
    for (const auto& [number, host] : hosts_) files.push_back(host->stream->file());
    wait_for(files, unread_ ? Nanos() : limit);
    unread_ = false;
    const Nanos now = wall_now();
    for (const auto& [number, host] : hosts_) {
      try {
        const Nanos give_up = wall_now() + kLongestTurn;
        while (const auto message = protocol::receive(*host->stream)) {
          host->heard = now;
          on_message(*host, *message);
          if (wall_now() < give_up) continue;
          unread_ = true;
          break;
        }
      } catch (const StreamError& error) {
        lost(*host, error.what());
      } catch (const Json::exception& error) {
        malformed(*host, problem_of(error));
      } catch (const InputError& error) {
        malformed(*host, error.what());
      }
    }
    // Refuses additional hosts after all hosts have joined.
    greet();
    if (now < next_alive_) return;
    next_alive_ = now + options_.alive_every;
    send_all({{"type", "alive"}});
  }

  void on_message(Host& host, const Json& message) {
    const auto type = message.at("type").get<std::string>();
    if (type == "failed") throw RunError(fmt::format("{}: {}", host.name, protocol::words_from(message, "message")));
    if (type == "ready") {
      if (host.ready) throw InputError("a second \"ready\"");
      host.mtu = whole_field<std::uint32_t>(message, "mtu", kMinMtu, kMaxMtu);
      host.ready = true;
      tell(fmt::format("{} has joined: {}; MTU {}", host.name, roles_of(experiment_, layout_, host.number), host.mtu));
    } else if (type == "pong") {
      host.pong = whole_field<std::uint64_t>(message, "id");
      host.pong_time = protocol::time_from(message, "time");
    } else if (type == "progress") {
      if (whole_field<std::uint64_t>(message, "run") == run_) on_progress(host, message);
    } else if (type == "result") {
      if (whole_field<std::uint64_t>(message, "run") != run_) return;
      RankState& rank = rank_of(host, message);
      rank.result = protocol::result_from(message, limits_of(host, job_of(message), rank));
    } else if (type == "link") {
      if (whole_field<std::uint64_t>(message, "run") == run_) on_link(host, message);
    } else if (type == "rows" || type == "series") {
      if (whole_field<std::uint64_t>(message, "run") != run_ || recorder_ == nullptr || !stopping_ || host.stopped)
        throw InputError("series that were not requested");
      on_series(host, message, type == "rows");
    } else if (type == "stopped") {
      if (!stopping_) throw InputError("\"stopped\" before \"stop\"");
      if (recorder_ != nullptr && (!host.series || host.series_connection < connections_to_come(host)))
        throw InputError("incomplete series");
      host.stopped = true;
      host.stalls = {duration_from(host, message, "longest_gap"), duration_from(host, message, "stalled")};
      host.losses = protocol::losses_from(message.at("losses"));
      host.losses.host = host.number;
    } else {
      throw InputError("type " + in_quotes(type));
    }
  }

  // ---- Series ----

  /// Returns the number of connections on which the host's ranks send.
  [[nodiscard]] std::size_t connections_of(const Host& host) const {
    std::size_t connections = 0;
    for (const RunJob& job : jobs_)
      for (const RankState& rank : job.ranks)
        if (rank.host == host.number) connections += rank.connections;
    return connections;
  }
  /// Returns the number of connections for which the host sends pieces of series; 0 if the series have no rows.
  static std::size_t connections_to_come(const Host& host) {
    return host.series->times.empty() ? 0 : host.series->connections.size();
  }

  /// Prepares the request to record series, which is sent with the start message. Call when all ranks are connected.
  void record(SeriesRecorder& recorder) {
    std::size_t connections = 0;
    for (const auto& [number, host] : hosts_) connections += host->series_connections = connections_of(*host);
    if (connections > SeriesRecorder::kMaxEntities)
      throw InputError(fmt::format(
          "series of {} connections: at most {} can be recorded; leave --series out, or give fewer ranks or flows",
          connections, SeriesRecorder::kMaxEntities));
    recorder_ = &recorder;
    const SeriesOptions& options = recorder.options();
    series_order_.interval = options.interval;
    // The number of rows is odd, as in SeriesRecorder, and equal on all hosts, so that all hosts record the same rows.
    series_order_.rows =
        std::max(SeriesRecorder::kFewestRows, options.max_rows / std::max<std::size_t>(1, connections)) | 1U;
  }

  void on_series(Host& host, const Json& message, bool is_first) {
    last_series_ = wall_now();
    if (is_first) {
      if (host.series) throw InputError("rows of series twice");
      const Nanos now = wall_now();
      protocol::rows_from(message, series_order_, {host.series_connections, now - epoch_ + host.clock.slack(now)},
                          host.series.emplace());
      host.series_connection = host.series_row = 0;
      return;
    }
    if (!host.series || host.series_connection >= connections_to_come(host))
      throw InputError("more series than announced");
    RunSeries& series = *host.series;
    const RunJob& job = job_of(message);
    host.series_row += protocol::piece_from(message, host.series_connection, host.series_row, series);
    SeriesConnection& connection = series.connections[host.series_connection];
    if (connection.worker >= job.ranks.size() || job.ranks[connection.worker].host != host.number ||
        connection.peer >= job.ranks.size() || connection.flow >= job.spec.job.flows)
      throw InputError("series of a connection of another host");
    connection.job = job.spec.job.name;
    if (host.series_row < series.times.size()) return;
    host.series_row = 0;
    ++host.series_connection;
  }

  /// Merges the series of all hosts into `recorder_`.
  void join_series() {
    if (recorder_ == nullptr) return;
    std::vector<RunSeries> parts;
    for (const auto& [number, host] : hosts_) parts.push_back(std::move(*host->series));
    recorder_->adopt(joined(parts));
    recorder_ = nullptr;
  }

  void on_link(const Host& host, const Json& message) {
    const Nanos since = host.clock.to_ours(protocol::time_from(message, "since"));
    const Nanos now = wall_now();
    if (const Nanos slack = host.clock.slack(now); since < set_up_at_ - slack || since > now + slack)
      throw InputError("an outage of its link at a time outside this run");
    if (++link_messages_ > 2 * kMaxOutages) return;  // hosts send two messages per outage
    if (message.at("lasted").is_null()) {
      warn(fmt::format("{}: its port has no link: {}", host.name, protocol::words_from(message, "why")));
      return;
    }
    const Nanos lasted = duration_from(host, message, "lasted");
    warn(fmt::format("{}: its port had no link for {:.2f} s; measurements during that time are unreliable", host.name,
                     lasted.seconds()));
    if (outages_.size() < kMaxOutages)
      outages_.push_back({host.number, host.device, std::max(since - epoch_, Nanos()), lasted});
  }

  /// Returns the field `key`: a duration within this run, on the host's clock. Throws InputError if the duration is
  /// impossible.
  [[nodiscard]] Nanos duration_from(const Host& host, const Json& message, const char* key) const {
    const Nanos time = protocol::time_from(message, key);
    const Nanos now = wall_now();
    if (time.count < 0 || time > now - set_up_at_ + host.clock.slack(now))
      throw InputError(
          fmt::format("\"{}\" is {} ns, but the run has lasted {}", key, time.count, to_text(now - set_up_at_)));
    return time;
  }

  /// Returns limits for the result that the host may report for its rank.
  [[nodiscard]] protocol::RankLimits limits_of(const Host& host, const RunJob& job, const RankState& rank) const {
    const Nanos now = wall_now();
    return {job.spec.iterations, rank.bytes_per_iteration, host.clock.to_other(start_of(job)),
            host.clock.to_other(now) + host.clock.slack(now)};
  }

  RunJob& job_of(const Json& message) {
    const auto job = whole_field<std::size_t>(message, "job");
    if (job >= jobs_.size()) throw InputError("an unknown job");
    return jobs_[job];
  }
  RankState& rank_of(const Host& host, const Json& message) {
    RunJob& job = job_of(message);
    const auto rank = whole_field<std::size_t>(message, "rank");
    if (rank >= job.ranks.size() || job.ranks[rank].host != host.number) throw InputError("a rank of another host");
    return job.ranks[rank];
  }

  /// Returns the maximum number of connections from one rank to all other ranks.
  static std::size_t max_connections_of(const RunJob& job) { return job.ranks.size() * job.spec.job.flows; }

  void on_progress(const Host& host, const Json& message) {
    for (const Json& entry : message.at("ranks")) {
      RankState& rank = rank_of(host, entry);
      const std::uint64_t max = job_of(entry).spec.iterations;
      rank.recorded = std::max(rank.recorded, whole_field<std::uint64_t>(entry, "recorded", 0, max));
      rank.sent = std::max(rank.sent, whole_field<std::uint64_t>(entry, "sent"));
      rank.last = duration_from(host, entry, "last");
      rank.plan = protocol::plan_state_from(entry, "plan");
      rank.plan_serial = whole_field<std::uint64_t>(entry, "plan_serial");
      rank.connected = entry.at("connected").get<bool>();
      const std::size_t connections = rank.connections;
      rank.connections = whole_field<std::size_t>(entry, "connections", 0, max_connections_of(job_of(entry)));
      // The memory for series and the sampling interval depend on the number of connections.
      if (recorder_ != nullptr && rank.connections != connections)
        throw InputError(fmt::format("{} of a rank that had {} when its series began",
                                     plural(rank.connections, "connection"), connections));
      rank.done = entry.at("done").get<bool>();
      rank.unreached = entry.contains("unreached") ? protocol::words_from(entry, "unreached") : "";
    }
  }

  /// Handles messages until `done` returns true, or until `limit` has passed. Returns whether `done` returned true.
  template <typename Predicate>
  bool wait_until(Nanos limit, Predicate&& done) {
    for (const Nanos give_up = wall_now() + limit; !done();) {
      if (wall_now() >= give_up) return false;
      pump(slice);
    }
    return true;
  }
  template <typename Predicate>
  [[nodiscard]] bool all_hosts(Predicate&& predicate) const {
    return std::ranges::all_of(hosts_, [&](const auto& host) { return predicate(*host.second); });
  }
  template <typename Predicate>
  [[nodiscard]] bool all_ranks(Predicate&& predicate) const {
    return std::ranges::all_of(jobs_, [&](const RunJob& job) { return std::ranges::all_of(job.ranks, predicate); });
  }

  // ---- Clocks ----

  ClockOffset clock_of(Host& host) {
    ClockOffset offset;
    for (int i = 0; i < kPings; ++i) {
      const std::uint64_t id = ++last_ping_;
      const Nanos sent = wall_now();
      send(host, {{"type", "ping"}, {"id", id}});
      if (!wait_until(kAnswerLimit, [&] { return host.pong == id; })) lost(host, "does not answer");
      offset.add(sent, host.pong_time, wall_now());
    }
    return offset;
  }

  // ---- A run ----

  void set_up(const Experiment& experiment, const RunPlan& plan) {
    for (const auto& [number, host] : hosts_) host->clock = ClockMap(clock_of(*host));
    protocol::RunSetup setup;
    setup.policy = plan.policy;
    setup.mltcp = experiment.mltcp;
    jobs_.clear();
    outages_.clear();
    link_messages_ = 0;
    stopping_ = false;
    recorder_ = nullptr;
    setup.series = plan.series != nullptr;
    epoch_ = set_up_at_ = wall_now();  // epoch_ is provisional until the start of the run
    ++run_;
    for (JobSpec& spec : job_specs(experiment, plan, true, true)) {
      RunJob& job = jobs_.emplace_back();
      protocol::JobSetup& own = setup.jobs.emplace_back();
      own.hosts = layout_.jobs[spec.number];
      for (std::uint32_t rank = 0; rank < workload::ranks_of(spec.job); ++rank) {
        const Host& host = *hosts_.at(own.hosts[rank]);
        const auto ranks = layout_.ranks_of(host.number);
        const auto slot =
            static_cast<std::uint32_t>(std::ranges::find(ranks, HostLayout::Rank{spec.number, rank}) - ranks.begin());
        Address address = host.address;
        address.port = static_cast<std::uint16_t>(address.port + slot);
        own.addresses.push_back(address);
        own.ports.push_back(slot);
        RankState& state = job.ranks.emplace_back();
        state.host = host.number;
        state.bytes_per_iteration = workload::rank_program(spec.job, rank).load().sent;
      }
      if (spec.job.programs) {
        own.programmed = true;
        own.lead = time_to_first_send(spec.job);
      }
      own.spec = spec;
      job.spec = std::move(spec);
    }
    Json message = protocol::to_json(setup);
    message["run"] = run_;
    std::size_t iterations = 0;
    for (const RunJob& job : jobs_) iterations = std::max<std::size_t>(iterations, job.spec.iterations);
    for (const auto& [number, host] : hosts_) {
      host->stopped = false;
      host->series.reset();
      host->stream->set_longest(protocol::longest_of_host(iterations, layout_.ranks_of(number).size(), setup.series));
      send_programs(*host);
      send(*host, message);
    }
  }

  /// Sends the programs of the ranks on this host.
  void send_programs(Host& host) {
    for (std::size_t number = 0; number < jobs_.size(); ++number) {
      const RunJob& job = jobs_[number];
      if (!job.spec.job.programs) continue;
      for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
        if (job.ranks[rank].host != host.number) continue;
        Json program = protocol::to_json(job.spec.job.programs->ranks[rank]);
        program["type"] = "program";
        program["run"] = run_;
        program["job"] = number;
        send(host, program);
      }
    }
  }

  void connect() {
    if (!wait_until(connect_limit(), [&] { return all_ranks([](const RankState& rank) { return rank.connected; }); }))
      throw RunError(unreached());
  }

  [[nodiscard]] Nanos connect_limit() const { return std::min(kMaxConnectLimit, options_.join_limit); }

  [[nodiscard]] std::string unreached() const {
    for (const RunJob& job : jobs_)
      for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
        if (!job.ranks[rank].connected && !job.ranks[rank].unreached.empty())
          return fmt::format("job {}: {}: {}", in_quotes(job.spec.job.name), hosts_.at(job.ranks[rank].host)->name,
                             job.ranks[rank].unreached);
    for (const RunJob& job : jobs_)
      for (std::size_t rank = 0; rank < job.ranks.size(); ++rank)
        if (!job.ranks[rank].connected)
          return fmt::format("{} did not set job {} up within {}; read its output",
                             hosts_.at(job.ranks[rank].host)->name, in_quotes(job.spec.job.name),
                             to_text(connect_limit()));
    return "";
  }

  void start() {
    for (const auto& [number, host] : hosts_) {
      Json at = Json::array();
      for (const RunJob& job : jobs_) at.push_back(host->clock.to_other(start_of(job)).count);
      Json message{{"type", "start"}, {"at", at}};
      if (recorder_ != nullptr) {
        protocol::SeriesOrder order = series_order_;
        order.epoch = host->clock.to_other(epoch_);
        message["series"] = protocol::to_json(order);
      }
      send(*host, message);
      host->heard = wall_now();
    }
  }

  [[nodiscard]] Nanos start_of(const RunJob& job) const { return epoch_ + job.spec.job.start; }

  /// Handles messages until `until`, or until all jobs are done. Returns whether all jobs are done.
  bool watch(const RunPlan& plan, Nanos until) {
    for (;;) {
      if (std::ranges::all_of(jobs_, [](const RunJob& job) { return done(job); })) return true;
      const Nanos now = wall_now();
      if (now >= until) return false;
      pump(std::min(slice, until - now));
      for (const auto& [number, host] : hosts_)
        if (now - host->heard > kHostSilenceLimit)
          lost(*host, fmt::format("sent nothing for {}", to_text(kHostSilenceLimit)));
      if (options_.view && now >= next_view_) {
        show(plan, now);
        next_view_ = now + kViewEvery;
      }
    }
  }

  void finish(const RunPlan& plan, Run& run) {
    run.links_unknown = true;
    collect();
    for (const RunJob& job : jobs_)
      for (const RankState& rank : job.ranks)
        if (rank.result->times.size() != job.spec.iterations)
          throw RunError(
              fmt::format("{} has recorded only {} of {} iterations of job {}, but reports that it is done; install "
                          "the same version of mltcp on all hosts",
                          hosts_.at(rank.host)->name, rank.result->times.size(), job.spec.iterations,
                          in_quotes(job.spec.job.name)));
    stopping_ = true;
    send_all({{"type", "stop"}});
    wait_for_stop();
    join_series();
    run.clock = TimeSpan{epoch_, wall_now()};
    Stalls stalls;
    Nanos uncertainty;
    for (const auto& [number, host] : hosts_) {
      const ClockOffset after = clock_of(*host);
      if (!host->clock.believes(after))
        throw RunError(
            fmt::format("{}: its clock gained {:.3f} ms on the coordinator's clock in a run of {:.3f} s; find what "
                        "sets that clock or suspends that machine, and start all hosts again",
                        host->name, host->clock.gained(after).millis(), (wall_now() - set_up_at_).seconds()));
      host->clock.add(after);
      uncertainty = std::max(uncertainty, host->clock.uncertainty());
      stalls = {std::max(stalls.longest, host->stalls.longest), std::max(stalls.total, host->stalls.total)};
    }
    for (const auto& [number, host] : hosts_) run.hosts.push_back(host->losses);
    run.link_outages = std::exchange(outages_, {});
    run.stalls = stalls;
    run.clock_uncertainty = uncertainty;
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) record_job(merged(i), plan.jobs[i], run);
    if (options_.view) show(plan, wall_now());
  }

  /// Waits until all hosts have stopped. The time limit restarts with each piece of series, because series can have
  /// hundreds of megabytes.
  void wait_for_stop() {
    last_series_ = wall_now();
    while (!all_hosts([](const Host& host) { return host.stopped; })) {
      if (wall_now() - last_series_ >= options_.stop_limit) break;
      pump(slice);
    }
    for (const auto& [number, host] : hosts_)
      if (!host->stopped) lost(*host, fmt::format("did not stop within {}", to_text(options_.stop_limit)));
  }

  static bool done(const RunJob& job) {
    return std::ranges::all_of(
        job.ranks, [&](const RankState& rank) { return rank.done && rank.recorded >= job.spec.iterations; });
  }
  static std::uint64_t recorded_of(const RunJob& job) {
    std::uint64_t min = job.ranks.front().recorded;
    for (const RankState& rank : job.ranks) min = std::min(min, rank.recorded);
    return min;
  }

  void collect() {
    for (RunJob& job : jobs_)
      for (RankState& rank : job.ranks) rank.result.reset();
    send_all({{"type", "collect"}});
    wait_until(kAnswerLimit, [&] { return all_ranks([](const RankState& rank) { return rank.result.has_value(); }); });
    for (const RunJob& job : jobs_)
      for (const RankState& rank : job.ranks)
        if (!rank.result)
          lost(*hosts_.at(rank.host), fmt::format("did not report within {} what its ranks recorded of job {}",
                                                  to_text(kAnswerLimit), in_quotes(job.spec.job.name)));
  }

  [[nodiscard]] JobResult merged(std::uint32_t index) const {
    const RunJob& job = jobs_[index];
    std::vector<RankResult> ranks;
    for (const RankState& rank : job.ranks) {
      const ClockMap& clock = hosts_.at(rank.host)->clock;
      ranks.push_back(*rank.result);
      for (Nanos& start : ranks.back().starts) start = clock.to_ours(start);
    }
    // If a job has only a sender and a receiver, the sender defines the iterations, as on other datapaths.
    if (job.spec.job.hosts.empty() && ranks[1].times.size() >= ranks[0].times.size()) {
      ranks[1].starts = ranks[0].starts;
      ranks[1].times = ranks[0].times;
      ranks[1].computes = ranks[0].computes;
    }
    // Because clock offsets have errors, the loop below prevents start times before time 0.
    JobResult result = merge_ranks(job.spec.job, ranks, epoch_);
    if (job.spec.job.hosts.empty() && !result.ranks.empty()) result.ranks.resize(1);
    for (RankTimes& rank : result.ranks) rank.host = job.ranks[rank.rank].host;
    for (Nanos& start : result.starts) start = std::max(start, Nanos());
    return result;
  }

  void send_plan(std::uint32_t index, const PhasePlan* plan) {
    RunJob& job = jobs_[index];
    ++job.plan_serial;
    std::set<std::uint32_t> notified;
    Nanos bound;
    for (const RankState& rank : job.ranks) bound = std::max(bound, hosts_.at(rank.host)->clock.uncertainty());
    for (const RankState& rank : job.ranks) {
      if (!notified.insert(rank.host).second) continue;
      Host& host = *hosts_.at(rank.host);
      Json message{{"type", "plan"}, {"job", index}, {"serial", job.plan_serial}, {"plan", nullptr}};
      if (plan != nullptr) {
        PhasePlan own = *plan;
        own.slot = host.clock.to_other(own.slot);
        // The difference between the clocks of two hosts includes the errors of two estimates.
        own.clock_bound =
            std::min(std::max(own.clock_bound, bound * 2),
                     Nanos(static_cast<std::int64_t>(own.tolerance * static_cast<double>(own.period.count))));
        if (!own.valid_until.is_never()) own.valid_until = host.clock.to_other(own.valid_until);
        message["plan"] = protocol::to_json(own);
      }
      send(host, message);
    }
  }

  void show(const RunPlan& plan, Nanos now) {
    HostsView view;
    view.policy = plan.policy;
    for (RunJob& job : jobs_) {
      HostsView::JobProgress& shown = view.jobs.emplace_back();
      shown.name = job.spec.job.name;
      shown.iterations = job.spec.iterations;
      for (RankState& rank : job.ranks) {
        if (rank.seen_before.count > 0 && now > rank.seen_before)
          rank.bits_per_second =
              static_cast<double>(rank.sent - rank.sent_before) * 8 / (now - rank.seen_before).seconds();
        rank.sent_before = rank.sent;
        rank.seen_before = now;
        shown.ranks.push_back({rank.host, rank.recorded, rank.bits_per_second, rank.last});
      }
    }
    options_.view(view);
  }

  void end(bool failed, const std::string& why) {
    ended_ = true;
    for (const auto& [number, host] : hosts_) {
      try {
        protocol::send(*host->stream, {{"type", "end"}, {"failed", failed}, {"message", one_line(why)}});
      } catch (const std::exception&) {  // the host is unreachable
      }
    }
  }

  const Experiment& experiment_;
  const CoordinatorOptions options_;
  const HostLayout layout_;
  StreamListener listener_;
  PendingStreams pending_;
  std::map<std::uint32_t, std::unique_ptr<Host>> hosts_;
  std::vector<RunJob> jobs_;
  std::vector<LinkOutage> outages_;     ///< outages of links in this run
  std::size_t link_messages_ = 0;       ///< number of messages about links in this run
  bool stopping_ = false;               ///< whether the stop message has been sent
  SeriesRecorder* recorder_ = nullptr;  ///< null if hosts record no series
  protocol::SeriesOrder series_order_;  ///< settings without the epoch, which depends on each host's clock
  Nanos last_series_;                   ///< time of the latest piece of series, or of the stop message
  Nanos set_up_at_;
  bool unread_ = false;  ///< whether unread messages of a host may be left
  std::uint64_t run_ = 0;
  Nanos next_view_;
  Nanos next_alive_;
  std::uint64_t last_ping_ = 0;
  Nanos epoch_;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<Coordinator> make_coordinator(const Experiment& experiment, const CoordinatorOptions& options) {
  return std::make_unique<HostsDatapath>(experiment, options);
}

}  // namespace mltcp::experiment
