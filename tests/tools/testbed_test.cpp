// Tests `mltcp testbed` as users see it: its error messages, the programs that run in it, and that it always cleans up.
// Tests that need namespaces are skipped if this machine does not permit them.
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "../matchers.h"
#include "../started_program.h"

namespace mltcp::tools {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Words = std::vector<std::string>;

/// Returns the target of a link in /proc, such as "net:[4026532177]"; empty if the link does not exist.
std::string link_of(const fs::path& path) {
  std::error_code none;
  return fs::read_symlink(path, none).string();
}

/// Calls `visit` with the folder in /proc of each process.
void each_process(const std::function<void(const fs::path&)>& visit) {
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0])) != 0) visit(entry.path());
}

/// Returns all namespaces in which a process runs or that a process holds open.
std::set<std::string> namespaces_in_use() {
  std::set<std::string> found;
  each_process([&](const fs::path& process) {
    found.insert(link_of(process / "ns/pid"));
    found.insert(link_of(process / "ns/net"));
    std::error_code gone;
    for (const auto& file : fs::directory_iterator(process / "fd", gone)) found.insert(link_of(file.path()));
  });
  return found;
}

/// A running `mltcp testbed`.
class Started : public StartedProgram {
 public:
  /// `before` is a command that starts the testbed, for example one that changes the user.
  Started(const Words& arguments, const fs::path& folder, const std::string& name, const Words& before = {})
      : StartedProgram(words(arguments, folder, before), folder, name) {}

  [[nodiscard]] bool is_up() { return says("the testbed is running", std::chrono::seconds(20)) && runs(); }
  /// Returns all namespaces that the testbed and its processes have created.
  [[nodiscard]] std::set<std::string> namespaces() const {
    std::set<std::string> found;
    each_process([&](const fs::path& one) {
      const std::string parent = "PPid:\t" + std::to_string(process()) + "\n";
      if (content(one / "status").find(parent) == std::string::npos) return;
      const std::string own_pids = link_of(one / "ns/pid");
      if (own_pids == link_of("/proc/self/ns/pid")) return;  // the guard process, which stays in this PID namespace
      found.insert(own_pids);
      for (const auto& file : fs::directory_iterator(one / "fd"))
        if (const std::string is = link_of(file.path()); is.rfind("net:", 0) == 0) found.insert(is);
    });
    return found;
  }

 private:
  static Words words(const Words& arguments, const fs::path& folder, Words before) {
    before.insert(before.end(), {"env", "TMPDIR=" + (folder / "tmp").string(), MLTCP_PROGRAM, "testbed"});
    before.insert(before.end(), arguments.begin(), arguments.end());
    return before;
  }
};

class TestbedCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(folder_ / "tmp");
    interfaces_ = interfaces();
    std::ofstream(folder_ / "e.toml") << R"(
iterations = 3
policies = ["fair", "mltcp"]
[bottleneck]
rate = "100 Mbps"
delay = "10 us"
buffer = "75 kB"
[[job]]
name = "a"
compute = "20 ms"
communicate = "150 kB"
[[job]]
name = "b"
compute = "20 ms"
communicate = "150 kB"
)";
  }
  void TearDown() override {
    EXPECT_TRUE(soon([&] { return fs::is_empty(folder_ / "tmp"); })) << "files are left";
    EXPECT_EQ(interfaces(), interfaces_);
  }

  static std::set<std::string> interfaces() {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator("/sys/class/net")) names.insert(entry.path().filename().string());
    return names;
  }
  /// Returns the reason why this machine cannot run a testbed; empty if it can.
  static std::string obstacle() {
    if (geteuid() != 0) return "namespaces need root";
    const pid_t child = fork();
    if (child == 0) _exit(unshare(CLONE_NEWPID | CLONE_NEWNET) == 0 ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return "this machine makes no namespaces";
    return std::system("ip link help >/dev/null 2>&1; [ $? -ne 127 ]") == 0 ? "" : "iproute2 is not installed";
  }
  [[nodiscard]] Started start(const Words& arguments, const std::string& name = "run") const {
    return {arguments, folder_, name};
  }
  /// Runs the testbed and expects that it rejects its input with one line of error message. Returns this line.
  [[nodiscard]] std::string refusal(const Words& arguments) const {
    Started run = start(arguments);
    EXPECT_EQ(run.finish(), 2) << run.err();
    const std::string said = run.err();
    EXPECT_THAT(said, StartsWith("mltcp: "));
    EXPECT_EQ(said.find('\n'), said.size() - 1) << said;
    return said;
  }

  TemporaryFolder folder_;
  std::set<std::string> interfaces_;
};

