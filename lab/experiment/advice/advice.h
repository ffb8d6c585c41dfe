// Predicts how much each job of an experiment is slowed down by the others, compared to running alone, under fair
// sharing, MLTCP, a schedule and both, averaged over the jobs' start times. Recommends a policy in one sentence.
//
// A prediction is the mean over constellations of starts, which are spread evenly over the jobs' periods (the additive
// recurrence of Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018, with the generalised golden
// ratio of Hensley and Su). For the same number of runs, their mean varies much less than over random starts. Each
// constellation is run in virtual time, by flows (lab/experiment/backends/flow_level.h) or by packets.
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

inline constexpr double kMaxAdviceWork = 7e7;  ///< some seconds of runs by flows; unit: see flow_work_of()

struct AdviceOptions {
  enum class Level {
    /// Policies without a schedule run by packets if these are at most kMaxAdvicePackets, as the result of fair sharing
    /// depends on losses and marks; else by flows. Policies with a schedule run by flows: packets would give the same.
    automatic,
    flow,    ///< flows that share links as a fluid
    packet,  ///< every packet through the real transport
  };
  Level level = Level::automatic;
  /// Number of constellations; 1 to 1000. Empty: kAdviceStarts, or fewer, with a warning, if work would exceed
  /// max_work; 1 for a single job, which competes with no other.
  std::optional<std::uint32_t> starts;
  /// Iterations in each constellation of the job with the shortest iterations; 2 to 1000000. All jobs run for the same
  /// time, in which the job with the longest iterations has at least 8 of them, or `iterations` if that is fewer.
  /// Empty: kAdviceIterations, or fewer, with a warning, if work would exceed max_work.
  std::optional<std::uint32_t> iterations;
  /// Standard deviation of compute times, as a share of them, for jobs whose compute times do not vary: without
  /// variation, jobs at flow level would repeat the same pattern for ever. 0 to 0.5.
  double jitter = 0.005;
  /// Limit of the work of runs by flows, see flow_work_of(); beyond it, starts and iterations are reduced.
  double max_work = kMaxAdviceWork;
  std::uint32_t threads = 0;  ///< number of parallel runs; 0: one per core. Does not affect the result
  /// Called with the fraction done, from any thread but one at a time. May be empty.
  std::function<void(double)> progress;
  std::function<bool()> stop;  ///< polled; when it returns true, advise() throws RunError. May be empty
};

inline constexpr std::uint32_t kAdviceStarts = 8;
inline constexpr std::uint32_t kAdviceIterations = 40;

/// Level automatic simulates at most this number of data packets, in all runs together.
inline constexpr std::uint64_t kMaxAdvicePackets = 8'000'000;

/// Maximum number of phases of all jobs together, but at least 100 per job. Beyond it, each phase that is run replaces
/// several consecutive ones, as each costs an event in every iteration.
inline constexpr std::size_t kMaxAdvicePhases = 6'000;

struct Advice {
  /// Iteration time / time in isolation, of one job under one policy, over all constellations.
  struct Prediction {
    double mean = 1;
    double later = 1;  ///< mean of the second half of the iterations
    double best = 1;   ///< mean of the best constellation
    double worst = 1;  ///< mean of the worst constellation
  };
  struct Policy {
    std::string name;
    bool packets = false;               ///< run by packets; else by flows
    std::vector<Prediction> jobs;       ///< by job
    [[nodiscard]] double mean() const;  ///< over jobs
  };
  struct Pair {
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    double score = 1;        ///< of the link on which they are least compatible (fit/compatibility.h); 1: compatible
    double upper_bound = 1;  ///< no time shifts have a higher score
    double fair = 1;         ///< mean slow-down of both alone together, by flows
    double mltcp = 1;
  };
  /// The iteration that was taken from a job's trace.
  struct Period {
    Nanos length;           ///< as in the trace, or as laid out
    std::string found;      ///< "marked", "repeated" or "single"
    double confidence = 0;  ///< 0 to 1
  };
  struct AdvisedJob {
    std::string name;
    Nanos isolated;                               ///< iteration time in isolation
    double busy = 0;                              ///< share of that time in which it sends, at the rate of its link
    std::optional<Period> period = std::nullopt;  ///< advise() leaves it empty
  };

  std::string experiment;
  std::string cc;
  std::uint32_t starts = 0;
  std::uint32_t iterations = 0;
  std::vector<AdvisedJob> jobs;
  std::vector<Policy> policies;  ///< fair, mltcp, schedule, mltcp+schedule; the last two only if a schedule exists
  std::vector<Pair> pairs;       ///< only for more than two jobs with at most kMaxAdvicePairs pairs
  double score = 1;              ///< of the link on which the jobs are least compatible
  double upper_bound = 1;
  bool proven = true;
  std::string recommended;  ///< a policy; empty: none helps, or no prediction is possible
  std::string sentence;     ///< for people
  std::vector<std::string> warnings;
  std::optional<Provenance> provenance;  ///< written if set
};

inline constexpr std::size_t kMaxAdvicePairs = 66;

/// `experiment`'s policies, iterations, starts and datapath are not used. Throws InputError for options out of range,
/// an experiment that the level can't run, or one that exceeds AdviceOptions::max_work even with the fewest starts and
/// iterations, unless both are given. Throws RunError if it is stopped, or if a job makes no progress.
Advice advise(const Experiment& experiment, const AdviceOptions& options = {});

/// Number of data packets in a run from one constellation, with AdviceOptions::iterations = `iterations`. A message
/// counts as at least four, its minimum cost.
std::uint64_t packets_of(const Experiment& experiment, std::uint32_t iterations);

/// Approximate cost of running fair and mltcp by flows from one constellation: the number of flow rates computed. The
/// rates of all sending flows are computed whenever one begins, ends, or changes its share under MLTCP.
double flow_work_of(const Experiment& experiment, std::uint32_t iterations);

/// "mltcp.advice/1" (docs/how-to/advise.md).
std::string to_json(const Advice& advice);

}  // namespace mltcp::experiment
