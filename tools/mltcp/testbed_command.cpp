// `mltcp testbed`: builds the hosts of an experiment on this machine, runs `mltcp switch` between them and a process of
// `mltcp gen` on each, and merges what they found. All of it lives in a sandbox (sandbox.h), so that nothing is left of
// it whatever happens.
#include <fmt/format.h>

#include "command_line.h"
#include "commands.h"
#include "key_option.h"
#include "mltcp/base/error.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/lab/experiment/files/switch_file.h"
#include "mltcp/lab/testbed/layout.h"
#include "series_output.h"

#if MLTCP_HAS_DPDK
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiment_options.h"
#include "gen_command.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/cc/registry.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/hosts/host_layout.h"
#include "mltcp/lab/testbed/cpu_time.h"
#include "mltcp/lab/testbed/links.h"
#include "mltcp/lab/testbed/network.h"
#include "mltcp/lab/testbed/sandbox.h"
#include "mltcp/lab/testbed/testbed.h"
#include "mltcp/transport/capture/capture_options.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"
#endif

namespace mltcp::tools {
namespace {

struct TestbedArguments {
  std::string file;                    ///< empty with `hosts`
  std::vector<std::string> gen;        ///< options of `mltcp gen`
  std::optional<std::uint32_t> hosts;  ///< a testbed without an experiment
  std::optional<std::string> command;  ///< run in it
  experiment::SwitchWords words;       ///< of its switch
  std::optional<std::string> device;   ///< af_xdp, af_packet, udp; default: af_xdp for root, else af_packet
  std::optional<std::uint32_t> mtu;    ///< default: the experiment's, or 1500
  std::string idle;                    ///< spin, pause, sleep; empty: as CPUs allow
  std::string cores;                   ///< empty: all that may be used
  bool realtime = false;               ///< processes take precedence over all else on the machine
  bool keep = false;
  bool shell = false;
  bool dry_run = false;
  std::optional<std::string> log_dir;
  std::optional<std::string> json;  ///< file, or "-" for standard output
  SeriesArguments series;
  std::optional<std::string> pcap;  ///< FILE and words, see capture_options.h
  std::optional<std::string> key;
  bool authenticate = false;
};

void add_options(Options& options, TestbedArguments& arguments) {
  options.add("EXPERIMENT.toml", arguments.file, "The experiment (docs/experiment-file.md)");
  options.add("OPTION", arguments.gen, "Behind --: options of mltcp gen, such as --policy fair,mltcp");
  options
      .add("--device", arguments.device,
           "Ports of hosts and switches: af_xdp, the default for root, or af_packet, that for other users; or udp: "
           "hosts use their kernel's UDP sockets, and switches af_packet")
      .check(one_of({"af_xdp", "af_packet", "udp"}));
  options.add("--mtu", arguments.mtu, "Longest IP packet; default: the experiment's, or 1500").check(whole(576, 9000));
  options
      .add("--idle", arguments.idle,
           "Without work: spin, pause or sleep; default: pause where every process has a "
           "CPU of its own, otherwise sleep")
      .check(one_of({"spin", "pause", "sleep"}));
  options.add("--cores", arguments.cores,
              "CPUs, as in 0-3: the first for the switch, the others for hosts, one each or, where there are too few, "
              "all for all of them; default: all");
  options.add("--json", arguments.json, "Write the results to this file; - is standard output");
  add_series_options(options, arguments.series);
  options.add("--pcap", arguments.pcap,
              "Capture the packets of each host and switch, FILE-host-0 and so on: FILE[,snap=BYTES][,size=BYTES]"
              "[,files=N], as pcapng (docs/captures.md)");
  add_key_option(options, arguments.key, "Seal what coordinator and hosts say to each other, and all packets of jobs,");
  add_authenticate_option(options, arguments.authenticate);
  options.add("--log-dir", arguments.log_dir, "Keep what each process says, in this folder");
  options.flag("--realtime", arguments.realtime,
               "Real-time priority (SCHED_RR) for the switch and, below it, the hosts: steadier results on "
               "a busy machine, which has little left for all else meanwhile");
  options.flag("--keep", arguments.keep, "Leave it up until Ctrl-C, and tell how to enter its hosts");
  options.flag("--shell", arguments.shell, "A shell in it, in the end");
  options.flag("--dry-run", arguments.dry_run, "Tell what would be done");
  options.add("--hosts", arguments.hosts, "A testbed of so many hosts on a switch, without an experiment")
      .check(whole(2, testbed::TestbedLayout::kMaxHosts));
  options.add("--command", arguments.command,
              "With --hosts: what a shell shall do there, as in 'on 1 iperf3 -s -1 -D; on 0 iperf3 -c "
              "10.77.0.2'");
  for (const char* name : {"rate", "delay", "buffer", "ecn", "loss"})
    options.add(std::string("--") + name, arguments.words.values,
                "With --hosts: as of mltcp switch, of each of its ports");
}

#if MLTCP_HAS_DPDK

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;
using testbed::Stopped;
using testbed::TestbedLayout;
using testbed::TestbedNetwork;

/// Of AF_XDP on veth: a frame, with room before and behind it, lives in a page.
constexpr std::uint32_t kLongestXdpMtu = 3490;

/// All that is known before anything is made.
struct Plan {
  TestbedLayout layout;
  std::string title;
  std::vector<std::string> roles;  ///< by host in the layout
  std::uint32_t mtu = 1500;
  std::string host_device;    ///< kind of port
  std::string switch_device;  ///< the same
  std::string idle;
  std::vector<unsigned> switch_cpus;  ///< by switch
  std::vector<unsigned> host_cpus;    ///< by host in the layout; empty: there are not enough for one each
  std::uint64_t seed = 1;
  std::optional<security::JobKey> key;  ///< of coordinator and hosts
  security::Protection protection = security::Protection::encrypt;
};

/// Switches come first, and each host has one of the other CPUs. Where there are too few, hosts run where the kernel
/// has them run: one that shares a CPU with the switch would wait there while another is idle.
void assign_cpus(Plan& plan, const TestbedArguments& arguments) {
  const std::vector<unsigned> usable = dpdk::usable_cpus();
  const std::vector<unsigned> cpus = arguments.cores.empty() ? usable : dpdk::parse_cores(arguments.cores, usable);
  const std::size_t switches = plan.layout.switches.size();
  const std::size_t hosts = plan.layout.hosts.size();
  const bool enough = cpus.size() >= switches + hosts;
  if (!arguments.cores.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const unsigned cpu : cpus) CPU_SET(cpu, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // of all that are started from here on
  }
  for (std::size_t i = 0; i < switches; ++i) plan.switch_cpus.push_back(cpus[i % cpus.size()]);
  for (std::size_t i = 0; enough && i < hosts; ++i) plan.host_cpus.push_back(cpus[switches + i]);
  plan.idle = !arguments.idle.empty() ? arguments.idle : enough && !arguments.realtime ? "pause" : "sleep";
  if (arguments.realtime && plan.idle != "sleep")
    throw InputError(
        "--realtime: what spins would keep the CPU from all else for good; leave --idle out, or give sleep");
  constexpr std::size_t max_on_a_cpu = 4;
  if (switches + hosts > max_on_a_cpu * cpus.size())
    print_warning(fmt::format(
        "{} processes on {}: they will wait for each other more than for the network; give it more CPUs, or use fewer "
        "hosts",
        switches + hosts, plural(cpus.size(), "CPU")));
}

/// What an option of `mltcp gen` says, as often as it is given.
std::vector<std::string> gen_option(const TestbedArguments& arguments, const std::string& name) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < arguments.gen.size(); ++i) {
    const std::string& word = arguments.gen[i];
    if (word == name && i + 1 < arguments.gen.size())
      values.push_back(arguments.gen[i + 1]);
    else if (word.starts_with(name + "="))
      values.push_back(word.substr(name.size() + 1));
  }
  return values;
}

