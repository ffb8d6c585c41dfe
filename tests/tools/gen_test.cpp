// Tests `mltcp gen` as users run it, with real processes in network namespaces. The namespaces are connected by veth or
// by an `mltcp switch`.
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../matchers.h"
#include "../started_program.h"

namespace mltcp::tools {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT(cert-env33-c)
}

/// A network namespace. A child process keeps the namespace alive, and always ends with this process.
class Namespace {
 public:
  Namespace() {
    int ends[2];
    if (pipe(ends) != 0) return;
    const pid_t parent = getpid();
    keeper_ = fork();
    if (keeper_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() == parent && unshare(CLONE_NEWNET) == 0 && write(ends[1], "k", 1) == 1)
        for (;;) pause();
      _exit(1);
    }
    close(ends[1]);
    char made = 0;
    ready_ = read(ends[0], &made, 1) == 1 && shell(in("ip link set lo up"));
    close(ends[0]);
  }
  ~Namespace() {
    if (keeper_ <= 0) return;
    kill(keeper_, SIGKILL);
    waitpid(keeper_, nullptr, 0);
  }
  Namespace(const Namespace&) = delete;
  Namespace& operator=(const Namespace&) = delete;

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] std::string in(const std::string& command) const {
    return fmt::format("nsenter --net=/proc/{}/ns/net {}", keeper_, command);
  }
  /// Creates a pair of interfaces, one in each namespace, and sets both up.
  bool join(const std::string& own, const Namespace& other, const std::string& others,
            const std::string& settings = "") const {
    return shell(in(fmt::format("ip link add {} {} type veth peer name {} netns {}", own, settings, others,
                                other.keeper_))) &&
           shell(in("ip link set " + own + " up")) && shell(other.in("ip link set " + others + " up"));
  }

 private:
  pid_t keeper_ = -1;
  bool ready_ = false;
};

/// A running command with its output in a file.
class Process : public StartedProgram {
 public:
  Process(const std::string& command, const fs::path& said)
      : StartedProgram({"sh", "-c", "exec " + command}, said.parent_path(), said.filename(), true) {}
};

constexpr const char* kPair = R"(
  name = "pair"
  iterations = 4
  policies = ["fair", "mltcp"]
  [bottleneck]
  rate = "200 Mbps"
  [[job]]
  name = "a"
  compute = "5 ms"
  communicate = "250 kB"
)";

class Gen : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  }

  /// Creates two connected hosts. Returns false if this machine does not support that.
  bool make_pair() {
    for (int host = 0; host < 2; ++host) hosts_.push_back(std::make_unique<Namespace>());
    return hosts_[0]->ready() && hosts_[1]->ready() && hosts_[0]->join("eth0", *hosts_[1], "eth0");
  }
  /// Creates three hosts, and a switch in namespace `middle` that connects them. Each port of the switch has rate
  /// `rate`. Returns nullptr if this machine does not support that.
  std::unique_ptr<Process> make_star(const Namespace& middle, const std::string& rate) {
    std::string ports;
    for (std::size_t i = 0; i < 3; ++i) {
      hosts_.push_back(std::make_unique<Namespace>());
      const std::string port = fmt::format("p{}", i);
      if (!middle.ready() || !hosts_[i]->ready() || !middle.join(port, *hosts_[i], "eth0")) return nullptr;
      ports += fmt::format(" --port af_packet:{}", port);
    }
    return start("switch", middle.in(fmt::format("{} switch{} --rate {} --idle sleep", MLTCP_PROGRAM, ports, rate)));
  }
  fs::path file(const std::string& name) { return folder_ / name; }
  fs::path experiment(const std::string& text) {
    std::ofstream(file("x.toml")) << text;
    return file("x.toml");
  }
  std::string address() { return "unix:" + file("s").string(); }
  std::unique_ptr<Process> start(const std::string& name, const std::string& command) {
    return std::make_unique<Process>(command, file(name));
  }
  std::unique_ptr<Process> serve(const std::string& text, const std::string& options = "") {
    return start("serve",
                 fmt::format("{} gen {} --serve {} {}", MLTCP_PROGRAM, experiment(text).string(), address(), options));
  }
  std::unique_ptr<Process> host(std::size_t number, const std::string& kind = "af_packet",
                                const std::string& options = "") {
    return start(fmt::format("host{}", number),
                 hosts_[number]->in(fmt::format(
                     "{} gen --join {} --port {}:eth0 --ip 10.79.0.{}/24 --host {} --idle sleep --wait 30s {}",
                     MLTCP_PROGRAM, address(), kind, number + 1, number, options)));
  }
  json results() { return json::parse(content(file("out.json")), nullptr, false); }

  TemporaryFolder folder_;
  std::vector<std::unique_ptr<Namespace>> hosts_;
};

#define MAKE_PAIR() \
  if (!make_pair()) GTEST_SKIP() << "this machine makes no network namespaces with veth (unshare -n, ip link)"

void expect_iterations(const json& run, std::size_t iterations, std::uint64_t bytes_per_iteration) {
  for (const json& job : run["jobs"]) {
    EXPECT_EQ(job["iteration_ns"].size(), iterations);
    EXPECT_EQ(job["start_ns"].size(), iterations);
    EXPECT_EQ(job["bytes"], iterations * bytes_per_iteration);
    EXPECT_EQ(job["checksum_errors"], 0);
    EXPECT_GT(job["verified_messages"], 0);
    EXPECT_GT(job["isolated_ns"], 0);
  }
}