TEST_F(TestbedCommand, bad_input__is_refused_in_one_line) {
  EXPECT_THAT(refusal({}), HasSubstr("give an experiment, or --hosts"));
  EXPECT_THAT(refusal({"e.toml", "--hosts", "2"}), HasSubstr("give an experiment, or --hosts"));
  EXPECT_THAT(refusal({"none.toml"}), HasSubstr("none.toml"));
  EXPECT_THAT(refusal({"--hosts", "2"}), HasSubstr("add --command, --shell or --keep"));
  EXPECT_THAT(refusal({"--hosts", "64", "--keep"}), HasSubstr("from 2 to 63"));
  EXPECT_THAT(refusal({"--hosts", "2", "--keep", "--rate", "fast"}), HasSubstr("--rate"));
  EXPECT_THAT(refusal({"--hosts", "2", "--keep", "--mtu", "9000"}), HasSubstr("AF_XDP on veth carries 3490 at most"));
  EXPECT_THAT(refusal({"--hosts", "2", "--keep", "--json", "x"}), HasSubstr("--json"));
  EXPECT_THAT(refusal({"--hosts", "2", "--keep", "--cores", "4095"}), HasSubstr("4095"));
  EXPECT_THAT(refusal({"e.toml", "--rate", "1Gbps"}), HasSubstr("--rate is for --hosts"));
  EXPECT_THAT(refusal({"e.toml", "--command", "true"}), HasSubstr("--command is for --hosts"));
  EXPECT_THAT(refusal({"e.toml", "--device", "tap"}), HasSubstr("--device"));
  EXPECT_THAT(refusal({"e.toml", "--", "--json", "x"}), HasSubstr("write it before"));
  EXPECT_THAT(refusal({"e.toml", "--", "--key", "x"}), HasSubstr("hosts need it as well; write it before"));
  EXPECT_THAT(refusal({"e.toml", "--device", "af_packet", "--key", "no.key"}), HasSubstr("no.key"));
  EXPECT_THAT(refusal({"e.toml", "--device", "af_packet", "--authenticate"}), HasSubstr("there is no key"));
  EXPECT_THAT(refusal({"e.toml", "--", "--authenticate"}), HasSubstr("write it before"));
  EXPECT_THAT(refusal({"--hosts", "2", "--keep", "--authenticate"}),
              HasSubstr("without an experiment there is nothing to authenticate"));
  EXPECT_THAT(refusal({"--hosts", "2", "--keep", "--key", "x"}),
              HasSubstr("without an experiment there is nothing to encrypt"));
  EXPECT_THAT(refusal({"e.toml", "--json", "/nosuch/folder/x.json", "--device", "af_packet"}),
              HasSubstr("/nosuch/folder"));
  EXPECT_THAT(refusal({"e.toml", "--device", "af_packet", "--pcap", "p.json", "--series", "p-host-1.json"}),
              HasSubstr("--series and the other files: two of these options name p-host-1.json"));
  EXPECT_THAT(refusal({"e.toml", "--device", "af_packet", "--pcap", "p.json", "--json", "p-switch-0.json"}),
              HasSubstr("--json and --pcap's files: two of these options name p-switch-0.json"));
}

TEST_F(TestbedCommand, files_of_this_folder__are_nothing_to_those_of_the_testbed) {
  // The coordinator's own files have these names, but in another folder.
  for (const char* const name : {"series.json", "results.json"}) {
    fs::copy_file(folder_ / "e.toml", folder_ / name);
    Started run = start({name, "--dry-run", "--device", "af_packet", "--json", "r.json", "--series", "s.json"});
    EXPECT_EQ(run.finish(), 0) << run.err();
    EXPECT_THAT(refusal({name, "--dry-run", "--device", "af_packet", "--series", name}),
                HasSubstr("is also the input file"));
  }
}