/// The kernel lets only root have AF_XDP, also in a user namespace.
std::string default_device() { return geteuid() == 0 ? "af_xdp" : "af_packet"; }

std::string device_of_switch(const TestbedArguments& arguments) {
  const std::string device = arguments.device.value_or(default_device());
  return device == "udp" ? "af_packet" : device;
}

/// A testbed without an experiment.
Plan plan_of_hosts(const TestbedArguments& arguments) {
  if (arguments.json) throw InputError("--json: without an experiment there are no results; leave it out");
  if (arguments.series.file)
    throw InputError("--series: without an experiment nobody has series; leave it out, or see mltcp switch --series");
  if (arguments.key) throw InputError("--key: without an experiment nothing is sealed; leave it out");
  if (arguments.authenticate) throw InputError("--authenticate: without an experiment nothing is sealed; leave it out");
  if (!arguments.command && !arguments.shell && !arguments.keep)
    throw InputError("--hosts: give --command, --shell or --keep, too: what shall be done on the hosts");
  Plan plan;
  plan.layout = testbed::testbed_layout(*arguments.hosts, arguments.mtu.value_or(1500));
  plan.title = plural(*arguments.hosts, "host");
  plan.roles.resize(plan.layout.hosts.size());
  experiment::SwitchWords words = arguments.words;
  for (const auto& port : plan.layout.switches[0].ports)
    words.ports.push_back(testbed::switch_words(port, device_of_switch(arguments)));
  experiment::load_switch("", words);
  return plan;
}

