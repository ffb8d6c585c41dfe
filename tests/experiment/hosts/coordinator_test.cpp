// Tests a coordinator whose hosts send impossible values. The error for each value names the host, and no impossible
// value becomes a result.

#include <chrono>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../../message_of.h"
#include "../../own_loopback.h"
#include "../../temporary_folder.h"
#include "mltcp/base/error.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/hosts/hosts.h"
#include "mltcp/lab/experiment/hosts/internal/hosts_protocol.h"
#include "mltcp/transport/security/job_key.h"

namespace mltcp::experiment {
namespace {

using namespace literals;
using protocol::Json;

constexpr Nanos kIteration = 4_ms;

class FakeHost;
/// A function that changes a message before it is sent and returns true. It may instead send something else and return
/// false.
using Change = std::function<bool(FakeHost&, Json&)>;

/// A thread that sends the messages of a host. Each iteration of the host's ranks takes `kIteration`.
class FakeHost {
 public:
  FakeHost(std::string address, std::uint32_t number, Change change = {}, StreamKey key = {})
      : address_(std::move(address)),
        number_(number),
        change_(std::move(change)),
        key_(std::move(key)),
        thread_([this] { live(); }) {}
  ~FakeHost() { thread_.join(); }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  [[nodiscard]] MessageStream& stream() { return *stream_; }
  [[nodiscard]] std::uint64_t run() const { return run_; }

 private:
  void live() {
    try {
      stream_ = MessageStream::connect(
          parse_stream_address(address_), 10_s, [] { return ""; }, kCoordinatorRole, key_);
      stream_->set_longest(protocol::kLongest);
      say({{"type", "join"},
           {"version", protocol::kVersion},
           {"host", number_},
           {"address", protocol::to_hex(Address::v4(0x0A000001 + number_, 62400))},
           {"device", "fake"}});
      while (answer(next())) {
      }
    } catch (const std::exception&) {  // the coordinator has ended
    }
  }
  Json next() {
    for (;;) {
      if (auto message = protocol::receive(*stream_)) return *message;
      stream_->wait(1_s);
    }
  }
  void say(Json message) {
    if (!change_ || change_(*this, message)) protocol::send(*stream_, message);
  }
  bool answer(const Json& message) {
    const auto type = message.at("type").get<std::string>();
    if (type == "welcome") say({{"type", "ready"}, {"mtu", 1500}});
    if (type == "ping") say({{"type", "pong"}, {"id", message.at("id")}, {"time", wall_now().count}});
    if (type == "setup") {
      run_ = message.at("run").get<std::uint64_t>();
      setup_ = protocol::setup_from(message);
      send_progress(false);
    }
    if (type == "start") {
      at_ = message.at("at");
      if (message.contains("series")) order_ = protocol::series_order_from(message.at("series"));
      const Nanos end = Nanos(at_.at(0).get<std::int64_t>()) + kIteration * setup_.jobs[0].spec.iterations;
      std::this_thread::sleep_for(std::chrono::nanoseconds((end - wall_now()).count));
      send_progress(true);
    }
    if (type == "collect") each_rank([&](std::uint32_t job, std::uint32_t rank) { send_result(job, rank); });
    if (type == "stop" && setup_.series) send_series();
    if (type == "stop")
      say({{"type", "stopped"}, {"longest_gap", 0}, {"stalled", 0}, {"losses", protocol::to_json(HostLosses())}});
    return type != "end" && type != "refused";
  }
  void each_rank(const std::function<void(std::uint32_t job, std::uint32_t rank)>& call) const {
    for (std::uint32_t job = 0; job < setup_.jobs.size(); ++job)
      for (std::uint32_t rank = 0; rank < setup_.jobs[job].hosts.size(); ++rank)
        if (setup_.jobs[job].hosts[rank] == number_) call(job, rank);
  }
  void send_progress(bool done) {
    Json ranks = Json::array();
    each_rank([&](std::uint32_t job, std::uint32_t rank) {
      ranks.push_back({{"job", job},
                       {"rank", rank},
                       {"recorded", done ? setup_.jobs[job].spec.iterations : 0},
                       {"sent", 0},
                       {"last", 0},
                       {"plan", 0},
                       {"plan_serial", 0},
                       {"connected", true},
                       {"connections", rank == 0 ? 1 : 0},
                       {"done", done}});
    });
    say({{"type", "progress"}, {"run", run_}, {"ranks", ranks}});
  }
  void send_result(std::uint32_t job, std::uint32_t rank) {
    RankResult result;
    for (std::uint32_t i = 0; i < setup_.jobs[job].spec.iterations; ++i) {
      result.starts.push_back(Nanos(at_.at(job).get<std::int64_t>()) + kIteration * i);
      result.times.push_back(kIteration);
    }
    result.bytes_per_iteration = rank == 0 ? 20'000 : 0;
    Json message = protocol::to_json(result);
    message.update({{"type", "result"}, {"run", run_}, {"job", job}, {"rank", rank}});
    say(message);
  }

