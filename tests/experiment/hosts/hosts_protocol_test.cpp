// Tests messages between the coordinator and its hosts.
#include "mltcp/lab/experiment/hosts/internal/hosts_protocol.h"

#include <sys/socket.h>

#include <array>
#include <limits>
#include <thread>

#include "../../message_of.h"
#include "../../same_fields.h"
#include "mltcp/base/error.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/cc/swift.h"
#include "mltcp/cc/turns.h"
#include "mltcp/lab/experiment/backends/packet_run.h"
#include "mltcp/lab/experiment/backends/run_plan.h"
#include "mltcp/lab/experiment/engine/rank_driver_fields.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/workload/file_key.h"
#include "mltcp/lab/workload/job_fields.h"

namespace mltcp::experiment::protocol {
namespace {

Experiment experiment_with(const std::string& more) {
  return parse_experiment(R"(
    policies = ["mltcp"]
    cc = "swift"
    [mltcp]
    function = "F3"
    [swift]
    beta = 0.7
    [turns]
    cautious_hold = 0.3
    [topology]
    kind = "single-switch"
    hosts = 4
    host_rate = "1 Gbps"
    [[job]]
    name = "a"
    hosts = [3, 1]
    flows = 3
    jitter = "2 ms"
    start = "7 ms"
  )" + more,
                          "x.toml");
}

RunSetup setup_of(const Experiment& experiment) {
  RunPlan plan;
  plan.policy = "mltcp";
  plan.jobs = experiment.jobs;
  plan.iterations = 5;
  RunSetup setup;
  setup.policy = plan.policy;
  setup.mltcp = experiment.mltcp;
  for (const JobSpec& settings : job_specs(experiment, plan, true, true)) {
    JobSetup& job = setup.jobs.emplace_back();
    job.spec = settings;
    job.addresses = {Address::v4(0x0A000001, 62400), Address::v4(0x0A000002, 62401)};
    job.ports = {0, 1};
    job.hosts = {3, 1};
  }
  return setup;
}

TEST(hosts_protocol, setup__arrives_as_it_was_sent) {
  const RunSetup sent = setup_of(experiment_with(
      "phases = [{ compute = \"3 ms\" }, { communicate = \"1 MB\", rate = \"10 Mbps\", overlap = true }]"));
  const RunSetup got = setup_from(Json::parse(to_json(sent).dump()));
  ASSERT_EQ(got.jobs.size(), 1U);
  EXPECT_EQ(to_json(got), to_json(sent)) << "of all that is carried";
  const JobSpec& a = got.jobs[0].spec;
  const JobSpec& b = sent.jobs[0].spec;
  EXPECT_EQ(a.connection.congestion_control, "swift");
  EXPECT_EQ(a.connection.parameters->of<cc::Swift>().beta, 0.7);
  EXPECT_EQ(a.connection.parameters->of<cc::Turns>().cautious_hold, 0.3F);
  EXPECT_EQ(a.connection.initial_rtt, b.connection.initial_rtt);
  EXPECT_EQ(a.connection.max_rate, b.connection.max_rate);
  EXPECT_EQ(a.job.jitter, b.job.jitter);
  EXPECT_EQ(a.job.phases[1].rate, Rate(10'000'000));
  EXPECT_TRUE(a.job.phases[1].overlap);
  EXPECT_EQ(got.jobs[0].addresses, sent.jobs[0].addresses);
  for (const double x : {0.0, 0.3, 1.0}) EXPECT_EQ(a.augmentation.gain_at(x), b.augmentation.gain_at(x));
  EXPECT_TRUE(a.augmentation.iteration_aware());
}

TEST(hosts_protocol, connection__arrives_as_it_was_sent) {
  RunSetup sent = setup_of(experiment_with("compute = \"1 ms\"\ncommunicate = \"1 MB\""));
  sent.jobs[0].spec.connection.max_sends = 17;  // job_specs() does not change this value
  const RunSetup got = setup_from(to_json(sent));
  ConnectionConfig connection = got.jobs[0].spec.connection;
  connection.parameters = sent.jobs[0].spec.connection.parameters;
  EXPECT_EQ(connection, sent.jobs[0].spec.connection);
}

TEST(hosts_protocol, job__arrives_but_for_what_the_phases_are_called) {
  RunSetup sent = setup_of(experiment_with("compute = \"1 ms\"\ncommunicate = \"1 MB\""));
  workload::Job& job = sent.jobs[0].spec.job;
  job.straggler = {0.25, 3};
  job.pause = {4, Nanos(5)};
  job.change = {6, 1.5};
  job.start_jitter = Nanos(7);
  job.priority = 7;
  job.phases[0].label = "conv1";
  const RunSetup got = setup_from(to_json(sent));
  expect_same_fields(got.jobs[0].spec.job, job);
  for (const char* const key : {"straggler", "pause", "change", "start_jitter", "priority"})
    EXPECT_TRUE(to_json(sent)["jobs"][0]["spec"]["job"].contains(key)) << key;
  EXPECT_EQ(got.jobs[0].spec.job.phases[0].label, "");
}

TEST(hosts_protocol, pattern__arrives_as_it_was_sent) {
  const RunSetup sent = setup_of(experiment_with("pattern = \"all-reduce\"\nsize = \"1 MB\"\ncompute = \"1 ms\""));
  const RunSetup got = setup_from(to_json(sent));
  ASSERT_TRUE(got.jobs[0].spec.job.pattern);
  EXPECT_EQ(got.jobs[0].spec.job.pattern->size, 1'000'000U);
  EXPECT_EQ(to_json(got), to_json(sent));
}

TEST(hosts_protocol, damaged_setup__is_refused_whatever_is_missing_or_of_another_type) {
  const Json good = to_json(setup_of(experiment_with("compute = \"1 ms\"\ncommunicate = \"1 MB\"")));
  // Each value of the setup is changed or removed in turn.
  std::size_t changed = 0;
  const Json flat = good.flatten();
  for (const auto& item : flat.items()) {
    const std::string& path = item.key();
    if (path == "/type" || path == "/jobs/0/spec/job/pattern") continue;
    Json bad = flat;
    bad[path] = item.value().is_string() ? Json(-1) : Json("x");
    EXPECT_ANY_THROW(setup_from(bad.unflatten())) << path;
    ++changed;
  }
  EXPECT_GT(changed, 50U);
  for (const auto& item : good.items()) {
    if (item.key() == "type") continue;
    Json bad = good;
    bad.erase(item.key());
    EXPECT_ANY_THROW(setup_from(bad)) << item.key();
  }
  for (const auto& [path, value] : {std::pair<std::string, Json>("/addresses", {good["jobs"][0]["addresses"][0]}),
                                    {"/spec/job/flows", std::uint64_t{1} << 40U},
                                    {"/spec/job/phases/0/kind", 7},
                                    {"/spec/job/hosts", {0, 1, 2, 3, 4}},  // more ranks than addresses
                                    {"/spec/job/phases/1/bytes", 0},       // a phase that sends nothing
                                    {"/spec/job/phases/0/compute", -1},
                                    {"/spec/job/phases/0/compute", workload::kMaxCompute.count + 1}}) {
    Json bad = good;
    bad["jobs"][0][Json::json_pointer(path)] = value;
    EXPECT_THROW(setup_from(bad), InputError) << path << " " << value;
  }
  Json bad = good;
  bad["jobs"][0]["hosts"] = {3, 3};
  bad["jobs"][0]["ports"] = {1, 1};
  EXPECT_THROW(setup_from(bad), InputError) << "two ranks on one port of a host, of which one would never be polled";
  bad = good;
  bad["jobs"].push_back(bad["jobs"][0]);
  EXPECT_THROW(setup_from(bad), InputError) << "the same of two jobs";
}

TEST(hosts_protocol, result__arrives_as_it_was_sent_and_is_checked) {
  RankResult sent;
  sent.starts = {Nanos(-5), Nanos(10)};
  sent.times = {Nanos(7), Nanos(8)};
  sent.communications = {Nanos(3), Nanos(4)};
  sent.bytes_per_iteration = Bytes{1} << 40U;
  sent.checksum_errors = 1;
  sent.first_error = "rank 1, iteration 2";
  sent.gate.state = PlanState::misfit;
  sent.gate.waited = Nanos(99);
  const Json json = Json::parse(to_json(sent).dump());
  const RankLimits limits{2, sent.bytes_per_iteration, Nanos(-5), Nanos(200)};
  const RankResult got = result_from(json, limits);
  expect_same_fields(got, sent);
  for (const char* const key :
       {"starts", "times", "communications", "bytes_per_iteration", "checksum_errors", "first_error", "gate"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(got.gate.state, PlanState::misfit);
  EXPECT_THROW(result_from(json, {1, limits.bytes_per_iteration, limits.from, limits.until}), InputError)
      << "more iterations than there are";
  for (const auto& [path, value] : {std::pair<std::string, Json>("/communications", {3}),
                                    {"/communications/1", -1},
                                    {"/starts", {10}},
                                    {"/times/0", -1},
                                    // With this value, differences of times would overflow.
                                    {"/starts/0", std::numeric_limits<std::int64_t>::min()}}) {
    Json bad = json;
    bad[Json::json_pointer(path)] = value;
    EXPECT_THROW(result_from(bad, limits), InputError) << path << " " << value;
  }
}

TEST(hosts_protocol, words_of_a_host__are_checked) {
  const auto time = [](const Json& value) { return time_from(Json{{"time", value}}, "time"); };
  EXPECT_EQ(time(-7), Nanos(-7));
  EXPECT_EQ(time(-kMaxTime.count), Nanos() - kMaxTime);
  EXPECT_THROW(time(kMaxTime.count + 1), InputError);
  EXPECT_THROW(time(std::numeric_limits<std::int64_t>::max()), InputError);
  EXPECT_THROW(time(std::numeric_limits<std::int64_t>::min()), InputError);
  EXPECT_THROW(time_from(Json::object(), "time"), InputError);
  const auto state = [](const Json& value) { return plan_state_from(Json{{"plan", value}}, "plan"); };
  EXPECT_EQ(state(1), static_cast<PlanState>(1));
  EXPECT_THROW(state(200), InputError);
  const HostLosses losses{0, 1, 2, 3, 4, 5};
  EXPECT_EQ(losses_from(Json::parse(to_json(losses).dump())), losses);
  Json bad = to_json(losses);
  bad["missed_packets"] = -1;
  EXPECT_THROW(losses_from(bad), InputError);
  bad["missed_packets"] = std::uint64_t{1} << 54U;
  EXPECT_THROW(losses_from(bad), InputError) << "sums would overflow";
}

// For these numbers, the conversions of the JSON library would have undefined behaviour or return a different number.
TEST(hosts_protocol, number_that_is_none_or_out_of_range__is_refused_by_name) {
  const Json good = to_json(setup_of(experiment_with("compute = \"1 ms\"\ncommunicate = \"1 MB\"")));
  const auto refusal = [&](const std::string& value) {
    Json bad = good;
    bad["jobs"][0]["spec"]["job"]["flows"] = Json::parse(value);
    return message_of<InputError>([&] { return setup_from(bad); });
  };
  for (const char* value : {"1e300", "-1e300", "-1", "1.5", "2.0", "4294967296", "9223372036854775808",
                            "18446744073709551615", "18446744073709551616", "-9223372036854775808", "null", "true"})
    EXPECT_THAT(refusal(value),
                AllOf(StartsWith("\"flows\" is \""), HasSubstr("not a whole number from 0 to 4294967295")))
        << value;
  EXPECT_EQ(refusal("\"1\""), "\"flows\" is \"\"1\"\", not a whole number from 0 to 4294967295");
  EXPECT_EQ(refusal("[1]"), "\"flows\" is array, not a whole number from 0 to 4294967295");
  EXPECT_EQ(refusal("1000"), "no error");
}

// Values from other processes must be in the ranges that the list of fields gives for values in files.
TEST(hosts_protocol, value_that_no_file_could_give__is_refused_by_name) {
  const Json good = to_json(setup_of(experiment_with("compute = \"1 ms\"\ncommunicate = \"1 MB\"")));
  const auto refusal = [&](const std::string& path, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer("/jobs/0/spec/job" + path)] = value;
    return message_of<InputError>([&] { return setup_from(bad); });
  };
  EXPECT_EQ(refusal("/straggler/factor", 1e308), "\"factor\" is \"1e+308\", which is out of range for a job");
  EXPECT_THAT(refusal("/straggler/factor", 0.5), StartsWith("\"factor\" is "));
  EXPECT_THAT(refusal("/straggler/probability", -0.5), StartsWith("\"probability\" is "));
  EXPECT_THAT(refusal("/change/compute_scale", -1e308), StartsWith("\"compute_scale\" is "));
  EXPECT_THAT(refusal("/weight", 0.0), StartsWith("\"weight\" is "));
  EXPECT_THAT(refusal("/priority", 8), StartsWith("\"priority\" is "));
  EXPECT_THAT(refusal("/flows", 1001), StartsWith("\"flows\" is "));
  EXPECT_THAT(refusal("/jitter", std::int64_t{1} << 60U), StartsWith("\"jitter\" is "));
  EXPECT_THAT(refusal("/start", -1), StartsWith("\"start\" is "));
  EXPECT_EQ(refusal("/iterations", 0), "no error") << "as many as the experiment says";
}

TEST(hosts_protocol, number_for_which_no_host_has_memory__is_refused_by_name) {
  const Json good = to_json(setup_of(experiment_with("compute = \"1 ms\"\ncommunicate = \"1 MB\"")));
  Json bad = good;
  for (const std::uint32_t iterations : {1'000'001U, 4'294'967'295U}) {
    bad["jobs"][0]["spec"]["iterations"] = iterations;
    EXPECT_THAT(message_of<InputError>([&] { return setup_from(bad); }),
                AllOf(StartsWith("\"iterations\" is "), HasSubstr("which is out of range for a job")));
  }
  bad["jobs"][0]["spec"]["iterations"] = 1'000'000;
  EXPECT_EQ(message_of<InputError>([&] { return setup_from(bad); }), "no error");
  for (const char* const key : {"addresses", "ports", "hosts"}) {
    Json& list = bad["jobs"][0][key];
    for (int rank = 2; rank < 1025; ++rank) list.push_back(list[0].is_number() ? Json(rank + 5) : list[0]);
  }
  bad["jobs"][0]["programmed"] = true;
  EXPECT_EQ(message_of<InputError>([&] { return setup_from(bad); }), "an invalid job");
  for (const char* const key : {"addresses", "ports", "hosts"}) bad["jobs"][0][key].erase(1024);
  EXPECT_EQ(message_of<InputError>([&] { return setup_from(bad); }), "no error");
}

TEST(hosts_protocol, time_that_would_overflow__is_refused_by_name) {
  const Json good = to_json(setup_of(experiment_with("compute = \"1 ms\"\ncommunicate = \"1 MB\"")));
  for (const std::int64_t time : {kMaxTime.count + 1, Nanos::never().count - 1, std::int64_t{INT64_MIN}}) {
    Json bad = good;
    bad["jobs"][0]["spec"]["job"]["start"] = time;
    EXPECT_THAT(message_of<InputError>([&] { return setup_from(bad); }), StartsWith("\"start\" is ")) << time;
  }
}

TEST(hosts_protocol, plan__arrives_as_it_was_sent) {
  PhasePlan plan;
  plan.slot = Nanos(-12345);
  plan.period = Nanos(1'000'000);
  plan.correction = PhasePlan::Correction::gradual;
  plan.tolerance = 0.1;
  EXPECT_EQ(plan_from(Json::parse(to_json(plan).dump())), plan);
}

TEST(hosts_protocol, address__is_exact) {
  Address address;
  for (std::size_t i = 0; i < address.ip.size(); ++i) address.ip[i] = static_cast<std::uint8_t>(17 * i);
  address.port = 65535;
  EXPECT_EQ(address_from(to_hex(address)), address);
  for (const std::string& text : {std::string(), std::string(35, '0'), std::string(36, 'g'), std::string(36, 'A')})
    EXPECT_THROW(address_from(text), InputError) << text;
}

TEST(hosts_protocol, text_that_is_no_message__ends_the_stream) {
  for (const std::string& text :
       {std::string("hello"), std::string("[1]"), std::string("{}"), std::string("{\"type\":1}"),
        std::string("{\"type\":\"x\""), std::string(20'000, '['), std::string("{\"type\":\"x\",\"y\":NaN}"),
        std::string("{\"type\":\"x\",\"y\":1e999}")}) {
    std::array<int, 2> files{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, files.data()), 0);
    MessageStream from(files[0]);
    MessageStream to(files[1]);
    from.send(text);
    EXPECT_THROW(receive(to), StreamError) << text.substr(0, 20);
  }
}

/// Returns the error of receive() for a message with `text`.
std::string refusal(const std::string& text) {
  std::array<int, 2> files{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, files.data()) != 0) return "no socket";
  MessageStream from(files[0]);
  MessageStream to(files[1]);
  to.set_longest(kLongest);
  std::thread sender([&] { from.send(text); });
  const std::string what = message_of<StreamError>([&] {
    while (!receive(to)) to.wait(Nanos(1'000'000'000));
  });
  sender.join();
  return what;
}

// The parser would need a gigabyte of memory for these messages.
TEST(hosts_protocol, bomb__is_refused_before_it_is_parsed) {
  EXPECT_EQ(refusal("{\"type\":\"x\",\"y\":" + std::string(20'000'000, '[')),
            "sends a message that is not from mltcp gen: it nests more than 16 levels deep");
  std::string many = "{\"type\":\"x\",\"y\":[0";
  for (int i = 0; i < 8'000'000; ++i) many += ",0";
  EXPECT_EQ(refusal(many + "]}"), "sends a message that is not from mltcp gen: it has more than 8000000 values");
  EXPECT_EQ(refusal(R"({"type":"x","y":"[[[[[[[[[[[[[[[[[[[[[["})"), "no error");
}

}  // namespace
}  // namespace mltcp::experiment::protocol
