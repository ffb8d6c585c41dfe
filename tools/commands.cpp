// The subcommands (see commands.h).
#include "commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include "end_on_signal.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/cc/controller.h"
#include "mltcp/experiment/backends/datapath.h"
#include "mltcp/experiment/backends/flow_level.h"
#include "mltcp/experiment/backends/packet_run.h"
#include "mltcp/experiment/backends/run_plan.h"
#include "mltcp/experiment/files/experiment_file.h"
#include "mltcp/experiment/files/file_kind.h"
#include "mltcp/experiment/results/internal/provenance_json.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/experiment/run/runner.h"
#include "mltcp/workload/inspection.h"
#include "mltcp/workload/kineto.h"
#include "mltcp/workload/profile.h"
#include "mltcp/workload/trace.h"
#include "output_file.h"
#include "provenance.h"
#include "terminal.h"
#if MLTCP_HAS_DPDK
#include "experiment_doctor.h"
#include "mltcp/dpdk/doctor.h"
#include "mltcp/dpdk/ring_dumbbell.h"
#endif

namespace mltcp::tools {
namespace {

std::string millis(Nanos time) { return fmt::format("{:.2f}", time.millis()); }

experiment::Experiment read_experiment(const RunArguments& arguments) {
  experiment::FileOptions options = file_options();
  options.datapath = arguments.datapath;
  options.cc = arguments.cc;
  options.policy = arguments.policies;
  options.iterations = arguments.iterations;
  options.seed = arguments.seed;
  return experiment::load_experiment(arguments.file, options);
}

/// Where `out` has colours: green where the job runs as if it were alone, red where sharing costs it a tenth and more.
std::string slowdown_text(double slowdown, std::FILE* out) {
  constexpr double alone = 1.02;
  constexpr double dear = 1.1;
  const std::string text = fmt::format("{:.3f}", slowdown);
  if (slowdown <= alone) return painted(text, Colour::green, out);
  return slowdown >= dear ? painted(text, Colour::red, out) : text;
}

/// "iteration 8", "never", "never (5%: 12)".
std::string interleaved_text(const experiment::JobResult& job) {
  if (job.interleaved_from) return fmt::format("iteration {}", *job.interleaved_from);
  return job.interleaved_from_5pct ? fmt::format("never (5%: {})", *job.interleaved_from_5pct) : "never";
}

std::string summary(const experiment::Results& results, std::FILE* out) {
  Table table(
      {"policy", "job", "isolated ms", "mean ms", "p50 ms", "p99 ms", "slow-down", "2nd half", "interleaved from"}, 2);
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    const experiment::Run& run = results.runs[i];
    if (i > 0) table.gap();
    for (const experiment::JobResult& job : run.jobs) {
      const double half = job.isolated.count > 0 ? static_cast<double>(job.second_half_mean.count) /
                                                       static_cast<double>(job.isolated.count)
                                                 : 0;
      table.add({run.policy, job.name, millis(job.isolated), millis(job.mean), millis(job.p50), millis(job.p99),
                 slowdown_text(job.slowdown, out), slowdown_text(half, out),
                 run.jobs.size() < 2 || job.unaware ? std::string("-") : interleaved_text(job)});
    }
  }
  return table.text();
}

/// "fair: mean slow-down 1.624 (1.290 to 2.033)", where the table has more rows than anybody takes a mean of.
std::string mean_text(const experiment::Run& run) {
  constexpr std::size_t few = 8;
  double sum = 0;
  double least = 0;
  double most = 0;
  std::size_t jobs = 0;
  for (const experiment::JobResult& job : run.jobs) {
    if (job.unaware || job.slowdown <= 0) continue;
    least = jobs == 0 ? job.slowdown : std::min(least, job.slowdown);
    most = std::max(most, job.slowdown);
    sum += job.slowdown;
    ++jobs;
  }
  if (jobs <= few) return "";
  return fmt::format("{}: mean slow-down {:.3f} ({:.3f} to {:.3f})\n", run.policy, sum / static_cast<double>(jobs),
                     least, most);
}

/// "\"a\", \"b\", and 3 more".
std::string names_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) text += (i > 0 ? ", " : "") + in_quotes(names[i]);
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