/// Policies that mltcp gen is told of: some want a queue for each priority in the switch.
std::vector<std::string> policies_of_gen(const TestbedArguments& arguments) {
  std::vector<std::string> policies;
  for (const std::string& names : gen_option(arguments, "--policy")) {
    std::istringstream list(names);
    for (std::string name; std::getline(list, name, ',');)
      if (experiment::find_policy(name) != nullptr) policies.push_back(name);
  }
  return policies;
}

Plan plan_of_experiment(const TestbedArguments& arguments) {
  if (arguments.command) throw InputError("--command is for --hosts; with an experiment, use --shell or --keep");
  if (!arguments.words.values.empty())
    throw InputError(fmt::format("--{} is for --hosts; an experiment says it itself", arguments.words.values[0].first));
  experiment::FileOptions options = file_options();
  for (const std::string& cc : gen_option(arguments, "--cc")) options.cc = cc;
  experiment::Experiment given = experiment::load_experiment(arguments.file, options);
  // Of the rest, mltcp gen --serve warns, which this starts.
  if (arguments.dry_run) print_warnings(given.warnings);
  for (const std::string& word : arguments.gen)
    for (const auto& [own, why] :
         {std::pair("--json", "mltcp testbed adds what its switches counted"),
          std::pair("--series", "mltcp testbed adds what its switches counted"),
          std::pair("--key", "hosts need it, too"), std::pair("--authenticate", "it is theirs")})
      if (word == own || word.starts_with(std::string(own) + "="))
        throw InputError(fmt::format("{} behind \"--\": put it before that; {}", own, why));
  for (const std::string& policy : policies_of_gen(arguments)) given.policies.push_back(policy);
  Plan plan;
  plan.layout = testbed::testbed_layout(given);
  plan.title = fmt::format("{} on {}", one_line(given.name), plural(plan.layout.hosts.size(), "host"));
  plan.seed = given.seed;
  const experiment::HostLayout ranks = experiment::host_layout(given);
  for (const std::uint32_t host : plan.layout.hosts)
    plan.roles.push_back(experiment::describe_host(given, ranks, host));
  return plan;
}

