// Tests mltcp scheduler as a program: its options, its end, and that jobs survive when it is killed.
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "../matchers.h"
#include "../started_program.h"
#include "../tools/program_test.h"
#include "http_client.h"

namespace mltcp::tools {
namespace {

using Json = nlohmann::json;

const std::string topology = R"(hosts = ["a[1-4]", "b[1-4]"]
[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 4
host_rate = "10 Gbps"
)";

/// Sends a request and returns the status and the body. The status is 0 if there is no answer or only a part of it.
std::pair<int, Json> ask(const std::filesystem::path& socket, const std::string& method, const std::string& target,
                         const std::string& body = "") {
  const service::Client client(socket.string());
  client.send(service::request(method, target, body));
  const std::string answer = client.answer();
  Json json = answer.empty() ? Json(Json::value_t::discarded) : service::body_of(answer);
  if (json.is_discarded()) return {0, {}};
  return {service::status_of(answer), std::move(json)};
}

class scheduler_command : public ProgramTest {
 protected:
  scheduler_command() { put("cluster.toml", topology); }
  [[nodiscard]] std::vector<std::string> arguments() const {
    return {MLTCP_PROGRAM,     "scheduler", "cluster.toml", "--slots-per-host", "1000", "--socket",
            socket().string(), "--state",   "state"};
  }
  [[nodiscard]] std::filesystem::path socket() const { return folder_ / "scheduler.sock"; }
};

TEST_F(scheduler_command, check__prints_the_topology) {
  const Outcome outcome = done("scheduler cluster.toml --check");
  EXPECT_THAT(outcome.out, HasAll("8 hosts in 2 racks", "a1 to a4", "10 Gbps"));
}

TEST_F(scheduler_command, bad_input__is_refused_with_one_line) {
  EXPECT_THAT(refusal("scheduler"), HasSubstr("TOPOLOGY.toml"));
  EXPECT_THAT(refusal("scheduler none.toml"), HasSubstr("none.toml: there is no such file"));
  put("bad.toml", "hosts = [\"a\"]\n" + topology.substr(topology.find('\n') + 1));
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("bad.toml:1: hosts: there are 1 names"));
  put("bad.toml", "host = 1\n" + topology);
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("did you mean \"hosts\"?"));
  put("bad.toml", "hosts = [\"a[1-\"]\n" + topology.substr(topology.find('\n') + 1));
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("a bracket is not opened or not closed"));
  put("bad.toml", "[[job]]\nname = \"x\"\n");
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("an experiment file"));
  put("bad.toml", "hosts = [\"a1\"]\n");
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("topology: the table is missing"));
  EXPECT_THAT(refusal("scheduler cluster.toml --socket x --listen 127.0.0.1:0"), HasSubstr("give one"));
  EXPECT_THAT(refusal("scheduler cluster.toml --listen 127.0.0.1:0"), HasSubstr("add --token-file"));
  EXPECT_THAT(refusal("scheduler cluster.toml --socket x --token-file t"), HasSubstr("only for --listen"));
  put("token", std::string(32, 'x'));
  ASSERT_EQ(chmod((folder_ / "token").c_str(), 0644), 0);
  EXPECT_THAT(refusal("scheduler cluster.toml --state s --listen 127.0.0.1:0 --token-file token"),
              HasSubstr("chmod 0600"));
  ASSERT_EQ(chmod((folder_ / "token").c_str(), 0600), 0);
  EXPECT_THAT(refusal("scheduler cluster.toml --state s --listen 0.0.0.0:0 --token-file token"),
              HasSubstr("this machine alone"));
  EXPECT_THAT(refusal("scheduler cluster.toml --slots-per-host 0"), HasSubstr("--slots-per-host"));
  EXPECT_THAT(refusal("scheduler cluster.toml --socket s --state t --pod-patience soon"), HasSubstr("--pod-patience"));
  put("state/x", "");
  std::filesystem::create_directory(folder_ / "damaged");
  put("damaged/journal.jsonl", "nonsense\n");
  EXPECT_THAT(refusal("scheduler cluster.toml --socket s --state damaged"),
              HasSubstr("damaged/journal.jsonl:1: the journal is damaged"));
}

TEST_F(scheduler_command, signal__ends_it_in_order) {
  for (const int signal : {SIGTERM, SIGINT}) {
    StartedProgram service(arguments(), folder_, "service");
    EXPECT_TRUE(service.says("ready " + socket().string() + "\n"));
    EXPECT_THAT(service.out(), ::testing::StartsWith("ready " + socket().string() + "\n"));
    EXPECT_EQ(ask(socket(), "GET", "/v1/health").first, 200);
    EXPECT_EQ(
        refusal("scheduler cluster.toml --socket other --state state").find("another service keeps its jobs here") ==
            std::string::npos,
        false);
    service.signal(signal);
    EXPECT_EQ(service.finish(), 0);
    EXPECT_FALSE(std::filesystem::exists(socket()));
  }
  EXPECT_THAT(content(folder_ / "service.err"), HasSubstr("0 jobs kept in state"));
}