/// What the scheduler planned and the gates did; nothing for a run without a schedule.
std::string slots_text(const experiment::Run& run, const std::string& file) {
  std::string text;
  auto lines = std::back_inserter(text);
  if (run.schedule) {
    const experiment::ScheduleSummary& schedule = *run.schedule;
    fmt::format_to(lines, "{}: score {:.3f} on {} link{} ({}){}\n", run.policy, schedule.score, schedule.links,
                   schedule.links == 1 ? "" : "s",
                   schedule.optimal ? "optimal" : fmt::format("at most {:.3f}", schedule.upper_bound),
                   schedule.slots.empty()
                       ? std::string()
                       : fmt::format(", slots up to {:.2f}% longer than the jobs' periods", schedule.stretch * 100));
    if (schedule.replanned > 0)
      fmt::format_to(lines, "{}: planned again {} time{}, as jobs no longer fitted their slots\n", run.policy,
                     schedule.replanned, schedule.replanned == 1 ? "" : "s");
    if (schedule.repaired > 0)
      fmt::format_to(lines, "{}: slots were moved {} time{} for jobs that had missed theirs\n", run.policy,
                     schedule.repaired, schedule.repaired == 1 ? "" : "s");
    if (schedule.cut_off)
      fmt::format_to(lines,
                     "{}: not all slots were tried, as that would have been too much work: there may be better\n",
                     run.policy);
    // Jobs of one group have one reason.
    std::map<std::string, std::vector<std::string>> without;
    for (std::size_t i = 0; i < std::min(schedule.reasons.size(), schedule.without_slots.size()); ++i)
      without[schedule.reasons[i]].push_back(schedule.without_slots[i]);
    for (const auto& [reason, names] : without)
      fmt::format_to(lines, "{}: {} {} no slots: {}\n", run.policy, names_of(names), names.size() == 1 ? "has" : "have",
                     one_line(reason));
    if (schedule.unplanned > 0 && schedule.score < 1)
      fmt::format_to(lines, "{}: mltcp schedule {} --measure says what would make them fit\n", run.policy,
                     one_line(file));
  }
  for (const experiment::JobResult& job : run.jobs) {
    if (job.gate_waited.count == 0 && job.gate_corrections == 0 && job.plan_dropped.empty()) continue;
    fmt::format_to(lines,
                   "{}: {} started {:.2f} ms later and waited {:.2f} ms for its slots, {} correction{} of drift{}\n",
                   run.policy, job.name, job.time_shift.millis(), job.gate_waited.millis(), job.gate_corrections,
                   job.gate_corrections == 1 ? "" : "s",
                   job.plan_dropped.empty() ? "" : fmt::format("; its plan was dropped: {}", job.plan_dropped));
  }
  return text;
}

/// "fair: bus bandwidth of ring-a 57.7 Mbps, of ring-b 55.1 Mbps", or nothing.
std::string bandwidth_text(const experiment::Run& run) {
  std::vector<std::string> jobs;
  for (const experiment::JobResult& job : run.jobs)
    if (!job.bus_bandwidth.is_zero())
      jobs.push_back(
          fmt::format("of {} {:.1f} Mbps", job.name, static_cast<double>(job.bus_bandwidth.bits_per_second) * 1e-6));
  return jobs.empty() ? "" : fmt::format("{}: bus bandwidth {}\n", run.policy, fmt::join(jobs, ", "));
}

