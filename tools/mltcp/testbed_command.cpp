// `mltcp testbed`: creates the hosts of an experiment on this machine, runs `mltcp switch` between them and a process
// of `mltcp gen` on each host, and merges their results. All of this runs in a sandbox (sandbox.h), which removes
// everything at the end, even after a failure.
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
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiment_options.h"
#include "gen_command.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/files/policy.h"
#include "mltcp/lab/experiment/hosts/host_layout.h"
#include "mltcp/lab/testbed/network.h"
#include "mltcp/lab/testbed/sandbox.h"
#include "mltcp/lab/testbed/testbed_run.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"
#endif

namespace mltcp::tools {
namespace {

struct TestbedArguments {
  std::string file;                    ///< experiment file; empty if `hosts` is given
  std::vector<std::string> gen;        ///< options for `mltcp gen`
  std::optional<std::uint32_t> hosts;  ///< number of hosts of a testbed without an experiment
  std::optional<std::string> command;  ///< command to run in the testbed
  experiment::SwitchWords words;       ///< options for the testbed's switch
  std::optional<std::string> device;   ///< af_xdp, af_packet or udp; default: af_xdp for root, otherwise af_packet
  std::optional<std::uint32_t> mtu;    ///< bytes; default: the MTU of the experiment, or 1500
  std::string idle;                    ///< spin, pause or sleep; empty: depends on the number of CPUs
  std::string cores;                   ///< CPUs; empty: all available ones
  bool realtime = false;  ///< whether the processes have precedence over all other processes of the machine
  bool keep = false;
  bool shell = false;
  bool dry_run = false;
  std::optional<std::string> log_dir;
  std::optional<std::string> json;  ///< file for the results, or "-" for standard output
  SeriesArguments series;
  std::optional<std::string> pcap;  ///< FILE and settings of a capture; see capture_options.h
  std::optional<std::string> key;
  bool authenticate = false;
};

void add_options(Options& options, TestbedArguments& arguments) {
  options.add("EXPERIMENT.toml", arguments.file, "The experiment (docs/reference/experiment-file.md)");
  options.add("OPTION", arguments.gen, "After --: options of mltcp gen, e.g. --policy fair,mltcp");
  options
      .add("--device", arguments.device,
           "Ports of hosts and switches: af_xdp, af_packet, or udp (hosts use the kernel's UDP sockets, switches "
           "af_packet); default: af_xdp for root, af_packet for other users")
      .check(one_of({"af_xdp", "af_packet", "udp"}));
  options.add("--mtu", arguments.mtu, "Longest IP packet; default: the experiment's, or 1500").check(whole(576, 9000));
  options
      .add("--idle", arguments.idle,
           "When idle: spin, pause or sleep; default: pause if every process has its own CPU, otherwise sleep")
      .check(one_of({"spin", "pause", "sleep"}));
  options.add("--cores", arguments.cores,
              "CPUs, e.g. 0-3: the first for the switch, the others for hosts, one each or, if there are too few, "
              "shared by all hosts; default: all");
  options.add("--json", arguments.json, "Write the results to this file; - is standard output");
  add_series_options(options, arguments.series);
  options.add("--pcap", arguments.pcap,
              "Capture the packets of each host and switch, in files FILE-host-0 and so on: "
              "FILE[,snap=BYTES][,size=BYTES][,files=N], as pcapng (docs/how-to/captures.md)");
  add_key_option(options, arguments.key, "Encrypt the coordinator's connections to hosts, and all packets of jobs,");
  add_authenticate_option(options, arguments.authenticate);
  options.add("--log-dir", arguments.log_dir, "Keep the log of each process in this folder");
  options.flag("--realtime", arguments.realtime,
               "Give the switch and, below it, the hosts real-time priority (SCHED_RR): results are steadier on a busy "
               "machine, but other programs get little CPU time");
  options.flag("--keep", arguments.keep, "Keep the testbed until Ctrl-C, and print the command that enters a host");
  options.flag("--shell", arguments.shell, "Open a shell in the testbed at the end");
  options.flag("--dry-run", arguments.dry_run, "Print the steps without doing them");
  options.add("--hosts", arguments.hosts, "Create a testbed of this many hosts on a switch, without an experiment")
      .check(whole(2, testbed::TestbedLayout::kMaxHosts));
  options.add(
      "--command", arguments.command,
      "With --hosts: run this shell command in the testbed, e.g. 'on 1 iperf3 -s -1 -D; on 0 iperf3 -c 10.77.0.2'");
  for (const char* name : {"rate", "delay", "buffer", "ecn", "loss"})
    options.add_named(std::string("--") + name, arguments.words.values,
                      "With --hosts: this option of mltcp switch, for each port");
}

#if MLTCP_HAS_DPDK

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using testbed::TestbedLayout;
using testbed::TestbedNetwork;

/// Maximum MTU for AF_XDP on veth. A frame of this size fits into one page, together with the space that the kernel
/// needs before and after it.
constexpr std::uint32_t kLongestXdpMtu = 3490;

/// The plan of a testbed, with texts for the output.
struct Plan : testbed::TestbedPlan {
  std::string title;
  std::vector<std::string> roles;  ///< role of each host, in the order of the layout
};

/// Gives each switch a CPU, then each host one of the other CPUs. If there are too few CPUs, the kernel chooses the
/// CPUs of the hosts. A host bound to a switch's CPU would wait even while another CPU is idle.
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
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // all child processes inherit this set of CPUs
  }
  for (std::size_t i = 0; i < switches; ++i) plan.switch_cpus.push_back(cpus[i % cpus.size()]);
  for (std::size_t i = 0; enough && i < hosts; ++i) plan.host_cpus.push_back(cpus[switches + i]);
  plan.idle = !arguments.idle.empty() ? arguments.idle : enough && !arguments.realtime ? "pause" : "sleep";
  if (arguments.realtime && plan.idle != "sleep")
    throw InputError(
        "--realtime: with --idle spin or pause, no other program would get the CPU; leave out --idle, or give --idle "
        "sleep");
  constexpr std::size_t max_on_a_cpu = 4;
  if (switches + hosts > max_on_a_cpu * cpus.size())
    print_warning(
        fmt::format("{} processes on {}: processes will wait for each other more than for the network; give more CPUs, "
                    "or use fewer hosts",
                    switches + hosts, plural(cpus.size(), "CPU")));
}

