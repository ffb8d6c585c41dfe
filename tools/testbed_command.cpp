// `mltcp testbed`: builds the hosts of an experiment on this machine, runs `mltcp switch` between them and a process of
// `mltcp gen` on each, and merges what they found. All of it lives in a sandbox (sandbox.h), so that nothing is left of
// it whatever happens.
#include <fmt/format.h>

#include "command_line.h"
#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/experiment/files/switch_file.h"

#if MLTCP_HAS_DPDK
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiment_options.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/cc/registry.h"
#include "mltcp/dpdk/eal.h"
#include "mltcp/experiment/files/experiment_file.h"
#include "mltcp/experiment/files/policy.h"
#include "mltcp/experiment/hosts/host_layout.h"
#include "mltcp/testbed/layout.h"
#include "mltcp/testbed/network.h"
#include "mltcp/testbed/sandbox.h"
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
  std::string device = "af_xdp";       ///< or af_packet
  std::optional<std::uint32_t> mtu;    ///< default: the experiment's, or 1500
  std::string idle;                    ///< spin, pause, sleep; empty: as CPUs allow
  std::string cores;                   ///< empty: all that may be used
  bool realtime = false;               ///< processes take precedence over all else on the machine
  bool keep = false;
  bool shell = false;
  bool dry_run = false;
  std::optional<std::string> log_dir;
  std::optional<std::string> json;  ///< file, or "-" for standard output
};