// The experiment's, and those that jobs have of their own.
std::string algorithms_of(const experiment::Experiment& experiment) {
  std::vector<std::string> names;
  for (const workload::Job& job : experiment.jobs) {
    const std::string& name = job.cc.empty() ? experiment.cc : job.cc;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// ", 317 lost in hosts (host 2: 317 missed)", or nothing.
std::string losses_text(const experiment::Run& run) {
  std::uint64_t all = 0;
  std::vector<std::string> hosts;
  for (const experiment::HostLosses& host : run.hosts) {
    // What was not for its ranks is no loss of theirs.
    const std::uint64_t lost = host.all() - host.rejected_packets;
    all += lost;
    if (lost > 0) hosts.push_back(fmt::format("host {}: {}", host.host, lost));
  }
  return hosts.empty() ? "" : fmt::format(", {} lost inside hosts ({})", all, fmt::join(hosts, ", "));
}

}  // namespace

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) print_warning(warning);
}

std::string headline(const experiment::Experiment& experiment, const experiment::Datapath& datapath) {
  return fmt::format("{}: {}, {}, {} at {}, on {} ({})", experiment.name, plural(experiment.jobs.size(), "job"),
                     plural(experiment.iterations, "iteration"), algorithms_of(experiment),
                     to_text(experiment.bottleneck.rate), datapath.datapath(), datapath.description());
}

namespace {

void write_results(const experiment::Results& results, const std::string& file) {
  std::ostringstream text;
  experiment::write_json(results, text);
  write_file(file, text.str());
}

}  // namespace

void keep_results(const experiment::Results& so_far, const std::optional<std::string>& json) {
  if (!json || !replaceable(*json)) return;
  try {
    write_results(so_far, *json);
  } catch (const RunError& error) {
    print_warning(error.what());
  }
}

void print_results(const experiment::Results& results, const experiment::Datapath& datapath, const std::string& file,
                   const std::optional<std::string>& json, std::FILE* out) {
  fmt::print(out, "{}\n", summary(results, out));
  for (const experiment::Run& run : results.runs) fmt::print(out, "{}", mean_text(run));
  std::uint64_t verified = 0;
  std::uint64_t errors = 0;
  for (const experiment::Run& run : results.runs) {
    std::uint64_t retransmitted = 0;
    for (const experiment::JobResult& job : run.jobs) {
      retransmitted += job.retransmitted_packets;
      verified += job.verified_messages;
      errors += job.checksum_errors;
    }
    const std::string held_up =
        run.stalls && run.stalls->total.count > 0
            ? fmt::format("; the machine held the datapath up for {:.1f} ms in all, {:.1f} ms at worst",
                          run.stalls->total.millis(), run.stalls->longest.millis())
            : std::string();
    if (run.links_unknown) {
      fmt::print(out, "{}: {} packets sent again{}{}{}\n", run.policy, retransmitted, losses_text(run), held_up,
                 run.clock_uncertainty ? fmt::format("; starts are right to {:.3f} ms", run.clock_uncertainty->millis())
                                       : std::string());
      continue;
    }
    const std::string& name = run.bottleneck.name;
    std::uint64_t dropped = run.links.empty() ? run.bottleneck.dropped_packets : 0;
    std::uint64_t marked = run.links.empty() ? run.bottleneck.ecn_marked_packets : 0;
    for (const auto& link : run.links) {
      dropped += link.dropped_packets;
      marked += link.ecn_marked_packets;
    }
    if (datapath.datapath() == "flow") {
      const double contended = run.duration.count > 0 ? run.bottleneck.contended.seconds() / run.duration.seconds() : 0;
      fmt::print(out, "{}: link {}used {:.1f}%, contended {:.1f}% of the time\n", run.policy,
                 name.empty() ? "" : fmt::format("\"{}\" ", name), run.bottleneck.utilization * 100, contended * 100);
      continue;
    }
    fmt::print(out, "{}: link {}used {:.1f}%, {} packets dropped{}, {} marked, {} sent again, longest queue {}{}\n",
               run.policy, name.empty() ? "" : fmt::format("\"{}\" ", name), run.bottleneck.utilization * 100, dropped,
               name.empty() ? "" : " on all links", marked, retransmitted,
               bytes_to_text(run.bottleneck.max_queue_bytes), held_up);
  }
  for (const experiment::Run& run : results.runs) {
    const experiment::Bottleneck& link = run.bottleneck;
    if (link.lost_packets + link.duplicated_packets + link.corrupted_packets + link.reordered_packets > 0)
      fmt::print(out, "{}: faults of the link: {} packets lost, {} doubled, {} damaged, {} held back\n", run.policy,
                 link.lost_packets, link.duplicated_packets, link.corrupted_packets, link.reordered_packets);
  }
  for (const experiment::Run& run : results.runs)
    for (const experiment::LinkOutage& outage : run.link_outages)
      fmt::print(out, "{}: host {}'s port {} had no link for {:.2f} s, from {:.2f} s on\n", run.policy, outage.host,
                 one_line(outage.port), outage.duration.seconds(), outage.start.seconds());
  for (const experiment::Run& run : results.runs) fmt::print(out, "{}{}", bandwidth_text(run), slots_text(run, file));
  if (datapath.real_payload()) fmt::print(out, "{} messages verified, {} damaged\n", verified, errors);

  for (const experiment::Run& run : results.runs)
    if (experiment::disturbed(run))
      warn(
          {fmt::format("the machine held {} up for {:.1f}% of its time: these results say little about the network; "
                       "stop other load and run again",
                       run.policy, 100 * run.stalls->total.seconds() / run.duration.seconds())});

  if (json) write_results(results, *json);
  if (errors == 0) return;
  std::string first;
  for (const experiment::Run& run : results.runs)
    for (const experiment::JobResult& job : run.jobs)
      if (first.empty() && !job.first_error.empty())
        first = fmt::format(", first in job {} under {}: {}", in_quotes(job.name), run.policy, job.first_error);
  throw RunError(fmt::format("{} messages arrived damaged{}", errors, first));
}

