// Prepares runs for the report (see report_view.h).
//
// Every run is shown in windows of the same width, so that all panels share one time scale. The last window ends when
// the first job finishes, because policies have less to do from then on.
#include "mltcp/lab/experiment/report/internal/report_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mltcp::experiment {
namespace {

// Width of a window, as a number of iterations of the slowest job. The number is large enough to show a rhythm, and
// small enough to show bursts.
constexpr std::int64_t kWindowIterations = 4;

// How jobs share the link while at least one job communicates, according to the jobs' own clocks.
struct LaneUse {
  double shared = 0;  // share of the time in which two or more jobs communicate
  double jobs = 0;    // mean number of jobs that communicate
};
std::optional<LaneUse> lane_use(const Run& run, TimeSpan span) {
  std::vector<std::pair<std::int64_t, int>> events;
  for (const JobResult& job : run.jobs)
    for (const TimeSpan bar : communications(job, span)) {
      events.emplace_back(bar.from.count, 1);
      events.emplace_back(bar.to.count, -1);
    }
  std::ranges::sort(events);
  std::int64_t busy = 0;
  std::int64_t shared = 0;
  double job_time = 0;
  int users = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::int64_t width = i > 0 ? events[i].first - events[i - 1].first : 0;
    if (users > 0) busy += width;
    if (users > 1) shared += width;
    job_time += static_cast<double>(width) * users;
    users += events[i].second;
  }
  if (busy == 0) return std::nullopt;
  return LaneUse{static_cast<double>(shared) / static_cast<double>(busy), job_time / static_cast<double>(busy)};
}

}  // namespace

std::vector<const JobResult*> judged_jobs(const Run& run) {
  std::vector<const JobResult*> jobs;
  for (const JobResult& job : run.jobs)
    if (!job.unaware) jobs.push_back(&job);
  if (jobs.empty())
    for (const JobResult& job : run.jobs) jobs.push_back(&job);
  return jobs;
}

RunSummary summary_of(const Run& run) {
  RunSummary summary;
  const auto jobs = judged_jobs(run);
  double sum = 0;
  bool known = !jobs.empty();
  bool interleaved = true;
  bool nearly = true;
  std::uint64_t last = 0;
  std::uint64_t last_5pct = 0;
  for (const JobResult* job : jobs) {
    known = known && job->isolated.count > 0 && job->mean.count > 0;
    if (known) sum += static_cast<double>(job->mean.count) / static_cast<double>(job->isolated.count);
    interleaved = interleaved && job->interleaved_from;
    nearly = nearly && job->interleaved_from_5pct;
    last = std::max(last, job->interleaved_from.value_or(0));
    last_5pct = std::max(last_5pct, job->interleaved_from_5pct.value_or(0));
  }
  if (known) summary.slowdown = sum / static_cast<double>(jobs.size());
  const bool aware = std::ranges::any_of(run.jobs, [](const auto& job) { return !job.unaware; });
  summary.several = run.jobs.size() > 1 && aware;
  if (known && summary.several && interleaved) summary.interleaved = last;
  if (known && summary.several && nearly) summary.interleaved_5pct = last_5pct;
  return summary;
}

std::string interleaved_text(const RunSummary& summary) {
  if (!summary.several) return "nothing to interleave with";
  if (!summary.slowdown) return "time alone unknown";
  if (summary.interleaved) {
    if (*summary.interleaved == 0) return "interleaved from the start";
    return fmt::format("interleaved from iteration {} on", *summary.interleaved);
  }
  if (summary.interleaved_5pct)
    return fmt::format("never interleaved; within 5% from iteration {} on", *summary.interleaved_5pct);
  return "never interleaved, nor within 5%";
}

std::string interleaving(const RunSummary& summary) {
  if (summary.interleaved) return fmt::format("interleave from iteration {} on", *summary.interleaved);
  if (summary.interleaved_5pct)
    return fmt::format("never interleave, but come within 5% from iteration {} on", *summary.interleaved_5pct);
  return "never interleave";
}

Change interleaving_change(const RunSummary& before, const RunSummary& now) {
  if (!before.several || !now.several || !before.slowdown || !now.slowdown) return Change::unknown;
  using From = std::optional<std::uint64_t>;
  for (const auto& [then, from] : {std::pair<From, From>{before.interleaved, now.interleaved},
                                   std::pair<From, From>{before.interleaved_5pct, now.interleaved_5pct}}) {
    if (!then && !from) continue;
    if (!then) return Change::better;
    if (!from) return Change::worse;
    if (std::max(*then, *from) - std::min(*then, *from) <= kSameInterleaving) return Change::same;
    return *from < *then ? Change::better : Change::worse;
  }
  return Change::same;
}