TEST_F(scheduler_command, port__serves_with_the_token) {
  put("token", std::string(32, 'x') + "\n");
  ASSERT_EQ(chmod((folder_ / "token").c_str(), 0600), 0);
  StartedProgram service({MLTCP_PROGRAM, "scheduler", "cluster.toml", "--listen", "127.0.0.1:0", "--token-file",
                          "token", "--state", "state"},
                         folder_, "service");
  EXPECT_TRUE(service.says("ready 127.0.0.1:"));
  EXPECT_THAT(service.out(), ::testing::StartsWith("ready 127.0.0.1:"));
  service.signal(SIGTERM);
  EXPECT_EQ(service.finish(), 0);
}

// Several clients send arrivals and departures until the service is killed, in several rounds with the same state
// folder. After each restart, the state must agree with all answers.
TEST_F(scheduler_command, killed_in_the_middle__it_has_all_that_it_answered) {
  std::mutex mutex;
  std::map<std::string, Json> plans;      // latest known plan of each job, by identifier
  std::map<std::string, bool> departing;  // jobs whose departure was requested; true if the service has answered
  const auto tell = [&](const Json& plan) {
    const std::scoped_lock lock(mutex);
    const auto [known, fresh] = plans.try_emplace(plan.at("id"), plan);
    if (!fresh && known->second.at("revision") < plan.at("revision")) known->second = plan;
  };
  std::size_t compared = 0;
  constexpr int rounds = 6;
  for (int round = 0; round < rounds; ++round) {
    StartedProgram service(arguments(), folder_, "service");
    ASSERT_TRUE(service.says("ready " + socket().string() + "\n")) << service.err();
    std::map<std::string, Json> found;
    const Json answer = ask(socket(), "GET", "/v1/plans").second;
    for (const Json& plan : answer.at("plans")) found[plan.at("id")] = plan;
    for (const auto& [id, plan] : plans) {
      if (departing.contains(id)) {
        EXPECT_FALSE(departing.at(id) && found.contains(id)) << id << " has departed";
        if (!found.contains(id)) continue;
      }
      ASSERT_TRUE(found.contains(id)) << id << " is lost";
      const Json& now = found.at(id);
      EXPECT_EQ(now.at("number"), plan.at("number"));
      EXPECT_EQ(now.at("hosts"), plan.at("hosts"));
      EXPECT_GE(now.at("revision"), plan.at("revision"));
      // An event whose answer was lost may have moved the job.
      if (now.at("revision") != plan.at("revision")) continue;
      for (const char* const key : {"slots", "slot_unix_ns", "slot_period_ns", "time_shift_ns", "first_send_ns"})
        EXPECT_EQ(now.at(key), plan.at(key)) << id;
      ++compared;
    }
    std::atomic<bool> killed = false;
    std::atomic<int> answered = 0;
    std::vector<std::thread> clients;
    for (int client = 0; client < 4; ++client)
      clients.emplace_back([&, client, round] {
        for (int i = 0; !killed; ++i) {
          const std::string id =
              "job-" + std::to_string(round) + "-" + std::to_string(client) + "-" + std::to_string(i);
          const std::string rack = client % 2 == 0 ? "1" : "2";
          const auto [status, arrival] =
              ask(socket(), "POST", "/v1/jobs",
                  R"({"id": ")" + id + R"(", "workers": 2, "hosts": ["a)" + rack + R"(", "b)" + rack +
                      R"("], "profile": {"compute_ns": 95000000, "communicate_bytes": 6250000}})");
          if (status != 201) continue;
          ++answered;
          tell(arrival.at("plan"));
          for (const Json& move : arrival.at("moves")) tell(move);
          if (i % 2 == 1) continue;
          {
            const std::scoped_lock lock(mutex);
            departing[id] = false;
          }
          const auto [gone, departure] = ask(socket(), "DELETE", "/v1/jobs/" + id);
          if (gone != 200) continue;
          for (const Json& move : departure.at("moves")) tell(move);
          const std::scoped_lock lock(mutex);
          departing[id] = true;
        }
      });
    // Each round kills the service one answer later than the round before.
    while (answered < 8 + round) std::this_thread::yield();
    service.signal(SIGKILL);
    EXPECT_EQ(service.finish(), -SIGKILL);
    killed = true;
    for (std::thread& client : clients) client.join();
  }
  EXPECT_GT(compared, 20U);
}

}  // namespace
}  // namespace mltcp::tools