experiment::FileOptions file_options() {
  experiment::FileOptions options;
  options.datapaths = experiment::available_datapaths();
#if MLTCP_HAS_DPDK
  options.most_ring_jobs = dpdk::RingDumbbell::max_pairs();
#endif
  return options;
}

int run(const RunArguments& arguments) {
  if (arguments.json && arguments.json->empty())
    throw InputError("--json: the name is empty; name a file, or - for standard output");
  const FilesRead files;
  const experiment::Experiment experiment = read_experiment(arguments);
  if (arguments.cores && experiment.datapath != "ring")
    throw InputError(fmt::format("--cores is for datapath ring and this is {}; leave it out, or add --datapath ring",
                                 experiment.datapath));
  if (arguments.json) check_writable(*arguments.json, arguments.file);
  if (arguments.json && !arguments.plan.empty()) check_distinct({arguments.json, arguments.plan}, "--json, --plan");
  // A result on standard output is alone there; the table then goes to standard error.
  std::FILE* const out = arguments.json == "-" ? stderr : stdout;
  warn(experiment.warnings);

  const bool flow_level = experiment.datapath == "flow";
  if (flow_level && arguments.verify)
    throw InputError("--verify: datapath flow carries no bytes; leave it out, or add --datapath sim");
  if (flow_level) warn(experiment::warnings_at_flow_level(experiment));
  std::unique_ptr<experiment::Datapath> datapath;
  if (flow_level)
    datapath = experiment::make_flow_datapath();
  else if (experiment.datapath == "ring")
    datapath = experiment::make_ring_datapath(arguments.cores.value_or(""), experiment::network_of(experiment));
  else
    datapath = experiment::make_sim_datapath(arguments.verify);
  experiment::RunOptions options;
  options.plan_file = arguments.plan;
  options.threads = arguments.threads;
  experiment::check(experiment, *datapath, options);
  const experiment::Provenance provenance = provenance_of(files);
  fmt::print(out, "{}\n\n", headline(experiment, *datapath));
  std::fflush(out);
  const EndOnSignal signals;
  ProgressBar bar;
  options.report = [&](const std::string& problem) {
    bar.clear();
    warn({problem});
  };
  options.interrupted = EndOnSignal::why;
  options.finished = [&](const experiment::Results& so_far) {
    experiment::Results kept = so_far;
    kept.provenance = provenance;
    bar.clear();
    keep_results(kept, arguments.json);
  };
  experiment::Results results = experiment::run_experiment(
      experiment, *datapath, [&](double fraction, const std::string& what) { bar.show(fraction, what); }, options);
  results.provenance = provenance;
  bar.clear();

  print_results(results, *datapath, arguments.file, arguments.json, out);
  if (!results.unfinished.empty())
    throw RunError(fmt::format("{}: of {} policies, {} had been run{}, and {} {} missing", EndOnSignal::why(),
                               experiment.policies.size(), results.runs.size(),
                               arguments.json && *arguments.json != "-" ? ", and kept in " + *arguments.json : "",
                               fmt::join(results.unfinished, ", "), results.unfinished.size() == 1 ? "is" : "are"));
  return 0;
}