Plan make_plan(const TestbedArguments& arguments) {
  if (arguments.file.empty() == !arguments.hosts.has_value())
    throw InputError("give an experiment, or --hosts for a testbed without one; see mltcp testbed --help");
  Plan plan = arguments.hosts ? plan_of_hosts(arguments) : plan_of_experiment(arguments);
  plan.mtu = arguments.mtu.value_or(plan.layout.mtu);
  plan.host_device = arguments.device.value_or(default_device());
  plan.switch_device = device_of_switch(arguments);
  if (plan.host_device == "af_xdp" && geteuid() != 0 && !arguments.dry_run)
    throw InputError("--device af_xdp: AF_XDP takes root; give --device af_packet or udp, or run it with sudo");
  if (plan.switch_device == "af_xdp" && plan.mtu > kLongestXdpMtu)
    throw InputError(
        fmt::format("an MTU of {}, but AF_XDP on veth carries {} at most; give --mtu {}, or --device "
                    "af_packet",
                    plan.mtu, kLongestXdpMtu, kLongestXdpMtu));
  assign_cpus(plan, arguments);
  if (!arguments.hosts) {
    plan.key = key_of(arguments.key);
    plan.protection = protection_of(arguments.key, arguments.authenticate);
  }
  return plan;
}

// ---- What is run ----

std::string capture_file(const std::string& given, const std::string& who) {
  return capture::with_suffix(capture::parse_capture("--pcap", given), who).file;
}

/// What `--pcap` says, for one of those that capture.
std::string capture_words(const std::string& given, const std::string& who) {
  const std::size_t comma = std::min(given.find(','), given.size());
  return capture_file(given, who) + given.substr(comma);
}

void add_capture(Words& words, const TestbedArguments& arguments, const std::string& who) {
  if (!arguments.pcap) return;
  words.emplace_back("--pcap");
  words.push_back(capture_words(*arguments.pcap, who));
}

/// The file of each that captures.
std::vector<std::optional<std::string>> captures_of(const Plan& plan, const TestbedArguments& arguments) {
  std::vector<std::optional<std::string>> files;
  if (!arguments.pcap) return files;
  for (std::size_t i = 0; i < plan.layout.switches.size(); ++i)
    files.emplace_back(capture_file(*arguments.pcap, fmt::format("switch-{}", i)));
  if (arguments.hosts) return files;
  for (const std::uint32_t host : plan.layout.hosts)
    files.emplace_back(capture_file(*arguments.pcap, fmt::format("host-{}", host)));
  return files;
}

/// How often switches note their counters: for results ten times a second; for series as often as these are wanted.
Nanos counted_every(const TestbedArguments& arguments) {
  constexpr Nanos usual{100'000'000};
  constexpr Nanos least{1'000'000};
  if (!arguments.series.file) return usual;
  if (!arguments.series.interval) return least;
  return std::clamp(duration_of("--series-interval", *arguments.series.interval), least, usual);
}

Words switch_command(const Plan& plan, const TestbedArguments& arguments, std::size_t number, const std::string& self,
                     const fs::path& json) {
  Words words{self, "switch"};
  for (const auto& port : plan.layout.switches[number].ports) {
    words.emplace_back("--port");
    words.push_back(testbed::switch_words(port, plan.switch_device));
  }
  for (const auto& [name, value] : arguments.words.values) {
    words.push_back("--" + name);
    words.push_back(value);
  }
  const Words rest{"--seed",  std::to_string(plan.seed),
                   "--idle",  plan.idle,
                   "--cores", std::to_string(plan.switch_cpus[number]),
                   "--json",  json.string(),
                   "--every", fmt::format("{}ns", counted_every(arguments).count)};
  words.insert(words.end(), rest.begin(), rest.end());
  add_capture(words, arguments, fmt::format("switch-{}", number));
  return words;
}

/// A kernel socket has the kernel's; any other port must have one of its own.
std::string address_of_port(const Plan& plan, std::uint32_t host) {
  return plan.host_device == "udp" ? TestbedNetwork::kernel_address(host) : TestbedNetwork::port_address(host);
}

/// Those who are told this are given the key (sandbox.h): what was read from a descriptor can't be read again.
void add_key(Words& words, const Plan& plan) {
  if (!plan.key) return;
  words.emplace_back("--key");
  words.push_back(fmt::format("fd:{}", testbed::kSecretFile));
}