class GenOver : public Gen, public testing::WithParamInterface<const char*> {};

TEST_P(GenOver, two_hosts__run_a_job_and_merge) {
  MAKE_PAIR();
  if (std::string(GetParam()) == "af_xdp") {
    const int xdp = socket(AF_XDP, SOCK_RAW, 0);
    if (xdp < 0) GTEST_SKIP() << "this kernel or user has no AF_XDP";
    close(xdp);
  }
  // With udp ports, the kernel must have the host's address.
  for (std::size_t i = 0; i < 2 && std::string(GetParam()) == "udp"; ++i) {
    ASSERT_TRUE(shell(hosts_[i]->in(fmt::format("ip addr add 10.79.0.{}/24 dev eth0", i + 1))));
  }
  const auto server = serve(kPair, "--json " + file("out.json").string());
  const auto first = host(0, GetParam());
  const auto second = host(1, GetParam());
  ASSERT_EQ(server->finish(), 0) << server->said() << first->said() << second->said();
  EXPECT_EQ(first->finish(), 0) << first->said();
  EXPECT_EQ(second->finish(), 0) << second->said();
  const json results = this->results();
  ASSERT_EQ(results["runs"].size(), 2U);
  for (const json& run : results["runs"]) {
    EXPECT_EQ(run["datapath"], "hosts");
    EXPECT_FALSE(run.contains("bottleneck"));
    EXPECT_GT(run["clock_uncertainty_ns"], 0);
    ASSERT_EQ(run["hosts"].size(), 2U) << "what each host lost";
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(run["hosts"][i]["host"], i);
      EXPECT_GE(run["hosts"][i]["missed_packets"], 0);
    }
    expect_iterations(run, 4, 250'000);
    for (const json& time : run["jobs"][0]["iteration_ns"]) EXPECT_GE(time, 15'000'000) << "5 ms and 10 of sending";
    ASSERT_EQ(run["jobs"][0]["ranks"].size(), 1U) << "the receiver has no pace of its own";
    EXPECT_EQ(run["jobs"][0]["ranks"][0]["mean_ns"], run["jobs"][0]["mean_ns"]);
  }
  EXPECT_THAT(first->said(), HasAll("host 0: 10.79.0.1/24", "done"));
  EXPECT_THAT(server->said(), AllOf(HasSubstr("ready"), HasSubstr("0 damaged"), Not(HasSubstr("link ")),
                                    HasSubstr("eth0) has joined: sends for \"a\"; MTU 1500"),
                                    HasSubstr("eth0) has joined: receives for \"a\"; MTU 1500")));
}
INSTANTIATE_TEST_SUITE_P(Ports, GenOver, testing::Values("af_packet", "af_xdp", "udp"),
                         [](const auto& one) { return std::string(one.param); });

// Runs on the loopback, without privileges.
TEST(GenOfAnyUser, hosts_without_a_port__use_kernel_sockets) {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  std::ofstream(file("x.toml")) << kPair;
  Process server(
      fmt::format("{} gen {} --serve unix:{} --json {}", MLTCP_PROGRAM, file("x.toml"), file("s"), file("out.json")),
      file("serve"));
  const auto host = [&](const char* ip, const char* more) {
    return fmt::format("{} gen --join unix:{} --ip {}/8 --mtu 1500 --udp-port 27510 --idle sleep {}", MLTCP_PROGRAM,
                       file("s"), ip, more);
  };
  Process first(host("127.0.0.1", "--host 0"), file("host0"));
  Process second(host("127.0.0.2", "--host 1 --port udp:lo"), file("host1"));
  ASSERT_EQ(server.finish(), 0) << server.said() << first.said() << second.said();
  EXPECT_EQ(first.finish(), 0) << first.said();
  EXPECT_EQ(second.finish(), 0) << second.said();
  EXPECT_THAT(first.said(), HasAll("no --port is given: using udp:, the kernel's UDP sockets",
                                   "host 0: 127.0.0.1/8 at udp: kernel UDP sockets on lo, MTU 1500"));
  EXPECT_THAT(second.said(), Not(HasSubstr("no --port is given")));
  EXPECT_THAT(server.said(), HasSubstr("0 damaged"));

  // Uses a key, and starts a host before the coordinator.
  for (const char* const name : {"key", "other"}) {
    std::ofstream(file(name)) << "mltcp-key-1 " << std::string(63, '0') << name[0] % 10 << "\n";
    fs::permissions(file(name), fs::perms::owner_read | fs::perms::owner_write);
  }
  const std::string key = " --authenticate --key " + file("key");
  Process early(host("127.0.0.1", ("--host 0" + key).c_str()), file("host0"));
  ASSERT_TRUE(early.says("waiting for a coordinator at unix:" + file("s") + ", for at most 60 s")) << early.said();
  Process sealed(fmt::format("{} gen {} --serve unix:{} --key fd:5 --policy fair 5<{}", MLTCP_PROGRAM, file("x.toml"),
                             file("s"), file("key")),
                 file("serve"));
  ASSERT_TRUE(early.says("joined the experiment")) << early.said() << sealed.said();
  Process keyless(host("127.0.0.3", "--host 1"), file("host2"));
  EXPECT_EQ(keyless.finish(), 1);
  EXPECT_THAT(keyless.said(), HasSubstr("has a key, but this end has none: start this end with --key FILE"));
  Process other(host("127.0.0.3", ("--host 1 --key " + file("other")).c_str()), file("host2"));
  EXPECT_EQ(other.finish(), 1);
  EXPECT_THAT(other.said(), HasSubstr("has another key"));
  Process late(host("127.0.0.2", ("--host 1" + key).c_str()), file("host1"));
  ASSERT_EQ(sealed.finish(), 0) << sealed.said() << early.said() << late.said();
  EXPECT_THAT(sealed.said(),
              HasAll("0 damaged", "refused a host: it uses no key", "refused a host: it has another key"));
  EXPECT_EQ(early.finish(), 0) << early.said();
  EXPECT_EQ(late.finish(), 0) << late.said();

  Process lost(host("203.0.113.5", ""), file("host2"));
  EXPECT_EQ(lost.finish(), 2);
  EXPECT_THAT(lost.said(), HasSubstr("this machine does not have 203.0.113.5, but lo 127.0.0.1"));
}

