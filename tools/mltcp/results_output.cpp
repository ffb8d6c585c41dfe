// Prints and writes results (see results_output.h).
#include "results_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <sstream>
#include <vector>

#include "end_on_signal.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/report/report_file.h"
#include "mltcp/lab/experiment/run/runner.h"
#include "output_file.h"
#include "terminal.h"

namespace mltcp::tools {
namespace {

std::string millis(Nanos time) { return fmt::format("{:.2f}", time.millis()); }

/// Returns the slow-down as text. If `out` has colours, the text is green for a job that runs as fast as in isolation,
/// and red for a slow-down of 10% or more.
std::string slowdown_text(double slowdown, std::FILE* out) {
  constexpr double alone = 1.02;
  constexpr double dear = 1.1;
  const std::string text = fmt::format("{:.3f}", slowdown);
  if (slowdown <= alone) return painted(text, Colour::green, out);
  return slowdown >= dear ? painted(text, Colour::red, out) : text;
}

/// Returns "iteration 8", "never", or "never (5%: 12)" if the job interleaves within 5% from iteration 12 on, but never
/// within 2%.
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

/// Returns a line such as "fair: mean slow-down 1.624 (1.290 to 2.033)" if the run has more than eight jobs; otherwise
/// an empty text.
std::string mean_text(const experiment::Run& run) {
  constexpr std::size_t few = 8;
  double sum = 0;
  double min = 0;
  double max = 0;
  std::size_t jobs = 0;
  for (const experiment::JobResult& job : run.jobs) {
    if (job.unaware || job.slowdown <= 0) continue;
    min = jobs == 0 ? job.slowdown : std::min(min, job.slowdown);
    max = std::max(max, job.slowdown);
    sum += job.slowdown;
    ++jobs;
  }
  if (jobs <= few) return "";
  return fmt::format("{}: mean slow-down {:.3f} ({:.3f} to {:.3f})\n", run.policy, sum / static_cast<double>(jobs), min,
                     max);
}

/// Returns a list such as "a", "b" and 3 more, with the names in quotes.
std::string names_of(const std::vector<std::string>& names) {
  constexpr std::size_t max = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), max); ++i) text += (i > 0 ? ", " : "") + in_quotes(names[i]);
  return names.size() > max ? fmt::format("{} and {} more", text, names.size() - max) : text;
}

/// Returns a text about the scheduler's plan; empty for a run without a schedule.
std::string schedule_text(const experiment::Run& run, const std::string& file) {
  if (!run.schedule) return "";
  std::string text;
  const experiment::ScheduleSummary& schedule = *run.schedule;
  text += fmt::format("{}: score {:.3f} on {} link{} ({}){}\n", run.policy, schedule.score, schedule.links,
                      schedule.links == 1 ? "" : "s",
                      schedule.optimal ? "optimal" : fmt::format("at most {:.3f}", schedule.upper_bound),
                      schedule.slots.empty()
                          ? std::string()
                          : fmt::format(", slots up to {:.2f}% longer than the jobs' periods", schedule.stretch * 100));
  if (schedule.replanned > 0)
    text += fmt::format("{}: planned again {} time{}, as jobs no longer fitted their slots\n", run.policy,
                        schedule.replanned, schedule.replanned == 1 ? "" : "s");
  if (schedule.repaired > 0)
    text += fmt::format("{}: slots were moved {} time{} for jobs that had missed theirs\n", run.policy,
                        schedule.repaired, schedule.repaired == 1 ? "" : "s");
  if (schedule.cut_off)
    text += fmt::format("{}: not all slots were tried, as that would take too long; there may be better ones\n",
                        run.policy);
  // Jobs that have no slots for the same reason share a line.
  std::map<std::string, std::vector<std::string>> without;
  for (std::size_t i = 0; i < std::min(schedule.reasons.size(), schedule.without_slots.size()); ++i)
    without[schedule.reasons[i]].push_back(schedule.without_slots[i]);
  for (const auto& [reason, names] : without)
    text += fmt::format("{}: {} {} no slots: {}\n", run.policy, names_of(names), names.size() == 1 ? "has" : "have",
                        one_line(reason));
  if (schedule.unplanned > 0 && schedule.score < 1)
    text +=
        fmt::format("{}: to see what would make them fit: mltcp schedule {} --measure\n", run.policy, one_line(file));
  return text;
}

/// Returns a text with the counters of the gates, which delay jobs until their slots.
std::string gates_text(const experiment::Run& run) {
  std::string text;
  for (const experiment::JobResult& job : run.jobs) {
    if (job.gate_waited.count == 0 && job.gate_corrections == 0 && job.plan_dropped.empty()) continue;
    text +=
        fmt::format("{}: {} started {:.2f} ms later and waited {:.2f} ms for its slots, {} correction{} of drift{}\n",
                    run.policy, job.name, job.time_shift.millis(), job.gate_waited.millis(), job.gate_corrections,
                    job.gate_corrections == 1 ? "" : "s",
                    job.plan_dropped.empty() ? "" : fmt::format("; its plan was dropped: {}", job.plan_dropped));
  }
  return text;
}