namespace {

void print_toml(const workload::Job& job, const std::vector<std::string>& warnings) {
  fmt::print("{}", workload::to_toml(job));
  warn(warnings);
}

Rate link_rate(const std::string& text) {
  try {
    return parse_rate(text);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--rate: {}", error.what()));
  }
}

int print_inspection(const InspectArguments& arguments);

}  // namespace

int inspect(const InspectArguments& arguments) {
  try {
    return print_inspection(arguments);
  } catch (const InputError&) {
    // What a pipe held is gone, and nothing can be said about it.
    std::error_code error;
    if (std::filesystem::is_regular_file(arguments.file, error)) {
      constexpr TextFile trace{"a trace or a demand profile", std::size_t{1} << 30};
      using experiment::FileKind;
      experiment::refuse_other_kind(read_text_file(arguments.file, arguments.file, trace), arguments.file, trace.what,
                                    {FileKind::trace, FileKind::kineto_trace, FileKind::profile});
    }
    throw;
  }
}

namespace {

int print_inspection(const InspectArguments& arguments) {
  workload::MappingOptions options;
  if (arguments.workers != 0) options.workers = arguments.workers;
  options.compute_scale = arguments.compute_scale;
  options.bytes_scale = arguments.bytes_scale;
  if (!arguments.network.empty()) {
    const auto network = workload::network_from(arguments.network);
    if (!network)
      throw InputError(
          fmt::format("--network {}: unknown; it is weight-gradient, inter-server or all", arguments.network));
    options.network = *network;
  }
  const Rate rate = link_rate(arguments.rate);
  if (rate.is_zero()) throw InputError("--rate 0: a link needs a rate above 0, as in \"100 Gbps\"");
  const std::string name = arguments.name.value_or(std::filesystem::path(arguments.file).stem().string());
  if (arguments.toml) {
    const std::string wrong = experiment::objection_to_name(name);
    if (!wrong.empty()) throw InputError(fmt::format("--name: {}", wrong));
  }
  if (workload::is_kineto(arguments.file)) {
    if (!arguments.network.empty())
      throw InputError("--network: a trace of PyTorch's profiler tells what was sent; leave the option out");
    const workload::KinetoTrace trace = workload::load_kineto(arguments.file);
    if (arguments.toml)
      print_toml(workload::to_job(trace, name, options), trace.warnings);
    else
      fmt::print("{}", workload::describe(trace, options, rate));
    return 0;
  }
  if (workload::is_profile(arguments.file)) {
    if (arguments.workers != 0 || !arguments.network.empty() || arguments.compute_scale != 1 ||
        arguments.bytes_scale != 1)
      throw InputError(
          "--workers, --network, --compute-scale, --bytes-scale: a measured profile tells what was sent, and when; "
          "leave them out");
    const workload::Profile profile = workload::load_profile(arguments.file);
    if (arguments.toml) {
      workload::Job job;
      job.name = name;
      job.phases = workload::to_phases(profile);
      print_toml(job, {});
    } else {
      fmt::print("{}", workload::describe(profile, rate));
    }
    return 0;
  }
  const workload::Trace trace = workload::load_trace(arguments.file);
  if (arguments.toml)
    print_toml(workload::to_job(trace, name, options), trace.warnings);
  else
    fmt::print("{}", workload::describe(workload::inspect(trace, options), rate));
  return 0;
}

}  // namespace

