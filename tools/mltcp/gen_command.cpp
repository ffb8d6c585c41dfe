// `mltcp gen`: runs an experiment's jobs across hosts (experiment/hosts.h). One process is the coordinator (--serve),
// and one process on each host joins it (--join). An MPI launcher can start all of them (--mpi).
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <type_traits>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "experiment_options.h"
#include "gen_command.h"
#include "key_option.h"
#include "live_ends.h"
#include "load_mpi_module.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/cc/registry.h"
#include "mltcp/lab/experiment/backends/live_run.h"
#include "mltcp/lab/experiment/files/datapath_kind.h"
#include "mltcp/lab/experiment/hosts/host_layout.h"
#include "mltcp/lab/experiment/hosts/hosts.h"
#include "mltcp/lab/experiment/run/runner.h"
#include "mltcp/transport/udp_port.h"
#include "mpi_module.h"
#include "output_file.h"
#include "provenance.h"
#include "results_output.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

/// The port if no option names one. Every machine has UDP sockets, and every user may use them.
constexpr const char* kDefaultPort = "udp:";

struct GenArguments {
  ExperimentArguments experiment;   ///< `file` is empty if this process is a host
  std::string plan;                 ///< file with a plan; empty: the coordinator computes the plans
  std::optional<std::string> json;  ///< file for the results, or "-" for standard output
  SeriesArguments series;
  std::optional<std::string> serve;
  std::optional<std::string> join;
  bool mpi = false;
  bool ranks = false;        ///< show the progress of each rank
  std::string wait = "60s";  ///< coordinator: time to wait for hosts; host: time to wait for the coordinator
  std::optional<std::string> key;
  bool authenticate = false;
  experiment::HostOptions process;     ///< settings of a host, without those that need parsing
  std::optional<std::string> metrics;  ///< PORT or IP:PORT to serve metrics at
  std::optional<std::string> pcap;     ///< FILE and settings of a capture; see capture_options.h
  std::vector<std::string> load;       ///< FILE.so:NAME of congestion controls that jobs may use
  /// Names of the given options, as in "--policy": those that only a coordinator uses, and those that only a host uses.
  /// With --mpi all processes get the same options, and each process uses the options of its role.
  std::vector<std::string> for_coordinator;
  std::vector<std::string> for_host;
};

void add_coordinator_options(Options& options, GenArguments& arguments) {
  options.group("Options of the coordinator", arguments.for_coordinator);
  add_experiment_options(options, arguments.experiment, "");
  options.add("--plan", arguments.plan,
              "Read the slots of policies with a schedule from this file (docs/how-to/plan.md)");
  options.add("--json", arguments.json, "Write the results to this file; - is standard output");
  add_series_options(options, arguments.series);
  options.flag("--ranks", arguments.ranks, "Show every rank on the terminal, not only jobs");
}