/// Returns a line such as "fair: bus bandwidth of ring-a 57.7 Mbps, of ring-b 55.1 Mbps"; empty if no job has a bus
/// bandwidth.
std::string bandwidth_text(const experiment::Run& run) {
  std::vector<std::string> jobs;
  for (const experiment::JobResult& job : run.jobs)
    if (!job.bus_bandwidth.is_zero())
      jobs.push_back(
          fmt::format("of {} {:.1f} Mbps", job.name, static_cast<double>(job.bus_bandwidth.bits_per_second) * 1e-6));
  return jobs.empty() ? "" : fmt::format("{}: bus bandwidth {}\n", run.policy, fmt::join(jobs, ", "));
}

// Returns the names of all algorithms that the jobs use.
std::string algorithms_of(const experiment::Experiment& experiment) {
  std::vector<std::string> names;
  for (const workload::Job& job : experiment.jobs) {
    const std::string& name = job.cc.empty() ? experiment.cc : job.cc;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns a text such as ", 317 lost inside hosts (host 2: 317)"; empty if no packets were lost.
std::string losses_text(const experiment::Run& run) {
  std::uint64_t all = 0;
  std::vector<std::string> hosts;
  for (const experiment::HostLosses& host : run.hosts) {
    // Packets that were not meant for the host's ranks do not count as losses.
    const std::uint64_t lost = host.all() - host.rejected_packets;
    all += lost;
    if (lost > 0) hosts.push_back(fmt::format("host {}: {}", host.host, lost));
  }
  return hosts.empty() ? "" : fmt::format(", {} lost inside hosts ({})", all, fmt::join(hosts, ", "));
}

std::string held_up_text(const experiment::Run& run) {
  if (!run.stalls || run.stalls->total.count <= 0) return "";
  return fmt::format("; the machine delayed the datapath for {:.1f} ms in all, {:.1f} ms at worst",
                     run.stalls->total.millis(), run.stalls->longest.millis());
}

/// Returns a line such as "fair: link used 93.1%, 0 packets dropped, ...", with the counters that the datapath knows.
std::string links_text(const experiment::Run& run, const experiment::Datapath& datapath) {
  std::uint64_t retransmitted = 0;
  for (const experiment::JobResult& job : run.jobs) retransmitted += job.retransmitted_packets;
  if (run.links_unknown)
    return fmt::format(
        "{}: {} packets sent again{}{}{}\n", run.policy, retransmitted, losses_text(run), held_up_text(run),
        run.clock_uncertainty ? fmt::format("; starts are right to {:.3f} ms", run.clock_uncertainty->millis())
                              : std::string());
  const std::string& name = run.bottleneck.name;
  const std::string link = name.empty() ? "" : fmt::format("\"{}\" ", name);
  if (datapath.datapath() == "flow") {
    const double contended = run.duration.count > 0 ? run.bottleneck.contended.seconds() / run.duration.seconds() : 0;
    return fmt::format("{}: link {}used {:.1f}%, contended {:.1f}% of the time\n", run.policy, link,
                       run.bottleneck.utilization * 100, contended * 100);
  }
  std::uint64_t dropped = run.links.empty() ? run.bottleneck.dropped_packets : 0;
  std::uint64_t marked = run.links.empty() ? run.bottleneck.ecn_marked_packets : 0;
  for (const auto& one : run.links) {
    dropped += one.dropped_packets;
    marked += one.ecn_marked_packets;
  }
  return fmt::format("{}: link {}used {:.1f}%, {} packets dropped{}, {} marked, {} sent again, longest queue {}{}\n",
                     run.policy, link, run.bottleneck.utilization * 100, dropped, name.empty() ? "" : " on all links",
                     marked, retransmitted, bytes_to_text(run.bottleneck.max_queue_bytes), held_up_text(run));
}

/// Returns a line about the configured faults of the links, or nothing if none occurred.
std::string faults_text(const experiment::Run& run) {
  const experiment::Bottleneck& link = run.bottleneck;
  if (link.lost_packets + link.duplicated_packets + link.corrupted_packets + link.reordered_packets == 0) return "";
  return fmt::format("{}: faults of the link: {} packets lost, {} doubled, {} damaged, {} held back\n", run.policy,
                     link.lost_packets, link.duplicated_packets, link.corrupted_packets, link.reordered_packets);
}

std::string outages_text(const experiment::Run& run) {
  std::string text;
  for (const experiment::LinkOutage& outage : run.link_outages)
    text += fmt::format("{}: host {}'s port {} had no link for {:.2f} s, from {:.2f} s on\n", run.policy, outage.host,
                        one_line(outage.port), outage.duration.seconds(), outage.start.seconds());
  return text;
}

void warn_if_disturbed(const experiment::Run& run) {
  if (!experiment::disturbed(run)) return;
  print_warning(
      fmt::format("the machine delayed {} for {:.1f}% of its time, so these results say little about the network; stop "
                  "other load and run again",
                  run.policy, 100 * run.stalls->total.seconds() / run.duration.seconds()));
}

struct Messages {
  std::uint64_t verified = 0;
  std::uint64_t damaged = 0;
  std::string first_damage;  ///< ", first in job ...", or empty if no message was damaged
};

Messages messages_of(const experiment::Results& results) {
  Messages messages;
  for (const experiment::Run& run : results.runs) {
    for (const experiment::JobResult& job : run.jobs) {
      messages.verified += job.verified_messages;
      messages.damaged += job.checksum_errors;
      if (messages.first_damage.empty() && !job.first_error.empty())
        messages.first_damage =
            fmt::format(", first in job {} under {}: {}", in_quotes(job.name), run.policy, job.first_error);
    }
  }
  return messages;
}

void write_results(const experiment::Results& results, const std::string& file) {
  std::ostringstream text;
  experiment::write_json(results, text);
  write_file(file, text.str());
}

}  // namespace

std::string headline(const experiment::Experiment& experiment, const experiment::Datapath& datapath) {
  return fmt::format("{}: {}, {}, {} at {}, on {} ({})", experiment.name, plural(experiment.jobs.size(), "job"),
                     plural(experiment.iterations, "iteration"), algorithms_of(experiment),
                     to_text(experiment.bottleneck.rate), datapath.datapath(), datapath.description());
}

void keep_results(const experiment::Results& so_far, const std::optional<std::string>& json) {
  if (!json || !replaceable(*json)) return;
  try {
    write_results(so_far, *json);
  } catch (const RunError& error) {
    print_warning(error.what());
  }
}

void write_report(const experiment::Results& results, const experiment::SeriesFile* series, const std::string& file,
                  std::FILE* out) {
  write_file(file, experiment::render_page(results, series));
  if (file != "-") fmt::print(out, "\n{}\n", one_line(file));
}

void print_results(const experiment::Results& results, const experiment::Datapath& datapath, const std::string& file,
                   const std::optional<std::string>& json, std::FILE* out) {
  fmt::print(out, "{}\n", summary(results, out));
  for (const experiment::Run& run : results.runs) fmt::print(out, "{}", mean_text(run));
  for (const experiment::Run& run : results.runs) fmt::print(out, "{}", links_text(run, datapath));
  for (const experiment::Run& run : results.runs) fmt::print(out, "{}", faults_text(run));
  for (const experiment::Run& run : results.runs) fmt::print(out, "{}", outages_text(run));
  for (const experiment::Run& run : results.runs)
    fmt::print(out, "{}{}{}", bandwidth_text(run), schedule_text(run, file), gates_text(run));
  const Messages messages = messages_of(results);
  if (datapath.real_payload())
    fmt::print(out, "{} messages verified, {} damaged\n", messages.verified, messages.damaged);
  for (const experiment::Run& run : results.runs) warn_if_disturbed(run);

  if (json) write_results(results, *json);
  if (messages.damaged > 0)
    throw RunError(fmt::format("{} messages arrived damaged{}", messages.damaged, messages.first_damage));
}

experiment::Results run_and_keep(const experiment::Experiment& experiment, experiment::Datapath& datapath,
                                 experiment::RunOptions options, const Provenance& provenance,
                                 const std::optional<std::string>& json, std::FILE* out,
                                 const std::function<void(experiment::Results&)>& complete) {
  ProgressBar bar;
  const auto completed = [&](experiment::Results results) {
    bar.clear();
    results.provenance = provenance;
    if (complete) complete(results);
    return results;
  };
  options.report = [&](const std::string& problem) {
    bar.clear();
    print_warning(problem);
  };
  options.interrupted = EndOnSignal::why;
  options.captured = [&](const std::string& line, bool is_complete) {
    bar.clear();
    if (is_complete)
      fmt::print(out, "captured, {}\n", line);
    else
      print_warning("captured, " + line);
  };
  options.finished = [&](const experiment::Results& so_far) { keep_results(completed(so_far), json); };
  return completed(experiment::run_experiment(
      experiment, datapath, [&](double fraction, const std::string& what) { bar.show(fraction, what); }, options));
}

}  // namespace mltcp::tools