Words host_command(const Plan& plan, const TestbedArguments& arguments, std::size_t index, const std::string& self,
                   const std::string& server) {
  const std::uint32_t host = plan.layout.hosts[index];
  Words words{self,     "gen",
              "--join", server,
              "--port", plan.host_device + ":eth0",
              "--ip",   fmt::format("{}/{}", address_of_port(plan, host), TestbedNetwork::kPrefix),
              "--host", std::to_string(host),
              "--mtu",  std::to_string(plan.mtu),
              "--idle", plan.idle};
  if (!plan.host_cpus.empty()) {
    words.emplace_back("--cores");
    words.push_back(std::to_string(plan.host_cpus[index]));
  }
  add_key(words, plan);
  if (plan.protection == security::Protection::authenticate) words.emplace_back("--authenticate");
  add_capture(words, arguments, fmt::format("host-{}", host));
  // What the experiment has loaded, its hosts have to load.
  for (const cc::AlgorithmTable* algorithm : cc::algorithms()) {
    const std::string library = cc::library_file(*algorithm).string();
    if (library.empty()) continue;
    words.emplace_back("--load");
    words.push_back(fmt::format("{}:{}", library, algorithm->name));
  }
  return words;
}

/// Files that the coordinator writes; a name that is empty is none.
struct CoordinatorFiles {
  std::string json;
  std::string series;
};
/// In the sandbox's folder: what the testbed adds to comes first. Series take the results' times of runs.
CoordinatorFiles files_in(const fs::path& folder, const TestbedArguments& arguments) {
  return {arguments.json || arguments.series.file ? (folder / "results.json").string() : "",
          arguments.series.file ? (folder / "series.json").string() : ""};
}

Words coordinator_command(const Plan& plan, const TestbedArguments& arguments, const std::string& self,
                          const std::string& server, const CoordinatorFiles& files) {
  Words words{self, "gen", arguments.file, "--serve", server};
  const auto add = [&](const char* option, const std::string& value) {
    words.emplace_back(option);
    words.push_back(value);
  };
  if (!files.json.empty()) add("--json", files.json);
  if (!files.series.empty()) add("--series", files.series);
  if (arguments.series.interval) add("--series-interval", *arguments.series.interval);
  add_key(words, plan);
  words.insert(words.end(), arguments.gen.begin(), arguments.gen.end());
  return words;
}