void add_host_options(Options& options, GenArguments& arguments) {
  options.group("Options of a host", arguments.for_host);
  options.add("--port", arguments.process.device,
              "Port of the host: udp:IFACE (kernel sockets, no privileges), af_xdp:IFACE, af_packet:IFACE, a PCI "
              "address, verbs:DEVICE, verbs:DEVICE:PORT:raw, ... (docs/how-to/ports.md); default: udp:, on the "
              "interface that has --ip; with --mpi, %r is replaced by the MPI rank, here and in --ip");
  options.add("--ip", arguments.process.ip,
              "Address of the host and prefix length, e.g. 10.0.0.1/24 or fd00::1/64: with udp: and verbs: an address "
              "of this machine, with other ports an address that the kernel does not have");
  options.add("--gateway", arguments.process.gateway, "Gateway to addresses outside the prefix");
  add_authenticate_option(options, arguments.authenticate);
  options.add("--host", arguments.process.host, "Number of the host; default: the next free one")
      .check(whole(0, 1'000'000));
  options
      .add("--udp-port", arguments.process.udp_port,
           fmt::format("UDP port of the host's first rank, the next ranks use the following ones; default {}",
                       kDefaultUdpPort))
      .check(whole(1, 65535));
  options.add_each("--load", arguments.load,
                   "Allow this congestion control of a shared object, FILE.so:NAME, if the coordinator names it; give "
                   "the option once per congestion control");
  options.add("--idle", arguments.process.idle, "When idle: spin, pause or sleep; default pause")
      .check(one_of({"spin", "pause", "sleep"}));
  options.add("--cores", arguments.process.cores, "CPU that polls the port; default: the kernel chooses");
  options.add("--memory", arguments.process.memory_mb, "Memory of DPDK in MB; default: as much as the port needs")
      .check(whole(32, 65536));
  options.add("--mtu", arguments.process.mtu, "Longest IP packet, 576 to 9000; default: the interface's")
      .check(whole(576, 9000));
  options.add("--pcap", arguments.pcap,
              "Capture the port's packets: FILE[,snap=BYTES][,size=BYTES][,files=N], as pcapng "
              "(docs/how-to/captures.md); %r is replaced by the MPI rank");
  options.add("--metrics", arguments.metrics, kMetricsHelp);
  options.add("--queues", arguments.process.queues, "Queues of the port, 1 to 64; default 1").check(whole(1, 64));
}

void add_options(Options& options, GenArguments& arguments) {
  options.add("EXPERIMENT.toml", arguments.experiment.file,
              "The experiment (docs/reference/experiment-file.md); not with --join");
  options.add("--serve", arguments.serve,
              "Be the coordinator, at HOST:PORT or unix:/path; with --mpi: address of the coordinator, by default "
              "chosen automatically");
  options.add("--join", arguments.join, "Be a host of the coordinator at this address");
  options.flag("--mpi", arguments.mpi,
               "Be the host whose number is the MPI rank, started by mpirun or srun; rank 0 is also the coordinator");
  options.add("--wait", arguments.wait,
              "How long the coordinator waits for hosts, and a host for the coordinator; default 60s");
  add_key_option(options, arguments.key, "Encrypt the coordinator's connections to hosts, and all packets of jobs,");
  add_coordinator_options(options, arguments);
  add_host_options(options, arguments);
}

Nanos wait_of(const GenArguments& arguments) { return of_option("--wait", arguments.wait, parse_duration); }

/// Returns what the hosts record for series; empty if --series is not given.
std::optional<experiment::SeriesOptions> series_of(const SeriesArguments& series,
                                                   const experiment::Experiment& experiment,
                                                   const std::optional<std::string>& json, const std::string& plan,
                                                   const std::optional<std::string>& report = std::nullopt) {
  return check_series(series, experiment.file,
                      {json, report, plan.empty() ? std::nullopt : std::optional<std::string>(plan)});
}

std::string rate_text(double bits_per_second) { return fmt::format("{:.1f}", bits_per_second * 1e-6); }

std::string table_of(const experiment::HostsView& view, bool ranks) {
  Table table({"job", ranks ? "rank" : "", "iteration", "sent Mbps", "last ms"}, 2);
  for (const auto& job : view.jobs) {
    experiment::HostsView::Rank all;
    all.recorded = job.iterations;
    for (const auto& rank : job.ranks) {
      all.recorded = std::min(all.recorded, rank.recorded);
      all.bits_per_second += rank.bits_per_second;
      all.last = std::max(all.last, rank.last);
    }
    const auto add = [&](const std::string& name, const std::string& which, const experiment::HostsView::Rank& rank) {
      table.add({name, which, fmt::format("{} of {}", rank.recorded, job.iterations), rate_text(rank.bits_per_second),
                 rank.last.count > 0 ? fmt::format("{:.2f}", rank.last.millis()) : "-"});
    };
    add(one_line(job.name), "", all);
    for (std::size_t i = 0; ranks && i < job.ranks.size(); ++i)
      add("", fmt::format("{} on host {}", i, job.ranks[i].host), job.ranks[i]);
  }
  return table.text();
}