void add_options(Options& options, TestbedArguments& arguments) {
  options.add("EXPERIMENT.toml", arguments.file, "The experiment (docs/experiment-file.md)");
  options.add("OPTION", arguments.gen, "Behind --: options of mltcp gen, such as --policy fair,mltcp");
  options.add("--device", arguments.device, "Ports of hosts and switches: af_xdp, the default, or af_packet")
      .check(one_of({"af_xdp", "af_packet"}));
  options.add("--mtu", arguments.mtu, "Longest IP packet; default: the experiment's, or 1500").check(whole(576, 9000));
  options
      .add("--idle", arguments.idle,
           "Without work: spin, pause or sleep; default: pause where every process has a "
           "CPU of its own, otherwise sleep")
      .check(one_of({"spin", "pause", "sleep"}));
  options.add("--cores", arguments.cores,
              "CPUs, as in 0-3: the first for the switch, the others for hosts; default: all");
  options.add("--json", arguments.json, "Write the results to this file; - is standard output");
  options.add("--log-dir", arguments.log_dir, "Keep what each process says, in this folder");
  options.flag("--realtime", arguments.realtime,
               "Real-time priority (SCHED_RR) for the switch and, below it, the hosts: steadier results on "
               "a busy machine, which has little left for all else meanwhile");
  options.flag("--keep", arguments.keep, "Leave it up until Ctrl-C, and tell how to enter its hosts");
  options.flag("--shell", arguments.shell, "A shell in it, in the end");
  options.flag("--dry-run", arguments.dry_run, "Tell what would be done");
  options.add("--hosts", arguments.hosts, "A testbed of so many hosts on a switch, without an experiment")
      .check(whole(0, 1'000));
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
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testbed::find_program;
using testbed::last_lines;
using testbed::Program;
using testbed::Programs;
using testbed::Stopped;
using testbed::TestbedLayout;
using testbed::TestbedNetwork;

/// Of AF_XDP on veth: a frame, with room before and behind it, lives in a page.
constexpr std::uint32_t longest_xdp_mtu = 3490;

/// All that is known before anything is made.
struct Plan {
  TestbedLayout layout;
  std::string title;
  std::vector<std::string> roles;  ///< by host in the layout
  std::uint32_t mtu = 1500;
  std::string idle;
  std::vector<unsigned> switch_cpus;  ///< by switch
  std::vector<unsigned> host_cpus;    ///< by host in the layout
  std::uint64_t seed = 1;
};

/// Of all CPUs since the machine began (proc(5), /proc/stat), in ticks.
struct CpuTime {
  static CpuTime now() {
    CpuTime time;
    std::ifstream file("/proc/stat");
    std::string word;
    file >> word;  // "cpu": user, nice, system, idle, iowait, irq, softirq, steal; what follows is in user already
    std::uint64_t ticks = 0;
    for (int field = 1; field <= 8 && file >> ticks; ++field) {
      time.all += ticks;
      if (field == 8) time.stolen = ticks;
    }
    return time;
  }
  /// What a hypervisor kept from the CPUs when they had something to do, as a share of all time.
  [[nodiscard]] double stolen_since(const CpuTime& before) const {
    return all > before.all && stolen > before.stolen
               ? static_cast<double>(stolen - before.stolen) / static_cast<double>(all - before.all)
               : 0;
  }
  std::uint64_t all = 0;
  std::uint64_t stolen = 0;
};

/// Switches come first; hosts take turns on the other CPUs, or, where there are too few, on all from the next one on.
void assign_cpus(Plan& plan, const TestbedArguments& arguments) {
  const std::vector<unsigned> usable = dpdk::usable_cpus();
  const std::vector<unsigned> cpus = arguments.cores.empty() ? usable : dpdk::parse_cores(arguments.cores, usable);
  const std::size_t switches = plan.layout.switches.size();
  const std::size_t hosts = plan.layout.hosts.size();
  const bool enough = cpus.size() >= switches + hosts;
  for (std::size_t i = 0; i < switches; ++i) plan.switch_cpus.push_back(cpus[i % cpus.size()]);
  for (std::size_t i = 0; i < hosts; ++i) plan.host_cpus.push_back(cpus[(switches + i) % cpus.size()]);
  plan.idle = !arguments.idle.empty() ? arguments.idle : enough && !arguments.realtime ? "pause" : "sleep";
  if (arguments.realtime && plan.idle != "sleep")
    throw InputError(
        "--realtime: what spins would keep the CPU from all else for good; leave --idle out, or give sleep");
  constexpr std::size_t most_on_a_cpu = 4;
  if (switches + hosts > most_on_a_cpu * cpus.size())
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

Plan make_plan(const TestbedArguments& arguments) {
  if (arguments.file.empty() == !arguments.hosts.has_value())
    throw InputError("give an experiment, or --hosts for a testbed without one; see mltcp testbed --help");
  Plan plan;
  if (arguments.hosts) {
    if (arguments.json) throw InputError("--json: without an experiment there are no results; leave it out");
    if (!arguments.command && !arguments.shell && !arguments.keep)
      throw InputError("--hosts: give --command, --shell or --keep, too: what shall be done on the hosts");
    plan.layout = testbed::testbed_layout(*arguments.hosts, arguments.mtu.value_or(1500));
    plan.title = plural(*arguments.hosts, "host");
    plan.roles.resize(plan.layout.hosts.size());
    experiment::SwitchWords words = arguments.words;
    for (const auto& port : plan.layout.switches[0].ports)
      words.ports.push_back(testbed::switch_words(port, arguments.device));
    experiment::load_switch("", words);
  } else {
    if (arguments.command) throw InputError("--command is for --hosts; with an experiment, use --shell or --keep");
    if (!arguments.words.values.empty())
      throw InputError(
          fmt::format("--{} is for --hosts; an experiment says it itself", arguments.words.values[0].first));
    experiment::FileOptions options = file_options();
    for (const std::string& cc : gen_option(arguments, "--cc")) options.cc = cc;
    experiment::Experiment given = experiment::load_experiment(arguments.file, options);
    // Of the rest, mltcp gen --serve warns, which this starts.
    if (arguments.dry_run) print_warnings(given.warnings);
    for (const std::string& word : arguments.gen)
      if (word == "--json" || word.starts_with("--json="))
        throw InputError("--json behind \"--\": put it before that; mltcp testbed adds what its switches counted");
    // The policies that mltcp gen is told of: some want a queue for each priority in the switch.
    for (const std::string& names : gen_option(arguments, "--policy")) {
      std::istringstream list(names);
      for (std::string name; std::getline(list, name, ',');)
        if (experiment::find_policy(name) != nullptr) given.policies.push_back(name);
    }
    plan.layout = testbed::testbed_layout(given);
    plan.title = fmt::format("{} on {}", one_line(given.name), plural(plan.layout.hosts.size(), "host"));
    plan.seed = given.seed;
    const experiment::HostLayout ranks = experiment::host_layout(given);
    for (const std::uint32_t host : plan.layout.hosts)
      plan.roles.push_back(experiment::describe_host(given, ranks, host));
  }
  plan.mtu = arguments.mtu.value_or(plan.layout.mtu);
  if (arguments.device == "af_xdp" && plan.mtu > longest_xdp_mtu)
    throw InputError(
        fmt::format("an MTU of {}, but AF_XDP on veth carries {} at most; give --mtu {}, or --device "
                    "af_packet",
                    plan.mtu, longest_xdp_mtu, longest_xdp_mtu));
  assign_cpus(plan, arguments);
  return plan;
}

// ---- What is run ----

Words switch_command(const Plan& plan, const TestbedArguments& arguments, std::size_t number, const std::string& self,
                     const fs::path& json) {
  Words words{self, "switch"};
  for (const auto& port : plan.layout.switches[number].ports) {
    words.emplace_back("--port");
    words.push_back(testbed::switch_words(port, arguments.device));
  }
  for (const auto& [name, value] : arguments.words.values) {
    words.push_back("--" + name);
    words.push_back(value);
  }
  const Words rest{"--seed",  std::to_string(plan.seed),
                   "--idle",  plan.idle,
                   "--cores", std::to_string(plan.switch_cpus[number]),
                   "--json",  json.string(),
                   "--every", "100ms"};
  words.insert(words.end(), rest.begin(), rest.end());
  return words;
}

Words host_command(const Plan& plan, const TestbedArguments& arguments, std::size_t index, const std::string& self,
                   const std::string& server) {
  const std::uint32_t host = plan.layout.hosts[index];
  Words words{self,      "gen",
              "--join",  server,
              "--port",  arguments.device + ":eth0",
              "--ip",    fmt::format("{}/{}", TestbedNetwork::port_address(host), TestbedNetwork::prefix),
              "--host",  std::to_string(host),
              "--mtu",   std::to_string(plan.mtu),
              "--idle",  plan.idle,
              "--cores", std::to_string(plan.host_cpus[index])};
  // What the experiment has loaded, its hosts have to load.
  for (const cc::AlgorithmTable* algorithm : cc::algorithms()) {
    const std::string library = cc::library_file(*algorithm).string();
    if (library.empty()) continue;
    words.emplace_back("--load");
    words.push_back(fmt::format("{}:{}", library, algorithm->name));
  }
  return words;
}

Words coordinator_command(const TestbedArguments& arguments, const std::string& self, const std::string& server,
                          const fs::path& json) {
  Words words{self, "gen", arguments.file, "--serve", server};
  if (arguments.json) {
    words.emplace_back("--json");
    words.push_back(json.string());
  }
  words.insert(words.end(), arguments.gen.begin(), arguments.gen.end());
  return words;
}

std::string line_of(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

void print_plan(const Plan& plan, const TestbedArguments& arguments, std::FILE* out) {
  fmt::print(out, "{}, {}, MTU {}, idle: {}\n", plan.title, arguments.device, plan.mtu, plan.idle);
  Table table({"host", "CPU", "address of its kernel", "of its port"}, 1);
  for (std::size_t i = 0; i < plan.layout.hosts.size(); ++i) {
    const std::uint32_t host = plan.layout.hosts[i];
    table.add({plan.roles[i].empty() ? fmt::format("host {}", host) : plan.roles[i],
               fmt::format("{}", plan.host_cpus[i]), TestbedNetwork::kernel_address(host),
               arguments.hosts ? "-" : TestbedNetwork::port_address(host)});
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
  fmt::print("{}\n", line_of(coordinator_command(arguments, "mltcp", "unix:DIR/gen", "DIR/results.json")));
  for (std::size_t i = 0; i < plan.layout.hosts.size(); ++i)
    fmt::print("{}\n", line_of(host_command(plan, arguments, i, "mltcp", "unix:DIR/gen")));
}

// ---- In the sandbox ----

Json read_json(const fs::path& file) {
  std::ifstream in(file);
  return Json::parse(in, nullptr, false);
}

class Testbed {
 public:
  Testbed(const Plan& plan, const TestbedArguments& arguments, std::string self, fs::path folder)
      : plan_(plan),
        arguments_(arguments),
        self_(std::move(self)),
        folder_(std::move(folder)),
        logs_(arguments.log_dir ? fs::path(*arguments.log_dir) : folder_),
        out_(arguments.json == "-" ? stderr : stdout),
        network_(plan.layout, plan.mtu) {
    const char* path = std::getenv("PATH");
    environment_ = {
        {"PATH", fmt::format("{}:{}:/usr/sbin:/sbin", folder_.string(), path != nullptr ? path : "/usr/bin:/bin")},
        {"MLTCP_TESTBED", folder_.string()},
        {"RUNTIME_DIRECTORY", folder_.string()}};  // DPDK's
    write_on();
  }

  int run() {
    for (std::size_t i = 0; i < plan_.layout.switches.size(); ++i) start_switch(i);
    for (const auto number : switches_) await_ready(number);
    print_plan(plan_, arguments_, out_);
    std::fflush(out_);
    int status = 0;
    int shell_status = 0;
    try {
      status = arguments_.hosts ? (arguments_.command ? run_command() : 0) : run_experiment();
      if (status == 0 && (arguments_.shell || arguments_.keep)) shell_status = stay();
    } catch (const Stopped&) {
      if (!staying_) {
        rescue();
        throw;
      }
    } catch (const RunError&) {
      rescue();
      throw;
    }
    end_all();
    if (status != 2) summarise();  // after wrong usage there is nothing to tell
    if (status != 2 && has_results(status == 0)) write_results();
    return status != 0 ? status : shell_status;
  }

 private:
  void end_all() {
    programs_.ignore_stop();
    if (coordinating_) programs_.end(*coordinating_, milliseconds(5000));
    for (const auto number : hosts_) programs_.end(number, milliseconds(3000));
    for (const auto number : switches_) programs_.end(number, milliseconds(5000));
  }

  /// Whether there are results to write; those of policies that had been run before a failure may be `needed` or not.
  [[nodiscard]] bool has_results(bool needed) const {
    return arguments_.json && !arguments_.hosts && (needed || read_json(folder_ / "results.json").is_object());
  }

  /// The results of policies that had been run when it failed, or when the user had enough.
  void rescue() {
    try {
      end_all();
      if (!has_results(false)) return;
      summarise();
      write_results();
    } catch (const std::exception& error) {
      print_warning(fmt::format("results of policies that had been run could not be kept: {}", error.what()));
    }
  }

  void stage(const std::string& text) const {
    if (isatty(STDERR_FILENO) == 0) return;
    const double seconds = std::chrono::duration<double>(steady_clock::now() - begun_).count();
    fmt::print(stderr, "==> [{:4.1f} s] {}\n", seconds, text);
  }

  /// The script with which a user enters a host, from within or from another terminal.
  void write_on() const {
    // The number of this process there where /proc was mounted, which is not that in the sandbox.
    std::error_code unknown;
    const std::string process = fs::read_symlink("/proc/self", unknown).string();
    std::string script =
        "#!/bin/sh\n# Runs a program, or a shell, in a host of the testbed or among its switches.\n"
        "usage() { echo 'usage: on HOST|switch [COMMAND...]' >&2; exit 2; }\n[ $# -gt 0 ] || usage\ncase $1 in\n";
    for (std::size_t i = 0; i < plan_.layout.hosts.size(); ++i)
      script += fmt::format("  {}) file={} ;;\n", plan_.layout.hosts[i], TestbedNetwork::host(i));
    script += fmt::format(
        "  switch) file={} ;;\n  *) echo \"on: there is no host $1\" >&2; usage ;;\nesac\nshift\n"
        "exec nsenter --net=/proc/{}/fd/$file \"${{@:-${{SHELL:-/bin/sh}}}}\"\n",
        TestbedNetwork::switches(), process);
    write_file((folder_ / "on").string(), script);
    fs::permissions(folder_ / "on", fs::perms::owner_all);
  }

  [[nodiscard]] fs::path counters(std::size_t number) const { return folder_ / fmt::format("switch-{}.json", number); }

  void start_switch(std::size_t number) {
    stage(fmt::format("start {}", plan_.layout.switches[number].name));
    Program program{.name = plan_.layout.switches[number].name,
                    .words = switch_command(plan_, arguments_, number, self_, counters(number)),
                    .network = TestbedNetwork::switches(),
                    .log = logs_ / fmt::format("switch-{}.log", number),
                    // When it is late, hosts see a network that does what none does.
                    .urgency = arguments_.realtime ? 2 : 0,
                    .nice = -15,
                    .environment = environment_};
    switches_.push_back(programs_.start(std::move(program)));
  }

  void await_ready(Programs::Number number) {
    const auto until = steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      // It may have a warning behind it already.
      for (const auto& line : last_lines(programs_.program(number).log, 100))
        if (line.starts_with("ready ")) return;
      if (const auto end = programs_.wait(milliseconds(20))) fail(*end);
      if (steady_clock::now() > until)
        throw RunError(fmt::format("{} is not ready after 30 s", programs_.program(number).name));
    }
  }

  /// Something has ended that should not have.
  [[noreturn]] void fail(const Programs::End& end) {
    const Program& program = programs_.program(end.number);
    constexpr std::size_t most_lines = 10;
    const auto lines = program.log.empty() ? std::vector<std::string>() : last_lines(program.log, most_lines);
    std::fflush(out_);
    if (!lines.empty()) fmt::print(stderr, "the last of what {} said:\n", program.name);
    for (const auto& line : lines) fmt::print(stderr, "  {}\n", line);
    throw RunError(fmt::format("{} {}, so the testbed was taken down; {}", program.name, end.text,
                               arguments_.log_dir ? fmt::format("logs are in {}", one_line(*arguments_.log_dir))
                                                  : "--log-dir DIR keeps all logs"));
  }

  int run_experiment() {
    const std::string server = "unix:" + (folder_ / "gen").string();
    stage("start the coordinator and the hosts");
    Program coordinator{.name = "mltcp gen",
                        .words = coordinator_command(arguments_, self_, server, folder_ / "results.json"),
                        .log = {},
                        .output_is_error = out_ == stderr,
                        .environment = environment_};
    const Programs::Number coordinating = programs_.start(std::move(coordinator));
    coordinating_ = coordinating;
    for (std::size_t i = 0; i < plan_.layout.hosts.size(); ++i) {
      const std::uint32_t host = plan_.layout.hosts[i];
      Program program{.name = fmt::format("host {}", host),
                      .words = host_command(plan_, arguments_, i, self_, server),
                      .network = TestbedNetwork::host(i),
                      .log = logs_ / fmt::format("host-{}.log", host),
                      .urgency = arguments_.realtime ? 1 : 0,
                      .nice = -10,
                      .environment = environment_};
      hosts_.push_back(programs_.start(std::move(program)));
    }
    for (;;) {
      const auto end = programs_.wait(std::chrono::hours(1));
      if (!end) continue;
      if (end->number == coordinating) return finish(*end);
      // A host is told to end a moment before the coordinator ends, and one that fails is named by the coordinator.
      std::optional<Programs::End> first = end;
      const auto until = steady_clock::now() + std::chrono::seconds(end->status == 0 && end->signal == 0 ? 10 : 2);
      while (steady_clock::now() < until) {
        const auto next = programs_.wait(milliseconds(100));
        if (next && next->number == coordinating) {
          if (next->status == 0) return finish(*next);
          break;
        }
      }
      fail(*first);
    }
  }

  int finish(const Programs::End& end) {
    if (end.status == 0 && end.signal == 0) return 0;
    if (end.signal != 0) fail(end);
    // It has said why; but of a host that was killed it knows only that it has gone.
    const auto until = steady_clock::now() + milliseconds(500);
    while (end.status != 2 && steady_clock::now() < until) {
      const auto host = programs_.wait(milliseconds(50));
      if (host && host->signal != 0) fail(*host);
      if (std::none_of(hosts_.begin(), hosts_.end(), [&](const auto number) { return programs_.runs(number); })) break;
    }
    return end.status;
  }

  int run_command() {
    stage("run the command");
    const auto number = programs_.start({.name = "the command",
                                         .words = {"/bin/sh", "-c", *arguments_.command},
                                         .network = TestbedNetwork::switches(),
                                         .log = {},
                                         .on_terminal = true,
                                         .environment = environment_});
    for (;;) {
      const auto end = programs_.wait(std::chrono::hours(1));
      if (!end) continue;
      if (end->number != number) fail(*end);
      if (end->status != 0 || end->signal != 0) throw RunError(fmt::format("the command {}", end->text));
      return 0;
    }
  }

  /// Returns the exit status of the shell, if there is one: 128 and its number if a signal ended it, as shells have it.
  int stay() {
    staying_ = true;
    const std::string on = (folder_ / "on").string();
    fmt::print(out_, "\nthe testbed is up; enter a host with: {} {} bash\n", arguments_.shell ? "on" : on,
               plan_.layout.hosts.front());
    if (arguments_.keep && !arguments_.shell)
      fmt::print(out_, "Ctrl-C, or kill {}, takes it down\n", getppid_outside());
    std::fflush(out_);
    std::optional<Programs::Number> shell;
    if (arguments_.shell) {
      const char* name = std::getenv("SHELL");
      shell = programs_.start({.name = "the shell",
                               .words = {name != nullptr ? name : "/bin/sh"},
                               .network = TestbedNetwork::switches(),
                               .log = {},
                               .on_terminal = true,
                               .environment = environment_});
    }
    for (;;) {
      const auto end = programs_.wait(std::chrono::hours(1));
      if (!end) continue;
      if (shell && end->number == *shell) return end->signal != 0 ? 128 + end->signal : end->status;
      if (std::find(hosts_.begin(), hosts_.end(), end->number) == hosts_.end()) fail(*end);
    }
  }

  [[nodiscard]] static std::string getppid_outside() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("PPid:", 0) == 0) return std::string(trimmed(std::string_view(line).substr(5)));
    return "its process";
  }

  /// What the switches counted, and whether they were on time.
  void summarise() {
    Table table({"output to", "sent", "dropped", "marked", "longest queue", "not taken"}, 1);
    std::string timing;
    for (std::size_t i = 0; i < switches_.size(); ++i) {
      const Json counted = read_json(counters(i));
      const auto& made = plan_.layout.switches[i];
      if (!counted.is_object() || !counted.contains("ports") || counted["ports"].size() != made.ports.size()) {
        timing += fmt::format("{} left no counters\n", made.name);
        continue;
      }
      for (std::size_t p = 0; p < made.ports.size(); ++p) {
        const Json& port = counted["ports"][p];
        const auto number = [&](const char* key) { return fmt::format("{}", port.value(key, std::uint64_t{0})); };
        table.add({made.ports[p].host ? fmt::format("host {}", *made.ports[p].host)
                                      : fmt::format("{} ({})", made.name, made.ports[p].interface),
                   number("sent_frames"), number("dropped_frames"), number("marked_frames"),
                   bytes_to_text(port.value("max_queue_bytes", Bytes{0})), number("transmit_full_frames")});
      }
      const Json& loop = counted["loop"];
      timing +=
          fmt::format("the machine held {} up {} for {:.1f} ms in all of {:.1f} s, {:.1f} ms at worst\n", made.name,
                      plural(loop.value("stalls", std::uint64_t{0}), "time"), loop.value("stalled_ns", 0.0) * 1e-6,
                      counted.value("duration_ns", 0.0) * 1e-9, loop.value("longest_gap_ns", 0.0) * 1e-6);
      switched_.push_back(counted);
      switched_.back()["name"] = made.name;
      switched_.back()["number"] = i;
    }
    stolen_ = CpuTime::now().stolen_since(begun_cpu_);
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
    constexpr std::string_view lead = "mltcp: warning: ";
    for (const auto number : switches_) {
      // What a switch said while it ran, it says again behind its counters, with numbers of the whole time.
      const auto lines = last_lines(programs_.program(number).log, 200);
      auto line = std::find_if(lines.begin(), lines.end(),
                               [](const std::string& one) { return one.find(" rounds in ") != std::string::npos; });
      for (; line != lines.end(); ++line)
        if (line->starts_with(lead)) print_warning(line->substr(lead.size()));
    }
  }

  /// Gives a run `links`, the switches' outputs in its time, and `bottleneck`, that with a rate which was used most.
  void add_links(Json& run) const {
    const std::int64_t from = run.value("begun_ns", std::int64_t{0});
    const std::int64_t to = run.value("ended_ns", std::int64_t{0});
    const double seconds = static_cast<double>(to - from) * 1e-9;
    Json links = Json::array();
    const Json* busiest = nullptr;
    for (const Json& one : switched_) {
      const auto& made = plan_.layout.switches[one.at("number").get<std::size_t>()];
      const auto times = one.at("series").at("time_ns").get<std::vector<std::int64_t>>();
      // The last entry before the run, during which hosts were connected and silent, and the first one behind it.
      const auto after = std::upper_bound(times.begin(), times.end(), from);
      const std::size_t first = after == times.begin() ? 0 : static_cast<std::size_t>(after - times.begin()) - 1;
      const auto behind = std::lower_bound(times.begin(), times.end(), to);
      if (times.empty() || seconds <= 0) continue;
      const std::size_t last = std::min(static_cast<std::size_t>(behind - times.begin()), times.size() - 1);
      for (std::size_t p = 0; p < made.ports.size(); ++p) {
        const Json& counts = one.at("series").at("ports").at(p);
        const auto grown = [&](const char* key) {
          return counts[key][last].get<std::uint64_t>() - counts[key][first].get<std::uint64_t>();
        };
        Bytes longest = 0;
        for (std::size_t entry = first + 1; entry <= last; ++entry)
          longest = std::max(longest, counts["max_queue_bytes"][entry].get<Bytes>());
        const Rate rate = made.ports[p].config.output.rate;
        const double carried = static_cast<double>(grown("sent_bytes")) * 8;
        const double most = static_cast<double>(rate.bits_per_second) * seconds;
        links.push_back({{"name", made.ports[p].link},
                         {"rate_bps", rate.bits_per_second},
                         {"utilization", rate.is_zero() ? 0 : std::min(1.0, carried / most)},
                         {"ecn_marked_packets", grown("marked_frames")},
                         {"dropped_packets", grown("dropped_frames")},
                         {"max_queue_bytes", longest},
                         {"sent_packets", grown("sent_frames")},
                         {"sent_bytes", grown("sent_bytes")}});
      }
    }
    for (const Json& link : links)
      if (link["rate_bps"] > 0 && (busiest == nullptr || link["utilization"] > (*busiest)["utilization"]))
        busiest = &link;
    if (busiest != nullptr) {
      run["bottleneck"] = *busiest;
      if (plan_.layout.switches.size() == 1 &&
          std::count_if(links.begin(), links.end(), [](const Json& link) { return link["rate_bps"] > 0; }) == 1)
        run["bottleneck"].erase("name");
    }
    run["links"] = std::move(links);
  }

  void write_results() {
    Json results = read_json(folder_ / "results.json");
    if (!results.is_object()) throw RunError("mltcp gen left no results");
    results["testbed"] = {{"device", arguments_.device},
                          {"mtu", plan_.mtu},
                          {"idle", plan_.idle},
                          {"hosts", plan_.layout.hosts},
                          {"host_cpus", plan_.host_cpus},
                          {"switch_cpus", plan_.switch_cpus},
                          {"stolen", stolen_}};
    for (Json& run : results["runs"]) add_links(run);
    for (Json& one : switched_) {
      one.erase("series");
      one.erase("number");
      one.erase("provenance");  // that of all stands beside
    }
    results["switches"] = switched_;
    // Who wants to do it again calls this, and not the coordinator that it has started.
    if (results.contains("provenance")) results["provenance"]["command"] = command_line();
    write_file(*arguments_.json, results.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  const Plan& plan_;
  const TestbedArguments& arguments_;
  std::string self_;
  fs::path folder_;
  fs::path logs_;
  std::FILE* out_;
  TestbedNetwork network_;
  std::vector<std::pair<std::string, std::string>> environment_;
  std::vector<Programs::Number> switches_;
  std::vector<Programs::Number> hosts_;
  std::optional<Programs::Number> coordinating_;
  Json switched_ = Json::array();
  bool staying_ = false;
  steady_clock::time_point begun_ = steady_clock::now();
  CpuTime begun_cpu_ = CpuTime::now();
  double stolen_ = 0;  ///< share of all CPUs' time
  Programs programs_;  // ends first
};

int testbed(const TestbedArguments& arguments) {
  const Plan plan = make_plan(arguments);
  if (arguments.dry_run) {
    print_steps(plan, arguments);
    return 0;
  }
  if (arguments.json) check_writable(*arguments.json, arguments.file);
  if (geteuid() != 0) throw RunError("a testbed is made of network namespaces, which takes root; run it with sudo");
  std::error_code failed;
  if (arguments.log_dir && !fs::create_directories(*arguments.log_dir, failed) && failed)
    throw InputError(fmt::format("--log-dir {}: {}; give a folder that can be written to",
                                 in_quotes(*arguments.log_dir), failed.message()));
  const std::string self = fs::read_symlink("/proc/self/exe").string();
  testbed::add_administrators_path();
  return testbed::run_sandboxed([&](const fs::path& folder) { return Testbed(plan, arguments, self, folder).run(); },
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