/// Returns the values of an option for `mltcp gen`, which may be given several times.
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

/// Returns the default device. The kernel allows AF_XDP only for root, and not for root of a user namespace.
std::string default_device() { return geteuid() == 0 ? "af_xdp" : "af_packet"; }

std::string device_of_switch(const TestbedArguments& arguments) {
  const std::string device = arguments.device.value_or(default_device());
  return device == "udp" ? "af_packet" : device;
}

/// Returns the plan of a testbed without an experiment.
Plan plan_of_hosts(const TestbedArguments& arguments) {
  if (arguments.json) throw InputError("--json: without an experiment there are no results; leave it out");
  if (arguments.series.file)
    throw InputError("--series: without an experiment there are no series; leave it out, or see mltcp switch --series");
  if (arguments.key) throw InputError("--key: without an experiment there is nothing to encrypt; leave it out");
  if (arguments.authenticate)
    throw InputError("--authenticate: without an experiment there is nothing to authenticate; leave it out");
  if (!arguments.command && !arguments.shell && !arguments.keep)
    throw InputError("--hosts: the testbed would have nothing to run; add --command, --shell or --keep");
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

/// Returns the policies among the options for mltcp gen. Some policies need a queue for each priority in the switch.
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
    throw InputError(fmt::format("--{} is for --hosts; with an experiment, set it in the experiment file",
                                 arguments.words.values[0].first));
  experiment::FileOptions options = file_options();
  for (const std::string& cc : gen_option(arguments, "--cc")) options.cc = cc;
  experiment::Experiment given = experiment::load_experiment(arguments.file, options);
  // Without --dry-run, the process mltcp gen --serve prints these warnings.
  if (arguments.dry_run) print_warnings(given.warnings);
  for (const std::string& word : arguments.gen)
    for (const auto& [own, why] :
         {std::pair("--json", "mltcp testbed adds the counters of its switches"),
          std::pair("--series", "mltcp testbed adds the counters of its switches"),
          std::pair("--key", "hosts need it as well"), std::pair("--authenticate", "it is an option of hosts")})
      if (word == own || word.starts_with(std::string(own) + "="))
        throw InputError(fmt::format("{} after \"--\": {}; write it before \"--\"", own, why));
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

/// Returns the interval at which switches record their counters: 0.1 s for results, or the chosen interval for series.
Nanos counted_every(const TestbedArguments& arguments) {
  constexpr Nanos usual{100'000'000};
  constexpr Nanos min{1'000'000};
  if (!arguments.series.file) return usual;
  if (!arguments.series.interval) return min;
  return std::clamp(of_option("--series-interval", *arguments.series.interval, parse_duration), min, usual);
}

Plan make_plan(const TestbedArguments& arguments) {
  if (arguments.file.empty() == !arguments.hosts.has_value())
    throw InputError("give an experiment, or --hosts for a testbed without one; see mltcp testbed --help");
  Plan plan = arguments.hosts ? plan_of_hosts(arguments) : plan_of_experiment(arguments);
  plan.mtu = arguments.mtu.value_or(plan.layout.mtu);
  plan.host_device = arguments.device.value_or(default_device());
  plan.switch_device = device_of_switch(arguments);
  if (plan.host_device == "af_xdp" && geteuid() != 0 && !arguments.dry_run)
    throw InputError("--device af_xdp: AF_XDP needs root; give --device af_packet or udp, or run mltcp with sudo");
  if (plan.switch_device == "af_xdp" && plan.mtu > kLongestXdpMtu)
    throw InputError(
        fmt::format("an MTU of {}, but AF_XDP on veth carries {} at most; give --mtu {}, or --device "
                    "af_packet",
                    plan.mtu, kLongestXdpMtu, kLongestXdpMtu));
  assign_cpus(plan, arguments);
  plan.experiment = arguments.file;
  plan.gen = arguments.gen;
  plan.switch_values = arguments.words.values;
  plan.pcap = arguments.pcap;
  plan.results = arguments.json.has_value();
  plan.series = arguments.series.file.has_value();
  plan.series_interval = arguments.series.interval;
  plan.counted_every = counted_every(arguments);
  plan.command = arguments.command;
  plan.shell = arguments.shell;
  plan.keep = arguments.keep;
  if (!arguments.hosts) {
    plan.key = key_of(arguments.key);
    plan.protection = protection_of(arguments.key, arguments.authenticate);
  }
  return plan;
}

/// Returns the names of the capture files that switches and hosts write.
std::vector<std::optional<std::string>> captures_of(const Plan& plan) {
  std::vector<std::optional<std::string>> files;
  if (!plan.pcap) return files;
  for (std::size_t i = 0; i < plan.layout.switches.size(); ++i)
    files.emplace_back(testbed::capture_file(plan, fmt::format("switch-{}", i)));
  if (plan.experiment.empty()) return files;
  for (const std::uint32_t host : plan.layout.hosts)
    files.emplace_back(testbed::capture_file(plan, fmt::format("host-{}", host)));
  return files;
}

std::string line_of(const testbed::Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

void print_plan(const Plan& plan, std::FILE* out) {
  fmt::print(out, "{}, {}, MTU {}, idle: {}\n", plan.title, plan.host_device, plan.mtu, plan.idle);
  Table table({"host", "CPU", "address of its kernel", "of its port"}, 1);
  for (std::size_t i = 0; i < plan.layout.hosts.size(); ++i) {
    const std::uint32_t host = plan.layout.hosts[i];
    table.add({plan.roles[i].empty() ? fmt::format("host {}", host) : plan.roles[i],
               plan.host_cpus.empty() ? "any" : fmt::format("{}", plan.host_cpus[i]),
               TestbedNetwork::kernel_address(host),
               plan.experiment.empty() ? "-" : testbed::address_of_port(plan, host)});
  }
  fmt::print(out, "{}\n", table.text());
}

void print_steps(const Plan& plan, const TestbedArguments& arguments) {
  print_plan(plan, stdout);
  fmt::print("in the switches' namespace, where file {} + 1 and on are the hosts': ip -batch\n{}\n",
             TestbedNetwork::switches(), TestbedNetwork::cables(plan.layout, plan.mtu));
  for (const std::uint32_t host : plan.layout.hosts)
    fmt::print("on host {}, and without offloads of eth0: ip -batch\n{}\n", host, TestbedNetwork::host_setup(host));
  for (std::size_t i = 0; i < plan.layout.switches.size(); ++i)
    fmt::print("{}\n", line_of(testbed::switch_command(plan, i, "mltcp", fmt::format("DIR/switch-{}.json", i))));
  if (arguments.hosts) {
    if (arguments.command) fmt::print("sh -c '{}'\n", *arguments.command);
    return;
  }
  fmt::print("{}\n",
             line_of(testbed::coordinator_command(plan, "mltcp", "unix:DIR/gen", testbed::files_in("DIR", plan))));
  for (std::size_t i = 0; i < plan.layout.hosts.size(); ++i)
    fmt::print("{}\n", line_of(testbed::host_command(plan, i, "mltcp", "unix:DIR/gen")));
}

// ---- Results ----

class Report : public testbed::TestbedObserver {
 public:
  Report(const Plan& plan, const TestbedArguments& arguments)
      : plan_(plan), arguments_(arguments), out_(arguments.json == "-" ? stderr : stdout) {}

  [[nodiscard]] testbed::TestbedOptions options(const fs::path& folder) const {
    testbed::TestbedOptions options;
    options.mtu = plan_.mtu;
    options.realtime = arguments_.realtime;
    options.folder = folder;
    options.logs = arguments_.log_dir ? fs::path(*arguments_.log_dir) : folder;
    options.output_is_error = out_ == stderr;
    if (plan_.key) options.secret = plan_.key->to_text();
    options.log_hint = arguments_.log_dir ? fmt::format("logs are in {}", one_line(*arguments_.log_dir))
                                          : "--log-dir DIR keeps all logs";
    options.stage = [begun = std::chrono::steady_clock::now()](const std::string& what) {
      if (isatty(STDERR_FILENO) == 0) return;
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
      fmt::print(stderr, "==> [{:4.1f} s] {}\n", seconds, what);
    };
    options.last_words = [out = out_](const std::string& program, const std::vector<std::string>& lines) {
      std::fflush(out);
      if (!lines.empty()) fmt::print(stderr, "last lines of the log of {}:\n", program);
      for (const auto& line : lines) fmt::print(stderr, "  {}\n", line);
    };
    return options;
  }

  void begun() override {
    print_plan(plan_, out_);
    std::fflush(out_);
  }

  void staying(const fs::path& script) override {
    fmt::print(out_, "\nthe testbed is running; enter a host with: {} {} bash\n", plan_.shell ? "on" : script.string(),
               plan_.layout.hosts.front());
    if (!plan_.shell) fmt::print(out_, "to remove it: Ctrl-C, or kill {}\n", getppid_outside());
    std::fflush(out_);
  }

  /// Prints the counters of the switches, and for how long the machine delayed them.
  void counted(const testbed::TestbedCounters& counters) override {
    Table table({"output to", "sent", "dropped", "marked", "longest queue", "not taken"}, 1);
    std::string timing;
    for (const std::string& name : counters.missing) timing += fmt::format("{} left no counters\n", name);
    for (const Json& counted : counters.switches) {
      const auto& made = plan_.layout.switches[counted["number"].get<std::size_t>()];
      add_ports(table, made, counted);
      timing += held_up_text(made, counted.value("loop", Json::object()), counted.value("duration_ns", 0.0));
    }
    constexpr double min_shown = 0.005;
    constexpr double warn_above = 0.02;
    if (counters.stolen >= min_shown)
      timing += fmt::format("the hypervisor gave {:.1f}% of this machine's CPU time to other machines\n",
                            counters.stolen * 100);
    fmt::print(out_, "\n{}{}", table.text(), timing);
    std::fflush(out_);
    if (counters.stolen > warn_above)
      print_warning(
          fmt::format("other virtual machines took {:.1f}% of this machine's CPU time, so these results say little "
                      "about the network; run again at another time, or on another machine",
                      counters.stolen * 100));
    print_warnings(counters.warnings);
    if (plan_.pcap)
      fmt::print(out_, "captured in {} and so on, of each host and switch\n",
                 one_line(testbed::capture_file(plan_, "switch-0")));
  }

  // Provenance must name this program, whose command repeats the run, and not the command of the coordinator.
  void write(const Json& results) override {
    Json all = results;
    if (all.contains("provenance")) all["provenance"]["command"] = command_line();
    write_file(*arguments_.json, json_text(all, 2));
  }
  void write(const experiment::SeriesFile& series, const fs::path& results) override {
    experiment::SeriesFile all = series;
    if (all.provenance) all.provenance->command = command_line();
    write_series(*arguments_.series.file, all, experiment::read_json(results));
  }

  void lost(const std::string& why) override {
    print_warning(fmt::format("some results or series of complete policies could not be kept: {}", why));
  }

 private:
  [[nodiscard]] static std::string getppid_outside() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("PPid:", 0) == 0) return std::string(trimmed(std::string_view(line).substr(5)));
    return "its process";
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
    return fmt::format("the machine delayed {} {} for {:.1f} ms in all of {:.1f} s, {:.1f} ms at worst\n", made.name,
                       plural(loop.value("stalls", std::uint64_t{0}), "time"), loop.value("stalled_ns", 0.0) * 1e-6,
                       duration_ns * 1e-9, loop.value("longest_gap_ns", 0.0) * 1e-6);
  }

  const Plan& plan_;
  const TestbedArguments& arguments_;
  std::FILE* out_;
};