std::string line_of(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

void print_plan(const Plan& plan, const TestbedArguments& arguments, std::FILE* out) {
  fmt::print(out, "{}, {}, MTU {}, idle: {}\n", plan.title, plan.host_device, plan.mtu, plan.idle);
  Table table({"host", "CPU", "address of its kernel", "of its port"}, 1);
  for (std::size_t i = 0; i < plan.layout.hosts.size(); ++i) {
    const std::uint32_t host = plan.layout.hosts[i];
    table.add({plan.roles[i].empty() ? fmt::format("host {}", host) : plan.roles[i],
               plan.host_cpus.empty() ? "any" : fmt::format("{}", plan.host_cpus[i]),
               TestbedNetwork::kernel_address(host), arguments.hosts ? "-" : address_of_port(plan, host)});
  }
  fmt::print(out, "{}\n", table.text());
}

void print_steps(const Plan& plan, const TestbedArguments& arguments) {
  print_plan(plan, arguments, stdout);
  fmt::print("in the switches' namespace, where file {} + 1 and on are the hosts': ip -batch\n{}\n",
             TestbedNetwork::switches(), TestbedNetwork::cables(plan.layout, plan.mtu));
  for (const std::uint32_t host : plan.layout.hosts)
    fmt::print("on host {}, and without offloads of eth0: ip -batch\n{}\n", host, TestbedNetwork::host_setup(host));
  for (std::size_t i = 0; i < plan.layout.switches.size(); ++i)
    fmt::print("{}\n", line_of(switch_command(plan, arguments, i, "mltcp", fmt::format("DIR/switch-{}.json", i))));
  if (arguments.hosts) {
    if (arguments.command) fmt::print("sh -c '{}'\n", *arguments.command);
    return;
  }
  fmt::print("{}\n",
             line_of(coordinator_command(plan, arguments, "mltcp", "unix:DIR/gen", files_in("DIR", arguments))));
  for (std::size_t i = 0; i < plan.layout.hosts.size(); ++i)
    fmt::print("{}\n", line_of(host_command(plan, arguments, i, "mltcp", "unix:DIR/gen")));
}

// ---- In the sandbox ----

Json read_json(const fs::path& file) {
  std::ifstream in(file);
  return Json::parse(in, nullptr, false);
}

/// One testbed from its making to its results.
class TestbedRun {
 public:
  TestbedRun(const Plan& plan, const TestbedArguments& arguments, std::string self, fs::path folder)
      : plan_(plan),
        arguments_(arguments),
        self_(std::move(self)),
        folder_(std::move(folder)),
        out_(arguments.json == "-" ? stderr : stdout),
        testbed_(plan.layout, options()) {}

  int run() {
    std::vector<Words> switches;
    for (std::size_t i = 0; i < plan_.layout.switches.size(); ++i)
      switches.push_back(switch_command(plan_, arguments_, i, self_, counters(i)));
    testbed_.start_switches(switches);
    print_plan(plan_, arguments_, out_);
    std::fflush(out_);
    int status = 0;
    int shell_status = 0;
    bool staying = false;
    try {
      if (!arguments_.hosts)
        status = run_experiment();
      else if (arguments_.command)
        testbed_.run_command(*arguments_.command);
      staying = status == 0 && (arguments_.shell || arguments_.keep);
      if (staying) shell_status = stay();
    } catch (const Stopped&) {
      if (!staying) {
        rescue();
        throw;
      }
    } catch (const RunError&) {
      rescue();
      throw;
    }
    testbed_.end_all();
    if (status != 2) summarise();  // after wrong usage there is nothing to tell
    if (status != 2 && has_results(status == 0)) write_results();
    if (status != 2 && arguments_.pcap)
      fmt::print(out_, "captured in {} and so on, of each host and switch\n",
                 one_line(capture_file(*arguments_.pcap, "switch-0")));
    return status != 0 ? status : shell_status;
  }

 private:
  [[nodiscard]] testbed::TestbedOptions options() {
    testbed::TestbedOptions options;
    options.mtu = plan_.mtu;
    options.realtime = arguments_.realtime;
    options.folder = folder_;
    options.logs = arguments_.log_dir ? fs::path(*arguments_.log_dir) : folder_;
    options.output_is_error = out_ == stderr;
    if (plan_.key) options.secret = plan_.key->to_text();
    options.log_hint = arguments_.log_dir ? fmt::format("logs are in {}", one_line(*arguments_.log_dir))
                                          : "--log-dir DIR keeps all logs";
    options.stage = [this](const std::string& what) {
      if (isatty(STDERR_FILENO) == 0) return;
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
      fmt::print(stderr, "==> [{:4.1f} s] {}\n", seconds, what);
    };
    options.last_words = [this](const std::string& program, const std::vector<std::string>& lines) {
      std::fflush(out_);
      if (!lines.empty()) fmt::print(stderr, "the last of what {} said:\n", program);
      for (const auto& line : lines) fmt::print(stderr, "  {}\n", line);
    };
    return options;
  }

  [[nodiscard]] fs::path counters(std::size_t number) const { return folder_ / fmt::format("switch-{}.json", number); }

  int run_experiment() {
    const std::string server = "unix:" + (folder_ / "gen").string();
    std::vector<Words> hosts;
    for (std::size_t i = 0; i < plan_.layout.hosts.size(); ++i)
      hosts.push_back(host_command(plan_, arguments_, i, self_, server));
    return testbed_.run_jobs(coordinator_command(plan_, arguments_, self_, server, files_in(folder_, arguments_)),
                             hosts);
  }

  /// Returns the exit status of the shell, if there is one.
  int stay() {
    fmt::print(out_, "\nthe testbed is up; enter a host with: {} {} bash\n",
               arguments_.shell ? "on" : testbed_.script().string(), plan_.layout.hosts.front());
    if (arguments_.keep && !arguments_.shell)
      fmt::print(out_, "Ctrl-C, or kill {}, takes it down\n", getppid_outside());
    std::fflush(out_);
    return testbed_.stay(arguments_.shell);
  }

  [[nodiscard]] static std::string getppid_outside() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("PPid:", 0) == 0) return std::string(trimmed(std::string_view(line).substr(5)));
    return "its process";
  }

  /// Whether there are results to write; those of policies that had been run before a failure may be `needed` or not.
  [[nodiscard]] bool has_results(bool needed) const {
    return (arguments_.json || arguments_.series.file) && !arguments_.hosts &&
           (needed || read_json(folder_ / "results.json").is_object());
  }

  /// The results of policies that had been run when it failed, or when the user had enough.
  void rescue() {
    try {
      testbed_.end_all();
      if (!has_results(false)) return;
      summarise();
      write_results();
    } catch (const std::exception& error) {
      print_warning(
          fmt::format("results or series of policies that had been run could not all be kept: {}", error.what()));
    }
  }

  /// What the switches counted, and whether they were on time.
  void summarise() {
    Table table({"output to", "sent", "dropped", "marked", "longest queue", "not taken"}, 1);
    std::string timing;
    std::vector<std::string> warnings;
    for (std::size_t i = 0; i < plan_.layout.switches.size(); ++i) {
      Json counted = read_json(counters(i));
      const auto& made = plan_.layout.switches[i];
      if (!counted.is_object() || !counted.contains("ports") || counted["ports"].size() != made.ports.size()) {
        timing += fmt::format("{} left no counters\n", made.name);
        continue;
      }
      add_ports(table, made, counted);
      timing += held_up_text(made, counted["loop"], counted.value("duration_ns", 0.0));
      for (const Json& warning : counted.value("warnings", Json::array())) warnings.push_back(warning);
      counted["name"] = made.name;
      counted["number"] = i;
      switched_.push_back(std::move(counted));
    }
    stolen_ = testbed::CpuTime::now().stolen_since(begun_cpu_);
    constexpr double tell = 0.005;
    constexpr double warn_above = 0.02;
    if (stolen_ >= tell)
      timing += fmt::format("the hypervisor gave {:.1f}% of this machine's CPU time to others\n", stolen_ * 100);
    fmt::print(out_, "\n{}{}", table.text(), timing);
    std::fflush(out_);
    if (stolen_ > warn_above)
      print_warning(
          fmt::format("other machines on this one's hardware took {:.1f}% of its CPU time: these results say little "
                      "about the network; run again at another time, or elsewhere",
                      stolen_ * 100));
    print_warnings(warnings);
  }

  static void add_ports(Table& table, const TestbedLayout::Switch& made, const Json& counted) {
    for (std::size_t p = 0; p < made.ports.size(); ++p) {
      const Json& port = counted["ports"][p];
      const auto number = [&](const char* key) { return fmt::format("{}", port.value(key, std::uint64_t{0})); };
      table.add({made.ports[p].host ? fmt::format("host {}", *made.ports[p].host)
                                    : fmt::format("{} ({})", made.name, made.ports[p].interface),
                 number("sent_frames"), number("dropped_frames"), number("marked_frames"),
                 bytes_to_text(port.value("max_queue_bytes", Bytes{0})), number("transmit_full_frames")});
    }
  }

  static std::string held_up_text(const TestbedLayout::Switch& made, const Json& loop, double duration_ns) {
    return fmt::format("the machine held {} up {} for {:.1f} ms in all of {:.1f} s, {:.1f} ms at worst\n", made.name,
                       plural(loop.value("stalls", std::uint64_t{0}), "time"), loop.value("stalled_ns", 0.0) * 1e-6,
                       duration_ns * 1e-9, loop.value("longest_gap_ns", 0.0) * 1e-6);
  }

  void write_results() {
    Json results = read_json(folder_ / "results.json");
    if (!results.is_object()) throw RunError("mltcp gen left no results");
    results["testbed"] = {{"device", plan_.host_device},
                          {"mtu", plan_.mtu},
                          {"idle", plan_.idle},
                          {"hosts", plan_.layout.hosts},
                          {"host_cpus", plan_.host_cpus},
                          {"switch_cpus", plan_.switch_cpus},
                          {"stolen", stolen_}};
    std::exception_ptr wrong;  // told when all that can be kept is written
    if (arguments_.json) wrong = write_json(results);
    if (arguments_.series.file && fs::exists(folder_ / "series.json")) write_own_series(results);
    if (wrong) std::rethrow_exception(wrong);
  }

  /// Returns what is wrong with the switches' counters, if anything: then results are without links.
  std::exception_ptr write_json(Json results) {
    std::exception_ptr wrong;
    try {
      for (Json& run : results["runs"]) testbed::add_links(run, plan_.layout, switched_);
    } catch (const RunError&) {
      wrong = std::current_exception();
    }
    Json switches = switched_;
    for (Json& one : switches) {
      one.erase("series");
      one.erase("number");
      one.erase("provenance");  // that of all stands beside
    }
    results["switches"] = std::move(switches);
    // Who wants to do it again calls this, and not the coordinator that it has started.
    if (results.contains("provenance")) results["provenance"]["command"] = command_line();
    write_file(*arguments_.json, json_text(results, 2));
    return wrong;
  }

  /// What hosts have recorded, and switches counted meanwhile.
  void write_own_series(const Json& results) {
    experiment::SeriesFile series = experiment::read_series(folder_ / "series.json");
    const Json& runs = results.at("runs");
    for (std::size_t i = 0; i < std::min(series.runs.size(), runs.size()); ++i)
      testbed::add_links(series.runs[i], runs[i], plan_.layout, switched_);
    if (series.provenance) series.provenance->command = command_line();
    write_series(*arguments_.series.file, series, experiment::read_json(folder_ / "results.json"));
  }

  const Plan& plan_;
  const TestbedArguments& arguments_;
  std::string self_;
  fs::path folder_;
  std::FILE* out_;
  Json switched_ = Json::array();
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  testbed::CpuTime begun_cpu_ = testbed::CpuTime::now();
  double stolen_ = 0;  ///< share of all CPUs' time
  testbed::Testbed testbed_;
};