/// Shows a coordinator's progress: prints lines to `out`, and on a terminal also redraws a progress display.
class CoordinatorOutput {
 public:
  CoordinatorOutput(std::FILE* out, bool ranks) : out_(out), ranks_(ranks) {}

  void attach(experiment::CoordinatorOptions& options) {
    options.tell = [this](const std::string& line) { tell(one_line(line)); };
    options.warn = [this](const std::string& problem) { warn(problem); };
    if (terminal_)
      options.view = [this](const experiment::HostsView& view) {
        redrawn_.show(doing_ + "\n" + table_of(view, ranks_));
      };
  }
  void tell(const std::string& text) {
    clear();
    fmt::print(out_, "{}\n", text);
    std::fflush(out_);
  }
  void warn(const std::string& problem) {
    clear();
    print_warning(problem);
  }
  void progress(double fraction, const std::string& what) {
    if (!terminal_ && what != stage_) tell(one_line(what + " ..."));
    stage_ = what;
    doing_ = fmt::format("{:.0f}%  {}", fraction * 100, what);
  }
  void clear() {
    if (terminal_) redrawn_.clear();
  }

 private:
  std::FILE* out_;
  bool ranks_;
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  Redrawn redrawn_;
  std::string doing_;
  std::string stage_;
};

/// Prints the results of the policies that were complete before the failure.
void print_unfinished(const Serving& serving, const experiment::Experiment& experiment, experiment::Results results,
                      const experiment::Datapath& coordinator, std::FILE* out) {
  if (results.runs.empty()) return;
  if (serving.complete) serving.complete(results);
  print_warning(fmt::format("{} of {} policies {} complete; the results follow", results.runs.size(),
                            experiment.policies.size(), results.runs.size() == 1 ? "is" : "are"));
  try {
    print_results(results, coordinator, experiment.file, serving.json, out);
  } catch (const RunError& also) {
    print_error(also.what());
  }
}

/// Runs the coordinator. Calls `listening` with the address when hosts can join. Returns the exit status.
int serve(const GenArguments& arguments, const experiment::StreamKey& key, const std::string& address,
          const std::function<void(const std::string& address)>& listening) {
  const Outputs outputs({{"--json", arguments.json}});
  const FilesRead files;
  const experiment::Experiment experiment = load_for_hosts(arguments.experiment);
  outputs.check(arguments.experiment.file);
  series_of(arguments.series, experiment, arguments.json, arguments.plan);
  std::FILE* const out = outputs.text();
  print_warnings(experiment.warnings);
  Serving serving;
  serving.address = address;
  serving.key = key;
  serving.wait = wait_of(arguments);
  serving.plan = arguments.plan;
  serving.json = arguments.json;
  serving.series = arguments.series;
  serving.ranks = arguments.ranks;
  serving.listening = listening;
  serve_experiment(experiment, serving, files, out);
  return 0;
}

/// Throws InputError if the number of MPI processes is wrong. Their ranks are the numbers of the hosts.
void check_processes(const GenArguments& arguments, int size) {
  const auto hosts = experiment::host_layout(load_for_hosts(arguments.experiment)).hosts;
  const auto count = static_cast<std::size_t>(size);
  if (hosts.size() == count && hosts.back() + 1 == count) return;
  throw InputError(fmt::format(
      "MPI has started {}, numbers 0 to {}, but the experiment's hosts are {}; start one process per host, and number "
      "the experiment's hosts from 0 without gaps",
      count == 1 ? std::string("1 process") : fmt::format("{} processes", count), count - 1, fmt::join(hosts, ", ")));
}

