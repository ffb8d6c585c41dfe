// What the report's page and pictures say about runs: labels, times that panels share, and the two numbers that sum a
// run up, its mean slow-down and the iteration from which on it is interleaved. Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/experiment/report/internal/report_text.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

/// Jobs that colours can tell apart. With more, nothing is coloured by job.
inline constexpr std::size_t kMostColours = 8;

/// Jobs of a run from which on it is told how many communicate at once: of two, how much their bursts overlap says it.
inline constexpr std::size_t kFewestCounted = 3;

/// A run in two numbers.
struct RunSummary {
  /// Mean over the jobs of their mean slow-down, without those that are unaware where there are others; nothing where a
  /// job's isolated time is unknown.
  std::optional<double> slowdown;
  bool several = false;                      ///< two jobs or more that could interleave
  std::optional<std::uint64_t> interleaved;  ///< the iteration from which on the last of its jobs is
  std::optional<std::uint64_t> interleaved_5pct;
};
RunSummary summary_of(const Run& run);
/// The jobs that policies apply to; all of them where that is none.
std::vector<const JobResult*> judged_jobs(const Run& run);

/// "from iteration 9 on", "never; within 5% from iteration 12 on", "never, nor within 5%".
std::string interleaved_text(const RunSummary& summary);

/// "interleave from iteration 9 on", "never interleave, but come within 5% from iteration 12 on", "never interleave".
std::string interleaving(const RunSummary& summary);

/// Iterations by which two runs may differ in when they interleave, and still be called the same.
inline constexpr std::uint64_t kSameInterleaving = 2;
/// Which of two runs interleaves sooner, or at all; where none does, which comes within 5%. Unknown where one has
/// nothing to interleave, or a job's time alone is unknown.
Change interleaving_change(const RunSummary& before, const RunSummary& now);

/// Results, looked at as one page. Keeps a reference to them.
struct View {
  const Results& results;
  std::vector<std::string> jobs;    ///< distinct names in order of appearance; the place in it gives the colour
  std::vector<std::string> labels;  ///< of each run: the policy, and what else tells it from the others
  std::vector<TimeSpan> spans;      ///< of each run, while all jobs are at work
  std::vector<RunSummary> summaries;
  Nanos window;  ///< width of the first and last window of every run; 0 = nothing to show
  TimeUnit unit{"ms", 1e6};

  explicit View(const Results& all);

  [[nodiscard]] bool many() const { return jobs.size() > kMostColours; }
  /// The use of the bottleneck was recorded.
  [[nodiscard]] bool has_usage(std::size_t run) const;
  /// It was not, but the jobs' own times say when each communicated.
  [[nodiscard]] bool has_lanes(std::size_t run) const;
  [[nodiscard]] TimeSpan first_window(std::size_t run) const { return {spans[run].from, spans[run].from + window}; }
  [[nodiscard]] TimeSpan last_window(std::size_t run) const { return {spans[run].to - window, spans[run].to}; }
  [[nodiscard]] TimeSpan second_half(std::size_t run) const {
    return {spans[run].from + (spans[run].to - spans[run].from) / 2, spans[run].to};
  }
  /// The use of the bottleneck was recorded, in bins so long beside iterations (2%) that bursts which follow each other
  /// would count as overlapping: a record of a long run is coarser than that of a short one.
  [[nodiscard]] bool blurred(std::size_t run) const;
  /// Of the busy time, by the link's record or, where there is none, by the jobs' own times; nothing where it is idle,
  /// or blurred.
  [[nodiscard]] std::optional<double> overlap(std::size_t run, TimeSpan span) const;
  /// How many jobs communicate at once while any does, on average, known as overlap() is; nothing for fewer jobs than
  /// kFewestCounted.
  [[nodiscard]] std::optional<double> jobs_at_once(std::size_t run, TimeSpan span) const;
  [[nodiscard]] std::size_t job_id(const std::string& name) const;
  /// The run that this one is compared with: of policy fair, as alike in the rest as there is; else the first.
  [[nodiscard]] std::size_t reference(std::size_t run) const;
};

/// A stretch in which a job communicated, by its own clock: an iteration less what it computed, from when it had
/// computed. Where it computes several times in an iteration, this is as long as it communicates, at its end.
std::vector<TimeSpan> communications(const JobResult& job, TimeSpan within);

}  // namespace mltcp::experiment
