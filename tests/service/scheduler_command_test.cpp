// mltcp scheduler as a program: its options, its end, and what is left of its jobs when it is killed.
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "../tools/program_test.h"

namespace mltcp::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

const std::string topology = R"(hosts = ["a[1-4]", "b[1-4]"]
[topology]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 4
host_rate = "10 Gbps"
)";

/// A program that was started, until it ends or is killed.
class Started {
 public:
  Started(const std::filesystem::path& folder, const std::vector<std::string>& arguments) {
    std::array<int, 2> out{};
    if (pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::vector<std::string> words{MLTCP_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    const std::string log = (folder / "log").string();
    pid_ = fork();
    if (pid_ == 0) {
      const int err = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      if (chdir(folder.c_str()) != 0 || dup2(out[1], 1) < 0 || dup2(err, 2) < 0) _exit(126);
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    close(out[1]);
    out_ = out[0];
  }
  ~Started() {
    end(SIGKILL);
    close(out_);
  }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  /// The first line that it prints; empty if it ends before.
  [[nodiscard]] std::string line() const {
    std::string text;
    for (char c = 0; read(out_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  /// Its exit status, or minus the signal by which it ended.
  int end(int signal) {
    if (pid_ <= 0) return -1;
    kill(pid_, signal);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int out_ = -1;
};

/// Status and body; status 0 if there was no answer.
std::pair<int, Json> ask(const std::filesystem::path& path, const std::string& method, const std::string& target,
                         const std::string& body = "") {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = path.string();
  std::copy(name.begin(), name.end(), address.sun_path);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string response;
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = method + " " + target +
                                " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                                body;
    static_cast<void>(send(socket, request.data(), request.size(), MSG_NOSIGNAL));
    std::array<char, 65536> part{};
    for (ssize_t count = 0; (count = recv(socket, part.data(), part.size(), 0)) > 0;)
      response.append(part.data(), static_cast<std::size_t>(count));
  }
  close(socket);
  const std::size_t at = response.find("\r\n\r\n");
  if (at == std::string::npos) return {0, {}};
  Json json = Json::parse(response.substr(at + 4), nullptr, false);
  if (json.is_discarded()) return {0, {}};  // cut off
  return {std::stoi(response.substr(9, 3)), std::move(json)};
}

class scheduler_command : public ProgramTest {
 protected:
  scheduler_command() { put("cluster.toml", topology); }
  [[nodiscard]] std::vector<std::string> arguments() const {
    return {"scheduler", "cluster.toml", "--slots-per-host", "1000", "--socket", socket().string(), "--state", "state"};
  }
  [[nodiscard]] std::filesystem::path socket() const { return folder_ / "scheduler.sock"; }
};

TEST_F(scheduler_command, check__prints_the_topology) {
  const Outcome outcome = run("scheduler cluster.toml --check");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("8 hosts in 2 racks"), HasSubstr("a1 to a4"), HasSubstr("10 Gbps")));
}

TEST_F(scheduler_command, bad_input__is_refused_with_one_line) {
  EXPECT_THAT(refusal("scheduler"), HasSubstr("TOPOLOGY.toml"));
  EXPECT_THAT(refusal("scheduler none.toml"), HasSubstr("none.toml: there is no such file"));
  put("bad.toml", "hosts = [\"a\"]\n" + topology.substr(topology.find('\n') + 1));
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("bad.toml:1: hosts: there are 1 names"));
  put("bad.toml", "host = 1\n" + topology);
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("did you mean \"hosts\"?"));
  put("bad.toml", "hosts = [\"a[1-\"]\n" + topology.substr(topology.find('\n') + 1));
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("the bracket is not closed"));
  put("bad.toml", "[[job]]\nname = \"x\"\n");
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("an experiment file"));
  put("bad.toml", "hosts = [\"a1\"]\n");
  EXPECT_THAT(refusal("scheduler bad.toml --check"), HasSubstr("topology: the table is missing"));
  EXPECT_THAT(refusal("scheduler cluster.toml --socket x --listen 127.0.0.1:0"), HasSubstr("give one"));
  EXPECT_THAT(refusal("scheduler cluster.toml --listen 127.0.0.1:0"), HasSubstr("give --token-file, too"));
  EXPECT_THAT(refusal("scheduler cluster.toml --socket x --token-file t"), HasSubstr("it is for --listen"));
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
    Started service(folder_, arguments());
    EXPECT_EQ(service.line(), "ready " + socket().string());
    EXPECT_EQ(ask(socket(), "GET", "/v1/health").first, 200);
    EXPECT_EQ(
        refusal("scheduler cluster.toml --socket other --state state").find("another service keeps its jobs here") ==
            std::string::npos,
        false);
    EXPECT_EQ(service.end(signal), 0);
    EXPECT_FALSE(std::filesystem::exists(socket()));
  }
  EXPECT_THAT(content(folder_ / "log"), HasSubstr("0 jobs kept in state"));
}

TEST_F(scheduler_command, port__serves_with_the_token) {
  put("token", std::string(32, 'x') + "\n");
  ASSERT_EQ(chmod((folder_ / "token").c_str(), 0600), 0);
  Started service(
      folder_, {"scheduler", "cluster.toml", "--listen", "127.0.0.1:0", "--token-file", "token", "--state", "state"});
  EXPECT_THAT(service.line(), StartsWith("ready 127.0.0.1:"));
  EXPECT_EQ(service.end(SIGTERM), 0);
}

// Arrivals and departures from several clients until the service is killed, again and again with one state folder.
// Whatever was answered has to be there afterwards, as it was answered.
TEST_F(scheduler_command, killed_in_the_middle__it_has_all_that_it_answered) {
  std::mutex mutex;
  std::map<std::string, Json> plans;      // the newest that was told of each job
  std::map<std::string, bool> departing;  // asked for; true once it was answered
  const auto tell = [&](const Json& plan) {
    const std::scoped_lock lock(mutex);
    const auto [known, fresh] = plans.try_emplace(plan.at("id"), plan);
    if (!fresh && known->second.at("revision") < plan.at("revision")) known->second = plan;
  };
  std::size_t compared = 0;
  constexpr int rounds = 6;
  for (int round = 0; round < rounds; ++round) {
    Started service(folder_, arguments());
    ASSERT_EQ(service.line(), "ready " + socket().string()) << content(folder_ / "log");
    std::map<std::string, Json> found;
    const Json told = ask(socket(), "GET", "/v1/plans").second;
    for (const Json& plan : told.at("plans")) found[plan.at("id")] = plan;
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
      // An event that was not answered may have moved it.
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
    // At another moment of what it does in each round.
    while (answered < 8 + round) std::this_thread::yield();
    EXPECT_EQ(service.end(SIGKILL), -SIGKILL);
    killed = true;
    for (std::thread& client : clients) client.join();
  }
  EXPECT_GT(compared, 20U);
}

}  // namespace
}  // namespace mltcp::tools