int testbed(const TestbedArguments& arguments) {
  const Plan plan = make_plan(arguments);
  // What the coordinator would refuse is refused before anything is made and told.
  if (!arguments.hosts) {
    Words words = coordinator_command(plan, arguments, "mltcp", "unix:gen",
                                      {arguments.json.value_or(""), arguments.series.file.value_or("")});
    words.erase(words.begin(), words.begin() + 2);
    if (!check_coordinator_words(words)) return 0;
  }
  std::vector<std::optional<std::string>> others = captures_of(plan, arguments);
  for (const std::optional<std::string>& capture : others)
    check_distinct({arguments.json, capture}, "--json and --pcap's files");
  others.push_back(arguments.json);
  check_series(arguments.series, arguments.file, others);
  if (arguments.dry_run) {
    print_steps(plan, arguments);
    return 0;
  }
  if (arguments.json) check_writable(*arguments.json, arguments.file);
  for (const std::optional<std::string>& capture : captures_of(plan, arguments))
    check_writable(*capture, arguments.file);
  std::error_code failed;
  if (arguments.log_dir) static_cast<void>(output_target(*arguments.log_dir));
  if (arguments.log_dir && !fs::create_directories(*arguments.log_dir, failed) && failed)
    throw InputError(fmt::format("--log-dir {}: {}; give a folder that can be written to",
                                 in_quotes(*arguments.log_dir), failed.message()));
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  testbed::add_administrators_path();
  return testbed::run_sandboxed([&](const fs::path& folder) { return TestbedRun(plan, arguments, self, folder).run(); },
                                print_error);
}

#else

int testbed(const TestbedArguments& /*arguments*/) {
  throw RunError("built without DPDK, and a testbed needs its ports; build with -DMLTCP_DPDK=ON");
}

#endif

}  // namespace

void add_testbed_command(CommandLine& line) {
  line.add<TestbedArguments>("testbed",
                             "Hosts and switches on this machine, in namespaces that leave nothing behind, and an "
                             "experiment or any other program on them (docs/testbed.md)",
                             add_options, testbed);
}

}  // namespace mltcp::tools