  /// Sends series with enough rows for two pieces. The number of sent bytes grows by 10 per row.
  void send_series() {
    RunSeries series;
    series.interval = series.sampled_every = order_.interval;
    each_rank([&](std::uint32_t /*job*/, std::uint32_t rank) {
      if (rank == 0) series.connections.push_back({"a", rank, 1, 0});
    });
    for (std::int64_t row = 0; row < 1500; ++row) {
      series.times.push_back(series.interval * row);
      for (std::size_t c = 0; c < series.connections.size(); ++c) {
        ConnectionState& state = series.connection_states.emplace_back();
        state.cwnd_bytes = 1.5;
        state.sent_bytes = static_cast<Bytes>(row) * 10;
      }
    }
    if (series.connections.empty()) series = {};  // a host without senders sends empty series
    const auto tell = [&](Json message) {
      message["run"] = run_;
      message["job"] = 0;
      say(std::move(message));
    };
    tell(protocol::rows_to_json(series));
    for (std::size_t c = 0; c < series.connections.size(); ++c)
      for (std::size_t row = 0; row < series.times.size(); row += protocol::kSeriesPiece)
        tell(protocol::piece_to_json(series, c, row));
  }

  const std::string address_;
  const std::uint32_t number_;
  const Change change_;
  const StreamKey key_;
  std::unique_ptr<MessageStream> stream_;
  std::uint64_t run_ = 0;
  protocol::RunSetup setup_;
  Json at_;
  protocol::SeriesOrder order_;
  std::thread thread_;
};

/// A coordinator with two hosts, the first of which may send false messages.
class Coordinated : public testing::Test {
 protected:
  experiment::Run run_with(const Change& change, Nanos join_limit = 10_s) {
    CoordinatorOptions options;
    options.address = "unix:" + (folder_ / "socket").string();
    options.join_limit = join_limit;
    if (alive_every_.count > 0) options.alive_every = alive_every_;
    if (stop_limit_.count > 0) options.stop_limit = stop_limit_;
    options.warn = [&](const std::string& line) { warnings_.push_back(line); };
    const FakeHost honest(options.address, 1);  // the hosts end after the coordinator
    const FakeHost host(options.address, 0, change);
    const auto coordinator = make_coordinator(experiment_, options);
    return run_of(*coordinator);
  }
  experiment::Run run_of(Coordinator& coordinator) {
    coordinator.join();
    RunPlan plan;
    plan.policy = "fair";
    plan.jobs = experiment_.jobs;
    plan.iterations = experiment_.iterations;
    plan.series = recorder_;
    experiment::Run run = coordinator.run(experiment_, plan, {});
    coordinator.finish();
    return run;
  }
  std::string refusal(const Change& change, Nanos join_limit = 10_s) {
    return message_of<RunError>([&] { return run_with(change, join_limit); });
  }
  /// Returns a change that applies `change` to each message of the type `type`.
  static Change in(const std::string& type, const std::function<void(FakeHost&, Json&)>& change) {
    return [=](FakeHost& host, Json& message) {
      if (message.at("type") == type) change(host, message);
      return true;
    };
  }
  static Change in_result(const std::string& key, const Json& value) {
    return in("result", [=](FakeHost& /*host*/, Json& message) { message[Json::json_pointer(key)] = value; });
  }

