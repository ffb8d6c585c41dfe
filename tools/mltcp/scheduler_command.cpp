// `mltcp scheduler`: runs the scheduler as a service for cluster managers. Reads the topology, restores the running
// jobs, opens its socket, and answers requests until a signal comes.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "command_line.h"
#include "commands.h"
#include "end_on_signal.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/files/topology_file.h"
#include "mltcp/lab/testbed/readiness.h"
#include "mltcp/scheduler/service/api.h"
#include "mltcp/scheduler/service/http_server.h"
#include "mltcp/scheduler/service/kubernetes.h"
#include "mltcp/scheduler/service/scheduler_service.h"
#include "option_values.h"
#include "scheduler_slurm.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

struct SchedulerArguments {
  SchedulerArguments() { service.cluster.solve.slack = 0.001; }

  std::string file;
  bool check = false;
  std::string socket;      ///< path of the socket; empty: the default path
  std::string listen;      ///< address to listen on; empty: listen on the socket
  std::string token_file;  ///< file with the token that clients must send; empty: none
  std::string state;       ///< folder of the stored jobs; empty: the default
  service::ServiceOptions service;
  std::string pod_patience = "600s";
  SlurmArguments slurm;
};

void add_options(Options& options, SchedulerArguments& arguments) {
  options
      .add("TOPOLOGY.toml", arguments.file, "The network: [topology], or Slurm's topology.conf, and the names of hosts")
      .required();
  options.flag("--check", arguments.check, "Read the topology, print it, and exit");
  options.add("--socket", arguments.socket,
              "Unix socket that the service listens on, open to its owner and group; default: "
              "/run/mltcp/scheduler.sock as root, else mltcp-scheduler.sock in $XDG_RUNTIME_DIR");
  options.add("--listen", arguments.listen,
              "Listen on this loopback address instead, e.g. 127.0.0.1:8470 or [::1]:8470; clients need the token");
  options.add("--token-file", arguments.token_file, "With --listen: file of the token, readable only by its owner");
  options.add("--state", arguments.state,
              "Folder that keeps jobs across restarts; default: /var/lib/mltcp as root, else mltcp in $XDG_STATE_HOME "
              "or ~/.local/state");
  options.add("--slots-per-host", arguments.service.slots_per_host, "Workers per host; default 1")
      .check(whole(1, 1024));
  options
      .add("--candidates", arguments.service.candidates,
           "Placements compared for a job that names no hosts; default 10")
      .check(whole(1, 1000));
  options.add("--max-jobs", arguments.service.max_jobs, "Maximum number of running jobs; default 10000")
      .check(whole(1, 100'000));
  options
      .add("--max-stretch", arguments.service.cluster.solve.max_stretch,
           "Maximum share by which slots are longer than iterations, on links that jobs share; default 0.02")
      .check(share(1));
  options
      .add("--slack", arguments.service.cluster.solve.slack,
           "Spare time in every slot, so that late jobs can catch up, as a share of the period; default 0.001")
      .check(share(1));
  options
      .add("--min-score", arguments.service.cluster.min_score,
           "Give jobs slots only if all links that they share have at least this score; default 0.98")
      .check(share(1));
  options.add("--pod-patience", arguments.pod_patience,
              "Time after which a Kubernetes job departs if its pods do not appear; default 600s");
  add_slurm_options(options, arguments.slurm);
}

std::string default_socket() {
  if (geteuid() == 0) return "/run/mltcp/scheduler.sock";
  const std::string folder = environment("XDG_RUNTIME_DIR");
  if (folder.empty())
    throw InputError("--socket: there is no default, since XDG_RUNTIME_DIR is not set; give --socket PATH");
  return folder + "/mltcp-scheduler.sock";
}

std::string default_state() {
  if (geteuid() == 0) return "/var/lib/mltcp";
  if (const std::string folder = environment("XDG_STATE_HOME"); !folder.empty()) return folder + "/mltcp";
  const std::string home = environment("HOME");
  if (home.empty())
    throw InputError("--state: there is no default, since neither XDG_STATE_HOME nor HOME is set; give --state FOLDER");
  return home + "/.local/state/mltcp";
}

/// Returns the settings for --listen or for --socket. Throws InputError if an option is missing or excludes another
/// one.
service::HttpOptions http_options(const SchedulerArguments& arguments) {
  if (!arguments.listen.empty() && !arguments.socket.empty())
    throw InputError("--socket, --listen: the service listens on one address; give one of the two");
  if (arguments.listen.empty() && !arguments.token_file.empty())
    throw InputError(
        "--token-file: only for --listen, as access to a Unix socket depends on its mode; add --listen, or leave it "
        "out");
  if (!arguments.listen.empty() && arguments.token_file.empty())
    throw InputError("--listen: without a token, every user of the machine could change jobs; add --token-file");
  service::HttpOptions options;
  options.listen = arguments.listen;
  if (options.listen.empty())
    options.socket = arguments.socket.empty() ? default_socket() : arguments.socket;
  else
    options.token = service::read_token(arguments.token_file);
  return options;
}

void print_topology(const experiment::TopologyFile& file) {
  const Topology& topology = *file.topology;
  Table table({"rack", "hosts", "rate", "names"}, 1);
  std::vector<std::vector<Topology::Host>> racks(topology.racks());
  for (Topology::Host host = 0; host < topology.hosts(); ++host) racks[topology.rack(host)].push_back(host);
  constexpr std::size_t max_racks = 40;
  for (std::size_t rack = 0; rack < std::min(racks.size(), max_racks); ++rack) {
    const std::vector<Topology::Host>& hosts = racks[rack];
    const std::string last = hosts.size() == 1 ? "" : fmt::format(" to {}", file.host_names[hosts.back()]);
    table.add({fmt::format("{}", rack), fmt::format("{}", hosts.size()),
               to_text(topology.capacity(topology.out(hosts.front()).front())),
               one_line(file.host_names[hosts.front()] + last)});
  }
  fmt::print("{}: {} in {}, {}, {}, oversubscribed {:.3g}:1\n\n{}", one_line(file.file),
             plural(topology.hosts(), "host"), plural(topology.racks(), "rack"),
             fmt::format("{} switches", topology.switches()), plural(topology.links(), "link"),
             topology.oversubscription(), table.text());
  if (racks.size() > max_racks) fmt::print("and {} more\n", racks.size() - max_racks);
}

std::int64_t unix_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

int run_scheduler(const SchedulerArguments& arguments) {
  const experiment::TopologyFile file = experiment::load_topology(arguments.file);
  if (arguments.check) {
    print_topology(file);
    return 0;
  }
  const service::HttpOptions http = http_options(arguments);
  service::KubernetesOptions pods;
  pods.patience = of_option("--pod-patience", arguments.pod_patience, parse_duration);
  service::ServiceOptions options = arguments.service;
  options.state = arguments.state.empty() ? default_state() : arguments.state;
  options.host_names = file.host_names;
  options.epoch_unix_ns = unix_now();
  // One write per line, so that lines of several threads are not mixed.
  options.log = [](const std::string& line) { fmt::print(stderr, "{}\n", one_line(line)); };

  const EndOnSignal signals;
  service::SchedulerService scheduler(*file.topology, options);
  service::KubernetesExtender kubernetes(scheduler, pods);
  service::Api api(scheduler, kubernetes);
  service::HttpServer server(api, scheduler, http);
  std::optional<SlurmSide> slurm;
  if (arguments.slurm.slurm) slurm.emplace(scheduler, arguments.slurm, options.log);
  fmt::print("ready {}\n", one_line(server.address()));
  std::fflush(stdout);
  if (const std::string wrong = testbed::report_ready(); !wrong.empty()) print_warning(wrong);
  server.run(EndOnSignal::came, [&](Nanos now) { kubernetes.expire(now); });
  fmt::print(stderr, "{}; {} kept in {}\n", EndOnSignal::why(), plural(scheduler.plans().size(), "job"),
             one_line(options.state.string()));
  return 0;
}

}  // namespace

void add_scheduler_command(CommandLine& line) {
  line.add<SchedulerArguments>("scheduler",
                               "Run the scheduler as a service for cluster managers: placement and slots over HTTP "
                               "(docs/how-to/scheduler-service.md)",
                               add_options, run_scheduler);
}

}  // namespace mltcp::tools