int join(const GenArguments& arguments, const experiment::StreamKey& key, const std::string& address) {
  experiment::HostOptions options = arguments.process;
  options.coordinator = address;
  options.key = key;
  options.protection = protection_of(arguments.key, arguments.authenticate);
  options.connect_limit = wait_of(arguments);
  if (arguments.pcap) options.capture = capture::parse_capture("--pcap", *arguments.pcap);
  options.interrupted = EndOnSignal::why;
  options.tell = [](const std::string& line) {
    fmt::print("{}\n", one_line(line));
    std::fflush(stdout);
  };
  options.warn = print_warning;
  if (options.device.empty()) {
    options.device = kDefaultPort;
    options.tell(
        fmt::format("no --port is given: using {}, the kernel's UDP sockets, on the interface that has {}; for faster "
                    "ports, see docs/how-to/ports.md",
                    options.device, options.ip));
  }
  live::Exchange exchange;
  options.exchange = &exchange;
  const LiveEnds ends("gen", exchange, metrics_of(arguments.metrics));
  experiment::run_host(options);
  options.tell("done");
  return 0;
}

/// The functions of libmltcp_mpi.so, found by dlsym().
struct Mpi {
  decltype(&mltcp_mpi_start) start;
  decltype(&mltcp_mpi_one_machine) one_machine;
  decltype(&mltcp_mpi_broadcast) broadcast;
  decltype(&mltcp_mpi_end) end;

  Mpi() {
    std::string why;
    void* const module = load_mpi_module(why);
    if (module == nullptr)
      throw RunError(
          fmt::format("--mpi: the MPI module cannot be loaded ({}); install MPI (Debian: libopenmpi-dev, openmpi-bin) "
                      "and build again, or start the hosts with --join",
                      why));
    const auto find = [&](auto& function, const char* name) {
      function = std::bit_cast<std::remove_reference_t<decltype(function)>>(dlsym(module, name));
      if (function == nullptr) throw RunError(fmt::format("--mpi: the MPI module has no {}; build mltcp again", name));
    };
    find(start, "mltcp_mpi_start");
    find(one_machine, "mltcp_mpi_one_machine");
    find(broadcast, "mltcp_mpi_broadcast");
    find(end, "mltcp_mpi_end");
  }
};

std::string with_rank(std::string text, int rank) {
  for (std::size_t at = 0; (at = text.find("%r", at)) != std::string::npos;) text.replace(at, 2, std::to_string(rank));
  return text;
}

/// A folder for temporary files that only this user can access. Its random name prevents that another user creates it
/// first. The destructor removes it.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::error_code problem;
    path_ = (std::filesystem::temp_directory_path(problem) / "mltcp-gen-XXXXXX").string();
    const bool made = !problem && mkdtemp(path_.data()) != nullptr;  // creates a new folder with mode 0700, or fails
    if (!made)
      throw RunError(fmt::format(
          "a folder for the coordinator's socket cannot be created ({}); free some disk space, or set TMPDIR",
          problem ? problem.message() : std::generic_category().message(errno)));
  }
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Returns the address in a form that other hosts can use: 0.0.0.0 in "0.0.0.0:41234" becomes the name of this host.
std::string for_others(const std::string& address) {
  for (const std::string_view any : {"0.0.0.0:", "[::]:"}) {
    if (!address.starts_with(any)) continue;
    std::array<char, 256> name{};
    gethostname(name.data(), name.size() - 1);
    return fmt::format("{}:{}", name.data(), address.substr(any.size()));
  }
  return address;
}