int doctor(const DoctorArguments& arguments) {
#if MLTCP_HAS_DPDK
  if (arguments.json) check_writable(*arguments.json, "");
  const FilesRead files;
  std::vector<dpdk::Check> checks = dpdk::examine_machine();
  const std::vector<dpdk::Check> ports = dpdk::examine_ports(arguments.ports);
  const std::vector<dpdk::Check> experiments = examine_experiments(checks, ports);
  checks.insert(checks.end(), experiments.begin(), experiments.end());
  checks.insert(checks.end(), ports.begin(), ports.end());
  const bool ring = std::all_of(checks.begin(), checks.end(), [](const dpdk::Check& check) {
    return check.name != "ring ports" || check.status == dpdk::CheckStatus::ok;
  });
  const bool asked = std::all_of(ports.begin(), ports.end(), [](const dpdk::Check& check) {
    return !check.was_asked_for || check.status == dpdk::CheckStatus::ok;
  });
  if (arguments.json) {
    nlohmann::ordered_json all = {{"schema", "mltcp.doctor/1"}, {"ring", ring}, {"checks", nlohmann::json::array()}};
    for (const dpdk::Check& check : checks) {
      all["checks"].push_back({{"name", check.name},
                               {"status", dpdk::to_text(check.status)},
                               {"detail", check.detail},
                               {"cure", check.cure}});
    }
    all["provenance"] = experiment::to_json(provenance_of(files));
    write_file(*arguments.json, all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  if (arguments.json != "-") {
    Table table({"", "what", "found"}, 3);
    std::vector<std::string> cures;
    for (const dpdk::Check& check : checks) {
      table.add({std::string(dpdk::to_text(check.status)), check.name, check.detail});
      if (!check.cure.empty()) cures.push_back(fmt::format("  {}: {}", check.name, check.cure));
    }
    fmt::print("{}", table.text());
    if (!cures.empty()) fmt::print("\nWhat to do, if you want it better:\n{}\n", fmt::join(cures, "\n"));
    std::string ready = ring ? "datapath sim, datapath ring" : "datapath sim";
    for (const dpdk::Check& check : experiments)
      if (check.status != dpdk::CheckStatus::missing) ready += ", " + check.name;
    fmt::print("\nReady here: {}. {}\n", ready,
               !ring   ? "For ring see above."
               : asked ? "Nothing else is needed for these."
                       : "Not ready: a port that was asked for; see above.");
  }
  return asked ? 0 : 1;
#else
  if (!arguments.ports.empty())
    throw InputError("--port: built without DPDK, so there are no ports; build with -DMLTCP_DPDK=ON");
  if (arguments.json)
    throw InputError("--json: built without DPDK, so nothing is examined; build with -DMLTCP_DPDK=ON");
  fmt::print(
      "built without DPDK: no datapath ring, no mltcp switch, gen --join and testbed; build with -DMLTCP_DPDK=ON\n"
      "\nReady here: datapath sim, datapath flow, mltcp gen --serve. They need nothing of the machine.\n");
  return 0;
#endif
}

}  // namespace mltcp::tools
