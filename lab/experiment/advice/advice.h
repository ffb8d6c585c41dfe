// Predicts how much the other jobs of an experiment slow down each job, compared to the job alone. Makes predictions
// for fair sharing, MLTCP, policy turns, a schedule, and MLTCP with a schedule, averaged over the jobs' start times.
// Recommends a policy in one sentence.
//
// A constellation is one combination of the jobs' start times. A prediction is the mean over several constellations,
// which are spread evenly over the jobs' periods. The method is the additive recurrence of Roberts ("The unreasonable
// effectiveness of quasirandom sequences", 2018), with the generalised golden ratio of Hensley and Su. For the same
// number of runs, this mean varies much less than a mean over random starts. Each constellation is simulated in virtual
// time, as flows (lab/experiment/backends/flow_level.h) or as packets.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/fit/compatibility.h"

namespace mltcp::experiment {

inline constexpr std::string_view kAdviceSchema = "mltcp.advice/1";

inline constexpr double kMaxAdviceWork = 7e7;  ///< in the unit of flow_work_of(); this much work takes some seconds

struct AdviceOptions {
  enum class Level {
    /// Policies are simulated as packets, because results depend on losses and congestion marks. If the runs would have
    /// more than max_packets packets, policies are simulated as flows: those with a schedule, except beside legacy
    /// traffic, and if that is not enough, all.
    automatic,
    flow,    ///< simulates flows, which share links like fluids
    packet,  ///< simulates packets, each of which passes through the real transport
  };
  Level level = Level::automatic;
  /// Number of constellations, 1 to 1000. The default is kAdviceStarts, or 1 if there is a single job. If the work
  /// would exceed max_work, the default is reduced and there is a warning.
  std::optional<std::uint32_t> starts;
  /// Number of iterations of the job with the shortest iterations, in each constellation; 2 to 1000000. All jobs run
  /// for the same time. In this time, the job with the longest iterations has at least min(iterations, 8) of them. The
  /// default is kAdviceIterations. If the work would exceed max_work, the default is reduced and there is a warning.
  std::optional<std::uint32_t> iterations;
  /// Standard deviation of compute times, as a share of these times, 0 to 0.5. Applies to jobs whose compute times do
  /// not vary. Without variation, jobs at flow level would repeat the same pattern for ever.
  double jitter = 0.005;
  /// Limit for the work of simulating flows, in the unit of flow_work_of(). If the work would exceed the limit, the
  /// defaults of starts and iterations are reduced.
  double max_work = kMaxAdviceWork;
  /// Maximum number of data packets that Level::automatic simulates, in all runs together. 20 million take 10 to 20
  /// seconds.
  std::uint64_t max_packets = 20'000'000;
  std::uint32_t threads = 0;  ///< number of parallel runs, 0 for one per core; does not affect the result
  /// Called with the fraction of work done. Any thread may call it, but only one at a time. May be empty.
  std::function<void(double)> progress;
  std::function<bool()> stop;  ///< polled; if it returns true, advise() throws RunError; may be empty
};

inline constexpr std::uint32_t kAdviceStarts = 8;
inline constexpr std::uint32_t kAdviceIterations = 40;

/// Maximum number of phases of all jobs together. Each job may have an equal part of them, but at least 100 phases. If
/// a job has more phases, it is simulated with fewer, each of which replaces several consecutive phases. Each phase
/// costs an event in every iteration.
inline constexpr std::size_t kMaxAdvicePhases = 6'000;

struct Advice {
  /// Slow-down of one job under one policy over all constellations: iteration time divided by the time in isolation.
  struct Prediction {
    double mean = 1;
    double later = 1;  ///< mean of the second half of the iterations
    double best = 1;   ///< mean of the best constellation
    double worst = 1;  ///< mean of the worst constellation
  };
  struct Policy {
    std::string name;
    bool packets = false;               ///< true if simulated as packets, false if simulated as flows
    std::vector<Prediction> jobs;       ///< one element per job
    [[nodiscard]] double mean() const;  ///< mean over all jobs
  };
  struct Pair {
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    /// Score of the link on which the jobs are least compatible (fit/compatibility.h); 1 if the jobs are compatible.
    double score = 1;
    double upper_bound = 1;  ///< no time shifts reach a higher score
    double fair = 1;  ///< mean slow-down of the two jobs without other jobs, under fair sharing; simulated as flows
    double mltcp = 1;
  };
  /// The iteration that was found in a job's trace.
  struct Period {
    /// Recorded time of the iteration, or its time in a layout of the trace's nodes (see graph_phases.h).
    Nanos length;
    std::string found;      ///< how the iteration was found: "marked", "repeated" or "single"
    double confidence = 0;  ///< from 0 to 1
  };
  struct AdvisedJob {
    std::string name;
    Nanos isolated;        ///< iteration time in isolation
    double busy = 0;       ///< share of the isolated iteration time in which the job sends, at the rate of its link
    bool unaware = false;  ///< whether the job is legacy traffic
    std::optional<Period> period = std::nullopt;  ///< not set by advise()
  };

  std::string experiment;
  std::string cc;
  std::uint32_t starts = 0;
  std::uint32_t iterations = 0;
  std::vector<AdvisedJob> jobs;
  /// fair, mltcp, turns if packets are simulated and, if a schedule exists, schedule and mltcp+schedule.
  std::vector<Policy> policies;
  std::vector<Pair> pairs;  ///< empty for at most two jobs, or for more than kMaxAdvicePairs pairs
  double score = 1;         ///< score of the link on which the jobs are least compatible
  double upper_bound = 1;
  bool proven = true;
  std::string recommended;  ///< recommended policy; empty if none helps, or if no prediction is possible
  std::string sentence;     ///< the recommendation for people
  std::vector<std::string> warnings;
  std::optional<Provenance> provenance;  ///< included in the JSON if set
};

inline constexpr std::size_t kMaxAdvicePairs = 66;

/// Predicts the slow-downs and recommends a policy. Does not use the policies, iterations, starts and datapath of
/// `experiment`. Throws InputError for options out of range, and for an experiment that the level cannot run. Throws
/// InputError if the work exceeds AdviceOptions::max_work even with the fewest starts and iterations; max_work does not
/// apply if both are given. Throws RunError if AdviceOptions::stop returns true, or if a job makes no progress.
Advice advise(const Experiment& experiment, const AdviceOptions& options = {});

/// Returns the number of data packets in a run from one constellation. `iterations` has the meaning of
/// AdviceOptions::iterations. Counts at least four packets per message.
std::uint64_t packets_of(const Experiment& experiment, std::uint32_t iterations);

/// Returns the approximate cost of simulating policies fair and mltcp as flows from one constellation: the number of
/// flow rates computed. The rates of all sending flows are computed whenever a flow begins, ends, or changes its share
/// under MLTCP.
double flow_work_of(const Experiment& experiment, std::uint32_t iterations);

/// Returns the advice as "mltcp.advice/1" (docs/how-to/advise.md).
std::string to_json(const Advice& advice);

}  // namespace mltcp::experiment