int testbed(const TestbedArguments& arguments) {
  const Plan plan = make_plan(arguments);
  // Find the errors that the coordinator would report before anything is created or printed.
  if (!arguments.hosts) {
    testbed::Words words = testbed::coordinator_command(
        plan, "mltcp", "unix:gen", {arguments.json.value_or(""), arguments.series.file.value_or("")});
    words.erase(words.begin(), words.begin() + 2);
    if (!check_coordinator_words(words)) return 0;
  }
  std::vector<std::optional<std::string>> others = captures_of(plan);
  for (const std::optional<std::string>& capture : others)
    check_distinct({arguments.json, capture}, "--json and --pcap's files");
  others.push_back(arguments.json);
  check_series(arguments.series, arguments.file, others);
  if (arguments.dry_run) {
    print_steps(plan, arguments);
    return 0;
  }
  if (arguments.json) check_writable(*arguments.json, arguments.file);
  for (const std::optional<std::string>& capture : captures_of(plan)) check_writable(*capture, arguments.file);
  std::error_code failed;
  if (arguments.log_dir) refuse_planted_links(*arguments.log_dir);
  if (arguments.log_dir && !fs::create_directories(*arguments.log_dir, failed) && failed)
    throw InputError(fmt::format("--log-dir {}: {}; give a folder that you may write to", in_quotes(*arguments.log_dir),
                                 failed.message()));
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  testbed::add_administrators_path();
  Report report(plan, arguments);
  return testbed::run_sandboxed(
      [&](const fs::path& folder) { return testbed::run_testbed(plan, self, report.options(folder), report); },
      print_error);
}

#else

int testbed(const TestbedArguments& /*arguments*/) {
  throw RunError("built without DPDK, which mltcp testbed needs; build with -DMLTCP_DPDK=ON");
}

#endif

}  // namespace

void add_testbed_command(CommandLine& line) {
  line.add<TestbedArguments>("testbed",
                             "Run an experiment or other programs on hosts and switches on this machine, in namespaces "
                             "that leave nothing behind (docs/how-to/testbed.md)",
                             add_options, testbed);
}

}  // namespace mltcp::tools