View::View(const Results& all) : results(all) {
  std::vector<std::string> ccs;
  std::vector<std::string> datapaths;
  std::vector<std::string> seeds;
  Nanos slowest;
  Nanos shortest_isolated = Nanos::never();
  Nanos shortest_span = Nanos::never();
  for (const Run& run : results.runs) {
    add_once(ccs, run.cc);
    add_once(datapaths, run.datapath);
    add_once(seeds, std::to_string(run.seed));
    summaries.push_back(summary_of(run));
    spans.push_back(common_span(run));
    if (spans.back().to > spans.back().from)
      shortest_span = std::min(shortest_span, spans.back().to - spans.back().from);
    for (const JobResult& job : run.jobs) {
      add_once(jobs, job.name);
      slowest = std::max(slowest, job.p50);
      const Nanos alone = job.isolated.count > 0 ? job.isolated : job.p50;
      if (alone.count > 0) shortest_isolated = std::min(shortest_isolated, alone);
    }
  }
  for (const Run& run : results.runs) {
    std::string label = run.policy;
    if (ccs.size() > 1) label += " · " + run.cc;
    if (datapaths.size() > 1) label += " · " + run.datapath;
    if (seeds.size() > 1) label += " · seed " + std::to_string(run.seed);
    labels.push_back(label);
  }
  if (!shortest_span.is_never()) window = std::min(slowest * kWindowIterations, shortest_span / 2);
  if (!shortest_isolated.is_never()) unit = TimeUnit::for_time(shortest_isolated);
}

bool View::has_usage(std::size_t run) const {
  return window.count > 0 && spans[run].to > spans[run].from && results.runs[run].bottleneck.usage.bin.count > 0;
}

bool View::has_lanes(std::size_t run) const {
  const auto& of = results.runs[run].jobs;
  return window.count > 0 && spans[run].to > spans[run].from && !has_usage(run) &&
         std::ranges::any_of(of, [](const JobResult& job) { return job.compute.count > 0; });
}

bool View::blurred(std::size_t run) const {
  constexpr std::int64_t min_bins_per_iteration = 50;
  const auto& of = results.runs[run].jobs;
  return has_usage(run) && std::ranges::any_of(of, [&](const JobResult& job) {
           return results.runs[run].bottleneck.usage.bin > job.p50 / min_bins_per_iteration;
         });
}

std::optional<double> View::overlap(std::size_t run, TimeSpan span) const {
  if (has_lanes(run)) {
    const auto use = lane_use(results.runs[run], span);
    return use ? std::optional(use->shared) : std::nullopt;
  }
  if (blurred(run)) return std::nullopt;
  return overlap_share(results.runs[run].bottleneck.usage, span.from, span.to);
}

std::optional<double> View::jobs_at_once(std::size_t run, TimeSpan span) const {
  if (results.runs[run].jobs.size() < kFewestCounted) return std::nullopt;
  if (has_lanes(run)) {
    const auto use = lane_use(results.runs[run], span);
    return use ? std::optional(use->jobs) : std::nullopt;
  }
  if (blurred(run)) return std::nullopt;
  return mean_users(results.runs[run].bottleneck.usage, span.from, span.to);
}

std::size_t View::job_id(const std::string& name) const {
  return static_cast<std::size_t>(std::ranges::find(jobs, name) - jobs.begin());
}

std::size_t View::reference(std::size_t run) const {
  const Run& of = results.runs[run];
  std::optional<std::size_t> best;
  int alike = -1;
  for (std::size_t r = 0; r < results.runs.size(); ++r) {
    const Run& other = results.runs[r];
    if (other.policy != kBaselinePolicy) continue;
    const int score =
        4 * (other.cc == of.cc ? 1 : 0) + 2 * (other.datapath == of.datapath ? 1 : 0) + (other.seed == of.seed ? 1 : 0);
    if (score > alike) {
      alike = score;
      best = r;
    }
  }
  return best.value_or(0);
}

std::vector<TimeSpan> communications(const JobResult& job, TimeSpan within) {
  std::vector<TimeSpan> bars;
  if (job.compute.count <= 0) return bars;
  for (std::size_t i = 0; i < job.iterations.size(); ++i) {
    const Nanos computed = job.iteration_compute.empty() ? job.compute : job.iteration_compute[i];
    const TimeSpan bar{std::max(job.starts[i] + computed, within.from),
                       std::min(job.starts[i] + job.iterations[i], within.to)};
    if (bar.to > bar.from) bars.push_back(bar);
  }
  return bars;
}

}  // namespace mltcp::experiment
