// Runs as shown by the report's pages and pictures: labels, common time windows, and a run's two summary numbers (mean
// slow-down, and the iteration from which on it is interleaved). Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/report/internal/report_text.h"
#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

/// Maximum number of jobs distinguished by colour. With more, nothing is coloured by job.
inline constexpr std::size_t kMaxColours = 8;

/// Minimum number of jobs for which simultaneous senders are counted; for two, the overlap suffices.
inline constexpr std::size_t kFewestCounted = 3;

/// Summary of a run.
struct RunSummary {
  /// Mean over the jobs of their mean slow-down, without unaware jobs if there are others; empty if a job's isolated
  /// time is unknown.
  std::optional<double> slowdown;
  bool several = false;                      ///< there are at least two jobs that could interleave
  std::optional<std::uint64_t> interleaved;  ///< iteration from which on all jobs are interleaved
  std::optional<std::uint64_t> interleaved_5pct;
};
RunSummary summary_of(const Run& run);
/// The jobs to which policies apply; all jobs if there are none.
std::vector<const JobResult*> judged_jobs(const Run& run);

/// "from iteration 9 on", "never; within 5% from iteration 12 on", "never, nor within 5%".
std::string interleaved_text(const RunSummary& summary);

/// "interleave from iteration 9 on", "never interleave, but come within 5% from iteration 12 on", "never interleave".
std::string interleaving(const RunSummary& summary);

/// Maximum difference in iterations for which two runs count as interleaving equally early.
inline constexpr std::uint64_t kSameInterleaving = 2;
/// Which of two runs interleaves earlier, or at all; if none does, which one within 5%. Unknown if a run has nothing to
/// interleave, or a job's isolated time is unknown.
Change interleaving_change(const RunSummary& before, const RunSummary& now);

/// Results prepared for one page. Keeps a reference to them.
struct View {
  const Results& results;
  std::vector<std::string> jobs;    ///< distinct names in order of appearance; the index determines the colour
  std::vector<std::string> labels;  ///< by run: the policy, and what else distinguishes the run from others
  std::vector<TimeSpan> spans;      ///< by run: while all jobs are active
  std::vector<RunSummary> summaries;
  Nanos window;  ///< width of the first and last window of every run; 0 = nothing to show
  TimeUnit unit{"ms", 1e6};

  explicit View(const Results& all);

  [[nodiscard]] bool many() const { return jobs.size() > kMaxColours; }
  /// Whether the use of the bottleneck was recorded.
  [[nodiscard]] bool has_usage(std::size_t run) const;
  /// Whether it was not recorded, but is known from the jobs' own times.
  [[nodiscard]] bool has_lanes(std::size_t run) const;
  [[nodiscard]] TimeSpan first_window(std::size_t run) const { return {spans[run].from, spans[run].from + window}; }
  [[nodiscard]] TimeSpan last_window(std::size_t run) const { return {spans[run].to - window, spans[run].to}; }
  [[nodiscard]] TimeSpan second_half(std::size_t run) const {
    return {spans[run].from + (spans[run].to - spans[run].from) / 2, spans[run].to};
  }
  /// Whether the bins of the recorded use are longer than 2% of an iteration, so that consecutive bursts would count as
  /// overlapping: records of long runs have wider bins.
  [[nodiscard]] bool blurred(std::size_t run) const;
  /// Share of the busy time with overlap, by the link's record, or else by the jobs' own times; empty if the link is
  /// idle, or the record is blurred.
  [[nodiscard]] std::optional<double> overlap(std::size_t run, TimeSpan span) const;
  /// Mean number of jobs that communicate simultaneously while any does, from the same source as overlap(); empty for
  /// fewer jobs than kFewestCounted.
  [[nodiscard]] std::optional<double> jobs_at_once(std::size_t run, TimeSpan span) const;
  [[nodiscard]] std::size_t job_id(const std::string& name) const;
  /// The run to compare this one with: of policy fair, with as many equal settings as possible; or else the first.
  [[nodiscard]] std::size_t reference(std::size_t run) const;
};

/// When a job communicated, by its own clock: each iteration after its compute time. If it computes several times per
/// iteration, an interval of the same total length at its end.
std::vector<TimeSpan> communications(const JobResult& job, TimeSpan within);

}  // namespace mltcp::experiment
