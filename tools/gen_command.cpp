// `mltcp gen`: an experiment's jobs across hosts (experiment/hosts.h). One process is the coordinator, with --serve;
// one on each host joins it; or an MPI launcher starts them all.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <memory>

#include "commands.h"
#include "end_on_signal.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/experiment/experiment_file.h"
#include "mltcp/experiment/hosts.h"
#include "mltcp/experiment/runner.h"
#include "output_file.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

Nanos wait_of(const GenArguments& arguments) {
  try {
    return parse_duration(arguments.wait);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--wait: {}", error.what()));
  }
}

/// As for `mltcp run`, with what hosts can do.
experiment::Experiment load(const RunArguments& arguments) {
  experiment::FileOptions options = file_options();
  options.datapath = "sim";  // it has all that hosts have
  options.cc = arguments.cc;
  options.policy = arguments.policies;
  options.iterations = arguments.iterations;
  options.seed = arguments.seed;
  experiment::Experiment experiment = experiment::load_experiment(arguments.file, options);
  experiment.datapath = "hosts";
  return experiment;
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

/// `listening` is told the address when somebody may join.
int serve(const GenArguments& arguments, const std::string& address,
          const std::function<void(const std::string& address)>& listening) {
  if (arguments.run.json && arguments.run.json->empty())
    throw InputError("--json: the name is empty; name a file, or - for standard output");
  const experiment::Experiment experiment = load(arguments.run);
  if (arguments.run.json) check_writable(*arguments.run.json, arguments.run.file);
  std::FILE* const out = arguments.run.json == "-" ? stderr : stdout;
  warn(experiment.warnings);
  const bool terminal = isatty(STDERR_FILENO) != 0;
  Redrawn redrawn;
  std::string doing;
  experiment::CoordinatorOptions options;
  options.address = address;
  options.join_limit = wait_of(arguments);
  options.interrupted = [] { return EndOnSignal::came(); };
  options.tell = [&](const std::string& line) {
    if (terminal) redrawn.clear();
    fmt::print(out, "{}\n", one_line(line));
    std::fflush(out);
  };
  if (terminal)
    options.view = [&](const experiment::HostsView& view) {
      redrawn.show(doing + "\n" + table_of(view, arguments.ranks));
    };
  const auto coordinator = experiment::make_coordinator(experiment, options);
  try {
    experiment::RunOptions run_options;
    run_options.plan_file = arguments.run.plan;
    run_options.report = [&](const std::string& problem) {
      if (terminal) redrawn.clear();
      warn({problem});
    };
    experiment::check(experiment, *coordinator, run_options);
    fmt::print(out, "{}\nlistening on {}\n", headline(experiment, *coordinator), one_line(coordinator->address()));
    std::fflush(out);
    listening(coordinator->address());
    coordinator->join();
    fmt::print(out, "ready\n\n");
    std::fflush(out);
    const experiment::Results results = experiment::run_experiment(
        experiment, *coordinator,
        [&](double fraction, const std::string& what) { doing = fmt::format("{:.0f}%  {}", fraction * 100, what); },
        run_options);
    if (terminal) redrawn.clear();
    coordinator->finish();
    print_results(results, *coordinator, arguments.run.file, arguments.run.json, out);
  } catch (const std::exception& error) {
    if (terminal) redrawn.clear();
    coordinator->fail(error.what());
    throw;
  }
  return 0;
}

int join(const GenArguments& arguments, const std::string& address) {
  experiment::HostOptions options;
  options.coordinator = address;
  options.connect_limit = wait_of(arguments);
  options.device = arguments.port;
  options.ip = arguments.ip;
  options.gateway = arguments.gateway;
  options.host = arguments.host;
  options.udp_port = arguments.udp_port;
  options.idle = arguments.idle;
  options.cores = arguments.cores;
  options.memory_mb = arguments.memory_mb;
  options.mtu = arguments.mtu;
  options.queues = arguments.queues;
  options.interrupted = [] { return EndOnSignal::came(); };
  options.tell = [](const std::string& line) {
    fmt::print("{}\n", one_line(line));
    std::fflush(stdout);
  };
  experiment::run_host(options);
  return 0;
}

}  // namespace

int gen(const GenArguments& arguments) {
  const EndOnSignal signals;
  const bool host = arguments.join.has_value() || arguments.mpi;
  if (arguments.serve.has_value() + arguments.join.has_value() + arguments.mpi != 1)
    throw InputError(
        "say what this process is: --serve ADDRESS for the coordinator, --join ADDRESS on a host, or --mpi");
  if (arguments.join && !arguments.run.file.empty())
    throw InputError("--join: the coordinator has the experiment; leave its file out here");
  if (!arguments.join && arguments.run.file.empty())
    throw InputError("no experiment is given; name its file (docs/experiment-file.md)");
  if (host && (arguments.port.empty() || arguments.ip.empty()))
    throw InputError(
        "a host needs its port and address: --port DEVICE --ip IP/PREFIX, as in --port af_xdp:eth0 --ip "
        "10.0.0.1/24");
  if (!host && (!arguments.port.empty() || !arguments.ip.empty()))
    throw InputError(
        "--port and --ip are for hosts, and --serve is the coordinator; leave them out, and start mltcp gen "
        "--join on each host");
  if (arguments.serve) return serve(arguments, *arguments.serve, [](const std::string&) {});
  if (arguments.join) return join(arguments, *arguments.join);
  throw RunError("--mpi: this version can't yet");
}

}  // namespace mltcp::tools