TEST_F(TestbedCommand, dry_run__tells_each_step_and_takes_none) {
  Started run = start({"e.toml", "--dry-run", "--device", "af_packet", "--idle", "sleep", "--json", "r.json", "--",
                       "--policy", "fair"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_THAT(run.out(), HasAll("host 2 (receives for \"a\", receives for \"b\")", "link add name h2 mtu 1500 ",
                                "--port af_packet:h0,delay=10000ns --port af_packet:h1,delay=10000ns "
                                "--port af_packet:h2,rate=100000000bps,buffer=75000B,delay=10000ns --seed 1",
                                "mltcp gen e.toml --serve unix:DIR/gen --json DIR/results.json --policy fair\n",
                                "--port af_packet:eth0 --ip 10.93.0.3/12 --host 2 --mtu 1500 --idle sleep"));
  EXPECT_FALSE(fs::exists(folder_ / "r.json"));

  Started sockets = start({"e.toml", "--dry-run", "--device", "udp"}, "sockets");
  EXPECT_EQ(sockets.finish(), 0) << sockets.err();
  EXPECT_THAT(sockets.out(),
              HasAll("mltcp switch --port af_packet:h0", "--port udp:eth0 --ip 10.77.0.3/12 --host 2 --mtu 1500"));
}

TEST_F(TestbedCommand, policy_priority__gets_its_queues_wherever_it_was_asked_for) {
  for (const std::string& policy : {std::string("fair,priority"), std::string("fair")}) {
    Started run = start({"e.toml", "--dry-run", "--", "--policy", policy});
    EXPECT_EQ(run.finish(), 0) << run.err();
    EXPECT_EQ(run.out().find("classes=8") != std::string::npos, policy != "fair") << run.out();
  }
}

TEST_F(TestbedCommand, command__runs_between_hosts_that_reach_each_other) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  Started run = start({"--hosts", "3", "--device", "af_packet", "--rate", "10Mbps", "--log-dir", "logs", "--command",
                       "on 0 ip route get 10.77.0.3; on 0 bash -c 'echo hello >/dev/udp/10.77.0.3/9'; sleep 0.2; "
                       "on 2 ip neigh; on switch ip -o link; on 9 true || echo no host"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_THAT(run.out(), HasSubstr("10.77.0.3 dev eth0 src 10.77.0.1"));
  EXPECT_THAT(run.out(), HasSubstr("10.77.0.1 dev eth0 lladdr")) << "host 2 has heard of host 0";
  EXPECT_THAT(run.out(), HasAll("h2@", "no host", "the machine delayed switch 0"));
  EXPECT_THAT(content(folder_ / "logs/switch-0.log"), HasSubstr("ready af_packet:h0 af_packet:h1 af_packet:h2"));
}

/// Checks a small experiment with one process per host: all bytes must arrive. Times are not checked, because they
/// depend on the machine.
void run_experiment(const fs::path& folder, Started&& run, const std::string& device) {
  EXPECT_EQ(run.finish(), 0) << run.err() << run.out();
  EXPECT_THAT(run.out(), HasAll(" messages verified, 0 damaged", "host 2 (receives for"));
  const auto results = nlohmann::json::parse(content(folder / "r.json"));
  ASSERT_EQ(results["runs"].size(), 2U);
  std::uint64_t sent = 0;
  for (const auto& one : results["runs"]) {
    ASSERT_EQ(one["links"].size(), 3U) << "of the switch, in the time of this policy";
    const auto& link = one["links"][2];
    EXPECT_EQ(one["links"][0]["name"], "switch 0 -> host 0");
    EXPECT_EQ(link["name"], "bottleneck") << "as in virtual time";
    EXPECT_GT(link["sent_bytes"], 2 * 3 * 150'000) << "two jobs, three iterations";
    EXPECT_LT(link["sent_bytes"], 2 * 2 * 3 * 150'000) << "and not those of the other policy";
    EXPECT_GT(link["max_queue_bytes"], 1000);
    EXPECT_LE(link["max_queue_bytes"], 75'000);
    EXPECT_GT(link["utilization"], 0.02);
    EXPECT_LT(link["utilization"], 1);
    EXPECT_EQ(one["bottleneck"]["dropped_packets"], link["dropped_packets"]);
    EXPECT_EQ(one["bottleneck"]["rate_bps"], 100'000'000);
    EXPECT_FALSE(one["bottleneck"].contains("name")) << "there is but one";
    sent += link["sent_packets"].get<std::uint64_t>();
    ASSERT_EQ(one["jobs"].size(), 2U);
    for (const auto& job : one["jobs"]) EXPECT_EQ(job["iteration_ns"].size(), 3U);
  }
  EXPECT_EQ(results["testbed"]["device"], device);
  EXPECT_EQ(results["testbed"]["hosts"], (std::vector<int>{0, 1, 2}));
  ASSERT_EQ(results["switches"].size(), 1U);
  EXPECT_FALSE(results["switches"][0].contains("series"));
  EXPECT_EQ(results["provenance"]["command"][0], "mltcp");
  EXPECT_EQ(results["provenance"]["command"][1], "testbed");
  EXPECT_EQ(results["provenance"]["files"].size(), 1U);
  const auto& ports = results["switches"][0]["ports"];
  ASSERT_EQ(ports.size(), 3U);
  EXPECT_EQ(ports[2]["rate_bps"], 100'000'000);
  EXPECT_EQ(ports[2]["buffer_bytes"], 75'000);
  EXPECT_GT(ports[2]["sent_bytes"], 2 * 2 * 3 * 150'000) << "two policies, two jobs, three iterations";
  EXPECT_LE(ports[2]["max_queue_bytes"], 75'000);
  EXPECT_LT(sent, ports[2]["sent_frames"]) << "there were isolated runs, too";
  const std::string report = "cd '" + folder.string() + "' && " MLTCP_PROGRAM " report r.json >/dev/null";
  EXPECT_EQ(std::system(report.c_str()), 0);  // NOLINT(cert-env33-c)
  const std::string page = content(folder / "r.html");
  EXPECT_THAT(page, HasSubstr(results["runs"][0]["bottleneck"]["dropped_packets"].dump()));
  EXPECT_EQ(ports[0]["rate_bps"], 1'000'000'000'000'000) << "that of the highest there is";
}

std::size_t packets_in(const fs::path& capture) {
  const std::string bytes = content(capture);
  std::size_t packets = 0;
  for (std::size_t at = 0; at + 12 <= bytes.size();) {
    std::uint32_t type = 0;
    std::uint32_t length = 0;
    std::memcpy(&type, &bytes[at], sizeof type);
    std::memcpy(&length, &bytes[at + 4], sizeof length);
    if (length < 12) break;
    if (type == 6) ++packets;  // block type 6 is an enhanced packet block
    at += length;
  }
  return packets;
}

/// Compares the series of connections and of the switch's ports, which are in one file, with the results of each run.
void check_series(const fs::path& folder) {
  const auto results = nlohmann::json::parse(content(folder / "r.json"));
  const auto series = nlohmann::json::parse(content(folder / "s.json"));
  EXPECT_EQ(series["provenance"]["command"][1], "testbed");
  ASSERT_EQ(series["runs"].size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& run = series["runs"][i];
    EXPECT_EQ(run["policy"], results["runs"][i]["policy"]);
    EXPECT_EQ(run["duration_ns"], results["runs"][i]["duration_ns"]);
    const std::size_t rows = run["time_ns"].size();
    EXPECT_GT(rows, 20U) << "three iterations of some 32 ms, a row a millisecond";
    EXPECT_EQ(run["interval_ns"].get<std::int64_t>() % 1'000'000, 0);
    ASSERT_EQ(run["connections"].size(), 2U) << "a sender of each job";
    for (const auto& connection : run["connections"]) {
      EXPECT_EQ(connection["worker"], 0);
      EXPECT_EQ(connection["sent_bytes"][0].get<std::int64_t>() / 10'000, 0) << "the handshake";
      EXPECT_GT(connection["sent_bytes"][rows - 1], 3 * 150'000);
      EXPECT_GT(connection["rtt_ns"][rows - 1], 0);
      EXPECT_EQ(connection["cwnd_bytes"].size(), rows);
      EXPECT_GE(connection["iteration"][rows - 1], 2);
    }
    ASSERT_GE(run["links"].size(), 1U);
    const auto& link = run["links"].back();
    EXPECT_EQ(link["link"], "bottleneck");
    EXPECT_EQ(link["capacity_bps"], 100'000'000);
    EXPECT_EQ(link["sent_bytes"].back(), results["runs"][i]["bottleneck"]["sent_bytes"]);
    EXPECT_EQ(link["dropped_packets"].back(), results["runs"][i]["bottleneck"]["dropped_packets"]);
  }
  const std::string report =
      "cd '" + folder.string() + "' && " MLTCP_PROGRAM " report r.json --series s.json >/dev/null";
  EXPECT_EQ(std::system(report.c_str()), 0);  // NOLINT(cert-env33-c)
}

TEST_F(TestbedCommand, experiment__runs_over_af_packet) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  run_experiment(folder_, start({"e.toml", "--device", "af_packet", "--json", "r.json"}), "af_packet");
}

TEST_F(TestbedCommand, series_that_can_not_be_written__cost_no_results) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  fs::create_symlink("/dev/full", folder_ / "full.json");
  Started run = start({"e.toml", "--device", "af_packet", "--json", "r.json", "--series", "full.json"});
  EXPECT_EQ(run.finish(), 1) << run.out();
  EXPECT_THAT(run.err(), HasSubstr("full.json: cannot be written: No space left on device"));
  const auto results = nlohmann::json::parse(content(folder_ / "r.json"));
  ASSERT_EQ(results["runs"].size(), 2U);
  EXPECT_EQ(results["runs"][1]["links"].size(), 3U);
  EXPECT_EQ(results["switches"].size(), 1U);
}

TEST_F(TestbedCommand, series_of_a_switch_that_can_not_be_written__cost_no_counters) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  fs::create_symlink("/dev/full", folder_ / "full.json");
  const std::string command = "cd '" + folder_.string() + R"(' && unshare -n sh -c '
ip link add p0 type veth peer name q0 && ip link add p1 type veth peer name q1
for i in p0 p1 q0 q1; do ip link set $i up; done
exec )" MLTCP_PROGRAM R"( switch --port af_packet:p0 --port af_packet:p1 --for 100ms --json c.json --series full.json
' >out 2>err)";
  EXPECT_NE(std::system(command.c_str()), 0);  // NOLINT(cert-env33-c)
  EXPECT_THAT(content(folder_ / "err"), HasSubstr("full.json: cannot be written: No space left on device"));
  EXPECT_EQ(nlohmann::json::parse(content(folder_ / "c.json"))["ports"].size(), 2U);
}

TEST_F(TestbedCommand, experiment__runs_over_af_xdp) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const int file = socket(AF_XDP, SOCK_RAW, 0);
  if (file < 0) GTEST_SKIP() << "this kernel has no AF_XDP";
  close(file);
  // Captures packets with --pcap, because tcpdump does not see packets of AF_XDP.
  run_experiment(folder_, start({"e.toml", "--json", "r.json", "--series", "s.json", "--pcap", "p.pcapng,snap=128"}),
                 "af_xdp");
  check_series(folder_);
  for (const char* const name : {"p-host-0.pcapng", "p-host-1.pcapng", "p-host-2.pcapng", "p-switch-0.pcapng"})
    EXPECT_GT(packets_in(folder_ / name), 500U)
        << name << ": some 100 packets of data in each of 9 iterations, at least";
  EXPECT_LE(packets_in(folder_ / "p-host-0.pcapng") + packets_in(folder_ / "p-host-1.pcapng"),
            packets_in(folder_ / "p-switch-0.pcapng"));
}

TEST_F(TestbedCommand, experiment__runs_over_the_hosts_kernel_sockets) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  run_experiment(folder_, start({"e.toml", "--device", "udp", "--json", "r.json"}), "udp");
}

TEST_F(TestbedCommand, experiment_with_a_key_that_authenticates__is_sealed_and_can_be_read) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  std::ofstream(folder_ / "job.key") << "mltcp-key-1 " << std::string(64, '7') << "\n";
  fs::permissions(folder_ / "job.key", fs::perms::owner_read | fs::perms::owner_write);
  run_experiment(folder_,
                 start({"e.toml", "--device", "udp", "--json", "r.json", "--key", "job.key", "--authenticate"}), "udp");
  // Checks the options that the hosts get.
  Started command = start({"e.toml", "--device", "udp", "--key", "job.key", "--authenticate", "--dry-run"});
  EXPECT_EQ(command.finish(), 0) << command.err();
  EXPECT_THAT(command.out(), HasSubstr("--key fd:3 --authenticate"));
}

const Words as_nobody{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"};

/// Returns the reason why user "nobody" cannot create a testbed on this machine; empty if it can.
std::string obstacle_of_nobody() {
  if (geteuid() != 0) return "to be another user takes root";
  const std::string nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
  if (std::system((nobody + "test -x " MLTCP_PROGRAM " 2>/dev/null").c_str()) != 0)
    return "the program is in a folder that others may not read";
  if (std::system((nobody + "unshare -Urnp --fork true 2>/dev/null").c_str()) != 0)
    return "this machine lets users make no user namespaces";
  return std::system("ip link help >/dev/null 2>&1; [ $? -ne 127 ]") == 0 ? "" : "iproute2 is not installed";
}

TEST_F(TestbedCommand, ordinary_user__needs_no_root) {
  if (const std::string why = obstacle_of_nobody(); !why.empty()) GTEST_SKIP() << why;
  for (const char* const folder : {"", "tmp"}) fs::permissions(folder_ / folder, fs::perms::all);
  for (const char* const device : {"udp", "af_packet"})
    run_experiment(folder_, Started({"e.toml", "--device", device, "--json", "r.json"}, folder_, device, as_nobody),
                   device);
  Started xdp({"e.toml", "--device", "af_xdp"}, folder_, "xdp", as_nobody);
  EXPECT_EQ(xdp.finish(), 2);
  EXPECT_EQ(xdp.err(),
            "mltcp: --device af_xdp: AF_XDP needs root; give --device af_packet or udp, or run mltcp with sudo\n");
  Started hosts({"--hosts", "2", "--command", "on 1 ip -br addr; on 0 id -u"}, folder_, "hosts", as_nobody);
  EXPECT_EQ(hosts.finish(), 0) << hosts.err();
  EXPECT_THAT(hosts.out(), HasAll("2 hosts, af_packet, ", "10.77.0.2/12", "\n0\n"));
}

TEST_F(TestbedCommand, ordinary_user__is_entered_by_his_own_from_elsewhere) {
  if (const std::string why = obstacle_of_nobody(); !why.empty()) GTEST_SKIP() << why;
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(folder_ / "tmp", fs::perms::all);
  Started run({"--hosts", "2", "--keep"}, folder_, "keep", as_nobody);
  ASSERT_TRUE(run.is_up()) << run.err();
  fs::path script;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "tmp"))
    if (entry.path().filename() == "on") script = entry.path();
  const std::string enter = "setpriv --reuid 65534 --regid 65534 --clear-groups " + script.string() +
                            " 1 ip -br addr >" + (folder_ / "entered").string() + " 2>&1";
  EXPECT_EQ(std::system(enter.c_str()), 0);  // NOLINT(cert-env33-c)
  EXPECT_THAT(content(folder_ / "entered"), HasSubstr("10.77.0.2/12"));
  run.signal(SIGTERM);
  run.finish();
}

// Runs in a user namespace with two users, where no user may create another user namespace.
TEST_F(TestbedCommand, ordinary_user_without_user_namespaces__is_told_the_cure) {
  if (const std::string why = obstacle_of_nobody(); !why.empty()) GTEST_SKIP() << why;
  fs::permissions(folder_, fs::perms::all);
  fs::permissions(folder_ / "tmp", fs::perms::all);
  int ready[2];
  int mapped[2];
  ASSERT_EQ(pipe(ready) | pipe(mapped), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    if (unshare(CLONE_NEWUSER) != 0 || write(ready[1], "r", 1) != 1 || read(mapped[0], &byte, 1) != 1) _exit(98);
    std::ofstream("/proc/sys/user/max_user_namespaces") << 0;
    Started run({"--hosts", "2", "--command", "true"}, folder_, "none", as_nobody);
    _exit(run.finish());
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  for (const char* const map : {"uid_map", "gid_map"})
    std::ofstream("/proc/" + std::to_string(child) + "/" + map) << "0 0 1\n65534 65534 1\n" << std::flush;
  ASSERT_EQ(write(mapped[1], "m", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  for (const int file : {ready[0], ready[1], mapped[0], mapped[1]}) close(file);
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_THAT(content(folder_ / "none.err"), HasAll("users may not create user namespaces here (No space left",
                                                    "sysctl user.max_user_namespaces=1000; or run it with "
                                                    "sudo\n"));
}

// Runs the commands of docs/how-to/gen.md, without the interactive shell.
TEST_F(TestbedCommand, gen_by_hand__runs_on_the_hosts_of_an_empty_testbed) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  std::string command = MLTCP_PROGRAM " gen e.toml --serve unix:socket --json r.json & ";
  for (const char* host : {"0", "1", "2"})
    command += std::string("on ") + host +
               " " MLTCP_PROGRAM " gen --join unix:socket --port af_packet:eth0 --ip 10.93.0." +
               std::to_string(host[0] - '0' + 1) + "/12 --host " + host + " --idle sleep & ";
  Started run = start({"--hosts", "3", "--device", "af_packet", "--rate", "100Mbps", "--buffer", "75kB", "--command",
                       command + "wait"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_THAT(run.out(), HasAll("has joined: receives for \"a\", receives for \"b\"; MTU 1500",
                                " messages verified, 0 damaged", "output to"));
  EXPECT_EQ(nlohmann::json::parse(content(folder_ / "r.json"))["runs"].size(), 2U);
}

TEST_F(TestbedCommand, host_that_dies__ends_it_all) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  Started run = start({"e.toml", "--device", "af_packet", "--", "--iterations", "10000"});
  ASSERT_TRUE(run.says("ready\n")) << run.err();
  each_process([&](const fs::path& process) {
    const std::string words = content(process / "cmdline");
    if (words.find("10.93.0.2/12") != std::string::npos && words.find(folder_.string()) != std::string::npos)
      kill(std::stoi(process.filename()), SIGKILL);
  });
  EXPECT_EQ(run.finish(), 1);
  EXPECT_THAT(run.err(),
              HasAll("last lines of the log of host 1:\n  host 1: 10.93.0.2/12", "host 1 was ended by signal 9"));
}

/// Sends a signal to the only process of the testbed whose command line contains `word`.
void signal_program(const Started& run, const std::string& word, int signal) {
  const auto parent_of = [](const fs::path& process) {
    std::ifstream status(process / "status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("PPid:\t")) return line.substr(6);
    return std::string();
  };
  int found = 0;
  each_process([&](const fs::path& process) {
    if (content(process / "cmdline").find(word) == std::string::npos) return;
    if (parent_of("/proc/" + parent_of(process)) != std::to_string(run.process())) return;
    ++found;
    kill(std::stoi(process.filename()), signal);
  });
  EXPECT_EQ(found, 1) << word;
}

TEST_F(TestbedCommand, program_that_is_killed_or_stopped_in_an_experiment__is_named) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  struct Way {
    const char* word;
    int signal;
    const char* message;
  };
  const std::vector<Way> ways{
      {"switch-0.json", SIGKILL, "switch 0 was ended by signal 9, so the testbed was taken down"},
      {"switch-0.json", SIGSTOP, "switch 0 was stopped by signal 19 and has not continued for 1 s, so the testbed"},
      {"--serve", SIGSTOP, "the coordinator (mltcp gen) was stopped by signal 19 and has not continued for 1 s, so"},
      {"10.93.0.2/12", SIGSTOP, "host 1 was stopped by signal 19 and has not continued for 1 s, so the testbed"}};
  std::vector<std::unique_ptr<Started>> runs;
  const Words words{"e.toml", "--device", "af_packet", "--", "--iterations", "10000"};
  for (std::size_t i = 0; i < ways.size(); ++i)
    runs.push_back(std::make_unique<Started>(words, folder_, "way" + std::to_string(i)));
  for (std::size_t i = 0; i < ways.size(); ++i) {
    ASSERT_TRUE(runs[i]->says("ready\n")) << runs[i]->err();
    signal_program(*runs[i], ways[i].word, ways[i].signal);
  }
  for (std::size_t i = 0; i < ways.size(); ++i) {
    EXPECT_EQ(runs[i]->finish(), 1);
    EXPECT_THAT(runs[i]->err(), HasSubstr(std::string("\nmltcp: ") + ways[i].message));
  }
}

TEST_F(TestbedCommand, shell__its_exit_status_is_the_testbeds) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [words, status] : {std::pair("exit 7", 7), std::pair("exit 0", 0), std::pair("kill -9 $$", 137)}) {
    std::ofstream(folder_ / "shell") << "#!/bin/sh\n" << words << "\n";
    fs::permissions(folder_ / "shell", fs::perms::owner_all);
    setenv("SHELL", (folder_ / "shell").c_str(), 1);
    Started run = start({"--hosts", "2", "--device", "af_packet", "--shell"});
    EXPECT_EQ(run.finish(), status) << words << ": " << run.err();
  }
}

TEST_F(TestbedCommand, options_of_gen_that_are_wrong__are_refused_before_anything_is_told) {
  const std::vector<std::pair<Words, const char*>> wrong{{{"--iterations", "0"}, "\"0\" is not a whole number from 1"},
                                                         {{"--wait", "long"}, "--wait"},
                                                         {{"--plan", "none.json"}, "a plan file is for"},
                                                         {{"--policy", "schedule", "--plan", "none.json"}, "none.json"},
                                                         {{"--port", "udp:"}, "--port: an option of hosts"},
                                                         {{"--policy", "fare"}, "fare"},
                                                         {{"--faster"}, "--faster"}};
  for (const auto& [words, why] : wrong)
    for (const bool dry : {false, true}) {
      Words all{"e.toml", "--device", "af_packet"};
      if (dry) all.emplace_back("--dry-run");
      all.emplace_back("--");
      all.insert(all.end(), words.begin(), words.end());
      EXPECT_THAT(refusal(all), HasSubstr(why));
      EXPECT_EQ(content(folder_ / "run.out"), "");
    }
}

TEST_F(TestbedCommand, help_of_gen__is_all_that_is_printed) {
  Started run = start({"e.toml", "--", "--help"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_THAT(run.out(), AllOf(HasSubstr("--ranks"), Not(HasSubstr("address of its kernel"))));
}

TEST_F(TestbedCommand, command_that_fails__is_a_failure) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  Started run = start({"--hosts", "2", "--device", "af_packet", "--command", "exit 3"});
  EXPECT_EQ(run.finish(), 1);
  EXPECT_EQ(run.err(), "mltcp: the command ended with status 3\n");
}

/// Ends testbed `one` with a signal while `other` runs. Expects that nothing of `one` remains and that `other` is not
/// affected.
void expect_nothing_left(Started& one, Started& other, int signal) {
  ASSERT_TRUE(one.is_up()) << one.err();
  ASSERT_TRUE(other.is_up()) << other.err();
  const std::set<std::string> made = one.namespaces();
  const std::set<std::string> others = other.namespaces();
  ASSERT_EQ(made.size(), 4U) << "of processes, of the switch, and of two hosts";
  one.signal(signal);
  one.finish();
  EXPECT_TRUE(soon([&] {
    const auto used = namespaces_in_use();
    return std::none_of(made.begin(), made.end(), [&](const auto& name) { return used.count(name) > 0; });
  }));
  EXPECT_TRUE(other.runs());
  EXPECT_EQ(other.namespaces(), others);
}

TEST_F(TestbedCommand, kill_9__leaves_nothing_and_another_testbed_alone) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const Words words{"--hosts", "2", "--device", "af_packet", "--keep"};
  Started other = start(words, "other");
  Started one = start(words, "one");
  expect_nothing_left(one, other, SIGKILL);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ / "tmp"), {}), 1) << "the other's";
}

TEST_F(TestbedCommand, signals_that_ask__end_it_with_what_was_counted) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Started run = start({"--hosts", "2", "--device", "af_packet", "--keep"}, std::to_string(signal));
    ASSERT_TRUE(run.is_up()) << run.err();
    run.signal(signal);
    EXPECT_EQ(run.finish(), 0) << signal;
    EXPECT_THAT(run.out(), HasSubstr("output to")) << signal;
    EXPECT_TRUE(fs::is_empty(folder_ / "tmp")) << signal;
  }
}

TEST_F(TestbedCommand, interrupted_experiment__keeps_the_policies_that_had_been_run) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  Started run = start(
      {"e.toml", "--device", "af_packet", "--json", "r.json", "--", "--policy", "fair,static", "--iterations", "40"});
  ASSERT_TRUE(run.says("policy static")) << run.err();
  ASSERT_TRUE(run.runs()) << run.err();
  run.signal(SIGINT);
  EXPECT_EQ(run.finish(), 1);
  const auto results = nlohmann::json::parse(content(folder_ / "r.json"));
  ASSERT_EQ(results["runs"].size(), 1U);
  EXPECT_EQ(results["runs"][0]["policy"], "fair");
  EXPECT_EQ(results["runs"][0]["links"].size(), 3U);
  EXPECT_EQ(results["switches"].size(), 1U);
}

TEST_F(TestbedCommand, switch_that_dies__ends_it_all) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  Started run = start({"--hosts", "2", "--device", "af_packet", "--keep"});
  ASSERT_TRUE(run.is_up()) << run.err();
  each_process([&](const fs::path& process) {
    const std::string words = content(process / "cmdline");
    if (words.find("switch-0.json") != std::string::npos && words.find(folder_.string()) != std::string::npos)
      kill(std::stoi(process.filename()), SIGKILL);
  });
  EXPECT_EQ(run.finish(), 1);
  EXPECT_THAT(run.err(), HasAll("last lines of the log of switch 0:\n",
                                "\nmltcp: switch 0 was ended by signal 9, so the testbed was taken down"));
}

}  // namespace
}  // namespace mltcp::tools