int gen_with_mpi(const GenArguments& arguments, const experiment::StreamKey& key) {
  const Mpi mpi;
  int rank = 0;
  int size = 0;
  if (const int error = mpi.start(&rank, &size); error != 0)
    throw RunError(fmt::format("--mpi: MPI does not start (error {}); start it with mpirun or srun", error));
  const bool one_machine = mpi.one_machine() == 1;
  GenArguments own = arguments;
  own.process.device = with_rank(own.process.device, rank);
  own.process.ip = with_rank(own.process.ip, rank);
  if (own.pcap) own.pcap = with_rank(*own.pcap, rank);
  own.process.host = static_cast<std::uint32_t>(rank);

  // On rank 0 the coordinator runs in its own thread, because this thread calls MPI.
  std::promise<std::string> listening;
  std::future<std::string> address = listening.get_future();
  std::exception_ptr failure;
  std::thread coordinator;
  if (rank == 0) {
    coordinator = std::thread([&] {
      bool reported = false;
      try {
        check_processes(arguments, size);
        // Without --serve, the coordinator listens on a Unix socket if all processes run on one machine.
        std::optional<PrivateFolder> folder;
        if (!arguments.serve && one_machine) folder.emplace();
        const std::string own_address = folder ? "unix:" + folder->path() + "/coordinator" : "0.0.0.0:0";
        serve(arguments, key, arguments.serve.value_or(own_address), [&](const std::string& where) {
          reported = true;
          listening.set_value(for_others(where));
        });
      } catch (...) {
        failure = std::current_exception();
        if (!reported) listening.set_value("");
      }
    });
  }
  std::array<char, 512> text{};
  if (rank == 0) {
    const std::string where = address.get();
    where.copy(text.data(), text.size() - 1);
  }
  std::exception_ptr own_failure;
  if (const int error = mpi.broadcast(text.data(), static_cast<int>(text.size())); error != 0) {
    own_failure = std::make_exception_ptr(RunError(fmt::format("--mpi: the broadcast failed (error {})", error)));
  } else if (text.front() == '\0') {
    own_failure = std::make_exception_ptr(RunError("the coordinator, MPI rank 0, did not start; see its messages"));
  } else {
    try {
      join(own, key, text.data());
    } catch (...) {
      own_failure = std::current_exception();
    }
  }
  if (coordinator.joinable()) coordinator.join();
  // If several errors occurred, report the coordinator's error, because it is the most precise one.
  if (failure) std::rethrow_exception(failure);
  if (own_failure) std::rethrow_exception(own_failure);
  mpi.end();
  return 0;
}

/// Throws InputError if options exclude each other or are missing.
void check_words(const GenArguments& arguments) {
  const bool host = arguments.join.has_value() || arguments.mpi;
  if ((arguments.serve && !arguments.mpi) + arguments.join.has_value() + arguments.mpi != 1)
    throw InputError(
        "the role of this process is missing; give --serve ADDRESS for the coordinator, --join ADDRESS for a host, or "
        "--mpi");
  if (arguments.join && !arguments.experiment.file.empty())
    throw InputError("--join: the coordinator has the experiment; leave its file out here");
  if (!arguments.join && arguments.experiment.file.empty())
    throw InputError("no experiment is given; give its file (docs/reference/experiment-file.md)");
  if (host && arguments.process.ip.empty())
    throw InputError(
        "a host needs an address; give --ip IP/PREFIX, e.g. --ip 10.0.0.1/24, and --port if it is not udp:, e.g. "
        "--port af_xdp:eth0");
  if (!host && !arguments.for_host.empty())
    throw InputError(fmt::format(
        "{}: an option of hosts, but --serve starts the coordinator; give it to mltcp gen --join on each host instead",
        fmt::join(arguments.for_host, ", ")));
  if (arguments.join && !arguments.for_coordinator.empty())
    throw InputError(
        fmt::format("{}: an option of the coordinator, but --join starts a host; give it to mltcp gen --serve instead",
                    fmt::join(arguments.for_coordinator, ", ")));
  for (const std::string& algorithm : arguments.load)
    of_option("--load", [&] { return &cc::algorithm_from(algorithm); });
}

int gen(const GenArguments& arguments) {
  const EndOnSignal signals;
  check_words(arguments);
  const experiment::StreamKey key = stream_key_of(arguments.key);
  if (arguments.mpi) return gen_with_mpi(arguments, key);
  if (arguments.serve) return serve(arguments, key, *arguments.serve, [](const std::string&) {});
  return join(arguments, key, *arguments.join);
}