TEST_F(Gen, three_hosts_around_a_switch__run_ranks_that_share_a_port) {
  const Namespace middle;
  const std::unique_ptr<Process> bridge = make_star(middle, "200Mbps");
  if (bridge == nullptr) GTEST_SKIP() << "this machine makes no network namespaces with veth (unshare -n, ip link)";
  ASSERT_TRUE(bridge->says("ready")) << bridge->said();
  const auto server = serve(R"(
    iterations = 3
    policies = ["mltcp"]
    [topology]
    kind = "single-switch"
    hosts = 3
    host_rate = "200 Mbps"
    [[job]]
    name = "all"
    pattern = "all-reduce"
    size = "300 kB"
    compute = "5 ms"
    hosts = [2, 0, 1]
    [[job]]
    name = "ring"
    phases = [{ compute = "5 ms" }, { communicate = "100 kB", overlap = true }, { compute = "2 ms" },
              { communicate = "100 kB", rate = "50 Mbps" }]
    hosts = [0, 1]
    jitter = "1 ms"
    flows = 2
  )",
                            "--json " + file("out.json").string());
  std::vector<std::unique_ptr<Process>> hosts;
  for (std::size_t i = 0; i < 3; ++i) hosts.push_back(host(i));
  ASSERT_EQ(server->finish(), 0) << server->said();
  for (const auto& one : hosts) EXPECT_EQ(one->finish(), 0) << one->said();
  EXPECT_THAT(hosts[0]->said(), HasSubstr("2 ranks"));
  const json run = results()["runs"][0];
  ASSERT_EQ(run["jobs"].size(), 2U);
  for (std::size_t job = 0; job < 2; ++job) {
    EXPECT_EQ(run["jobs"][job]["iteration_ns"].size(), 3U);
    EXPECT_EQ(run["jobs"][job]["bytes"], job == 0 ? 3 * 1'200'000 : 3 * 400'000);
    EXPECT_EQ(run["jobs"][job]["checksum_errors"], 0);
    ASSERT_EQ(run["jobs"][job]["ranks"].size(), job == 0 ? 3U : 2U);
    for (const json& rank : run["jobs"][job]["ranks"]) {
      EXPECT_LE(rank["p50_ns"], rank["p99_ns"]);
      EXPECT_LE(rank["p99_ns"], run["jobs"][job]["p99_ns"]) << "a job takes as long as its slowest rank";
    }
  }
  const json& all = run["jobs"][0];
  for (std::size_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(all["ranks"][rank]["rank"], rank);
    EXPECT_EQ(all["ranks"][rank]["host"], (rank + 2) % 3);
    EXPECT_GE(all["ranks"][rank]["communication_ns"], 16'000'000) << "400 kB each at 200 Mbps";
  }
  EXPECT_LE(all["communication_ns"].get<double>(), all["mean_ns"].get<double>() - 5e6);
  EXPECT_GT(all["bus_bandwidth_bps"], 0);
  EXPECT_LE(all["bus_bandwidth_bps"], 200'000'000);
  EXPECT_NEAR(all["bus_bandwidth_bps"].get<double>(), all["algorithm_bandwidth_bps"].get<double>() * 4 / 3, 2);
  EXPECT_FALSE(run["jobs"][1].contains("bus_bandwidth_bps")) << "phases are no collective";
  EXPECT_THAT(server->said(),
              AllOf(ContainsRegex("mltcp: bus bandwidth of all [0-9.]+ Mbps\n"), Not(HasSubstr("of ring "))));
  EXPECT_THAT(server->said(), HasSubstr("(10.79.0.1, af_packet:eth0) has joined: rank 1 of \"all\", rank 0 of "
                                        "\"ring\"; MTU 1500"));
  for (const json& time : run["jobs"][1]["iteration_ns"]) EXPECT_GE(time, 16'000'000) << "100 kB at 50 Mbps take 16 ms";
}

/// Returns an experiment so long that it is still running when the test interferes.
std::string endless() {
  std::string text = kPair;
  return text.replace(text.find("iterations = 4"), 14, "iterations = 100000");
}

