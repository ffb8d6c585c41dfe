// Runs as shown by the report's pages and pictures: labels, common time windows, and two summary numbers per run (the
// mean slow-down, and the iteration from which on the jobs are interleaved). This header is not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/lab/experiment/report/internal/report_text.h"
#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

/// Maximum number of jobs distinguished by colour. With more jobs, nothing is coloured by job.
inline constexpr std::size_t kMaxColours = 8;

/// Minimum number of jobs for which pages show how many send simultaneously. For two jobs, the overlap suffices.
inline constexpr std::size_t kFewestCounted = 3;

/// Summary of a run.
struct RunSummary {
  /// Mean over the jobs of their mean slow-down. Unaware jobs are left out, unless all jobs are unaware. Empty if a
  /// job's isolated time is unknown.
  std::optional<double> slowdown;
  bool several = false;  ///< true if there are at least two jobs, and policies apply to at least one of them
  /// Iteration from which on all jobs are interleaved; empty if there is none.
  std::optional<std::uint64_t> interleaved;
  std::optional<std::uint64_t> interleaved_5pct;
};
RunSummary summary_of(const Run& run);
/// Returns the jobs to which policies apply, or all jobs if policies apply to none.
std::vector<const JobResult*> judged_jobs(const Run& run);

/// Returns a text such as "interleaved from iteration 9 on", "never interleaved; within 5% from iteration 12 on", or
/// "never interleaved, nor within 5%".
std::string interleaved_text(const RunSummary& summary);

/// Returns the predicate of a sentence about jobs, such as "interleave from iteration 9 on", "never interleave, but
/// come within 5% from iteration 12 on", or "never interleave".
std::string interleaving(const RunSummary& summary);

/// Maximum difference in iterations for which two runs count as interleaving equally early.
inline constexpr std::uint64_t kSameInterleaving = 2;
/// Returns whether run `now` interleaves earlier (better) or later (worse) than run `before`. Never interleaving is
/// worse than any iteration. If neither run interleaves, compares when the runs come within 5%. Returns unknown if a
/// run has nothing to interleave, or if a job's isolated time is unknown.
Change interleaving_change(const RunSummary& before, const RunSummary& now);

/// Results prepared for one page. The results must outlive the view.
struct View {
  const Results& results;
  std::vector<std::string> jobs;    ///< distinct names in order of appearance; the index determines the colour
  std::vector<std::string> labels;  ///< by run: the policy, and what else distinguishes the run from other runs
  std::vector<TimeSpan> spans;      ///< by run: the time during which all jobs are active
  std::vector<RunSummary> summaries;
  Nanos window;  ///< width of the first and last window of every run; 0 if there is nothing to show
  TimeUnit unit{"ms", 1e6};

  explicit View(const Results& all);

  [[nodiscard]] bool many() const { return jobs.size() > kMaxColours; }
  /// Returns whether the use of the bottleneck was recorded.
  [[nodiscard]] bool has_usage(std::size_t run) const;
  /// Returns whether the use of the bottleneck was not recorded, but is known from the jobs' own times.
  [[nodiscard]] bool has_lanes(std::size_t run) const;
  [[nodiscard]] TimeSpan first_window(std::size_t run) const { return {spans[run].from, spans[run].from + window}; }
  [[nodiscard]] TimeSpan last_window(std::size_t run) const { return {spans[run].to - window, spans[run].to}; }
  [[nodiscard]] TimeSpan second_half(std::size_t run) const {
    return {spans[run].from + (spans[run].to - spans[run].from) / 2, spans[run].to};
  }
  /// Returns whether the bins of the recorded use are longer than 2% of an iteration, as in records of long runs.
  /// Consecutive bursts would then count as overlapping.
  [[nodiscard]] bool blurred(std::size_t run) const;
  /// Returns the share of the busy time in which jobs overlap: by the jobs' own times if has_lanes(run), otherwise by
  /// the link's record. Empty if the link is idle, or if the record is blurred.
  [[nodiscard]] std::optional<double> overlap(std::size_t run, TimeSpan span) const;
  /// Returns the mean number of jobs that communicate simultaneously while at least one communicates, from the same
  /// source as overlap(). Empty if overlap() is empty, or if there are fewer than kFewestCounted jobs.
  [[nodiscard]] std::optional<double> jobs_at_once(std::size_t run, TimeSpan span) const;
  [[nodiscard]] std::size_t job_id(const std::string& name) const;
  /// Returns the run with which `run` is compared. This is the run of policy fair that is most similar in congestion
  /// control, datapath and seed. If there is no run of policy fair, it is the first run.
  [[nodiscard]] std::size_t reference(std::size_t run) const;
};

/// Returns when a job communicated, by its own clock: in each iteration, from the end of the compute time to the end of
/// the iteration. For a job that computes several times per iteration, the interval has the right length, but is always
/// at the end of the iteration.
std::vector<TimeSpan> communications(const JobResult& job, TimeSpan within);

}  // namespace mltcp::experiment