/// A datapath for checks before the run, when no hosts have joined.
class NoHosts final : public experiment::Datapath {
 public:
  std::unique_ptr<experiment::LiveRun> prepare(const experiment::Experiment& /*experiment*/,
                                               const experiment::RunPlan& /*plan*/) override {
    throw RunError("no host has joined");
  }
  [[nodiscard]] const experiment::DatapathKind& kind() const override { return experiment::datapath_kind("hosts"); }
  [[nodiscard]] bool real_payload() const override { return true; }
  [[nodiscard]] std::string description() const override { return {}; }
};

int check_coordinator(const GenArguments& arguments) {
  check_words(arguments);
  const experiment::Experiment experiment = load_for_hosts(arguments.experiment);
  static_cast<void>(wait_of(arguments));
  experiment::RunOptions options;
  options.plan_file = arguments.plan;
  options.series = series_of(arguments.series, experiment, arguments.json, arguments.plan);
  experiment::check(experiment, NoHosts(), options);
  return 0;
}

}  // namespace

experiment::StreamKey stream_key_of(const std::optional<std::string>& key) {
  const std::optional<security::JobKey> read = key_of(key);
  return read ? std::make_shared<const security::JobKey>(*read) : nullptr;
}

experiment::Results serve_experiment(const experiment::Experiment& experiment, const Serving& serving,
                                     const FilesRead& files, std::FILE* out) {
  CoordinatorOutput output(out, serving.ranks);
  experiment::CoordinatorOptions options;
  options.address = serving.address;
  options.key = serving.key;
  options.join_limit = serving.wait;
  options.interrupted = EndOnSignal::why;
  output.attach(options);
  const auto coordinator = experiment::make_coordinator(experiment, options);
  Provenance provenance;
  experiment::Results results;  // the results so far, while the experiment runs
  experiment::SeriesFile series;
  try {
    experiment::RunOptions run_options;
    run_options.plan_file = serving.plan;
    run_options.report = options.warn;
    run_options.series = series_of(serving.series, experiment, serving.json, serving.plan, serving.report);
    run_options.recorded = &series.runs;
    experiment::check(experiment, *coordinator, run_options);
    provenance = provenance_of(files);
    run_options.finished = [&](const experiment::Results& so_far) {
      results = so_far;
      results.provenance = provenance;
      keep_results(results, serving.json);
    };
    output.tell(
        fmt::format("{}\nlistening on {}", headline(experiment, *coordinator), one_line(coordinator->address())));
    if (serving.listening) serving.listening(coordinator->address());
    coordinator->join();
    output.tell("ready\n");
    const auto progress = [&](double fraction, const std::string& what) { output.progress(fraction, what); };
    results = experiment::run_experiment(experiment, *coordinator, progress, run_options);
    output.clear();
    coordinator->finish();
  } catch (const std::exception& error) {
    output.clear();
    coordinator->fail(error.what());
    print_unfinished(serving, experiment, results, *coordinator, out);
    throw;
  }
  results.provenance = provenance;
  if (serving.complete) serving.complete(results);
  print_results(results, *coordinator, experiment.file, serving.json, out);
  if (serving.series.file) {
    series.experiment = results.experiment;
    series.provenance = provenance;
    write_series(*serving.series.file, series, results);
  }
  if (serving.report) write_report(results, serving.series.file ? &series : nullptr, *serving.report, out);
  return results;
}

void add_gen_command(CommandLine& line) {
  line.add<GenArguments>(
      "gen", "Run an experiment's jobs across hosts, one process on each and a coordinator (docs/how-to/gen.md)",
      add_options, gen);
}

bool check_coordinator_words(const std::vector<std::string>& words) {
  CommandLine line("", "", [] { return std::string(); });
  bool is_checked = false;
  line.add<GenArguments>("gen", "", add_options, [&](const GenArguments& arguments) {
    is_checked = true;
    return check_coordinator(arguments);
  });
  std::vector<std::string> all{"mltcp", "gen"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  line.run(static_cast<int>(argv.size()), argv.data());
  return is_checked;
}

}  // namespace mltcp::tools
