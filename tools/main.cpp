// The command `mltcp`: reads the command line, calls, and turns failures into one line and an exit status: 0 done,
// 1 the work failed, 2 wrong usage or bad input.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "mltcp/base/error.h"
#include "mltcp/base/nearest.h"
#include "mltcp/base/text.h"
#include "mltcp/experiment/cluster/cluster_file.h"
#include "mltcp/experiment/files/algorithms.h"
#include "mltcp/transport/udp_port.h"
#include "option_values.h"
#include "provenance.h"
#include "terminal.h"

namespace {

constexpr int failed = 1;
constexpr int bad_input = 2;

int complain(int status, const std::string& message) {
  mltcp::tools::print_error(message);
  return status;
}

// As in experiment files. The parser of options would take what is too large for the largest number there is.
std::uint64_t seed_from(const std::string& text) {
  std::int64_t seed = -1;
  const char* end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data(), end, seed);
  if (problem != std::errc() || at != end || seed < 0)
    throw CLI::ValidationError("--seed", mltcp::in_quotes(text) + " is not a whole number from 0 to 2^63 - 1");
  return static_cast<std::uint64_t>(seed);
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// What is wrong with the name of a command.
std::string no_command(const CLI::App& app, const std::string& name) {
  if (name.starts_with("-")) {
    const auto option = mltcp::nearest(name, std::vector<std::string>{"--help", "--version"});
    return fmt::format("{} is no option of mltcp; {}see mltcp --help", mltcp::in_quotes(name),
                       option && name.starts_with("--") ? fmt::format("did you mean \"{}\"? ", *option) : "");
  }
  const std::vector<std::string> commands = commands_of(app);
  const auto meant = mltcp::nearest(name, commands);
  return fmt::format("{}; {} see mltcp --help",
                     name.empty() ? "no command is given" : mltcp::in_quotes(name) + " is not a command",
                     meant ? fmt::format("did you mean \"{}\"?", *meant)
                           : fmt::format("the commands are {};", fmt::join(commands, ", ")));
}

bool has_option(const CLI::App& command, const std::string& name) {
  return command.get_option_no_throw(name) != nullptr;
}

// What is wrong with words that `command` has no use for.
std::string no_argument(const CLI::App& app, const CLI::App& command, const std::vector<std::string>& words) {
  const auto option = std::find_if(words.begin(), words.end(),
                                   [](const std::string& word) { return word.size() > 1 && word.front() == '-'; });
  const std::string see = fmt::format("see mltcp {} --help", command.get_name());
  if (option == words.end())
    return fmt::format("{} is one argument too many; {}", words.empty() ? "a word" : mltcp::in_quotes(words[0]), see);
  const std::string name = option->substr(0, option->find('='));
  // Both are commands of this program.
  if (command.get_name() == "testbed" && has_option(*app.get_subcommand("gen"), name))
    return fmt::format(
        "{0} is an option of mltcp gen; options for that go behind \"--\", as in mltcp testbed "
        "EXPERIMENT.toml -- {0} ...; {1}",
        mltcp::one_line(name), see);
  std::vector<std::string> known{"--help"};
  for (const CLI::Option* one : command.get_options())
    for (const std::string& long_name : one->get_lnames()) known.push_back("--" + long_name);
  // Two edits make any short word of any other.
  auto meant = mltcp::nearest(name, known);
  constexpr std::size_t shortest = 5;
  if (name.size() < shortest || !name.starts_with("--")) meant.reset();
  return fmt::format("{} is no option of mltcp {}; {}{}", mltcp::in_quotes(name), command.get_name(),
                     meant ? fmt::format("did you mean \"{}\"? ", *meant) : "", see);
}

// `mltcp help`, `mltcp help CMD`.
int print_help(const CLI::App& app, const std::string& topic) {
  if (topic.empty()) {
    // App::help() would be that of the command which was given, and this is one.
    fmt::print("{}", app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
    return 0;
  }
  const std::vector<std::string> commands = commands_of(app);
  if (std::find(commands.begin(), commands.end(), topic) == commands.end())
    throw mltcp::InputError(no_command(app, topic));
  fmt::print("{}", app.get_subcommand(topic)->help(app.get_name()));
  return 0;
}

// Groups of options of mltcp gen: of help, and whose they are.
constexpr const char* kCoordinatorOptions = "Of the coordinator";
constexpr const char* kHostOptions = "Of a host";

// Parses the command line and does what it says.
int dispatch(int argc, char** argv) {
  using namespace mltcp;

  CLI::App app{"MLTCP: congestion control that interleaves the bursts of training jobs on a shared network."};
  app.set_version_flag("-V,--version", [] { return tools::version_text(); });
  app.require_subcommand(1);
  app.fallthrough();
  std::string footer = "Exit status: 0 done, 1 the work failed, 2 wrong usage or bad input.";
#if !MLTCP_HAS_DPDK
  footer += "\nBuilt without DPDK: no datapath ring, no switch, gen --join and testbed.";
#endif
  app.footer(footer);

  tools::RunArguments run;
  CLI::App* run_command =
      app.add_subcommand("run", "Run an experiment's jobs over its network, once per policy, and compare");
  run_command->add_option("EXPERIMENT.toml", run.file, "The experiment (docs/experiment-file.md)")->required();
  run_command->add_option("--datapath", run.datapath,
                          "sim (virtual time), flow (virtual time, flows in place of packets: for large networks) or "
                          "ring (DPDK, real time); default: the file's, or sim");
  const std::string choices = experiment::algorithm_choices();
  run_command->add_option(
      "--cc", run.cc,
      fmt::format("Congestion control: {} (docs/algorithms.md); default: the file's, or reno", choices));
  run_command
      ->add_option("--policy", run.policies, "Policies, several as in fair,mltcp; default: the file's, or fair,mltcp")
      ->delimiter(',')
      ->allow_extra_args(false);
  run_command->add_option("--iterations", run.iterations, "Iterations per job; default: the file's, or 50")
      ->check(tools::whole(1, 1'000'000));
  run_command->add_option_function<std::string>(
      "--seed", [&](const std::string& text) { run.seed = seed_from(text); },
      "Seed of everything random, 0 to 2^63 - 1; default: the file's, or 1");
  run_command
      ->add_option("--cores", run.cores, "CPUs of datapath ring: one, or two with the switch on the second, as in 0,1")
      ->check(tools::cpu_list());
  run_command->add_option("--plan", run.plan,
                          "Slots for policies schedule and mltcp+schedule, instead of computing them: a file that is "
                          "watched (docs/plans.md)");
  run_command->add_option("--threads", run.threads,
                          "Runs at a time, in virtual time: jobs alone, then policies; results are the same; default: "
                          "one a core");
  run_command->add_flag("--verify", run.verify, "Carry and verify every byte on datapath sim too (ring always does)");
  run_command->add_option("--json", run.json,
                          "Write the results to this file, anew after each policy, so that Ctrl-C keeps what is "
                          "complete (docs/results-file.md); - is standard output");

  tools::SweepArguments sweep;
  CLI::App* sweep_command = app.add_subcommand(
      "sweep", "Run a grid of experiments with many seeds on all cores, and tabulate them (docs/sweep.md)");
  sweep_command->add_option("FILE.toml", sweep.file, "A sweep, or an experiment that --vary varies")->required();
  sweep_command
      ->add_option("--vary", sweep.vary,
                   "A key of the experiment and its values, as in cc=reno,cubic or 'bottleneck.buffer=75 kB,250 kB' or "
                   "'job[*].jitter=0 ms,2 ms'; once for each key")
      ->allow_extra_args(false);
  sweep_command->add_option("--seeds", sweep.seeds, "With how many seeds each point runs, from the experiment's on")
      ->check(tools::whole(1, 100'000));
  sweep_command->add_option("--policy", sweep.policies, "Policies, instead of the files'; several: --policy fair,mltcp")
      ->delimiter(',')
      ->allow_extra_args(false);
  sweep_command->add_option("-o,--output", sweep.output,
                            "Folder of the finished runs, which are not run again; default: the file's name with "
                            ".sweep");
  sweep_command->add_option("--shard", sweep.shard,
                            "Do only part i of n, as in 2/8; auto takes both from the Slurm or MPI launcher");
  sweep_command->add_option("--merge", sweep.merge, "Take finished runs from this folder, too; may be repeated")
      ->allow_extra_args(false);
  sweep_command->add_flag("--no-run", sweep.no_run, "Run nothing: the table of what is there");
  sweep_command->add_option("--threads", sweep.threads, "Runs at a time; default: one a core")
      ->check(tools::whole(1, 10'000));
  sweep_command->add_flag("--full", sweep.full, "Keep every iteration's time, so that mltcp report can draw a run");
  sweep_command->add_option("--json", sweep.json, "Write the table to this file; - is standard output");
  sweep_command->add_option("--markdown", sweep.markdown, "The same as a table of Markdown");
  sweep_command->add_option("--csv", sweep.csv, "The same with all numbers as CSV");

  tools::ScheduleArguments schedule;
  CLI::App* schedule_command = app.add_subcommand(
      "schedule",
      "Which jobs fit together on the links they share: score, rotation and time shift of each (docs/scheduler.md)");
  schedule_command->add_option("EXPERIMENT.toml", schedule.file, "The experiment (docs/experiment-file.md)")
      ->required();
  schedule_command->add_flag(
      "--measure", schedule.measure,
      "Demands and periods as the simulator moves each job alone; default: ideal ones, bytes / rate");
  schedule_command
      ->add_option("--angles", schedule.angles,
                   "Rotations are multiples of a turn by this number, as 72 for 5 degrees; default 0: any nanosecond")
      ->check(tools::whole(0, 1'000'000));
  schedule_command
      ->add_option("--max-stretch", schedule.max_stretch,
                   "A slot is at most this share longer than the job's iteration; default: the file's, or 0.02")
      ->check(tools::share(1));
  schedule_command
      ->add_option("--max-repetitions", schedule.max_repetitions,
                   "The perimeter is at most so many times the longest iteration; default 32")
      ->check(tools::whole(1, 10'000));
  schedule_command
      ->add_option("--drift", schedule.drift,
                   "Deviation from the slots, as a share of the period, that a schedule is judged with; default: the "
                   "file's tolerance, or 0.05")
      ->check(tools::share(0.5));
  schedule_command
      ->add_option(
          "--slack", schedule.slack,
          "Makes every slot this share longer: room to catch up; default: the file's, or 0; or, with --plan, what the "
          "jobs' jitter and their room need (docs/plans.md)")
      ->check(tools::share(1));
  schedule_command->add_option("--json", schedule.json, "Write the schedule to this file; - is standard output");
  schedule_command->add_option("--report", schedule.report,
                               "Write a self-contained HTML page of it to this file; - is standard output");
  schedule_command->add_option(
      "--plan", schedule.plan,
      "Write the slots as a plan that mltcp run --plan keeps (docs/plans.md), with --measure; - is standard output");

  tools::ClusterArguments cluster;
  CLI::App* cluster_command = app.add_subcommand(
      "cluster", "Run a stream of jobs on a cluster, once per scheme of placing and driving them (docs/cluster.md)");
  cluster_command->add_option("FILE.toml", cluster.file, "The cluster");
  cluster_command->add_flag(
      "--models", cluster.models,
      "List the models that jobs may train, with 8 workers of 50 Gbps and the defaults, and their "
      "sources; without a file");
  cluster_command
      ->add_option("--level", cluster.level,
                   "packet (every packet) or flow (fluid, for large ones); default: the file's, or packet")
      ->check(tools::one_of({"packet", "flow"}));
  cluster_command
      ->add_option("--scheme", cluster.schemes,
                   fmt::format("Schemes, several as in locality,compatible+schedule+mltcp,ideal; default: the file's, "
                               "or {}",
                               fmt::join(experiment::default_schemes(), ",")))
      ->delimiter(',')
      ->allow_extra_args(false);
  cluster_command->add_option_function<std::string>(
      "--seed", [&](const std::string& text) { cluster.seed = seed_from(text); },
      "The first seed, 0 to 2^63 - 1; default: the file's, or 1");
  cluster_command
      ->add_option("--seeds", cluster.seeds, "With how many seeds each scheme runs; default: the file's, or 1")
      ->check(tools::whole(1, 1000));
  cluster_command->add_option("--threads", cluster.threads, "Runs at a time; default: one a core")
      ->check(tools::whole(1, 10'000));
  cluster_command->add_option("--json", cluster.json,
                              "Write all results to this file, anew after each run, so that Ctrl-C keeps what is "
                              "complete; - is standard output");
  cluster_command->add_option("--markdown", cluster.markdown, "Write the table to this file as Markdown; - as above");

  tools::InspectArguments inspect;
  CLI::App* inspect_command =
      app.add_subcommand("inspect", "What a trace or profile holds: iterations, phases, bytes (docs/workload.md)");
  inspect_command
      ->add_option(
          "TRACE", inspect.file,
          "A trace in the 12-column text format, or of PyTorch's profiler (.json), or a measured profile (.csv)")
      ->required();
  inspect_command->add_flag("--toml", inspect.toml, "Print it as a job of an experiment file");
  inspect_command->add_option("--name", inspect.name, "Name of that job; default: the file's");
  inspect_command
      ->add_option("--workers", inspect.workers, "Workers that reduce weight gradients; default: the trace's, or 2")
      ->check(tools::whole(2, 1'000'000));
  inspect_command->add_option("--network", inspect.network,
                              "Collectives that cross the shared link: weight-gradient (default), inter-server, all");
  inspect_command->add_option("--compute-scale", inspect.compute_scale, "Factor on compute times; default 1")
      ->check(tools::factor(1e6));
  inspect_command->add_option("--bytes-scale", inspect.bytes_scale, "Factor on bytes sent; default 1")
      ->check(tools::factor(1e6));
  inspect_command->add_option("--rate", inspect.rate, "Rate of the link for the duty cycle; default \"100 Gbps\"");

  tools::ReportArguments report;
  CLI::App* report_command =
      app.add_subcommand("report", "A self-contained HTML page of results, or a picture of them (docs/report.md)");
  report_command
      ->add_option("RESULTS.json", report.results,
                   "Written by --json of mltcp run, gen, testbed, sweep, cluster or schedule; two of a run, gen or "
                   "testbed are compared")
      ->required()
      ->expected(1, 2);
  report_command->add_option(
      "-o,--output", report.output,
      "The page; default: the results' name with .html, of two both names; - is standard output");
  report_command->add_option("--svg", report.svg, "Writes a picture instead of a page; - is standard output");
  report_command->add_option("--chart", report.chart,
                             "With --svg: usage (who used the link when) or iterations (slow-downs); default usage");
  report_command
      ->add_option("--policy", report.policies,
                   "With --svg: these policies, comma-separated; default: usage shows the first and the last, "
                   "iterations all")
      ->delimiter(',')
      ->allow_extra_args(false);

  tools::SwitchArguments soft;
  CLI::App* switch_command = app.add_subcommand(
      "switch", "A software switch between any DPDK ports: the bottleneck of a testbed (docs/switch.md)");
  switch_command
      ->add_option(
          "--port", soft.words.ports,
          "A port, once for each: af_packet:IFACE, af_xdp:IFACE, tap:NAME, memif:PATH, a PCI address, ...; and "
          "what is sent there, as in af_packet:eth1,rate=1Gbps,delay=10us,buffer=75kB,ecn=30kB,loss=0.01,"
          "classes=2: the names of the next options, which are for all ports")
      ->take_all()
      ->allow_extra_args(false);
  switch_command->add_option("--file", soft.file, "A switch file; options stand for what it says, --port adds to it");
  const auto word = [&](const std::string& name, const std::string& description) {
    return switch_command->add_option_function<std::string>(
        "--" + name, [&soft, name](const std::string& value) { soft.words.values.emplace_back(name, value); },
        description);
  };
  word("rate", "Rate of each port's output, of frames; default: as fast as the port takes them");
  word("delay", "Delay behind it, one way; default 0");
  word("buffer", "Buffer of each class; default 250kB");
  word("ecn", "Marking: KMIN[,KMAX[,PMAX]], as in 30kB or 30kB,90kB,0.1; or off, the default");
  word("loss", "Probability that a frame vanishes")->check(tools::share(1));
  word("duplicate", "Probability that it is sent twice")->check(tools::share(1));
  word("corrupt", "Probability that a bit of it is flipped")->check(tools::share(1));
  word("reorder", "Probability that it is held back")->check(tools::share(1));
  word("reorder-delay", "For how long at most; default 100us");
  word("classes", "Queues of strict priority, 1 to 8, by VLAN tag or DSCP class selector; default 1")
      ->check(tools::whole(1, 8));
  word("mtu", "Longest IP packet, 576 to 9000; default: the interface's")->check(tools::whole(576, 9000));
  word("seed", "Seed of faults and marks, 0 to 2^63 - 1; default 1")->check(tools::whole(0, INT64_MAX));
  word("idle", "Without work: spin, pause or sleep; default pause");
  word("mac-entries", "Addresses in the table; default 4096")->check(tools::whole(4, 1U << 20U));
  word("ageing", "Silence after which an address is forgotten; default 300s");
  switch_command->add_option("--for", soft.duration, "How long to run, as in 10s; default: until Ctrl-C or SIGTERM");
  switch_command->add_option("--cores", soft.cores, "The CPU to poll on; default: the first that may be used");
  switch_command->add_option("--memory", soft.memory_mb, "Memory of DPDK in MB; default: what the ports need")
      ->check(tools::whole(32, 65536));
  switch_command->add_option("--json", soft.json, "Write the counters to this file at the end; - is standard output");
  switch_command->add_option("--every", soft.every,
                             "With --json: counters as a series, too, one entry every 100ms, say");

  tools::GenArguments gen;
  CLI::App* gen_command = app.add_subcommand(
      "gen", "Run an experiment's jobs across hosts, one process on each and a coordinator (docs/gen.md)");
  gen_command->add_option("EXPERIMENT.toml", gen.run.file, "The experiment (docs/experiment-file.md); not with --join");
  gen_command->add_option("--serve", gen.serve,
                          "Be the coordinator, at HOST:PORT or unix:/path; with --mpi: where, if not as it likes");
  gen_command->add_option("--join", gen.join, "Be a host of the coordinator at this address");
  gen_command->add_flag("--mpi", gen.mpi,
                        "Be host number (MPI rank), started by mpirun or srun; rank 0 is the coordinator, too");
  gen_command->add_option("--wait", gen.wait,
                          "How long the coordinator waits for hosts, and a host for the coordinator; default 60s");
  gen_command->option_defaults()->group(kCoordinatorOptions);
  gen_command->add_option("--cc", gen.run.cc,
                          fmt::format("Congestion control: {}; default: the file's, or reno", choices));
  gen_command
      ->add_option("--policy", gen.run.policies,
                   "Policies, several as in fair,mltcp; default: the file's, or fair,mltcp")
      ->delimiter(',')
      ->allow_extra_args(false);
  gen_command->add_option("--iterations", gen.run.iterations, "Iterations per job; default: the file's, or 50")
      ->check(tools::whole(1, 1'000'000));
  gen_command->add_option_function<std::string>(
      "--seed", [&](const std::string& text) { gen.run.seed = seed_from(text); },
      "Seed of everything random, 0 to 2^63 - 1; default: the file's, or 1");
  gen_command->add_option("--plan", gen.run.plan, "Slots for policies schedule and mltcp+schedule (docs/plans.md)");
  gen_command->add_option("--json", gen.run.json, "Write the results to this file; - is standard output");
  gen_command->add_flag("--ranks", gen.ranks, "Show every rank on the terminal, not only jobs");
  gen_command->option_defaults()->group(kHostOptions);
  gen_command->add_option("--port", gen.port,
                          "Its port, af_xdp:IFACE, af_packet:IFACE, a PCI address, ... (docs/ports.md); with "
                          "--mpi, %r stands for the MPI rank, here and in --ip");
  gen_command->add_option("--ip", gen.ip, "Its address and prefix length, as in 10.0.0.1/24 or fd00::1/64");
  gen_command->add_option("--gateway", gen.gateway, "The way to addresses beyond the prefix");
  gen_command->add_option("--host", gen.host, "Its number; default: the next one that is free")
      ->check(tools::whole(0, 1'000'000));
  gen_command
      ->add_option("--udp-port", gen.udp_port,
                   fmt::format("UDP port of its first rank, others follow; default {}", default_udp_port))
      ->check(tools::whole(1, 65535));
  gen_command
      ->add_option("--load", gen.load,
                   "A congestion control of a shared object that the coordinator names, FILE.so:NAME; once for each")
      ->take_all()
      ->allow_extra_args(false);
  gen_command->add_option("--idle", gen.idle, "Without work, spin, pause or sleep; default pause")
      ->check(tools::one_of({"spin", "pause", "sleep"}));
  gen_command->add_option("--cores", gen.cores, "The CPU to poll on; default: the first that may be used");
  gen_command->add_option("--memory", gen.memory_mb, "Memory of DPDK in MB; default: what the port needs")
      ->check(tools::whole(32, 65536));
  gen_command->add_option("--mtu", gen.mtu, "Longest IP packet, 576 to 9000; default: the interface's")
      ->check(tools::whole(576, 9000));
  gen_command->add_option("--queues", gen.queues, "Queues of the port, 1 to 64; default 1")->check(tools::whole(1, 64));

  tools::TestbedArguments bed;
  CLI::App* testbed_command = app.add_subcommand(
      "testbed",
      "Hosts and switches on this machine, in namespaces that leave nothing behind, and an experiment or any other "
      "program on them (docs/testbed.md)");
  testbed_command->add_option("EXPERIMENT.toml", bed.file, "The experiment (docs/experiment-file.md)");
  testbed_command->add_option("OPTION", bed.gen, "Behind --: options of mltcp gen, such as --policy fair,mltcp");
  testbed_command->add_option("--device", bed.device, "Ports of hosts and switches: af_xdp, the default, or af_packet")
      ->check(tools::one_of({"af_xdp", "af_packet"}));
  testbed_command->add_option("--mtu", bed.mtu, "Longest IP packet; default: the experiment's, or 1500")
      ->check(tools::whole(576, 9000));
  testbed_command
      ->add_option("--idle", bed.idle,
                   "Without work: spin, pause or sleep; default: pause where every process has a "
                   "CPU of its own, otherwise sleep")
      ->check(tools::one_of({"spin", "pause", "sleep"}));
  testbed_command->add_option("--cores", bed.cores,
                              "CPUs, as in 0-3: the first for the switch, the others for hosts; default: all");
  testbed_command->add_option("--json", bed.json, "Write the results to this file; - is standard output");
  testbed_command->add_option("--log-dir", bed.log_dir, "Keep what each process says, in this folder");
  testbed_command->add_flag(
      "--realtime", bed.realtime,
      "Real-time priority (SCHED_RR) for the switch and, below it, the hosts: steadier results on "
      "a busy machine, which has little left for all else meanwhile");
  testbed_command->add_flag("--keep", bed.keep, "Leave it up until Ctrl-C, and tell how to enter its hosts");
  testbed_command->add_flag("--shell", bed.shell, "A shell in it, in the end");
  testbed_command->add_flag("--dry-run", bed.dry_run, "Tell what would be done");
  testbed_command->add_option("--hosts", bed.hosts, "A testbed of so many hosts on a switch, without an experiment")
      ->check(tools::whole(0, 1'000));
  testbed_command->add_option("--command", bed.command,
                              "With --hosts: what a shell shall do there, as in 'on 1 iperf3 -s -1 -D; on 0 iperf3 -c "
                              "10.77.0.2'");
  for (const char* name : {"rate", "delay", "buffer", "ecn", "loss"})
    testbed_command->add_option_function<std::string>(
        std::string("--") + name,
        [&bed, name](const std::string& value) { bed.words.values.emplace_back(name, value); },
        fmt::format("With --hosts: as of mltcp switch, of each of its ports"));

  tools::AlgorithmsArguments algorithms;
  CLI::App* algorithms_command =
      app.add_subcommand("algorithms", "The congestion controls there are, with their parameters (docs/algorithms.md)");
  algorithms_command->add_option("NAME", algorithms.names, "These only: names, or FILE.so:NAME");
  algorithms_command->add_flag("--markdown", algorithms.markdown, "The parameters as a table of Markdown");
  algorithms_command->add_option("--json", algorithms.json, "Write them to this file; - is standard output");

  tools::DoctorArguments doctor;
  auto* doctor_command = app.add_subcommand("doctor", "What on this machine is ready, and the cure for what is not");
  doctor_command
      ->add_option("--port", doctor.ports,
                   "A port to be opened, whoever uses it now: af_xdp:eth0, 3b:00.0, ...; once for each")
      ->take_all()
      ->allow_extra_args(false);
  doctor_command->add_option("--json", doctor.json, "Write what was found to this file; - is standard output");

  std::string topic;
  CLI::App* help_command = app.add_subcommand("help", "The same as --help, of this program or of a command");
  help_command->add_option("COMMAND", topic, "The command; default: this program");

  tools::name_values(app);
  if (const std::string missing = tools::missing_value(app, argc, argv); !missing.empty())
    return complain(bad_input, missing);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    if (app.get_subcommands().empty()) return complain(bad_input, no_command(app, argc > 1 ? argv[1] : ""));
    const CLI::App& command = *app.get_subcommands().back();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
      return complain(bad_input, no_argument(app, command, app.remaining(true)));
    const std::string why = error.what();
    return complain(bad_input,
                    fmt::format("{}{} see mltcp {} --help", why, why.ends_with('?') ? "" : ";", command.get_name()));
  }
  if (*help_command) return print_help(app, topic);
  if (*run_command) return tools::run(run);
  if (*sweep_command) return tools::sweep(sweep);
  if (*schedule_command) return tools::schedule(schedule);
  if (*cluster_command) return tools::cluster(cluster);
  if (*inspect_command) return tools::inspect(inspect);
  if (*report_command) return tools::report(report);
  if (*algorithms_command) return tools::algorithms(algorithms);
  if (*gen_command) {
    for (const CLI::Option* option : gen_command->get_options())
      if (option->count() == 0)
        continue;
      else if (option->get_group() == kCoordinatorOptions)
        gen.for_coordinator.push_back(option->get_name());
      else if (option->get_group() == kHostOptions)
        gen.for_host.push_back(option->get_name());
    return tools::gen(gen);
  }
  if (*switch_command) return tools::run_switch(soft);
  if (*testbed_command) return tools::testbed(bed);
  return tools::doctor(doctor);
}

// Does all of it, and turns failures into a line and a status.
int guarded(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const mltcp::InputError& error) {
    return complain(bad_input, error.what());
  } catch (const std::bad_alloc&) {
    return complain(failed, "out of memory; run fewer jobs or iterations, or a smaller network");
  } catch (const std::exception& error) {
    return complain(failed, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int status = guarded(argc, argv);
  // Output is buffered, so it may turn out only now that it got nowhere.
  errno = 0;
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && status == 0)
    return complain(failed, fmt::format("standard output can't be written: {}",
                                        errno != 0 ? std::strerror(errno) : "an earlier part was lost"));
  return status;
}