TEST_F(Gen, killed_host__ends_all_and_is_named) {
  MAKE_PAIR();
  const auto server = serve(endless());
  const auto first = host(0);
  const auto second = host(1);
  ASSERT_TRUE(server->says("ready")) << server->said() << first->said() << second->said();
  second->signal(SIGKILL);
  EXPECT_EQ(server->finish(), 1);
  EXPECT_THAT(server->said(), HasSubstr("mltcp: host 1 (10.79.0.2, af_packet:eth0) closed the connection"));
  EXPECT_EQ(first->finish(), 1);
  EXPECT_THAT(first->said(), HasSubstr("the experiment has failed: host 1"));
}

class GenLink : public Gen, public testing::WithParamInterface<std::tuple<const char*, const char*, const char*>> {};

// If a link comes back in time, the experiment continues and its results report the outage.
TEST_F(Gen, link_that_goes_for_a_moment__is_told_everywhere) {
  MAKE_PAIR();
  // Waits until the links are up, which the kernel reports with a delay.
  for (const auto& one : hosts_)
    ASSERT_TRUE(
        shell(one->in("timeout 20 sh -c 'until ip -o link show eth0 | grep -q \"state UP\"; do sleep 0.05; done'")));
  const auto server = serve(kPair, "--policy fair --iterations 300 --json " + file("out.json").string());
  const auto first = host(0);
  const auto second = host(1);
  ASSERT_TRUE(server->says("policy fair ...")) << server->said() << first->said() << second->said();
  ASSERT_TRUE(shell(hosts_[1]->in("ip link set eth0 down")));
  ASSERT_TRUE(second->says("port af_packet:eth0 has no link: interface eth0 ")) << second->said();
  ASSERT_TRUE(server->says("host 1 (10.79.0.2, af_packet:eth0): its port has no link: ")) << server->said();
  ASSERT_TRUE(shell(hosts_[1]->in("ip link set eth0 up")));
  EXPECT_EQ(server->finish(), 0) << server->said() << second->said();
  EXPECT_EQ(second->finish(), 0);
  EXPECT_THAT(second->said(), ContainsRegex("port af_packet:eth0 had no link for [0-9.]+ s\n"));
  EXPECT_THAT(
      server->said(),
      AllOf(ContainsRegex("host 1 \\(10.79.0.2, af_packet:eth0\\): its port had no link for [0-9.]+ s; measurements "
                          "during that time are unreliable\n"),
            ContainsRegex("fair: host 1's port af_packet:eth0 had no link for [0-9.]+ s, from [0-9.]+ s on\n")));
  const json run = results()["runs"][0];
  ASSERT_TRUE(run.contains("link_outages")) << server->said();
  const auto outage = std::find_if(run["link_outages"].begin(), run["link_outages"].end(),
                                   [](const json& one) { return one["host"] == 1; });
  ASSERT_NE(outage, run["link_outages"].end());
  EXPECT_EQ((*outage)["port"], "af_packet:eth0");
  EXPECT_GT((*outage)["duration_ns"], 0);
  EXPECT_LT((*outage)["duration_ns"], 3'000'000'000);
  EXPECT_LE((*outage)["start_ns"], run["duration_ns"]);
}

// Either host may be the first to report the link.
TEST_P(GenLink, link_that_goes__is_told_with_its_port_and_the_cure) {
  const auto& [kind, command, why] = GetParam();
  MAKE_PAIR();
  if (std::string(kind) == "af_xdp") {
    const int xdp = socket(AF_XDP, SOCK_RAW, 0);
    if (xdp < 0) GTEST_SKIP() << "this kernel or user has no AF_XDP";
    close(xdp);
  }
  const auto server = serve(endless());
  const auto first = host(0, kind);
  const auto second = host(1, kind);
  ASSERT_TRUE(server->says("policy fair ...")) << server->said() << first->said() << second->said();
  ASSERT_TRUE(shell(hosts_[1]->in(command)));
  EXPECT_EQ(server->finish(), 1);
  EXPECT_EQ(first->finish(), 1);
  EXPECT_EQ(second->finish(), 1);
  EXPECT_THAT(server->said(),
              ContainsRegex(fmt::format("mltcp: host [01] \\(10.79.0.[12], {0}:eth0\\): its port {0}:eth0 has had no "
                                        "link for 3 s: interface eth0 ({1}).*, and start all hosts again\n",
                                        kind, why)));
}
INSTANTIATE_TEST_SUITE_P(
    Ways, GenLink,
    testing::Values(std::tuple("af_packet", "ip link set eth0 down", "is down; bring it up|has no carrier; check"),
                    std::tuple("af_packet", "ip link del eth0", "no longer exists; create it again"),
                    std::tuple("af_xdp", "ip link set eth0 down", "is down; bring it up|has no carrier; check"),
                    std::tuple("af_xdp", "ip link del eth0", "no longer exists; create it again")),
    [](const auto& one) {
      return fmt::format("{}_{}", std::get<0>(one.param),
                         std::string(std::get<1>(one.param)).ends_with("down") ? "down" : "gone");
    });

// The kernel leaves checksums to the interface, but veth does not compute them. The switch must report wrong checksums,
// so that a user finds out why a connection does not open.
TEST_F(Gen, switch__tells_of_wrong_checksums_while_it_runs) {
  const Namespace middle;
  const std::unique_ptr<Process> bridge = make_star(middle, "200Mbps");
  if (bridge == nullptr) GTEST_SKIP() << "this machine makes no network namespaces with veth (unshare -n, ip link)";
  ASSERT_TRUE(bridge->says("ready")) << bridge->said();
  ASSERT_TRUE(shell(hosts_[0]->in("ip address add 10.79.0.1/24 dev eth0")));
  ASSERT_TRUE(shell(hosts_[0]->in("ip neighbour add 10.79.0.2 lladdr 02:00:00:00:00:02 dev eth0")));
  ASSERT_TRUE(shell(hosts_[0]->in("bash -c 'echo x >/dev/udp/10.79.0.2/9; echo y >/dev/udp/10.79.0.2/9'")));
  const std::string frames = " arrived with a wrong TCP or UDP checksum, and receivers drop such frames; ";
  EXPECT_TRUE(bridge->says("mltcp: warning: port af_packet:p0: at least ")) << bridge->said();
  bridge->signal(SIGINT);
  EXPECT_EQ(bridge->finish(), 0);
  const std::string said = bridge->said();
  const std::size_t live = said.find(frames);
  ASSERT_NE(live, std::string::npos) << said;
  EXPECT_LT(live, said.find(" rounds in ")) << "before it ends, and again then: " << said;
  EXPECT_NE(said.find("at least 2 frames" + frames, live + 1), std::string::npos) << said;
}

// The links of both hosts stay up, so connections give up only after 30 s.
TEST_F(Gen, way_that_breaks_between_ports__is_told_with_both_hosts) {
  const Namespace middle;
  const std::unique_ptr<Process> bridge = make_star(middle, "200Mbps");
  if (bridge == nullptr) GTEST_SKIP() << "this machine makes no network namespaces with veth (unshare -n, ip link)";
  ASSERT_TRUE(bridge->says("ready")) << bridge->said();
  const auto server = serve(endless());
  const auto first = host(0);
  const auto second = host(1);
  ASSERT_TRUE(server->says("policy fair ...")) << server->said() << first->said() << second->said();
  // Waits until port p0 has received 10 MB, which is more than the job sends while it is measured alone.
  ASSERT_TRUE(
      shell(middle.in("timeout 60 sh -c 'until awk \"/p0:/ { exit !(\\$2 > 10000000) }\" /proc/net/dev; do sleep "
                      "0.05; done'")));
  bridge->signal(SIGKILL);
  EXPECT_EQ(server->finish(), 1);
  EXPECT_THAT(
      server->said(),
      ContainsRegex("mltcp: host ([01]) .*: job \"a\": rank [01]: a connection ended before the job did "
                    "\\(unreachable\\), to rank ([01]) on host [01] \\(10.79.0.[12]:62400\\); the link is up here: "
                    "check the port of host [01] and the network between the hosts, and start all hosts again\n"));
  EXPECT_EQ(first->finish(), 1);
  EXPECT_EQ(second->finish(), 1);
}

TEST_F(Gen, interrupted_host__ends_all_in_order) {
  MAKE_PAIR();
  const auto server = serve(endless());
  const auto first = host(0);
  const auto second = host(1);
  ASSERT_TRUE(server->says("ready"));
  first->signal(SIGINT);
  EXPECT_EQ(first->finish(), 1);
  EXPECT_THAT(first->said(), HasSubstr("interrupted by the user; the coordinator was notified"));
  EXPECT_EQ(server->finish(), 1);
  EXPECT_THAT(server->said(), HasSubstr("host 0 (10.79.0.1, af_packet:eth0): interrupted by the user"));
  EXPECT_EQ(second->finish(), 1);
}

TEST_F(Gen, interrupted_coordinator__ends_all_in_order) {
  MAKE_PAIR();
  const auto server = serve(endless());
  const auto first = host(0);
  const auto second = host(1);
  ASSERT_TRUE(server->says("ready"));
  server->signal(SIGTERM);
  EXPECT_EQ(server->finish(), 1);
  EXPECT_EQ(first->finish(), 1);
  EXPECT_EQ(second->finish(), 1);
  EXPECT_THAT(second->said(), HasSubstr("the experiment has failed: ended by SIGTERM"));
  EXPECT_FALSE(fs::exists(file("s"))) << "the socket goes with the coordinator";
}

TEST_F(Gen, killed_coordinator__ends_hosts_and_leaves_a_socket_that_can_be_used_again) {
  MAKE_PAIR();
  {
    const auto server = serve(endless());
    const auto first = host(0);
    const auto second = host(1);
    ASSERT_TRUE(server->says("ready"));
    server->signal(SIGKILL);
    EXPECT_EQ(first->finish(), 1);
    EXPECT_THAT(first->said(),
                HasSubstr("the coordinator at " + address() + " closed the connection before the experiment ended"));
    EXPECT_EQ(second->finish(), 1);
  }
  const auto server = serve(kPair, "--policy fair --iterations 2");
  const auto first = host(0);
  const auto second = host(1);
  EXPECT_EQ(server->finish(), 0) << server->said();
}

TEST_F(Gen, host_that_does_not_come__is_named_with_the_cure) {
  MAKE_PAIR();
  // On a slow machine, the first host may not join within a short wait, so the test tries longer waits.
  for (const int wait : {3, 15, 60}) {
    const auto server = serve(kPair, fmt::format("--wait {}s", wait));
    const auto first = host(0);
    EXPECT_EQ(server->finish(), 1);
    EXPECT_EQ(first->finish(), 1);
    if (wait < 60 && server->said().find("2 of 2 hosts did not join") != std::string::npos) continue;
    EXPECT_THAT(server->said(), HasAll(fmt::format("1 of 2 hosts did not join within {} s: host 1 (receives "
                                                   "for \"a\")",
                                                   wait),
                                       "run mltcp gen --join unix:"));
    return;
  }
}

TEST_F(Gen, hosts_with_one_number__are_told_and_the_others_go_on) {
  MAKE_PAIR();
  const auto server = serve(kPair, "--policy fair --iterations 2");
  const auto first = host(0);
  ASSERT_TRUE(server->says("host 0 (10.79.0.1, af_packet:eth0) has joined"));
  const auto twin = start("twin", fmt::format("{} gen --join {} --port af_packet:eth0 --ip 10.79.0.3/24 --host 0",
                                              MLTCP_PROGRAM, address()));
  EXPECT_EQ(twin->finish(), 1);
  EXPECT_THAT(twin->said(), HasSubstr("both have host number 0; give each its own number with --host"));
  const auto second = host(1);
  EXPECT_EQ(server->finish(), 0) << server->said();
}

TEST_F(Gen, host_that_comes_too_late__is_told_so) {
  MAKE_PAIR();
  const auto server = serve(kPair, "--iterations 100000");
  const auto first = host(0);
  const auto second = host(1);
  ASSERT_TRUE(server->says("ready")) << server->said();
  ASSERT_TRUE(shell(
      hosts_[0]->in("sh -c 'ip link add eth1 type veth peer name far1; ip link set far1 up; ip link set eth1 up'")));
  const auto late = start("late", hosts_[0]->in(fmt::format("{} gen --join {} --port af_packet:eth1 --ip 10.79.0.9/24",
                                                            MLTCP_PROGRAM, address())));
  EXPECT_EQ(late->finish(), 1);
  EXPECT_THAT(late->said(), HasSubstr("the coordinator refused this host: (10.79.0.9, af_packet:eth1) is not needed, "
                                      "because all 2 hosts of the experiment have joined; do not start it"));
  server->signal(SIGINT);
  EXPECT_EQ(server->finish(), 1) << server->said();
}

TEST_F(Gen, unknown_peers__are_turned_away_and_the_others_go_on) {
  MAKE_PAIR();
  const auto server = serve(kPair, "--policy fair --iterations 2");
  ASSERT_TRUE(server->says("listening"));
  std::vector<int> unknown_peers;
  for (const std::string_view text : {std::string_view("GET / HTTP/1.0\r\n\r\n"), std::string_view("\0\0\0\2{}", 6),
                                      std::string_view("\0\0\0\5hello", 9),
                                      std::string_view("\0\0\0\x24{\"type\":\"join\",\"version\":2000000}  ", 40),
                                      std::string_view("\0\0\0\x1f{\"type\":\"join\",\"version\":1e300}", 35),
                                      std::string_view("\0\0\0\x1a{\"type\":\"join\",\"version\":3}", 31)}) {
    const int unknown_peer = unknown_peers.emplace_back(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::strcpy(static_cast<char*>(to.sun_path), file("s").c_str());
    ASSERT_EQ(connect(unknown_peer, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    ASSERT_EQ(send(unknown_peer, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  const auto first = host(0);
  const auto second = host(1);
  EXPECT_EQ(server->finish(), 0) << server->said();
  EXPECT_THAT(server->said(), HasAll("is not a host sends a message of", "it uses version 2000000",
                                     "\"version\" is \"1e+300\", not a whole number"));
  for (const int unknown_peer : unknown_peers) close(unknown_peer);
}

TEST_F(Gen, hosts_without_a_network__are_named_with_the_cure) {
  for (int host = 0; host < 2; ++host) hosts_.push_back(std::make_unique<Namespace>());
  const Namespace nowhere;
  if (!nowhere.ready() || !hosts_[0]->join("eth0", nowhere, "x0") || !hosts_[1]->join("eth0", nowhere, "x1"))
    GTEST_SKIP() << "this machine makes no network namespaces with veth (unshare -n, ip link)";
  for (const int wait : {5, 20, 60}) {
    const auto server = serve(kPair, fmt::format("--wait {}s", wait));
    const auto first = host(0);
    const auto second = host(1);
    EXPECT_EQ(server->finish(), 1);
    EXPECT_EQ(first->finish(), 1);
    EXPECT_EQ(second->finish(), 1);
    // The machine was too slow for this wait, so try a longer one.
    if (wait < 60 && server->said().find("did not join") != std::string::npos) continue;
    EXPECT_THAT(server->said(), HasAll("job \"a\": host 0 (10.79.0.1, af_packet:eth0): no connection to host 1",
                                       "no host answers for its address", "on the same network"));
    return;
  }
}

TEST_F(Gen, ports_without_a_link__are_told_with_the_cure) {
  for (int host = 0; host < 2; ++host) hosts_.push_back(std::make_unique<Namespace>());
  const Namespace nowhere;
  if (!nowhere.ready() || !hosts_[0]->join("eth0", nowhere, "x0") || !hosts_[1]->join("eth0", nowhere, "x1") ||
      !shell(nowhere.in("ip link set x0 down")) || !shell(nowhere.in("ip link set x1 down")))
    GTEST_SKIP() << "this machine makes no network namespaces with veth (unshare -n, ip link)";
  // Waits until the links are down, which the kernel reports with a delay.
  for (const auto& one : hosts_)
    ASSERT_TRUE(
        shell(one->in("timeout 20 sh -c 'until ip -o link show eth0 | grep -q NO-CARRIER; do sleep 0.05; done'")));
  for (const int wait : {5, 20, 60}) {
    const auto server = serve(kPair, fmt::format("--wait {}s", wait));
    const auto first = host(0);
    const auto second = host(1);
    EXPECT_EQ(server->finish(), 1);
    EXPECT_EQ(first->finish(), 1);
    EXPECT_EQ(second->finish(), 1);
    // The machine was too slow for this wait, so try a longer one.
    if (wait < 60 && server->said().find("did not join") != std::string::npos) continue;
    EXPECT_THAT(server->said(),
                HasSubstr("no connection to host 1 (10.79.0.2:62400): its port af_packet:eth0 has no link: interface "
                          "eth0 has no carrier; check its cable, or bring the interface at its other end up"));
    return;
  }
}

TEST_F(Gen, port_that_can_not_be_opened__is_told_before_the_host_joins) {
  MAKE_PAIR();
  const auto server = serve(kPair, "--policy fair --iterations 2");
  const auto first = host(0);
  const auto wrong =
      start("wrong", hosts_[1]->in(fmt::format("{} gen --join {} --port memif:{} --ip 10.79.0.2/24 --host 1",
                                               MLTCP_PROGRAM, address(), file("nobody").string())));
  EXPECT_EQ(wrong->finish(), 1);
  EXPECT_THAT(wrong->said(), HasSubstr("no process listens on"));
  // A host with the same port reports the same error if there is no coordinator. Afterwards, another process can join
  // as the second host.
  const auto alone =
      start("alone", hosts_[1]->in(fmt::format("{} gen --join {} --port memif:{} --ip 10.79.0.2/24", MLTCP_PROGRAM,
                                               "unix:" + file("none").string(), file("nobody").string())));
  EXPECT_EQ(alone->finish(), 1);
  EXPECT_THAT(alone->said(), HasSubstr("no process listens on"));
  const auto second = host(1);
  EXPECT_EQ(server->finish(), 0) << server->said();
  EXPECT_EQ(first->finish(), 0);
}

TEST_F(Gen, host_with_wrong_options__says_so_before_it_joins) {
  MAKE_PAIR();
  ASSERT_TRUE(shell(hosts_[1]->in("ip address add 10.79.0.77/24 dev eth0")));
  const auto server = serve(kPair, "--policy fair --iterations 2");
  const auto first = host(0);
  for (const auto& [options, expected] :
       {std::pair("--port af_packet:eth9 --ip 10.79.0.2/24", "there is no interface \"eth9\""),
        std::pair("--port af_packet:eth0 --ip 10.79.0.2/24 --mtu 9000", "eth0 has 1500"),
        std::pair("--port af_packet:eth0 --ip 10.79.0.77/24", "this host's kernel has that address on eth0"),
        std::pair("--port af_packet:eth0 --ip 10.79.0.2/24 --cores 99999", "99999"),
        std::pair("--port af_packet:eth0 --ip 10.79.0.2/24 --policy fair --seed 3",
                  "--policy, --seed: an option of the coordinator, but --join starts a host")}) {
    const auto wrong =
        start("wrong", hosts_[1]->in(fmt::format("{} gen --join {} --host 1 {}", MLTCP_PROGRAM, address(), options)));
    EXPECT_EQ(wrong->finish(), 2);
    EXPECT_THAT(wrong->said(), HasSubstr(expected));
  }
  const auto second = host(1);
  EXPECT_EQ(server->finish(), 0) << server->said();
}

TEST_F(Gen, interrupted_between_policies__keeps_those_that_were_run) {
  MAKE_PAIR();
  const auto server = serve(kPair, "--iterations 60 --json " + file("out.json").string());
  const auto first = host(0);
  const auto second = host(1);
  ASSERT_TRUE(server->says("policy mltcp ..."));
  server->signal(SIGINT);
  EXPECT_EQ(server->finish(), 1);
  EXPECT_THAT(server->said(), HasSubstr("1 of 2 policies is complete"));
  const json results = this->results();
  ASSERT_EQ(results["runs"].size(), 1U);
  EXPECT_EQ(results["runs"][0]["policy"], "fair");
  expect_iterations(results["runs"][0], 60, 250'000);
}

TEST_F(Gen, schedule__holds_jobs_to_slots_on_the_bottleneck) {
  const Namespace middle;
  const std::unique_ptr<Process> bridge = make_star(middle, "100Mbps");
  if (bridge == nullptr) GTEST_SKIP() << "this machine makes no network namespaces with veth (unshare -n, ip link)";
  ASSERT_TRUE(bridge->says("ready")) << bridge->said();
  // If the machine delays the measurement, jobs get no slots but a warning. Three such runs in a row are unlikely.
  json run;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto server = serve(R"(
    iterations = 5
    policies = ["schedule"]
    [bottleneck]
    rate = "100 Mbps"
    [[job]]
    name = "a"
    count = 2
    compute = "60 ms"
    communicate = "250 kB"
  )",
                              "--json " + file("out.json").string());
    std::vector<std::unique_ptr<Process>> hosts;
    for (std::size_t i = 0; i < 3; ++i) hosts.push_back(host(i));
    ASSERT_EQ(server->finish(), 0) << server->said();
    run = results()["runs"][0];
    EXPECT_EQ(run["schedule"]["links"], 1);
    ASSERT_EQ(run["schedule"]["slots"].size() + run["schedule"]["without_slots"].size(), 2U) << run["schedule"];
    for (const json& reason : run["schedule"]["reasons"]) EXPECT_NE(reason, "");
    if (run["schedule"]["slots"].size() == 2) break;
  }
  ASSERT_EQ(run["schedule"]["slots"].size(), 2U) << run["schedule"];
  EXPECT_NE(run["jobs"][0]["time_shift_ns"], run["jobs"][1]["time_shift_ns"]);
}

TEST_F(Gen, mpi__starts_hosts_whose_numbers_are_ranks) {
  if (!shell("which mpirun")) GTEST_SKIP() << "there is no mpirun (Debian: openmpi-bin)";
  if (!fs::exists(MLTCP_MPI_MODULE)) GTEST_SKIP() << "built without MPI (Debian: libopenmpi-dev)";
  // MPI processes connect over the loopback interface, so all of them are in one namespace, each with its own port.
  const Namespace place;
  std::string ports;
  for (int i = 0; i < 3; ++i) {
    // The interface indices are far apart, because the exclusive or of process number and index must differ between
    // these processes (dpdk/port.cpp).
    if (!place.ready() ||
        !place.join(fmt::format("m{}", i), place, fmt::format("p{}", i), fmt::format("index {}", 4096 * (i + 1))))
      GTEST_SKIP() << "this machine makes no network namespaces with veth (unshare -n, ip link)";
    ports += fmt::format(" --port af_packet:p{}", i);
  }
  const auto bridge = start("switch", place.in(fmt::format("{} switch{} --idle sleep", MLTCP_PROGRAM, ports)));
  ASSERT_TRUE(bridge->says("ready")) << bridge->said();
  const std::string mpirun =
      "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 3";
  const std::string own = " --mpi --port af_packet:m%r --ip 10.79.0.1%r/24 --idle sleep";
  std::string text = kPair;
  text += "  count = 2\n";
  const auto job = start("mpi", place.in(fmt::format("{} {} gen {} --json {} {}", mpirun, MLTCP_PROGRAM,
                                                     experiment(text).string(), file("out.json").string(), own)));
  ASSERT_EQ(job->finish(), 0) << job->said();
  const json results = this->results();
  ASSERT_EQ(results["runs"].size(), 2U);
  for (const json& run : results["runs"]) {
    EXPECT_EQ(run["jobs"].size(), 2U);
    expect_iterations(run, 4, 250'000);
  }
  EXPECT_THAT(job->said(), HasSubstr("host 2: 10.79.0.12/24"));

  const auto too_many =
      start("many", place.in(fmt::format("{} {} gen {} {}", mpirun, MLTCP_PROGRAM, experiment(kPair).string(), own)));
  EXPECT_NE(too_many->finish(), 0);
  EXPECT_THAT(too_many->said(),
              HasSubstr("MPI has started 3 processes, numbers 0 to 2, but the experiment's hosts are 0, 1"));
}

TEST_F(Gen, command_line__is_checked) {
  const auto says = [&](const std::string& words, const std::string& text) {
    const auto process = start("words", fmt::format("{} gen {}", MLTCP_PROGRAM, words));
    EXPECT_EQ(process->finish(), 2) << words;
    EXPECT_THAT(process->said(), HasSubstr(text)) << words;
  };
  const std::string toml = experiment(kPair).string();
  says("", "the role of this process is missing");
  says(toml + " --serve " + address() + " --join " + address(), "the role of this process is missing");
  says("--serve " + address(), "no experiment is given");
  says(toml + " --serve nowhere", "there is no port; write HOST:PORT, [IPv6]:PORT or unix:/path");
  says(toml + " --serve " + address() + " --port af_packet:eth0",
       "--port: an option of hosts, but --serve starts the coordinator");
  says("--join " + address(), "a host needs an address");
  says("--join " + address() + " --port af_packet:eth0 --ip 10.0.0.1", "no prefix length");
  says("--join " + address() + " --port af_packet:eth0 --ip ten/24", "no IP address");
  says("--join " + address() + " --port eth0 --ip 10.0.0.1/24", "is no kind of port");
  says("--join " + address() + " --port af_packet:eth0 --ip 10.0.0.1/24 --wait soon", "--wait: ");
  says(toml + " --serve " + address() + " --key " + file("no.key").string(), "--key: ");
  std::ofstream(file("open.key")) << "mltcp-key-1 " << std::string(64, '1') << "\n";
  fs::permissions(file("open.key"), fs::perms::owner_read | fs::perms::others_read);
  says("--join " + address() + " --ip 10.0.0.1/24 --key " + file("open.key").string(), "open.key");
  says("--join " + address() + " --ip 10.0.0.1/24 --authenticate", "--authenticate: there is no key; give --key FILE");
  says(toml + " --serve " + address() + " --authenticate", "--authenticate: an option of hosts");
}

}  // namespace
}  // namespace mltcp::tools