  TemporaryFolder folder_;
  SeriesRecorder* recorder_ = nullptr;
  Nanos alive_every_;  ///< 0 for the default; the same holds for `stop_limit_`
  Nanos stop_limit_;
  std::vector<std::string> warnings_;
  const Experiment experiment_ = parse_experiment(R"(
    iterations = 3
    policies = ["fair"]
    [bottleneck]
    rate = "1 Gbps"
    buffer = "75 kB"
    [[job]]
    name = "a"
    compute = "2 ms"
    communicate = "20 kB"
  )",
                                                  "x.toml");
};

TEST_F(Coordinated, hosts_with_correct_values__are_accepted) {
  const experiment::Run done = run_with({});
  ASSERT_EQ(done.jobs.size(), 1U);
  EXPECT_THAT(done.jobs[0].iterations, ElementsAre(kIteration, kIteration, kIteration));
  EXPECT_EQ(done.jobs[0].bytes, 60'000U);
}

TEST_F(Coordinated, hosts_without_its_key__are_told_and_the_others_go_on) {
  const auto new_key = [] { return std::make_shared<const security::JobKey>(security::JobKey::generate()); };
  for (const StreamKey& key : {StreamKey(new_key()), StreamKey()}) {
    CoordinatorOptions options;
    options.address = "unix:" + (folder_ / "socket").string();
    options.join_limit = 30_s;
    options.key = key;
    std::vector<std::string> lines;
    options.tell = [&](const std::string& line) { lines.push_back(line); };
    const auto coordinator = make_coordinator(experiment_, options);
    std::vector<std::string> refused;
    std::thread hosts([&] {
      for (const StreamKey& others : {StreamKey(new_key()), StreamKey()}) {
        if (key == nullptr && others == nullptr) continue;
        HostOptions host;
        host.coordinator = options.address;
        host.key = others;
        host.device = "udp:";
        host.ip = own_loopback() + "/8";
        host.idle = "sleep";
        refused.push_back(message_of<RunError>([&] { run_host(host); }));
      }
      const FakeHost first(options.address, 0, {}, key);
      const FakeHost second(options.address, 1, {}, key);
    });
    const experiment::Run done = run_of(*coordinator);
    hosts.join();
    EXPECT_EQ(done.jobs.at(0).iterations.size(), 3U);
    const std::string who = "the coordinator at " + options.address;
    if (key != nullptr) {
      ASSERT_EQ(refused.size(), 2U);
      EXPECT_THAT(refused[0], AllOf(StartsWith(who + " has another key, "), HasSubstr(": give both the same")));
      EXPECT_EQ(refused[1], who +
                                " has a key, but this end has none: start this end with --key FILE too, or start the "
                                "other end without a key");
      EXPECT_THAT(lines, testing::IsSupersetOf({StartsWith("refused a host: it has another key, "),
                                                StartsWith("refused a host: it uses no key: ")}));
    } else {
      ASSERT_EQ(refused.size(), 1U);
      EXPECT_EQ(refused[0], who + " uses no key: give it the key, too (--key FILE), or leave the key out here");
      EXPECT_THAT(lines, Contains(StartsWith("refused a host: it has a key, but this end has none: ")));
    }
  }
}

TEST_F(Coordinated, series_of_hosts__become_those_of_the_run) {
  SeriesRecorder recorder({5_us, 10'000});
  recorder_ = &recorder;
  run_with({});
  const RunSeries series = recorder.take();
  EXPECT_EQ(series.interval, 5_us);
  ASSERT_EQ(series.times.size(), 1500U);
  EXPECT_EQ(series.times[1200], 6_ms);
  ASSERT_EQ(series.connections.size(), 1U);
  EXPECT_EQ(series.connections[0], (SeriesConnection{"a", 0, 1, 0}));
  EXPECT_EQ(series.connection(1200, 0).sent_bytes, 12'000U);
  EXPECT_EQ(series.connection(1499, 0).cwnd_bytes, 1.5);
}

TEST_F(Coordinated, series_that_can_not_be__are_refused) {
  SeriesRecorder recorder({5_us, 10'000});
  recorder_ = &recorder;
  const auto set = [](const std::string& key, const Json& value) {
    return [=](FakeHost& /*host*/, Json& message) { message[Json::json_pointer(key)] = value; };
  };
  for (const auto& [type, key, value, why] :
       {std::tuple<std::string, std::string, Json, std::string>{"rows", "/rows", 20'000, "not a whole number"},
        {"rows", "/connections", 2, "not a whole number"},
        {"rows", "/interval", 15'000, "that was not requested"},
        {"rows", "/interval", 0, "that was not requested"},
        {"rows", "/interval", 80'000, "that was not requested"},
        {"rows", "/interval", std::int64_t{5'000} << 33U, "that was not requested"},
        {"rows", "/interval", 10'000, "too few rows of series for their interval"},
        {"rows", "/sampled_every", -5'000, "that was not requested"},
        {"rows", "/last", 7'490'000, "before the others"},
        {"rows", "/last", std::int64_t{1} << 59U, "but the run has lasted"},
        {"rows", "/rows", 1025, "without a value for each row"},
        {"rows", "/rows", 1024, "more series than announced"},
        {"rows", "/rows", 5000, "before the others"},
        {"rows", "/run", 7, "were not requested"},
        {"series", "/worker", 1, "of another host"},
        {"series", "/peer", 2, "of another host"},
        {"series", "/flow", 1, "of another host"},
        {"series", "/job", 1, "an unknown job"},
        {"series", "/columns/rtt_ns/5", -1, "not a whole number"},
        {"series", "/columns/gain/5", nullptr, "null"},
        {"series", "/columns/gain/5", -1e308, "not a number from 0 to 2^53"},
        {"series", "/columns/cwnd_bytes/5", 1e308, "not a number from 0 to 2^53"},
        {"series", "/columns/bytes_ratio/5", 1.5, "above 1"},
        {"series", "/columns/iteration/5", std::numeric_limits<std::int64_t>::max(), "not a whole number"},
        {"series", "/columns/pacing_bps/5", std::numeric_limits<std::uint64_t>::max(), "not a whole number"},
        {"series", "/columns/sent_bytes/5", std::numeric_limits<std::uint64_t>::max(), "not a whole number"},
        {"series", "/columns/sent_bytes/5", 39, "\"sent_bytes\" of series decreases"},
        // This number is less than the last number of the first piece.
        {"series", "/columns/sent_bytes/0", 0, "\"sent_bytes\" of series decreases"},
        {"series", "/columns/sent_bytes", Json::array(), "without a value for each row"}})
    EXPECT_THAT(refusal(in(type, set(key, value))),
                AllOf(StartsWith("host 0 (10.0.0.1, fake) sends a malformed message"), HasSubstr(why)))
        << key << " " << value;
  EXPECT_THAT(refusal([](FakeHost& /*host*/, Json& message) { return message.at("type") != "series"; }),
              HasSubstr("incomplete series"));
  EXPECT_THAT(refusal([](FakeHost& host, Json& message) {
                if (message.at("type") == "stopped") protocol::send(host.stream(), {{"type", "rows"}, {"run", 1}});
                return true;
              }),
              HasSubstr("rows of series twice"));
}

TEST_F(Coordinated, connections_that_come_and_go__are_refused_while_series_are_recorded) {
  // A host reports its last progress when the jobs are done.
  const auto later = [](FakeHost& /*host*/, Json& message) {
    if (message["ranks"][0]["done"] == true) message["ranks"][0]["connections"] = 2;
  };
  EXPECT_EQ(refusal(in("progress", later)), "no error") << "without series it is a number of no account";
  SeriesRecorder recorder({5_us, 10'000});
  recorder_ = &recorder;
  EXPECT_THAT(refusal(in("progress", later)),
              AllOf(StartsWith("host 0 (10.0.0.1, fake) sends a malformed message"),
                    HasSubstr("2 connections of a rank that had 1 when its series began")));
  EXPECT_THAT(refusal(in("progress",
                         [](FakeHost& /*host*/, Json& message) { message["ranks"][0]["connections"] = 1U << 24U; })),
              HasSubstr("not a whole number from 0 to 2"));
}

TEST_F(Coordinated, series_that_take_long__are_waited_for_while_they_come) {
  SeriesRecorder recorder({5_us, 10'000});
  recorder_ = &recorder;
  stop_limit_ = 2_s;
  const Nanos began = wall_now();
  // Three messages are delayed: the rows of the series and two pieces.
  run_with([](FakeHost& /*host*/, Json& message) {
    if (message["type"] == "rows" || message["type"] == "series")
      std::this_thread::sleep_for(std::chrono::milliseconds(700));
    return true;
  });
  EXPECT_GT(wall_now() - began, stop_limit_);
  EXPECT_EQ(recorder.take().times.size(), 1500U);
}

TEST_F(Coordinated, series_that_were_not_requested__are_refused) {
  EXPECT_THAT(refusal([](FakeHost& host, Json& message) {
                if (message.at("type") == "stopped") protocol::send(host.stream(), {{"type", "rows"}, {"run", 1}});
                return true;
              }),
              HasSubstr("series that were not requested"));
}

TEST_F(Coordinated, iterations_at_times_that_can_not_be__are_no_result) {
  const std::int64_t far = kMaxTime.count;
  for (const auto& [key, value] : {std::pair<std::string, Json>("/times/1", far),
                                   {"/times/1", 20'000'000},
                                   {"/starts/0", -far},
                                   {"/starts/0", 0},
                                   {"/starts/2", far}})
    EXPECT_THAT(refusal(in_result(key, value)),
                AllOf(StartsWith("host 0 (10.0.0.1, fake) "), HasSubstr("has an impossible time or duration")))
        << key << " " << value;
  EXPECT_THAT(
      refusal(in("result", [](FakeHost& /*host*/, Json& message) { message["starts"][1] = message["starts"][0]; })),
      HasSubstr("iteration 1 has an impossible time or duration"));
  EXPECT_THAT(refusal(in("result",
                         [](FakeHost& /*host*/, Json& message) {
                           if (message["rank"] == 0) message["times"][1] = 0;
                         })),
              AllOf(StartsWith("host 0 (10.0.0.1, fake) "), HasSubstr("iteration 1 of 0 ns, in which 20000 bytes")));
  EXPECT_THAT(refusal(in_result("/computes", {1, 1, kIteration.count + 1})), HasSubstr("a part of iteration 2"));
  EXPECT_THAT(refusal(in_result("/gate/waited", far)), HasSubstr("a waiting time that is longer than the run"));
  EXPECT_THAT(refusal(in_result("/bytes_per_iteration", 19'999)), HasSubstr("it sends 19999 bytes"));
  EXPECT_THAT(refusal(in_result("/retransmitted_packets", std::uint64_t{1} << 60U)), HasSubstr("above the maximum"));
}

TEST_F(Coordinated, clock_that_runs_away_in_a_run__is_named) {
  int pongs = 0;
  EXPECT_THAT(refusal(in("pong",
                         [&](FakeHost& /*host*/, Json& message) {
                           if (++pongs > 16) message["time"] = message["time"].get<std::int64_t>() + 1'000'000'000;
                         })),
              // The clock gained one second. Exchanges between busy processes make the estimate inaccurate.
              AllOf(ContainsRegex("^host 0 \\(10\\.0\\.0\\.1, fake\\): its clock gained (9|10)[0-9][0-9]\\.[0-9]+ ms"),
                    HasSubstr("find what sets that clock")));
  EXPECT_EQ(refusal(in("pong",
                       [&](FakeHost& /*host*/, Json& message) {
                         message["time"] = message["time"].get<std::int64_t>() - (std::int64_t{1} << 59U);
                       })),
            "no error")
      << "a clock may have begun at any time";
}

TEST_F(Coordinated, durations_beyond_the_run__are_refused) {
  for (const auto& [key, value] :
       {std::pair<std::string, std::int64_t>("longest_gap", -5), {"stalled", kMaxTime.count}})
    EXPECT_THAT(refusal(in("stopped", [&](FakeHost& /*host*/, Json& message) { message[key] = value; })),
                HasSubstr("\"" + key + "\" is " + std::to_string(value) + " ns, but the run has lasted "));
  const auto link = [](std::int64_t since, const Json& lasted) {
    return in("stopped", [=](FakeHost& host, Json& /*message*/) {
      protocol::send(host.stream(), {{"type", "link"},
                                     {"run", host.run()},
                                     {"since", wall_now().count + since},
                                     {"lasted", lasted},
                                     {"why", "no carrier"}});
    });
  };
  EXPECT_EQ(run_with(link(-1'000'000, 900'000)).link_outages.size(), 1U);
  EXPECT_THAT(refusal(link(-1'000'000, kMaxTime.count)), HasSubstr("\"lasted\" is "));
  EXPECT_THAT(refusal(link(-1'000'000, -1)), HasSubstr("\"lasted\" is -1 ns"));
  EXPECT_THAT(refusal(link(3'600'000'000'000, nullptr)), HasSubstr("outside this run"));
}

TEST_F(Coordinated, words_out_of_turn__are_refused) {
  EXPECT_THAT(refusal(in("progress",
                         [](FakeHost& host, Json& /*message*/) {
                           protocol::send(host.stream(), {{"type", "stopped"},
                                                          {"longest_gap", 0},
                                                          {"stalled", 0},
                                                          {"losses", protocol::to_json(HostLosses())}});
                         })),
              HasSubstr("\"stopped\" before \"stop\""));
  EXPECT_THAT(refusal(in("ready", [](FakeHost& host, Json& message) { protocol::send(host.stream(), message); })),
              HasSubstr("a second \"ready\""));
  EXPECT_THAT(refusal(in("progress", [](FakeHost& /*host*/, Json& message) { message["ranks"][0]["recorded"] = 4; })),
              HasSubstr("\"recorded\" is \"4\", not a whole number from 0 to 3"));
  EXPECT_THAT(refusal(in("progress", [](FakeHost& /*host*/, Json& message) { message["ranks"][0].erase("done"); })),
              HasSubstr("sends a malformed message (key 'done' not found)"));
}

TEST_F(Coordinated, what_is_told_meanwhile__is_within_bounds) {
  for (const std::int64_t last : {std::int64_t{-1}, kMaxTime.count})
    EXPECT_THAT(
        refusal(in("progress", [=](FakeHost& /*host*/, Json& message) { message["ranks"][0]["last"] = last; })),
        AllOf(StartsWith("host 0 (10.0.0.1, fake) "), HasSubstr("\"last\" is " + std::to_string(last) + " ns")));
  for (const int mtu : {0, 65536})
    EXPECT_THAT(refusal(in("ready", [=](FakeHost& /*host*/, Json& message) { message["mtu"] = mtu; })),
                AllOf(StartsWith("host 0 (10.0.0.1, fake) "), HasSubstr("not a whole number from 68 to 65535")));
}

TEST_F(Coordinated, hosts__hear_that_it_is_alive) {
  // The host becomes ready only after the coordinator has sent two signs of life.
  alive_every_ = 1_ms;
  int heard = 0;
  const Change late = [&](FakeHost& host, Json& message) {
    if (message.at("type") != "ready") return true;
    while (heard < 2) {
      const auto word = protocol::receive(host.stream());
      if (word && word->at("type") == "alive") ++heard;
      if (!word) host.stream().wait(1_s);
    }
    return true;
  };
  EXPECT_EQ(refusal(late), "no error");
  EXPECT_EQ(heard, 2);
}

TEST_F(Coordinated, host_that_sends_without_end__delays_no_other_host) {
  std::string nothing = R"({"type":"pong","id":0,"time":0,"more":[[])";  // takes longer to read than to send
  for (int i = 0; i < 20'000; ++i) nothing += ",[]";
  nothing += "]}";
  const Nanos began = wall_now();
  EXPECT_THAT(
      refusal(in("ready",
                 [&](FakeHost& host, Json& /*message*/) {
                   for (const Nanos end = wall_now() + 5_s; wall_now() < end;) host.stream().send(nothing);
                 }),
              500_ms),
      StartsWith("1 of 2 hosts did not join within 500 ms: host 0 (10.0.0.1, fake), whose port is not open yet"));
  EXPECT_LT(wall_now() - began, 3_s);
}

TEST_F(Coordinated, message_longer_than_the_experiment_needs__is_not_waited_for) {
  EXPECT_THAT(
      refusal(in("result", [](FakeHost& /*host*/, Json& message) { message["more"] = std::string(100'000, 'x'); })),
      AllOf(StartsWith("host 0 (10.0.0.1, fake) sends a message of 100"), HasSubstr("but the maximum is")));
}

TEST_F(Coordinated, long_words__are_cut) {
  const std::string said = refusal(in("progress", [](FakeHost& host, Json& /*message*/) {
    protocol::send(host.stream(), {{"type", "failed"}, {"message", std::string(50'000, 'x') + "\n"}});
  }));
  EXPECT_THAT(said, StartsWith("host 0 (10.0.0.1, fake): xxx"));
  EXPECT_LT(said.size(), 2'100U);
  run_with(in("stopped", [](FakeHost& host, Json& /*message*/) {
    for (int i = 0; i < 10'000; ++i)
      protocol::send(host.stream(), {{"type", "link"},
                                     {"run", host.run()},
                                     {"since", wall_now().count},
                                     {"lasted", nullptr},
                                     {"why", "no carrier"}});
  }));
  EXPECT_EQ(warnings_.size(), 2'000U);
}

}  // namespace
}  // namespace mltcp::experiment
