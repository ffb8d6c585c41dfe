// Will these jobs get in each other's way, and what would help? Predicts how much longer than alone each job of an
// experiment takes under fair sharing, MLTCP, a schedule and both, whenever the jobs happen to start, and says what to
// do in a sentence.
//
// A prediction is the mean over constellations of starts, which are spread evenly over the jobs' periods (the additive
// recurrence of Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018, with the generalised golden
// ratio of Hensley and Su): for as many runs, their mean varies much less than over random starts. Each constellation
// is run in virtual time, by flows (lab/experiment/backends/flow_level.h) or by packets.
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

inline constexpr double kMaxAdviceWork = 7e7;  ///< of runs by flows, see flow_work_of(): some seconds

struct AdviceOptions {
  enum class Level {
    /// Policies without a schedule by packets if that is at most kMaxAdvicePackets of them, else by flows: what fair
    /// sharing does to jobs that meet depends on losses and marks. Schedules by flows: packets do as planned.
    automatic,
    flow,    ///< flows that share links as a fluid
    packet,  ///< every packet through the real transport
  };
  Level level = Level::automatic;
  /// Constellations; 1 to 1000. Empty: kAdviceStarts, or fewer, with a warning, where work would exceed
  /// max_work; of one job alone 1, as it meets nobody whenever it starts.
  std::optional<std::uint32_t> starts;
  /// Of the job with the shortest ones, in each; 2 to 1000000. The others run as long, and the one with the longest for
  /// eight of them at least, or as many as are asked for if those are fewer. Empty: kAdviceIterations, or fewer
  /// likewise.
  std::optional<std::uint32_t> iterations;
  /// Standard deviation of compute times of jobs that have none, as a share of them: in a fluid jobs without any do the
  /// same for ever. 0 to 0.5.
  double jitter = 0.005;
  /// Of runs by flows, see flow_work_of(), up to which starts and iterations are as usual.
  double max_work = kMaxAdviceWork;
  std::uint32_t threads = 0;  ///< runs at a time; 0: one a core. Does not affect the result
  /// Called with the fraction done, from any thread but one at a time. May be empty.
  std::function<void(double)> progress;
  std::function<bool()> stop;  ///< polled; when it returns true, advise() throws RunError. May be empty
};

inline constexpr std::uint32_t kAdviceStarts = 8;
inline constexpr std::uint32_t kAdviceIterations = 40;

/// Packets of data, in all runs together, up to which level automatic simulates them.
inline constexpr std::uint64_t kMaxAdvicePackets = 8'000'000;

/// Phases of all jobs together, but 100 of each: with more, jobs are run as fewer, each of which stands for several in
/// a row. Each costs an event in every iteration that is run.
inline constexpr std::size_t kMaxAdvicePhases = 6'000;

struct Advice {
  /// Of one job under one policy, over all constellations: iteration time by that alone.
  struct Prediction {
    double mean = 1;
    double later = 1;  ///< in the later half of the iterations
    double best = 1;   ///< mean of the best constellation
    double worst = 1;
  };
  struct Policy {
    std::string name;
    bool packets = false;               ///< by packets; else by flows
    std::vector<Prediction> jobs;       ///< by job
    [[nodiscard]] double mean() const;  ///< over jobs
  };
  struct Pair {
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    double score = 1;        ///< of the link that suits them least (fit/compatibility.h); 1: compatible
    double upper_bound = 1;  ///< no time shifts have a higher one
    double fair = 1;         ///< mean slow-down of both alone together, by flows
    double mltcp = 1;
  };
  /// Of a job from a trace: which iteration of it was taken.
  struct Period {
    Nanos length;           ///< as the trace has it, or as laid out
    std::string found;      ///< "marked", "repeated" or "single"
    double confidence = 0;  ///< 0 to 1
  };
  struct AdvisedJob {
    std::string name;
    Nanos isolated;                               ///< iteration time alone
    double busy = 0;                              ///< share of it in which it sends, at the rate of its link
    std::optional<Period> period = std::nullopt;  ///< not known to advise()
  };

  std::string experiment;
  std::string cc;
  std::uint32_t starts = 0;
  std::uint32_t iterations = 0;
  std::vector<AdvisedJob> jobs;
  std::vector<Policy> policies;  ///< fair, mltcp, schedule, mltcp+schedule; a schedule's are missing if there is none
  std::vector<Pair> pairs;       ///< of more than two jobs, and of at most kMaxAdvicePairs pairs
  double score = 1;              ///< of all jobs, of the link that suits them least
  double upper_bound = 1;
  bool proven = true;
  std::string recommended;  ///< a policy; empty: none helps, move jobs apart; or it can't be told
  std::string sentence;     ///< for people
  std::vector<std::string> warnings;
  std::optional<Provenance> provenance;  ///< written if set
};

inline constexpr std::size_t kMaxAdvicePairs = 66;

/// `experiment`'s policies, iterations, starts and datapath are not used. Throws InputError for options out of range,
/// an experiment that a level can't run, or one that exceeds AdviceOptions::max_work however little is run, unless
/// AdviceOptions::starts and iterations are given; RunError if it is stopped, or a job makes no progress.
Advice advise(const Experiment& experiment, const AdviceOptions& options = {});

/// Packets of data that a run takes from one constellation, with AdviceOptions::iterations. A message counts as four at
/// least: it costs as much.
std::uint64_t packets_of(const Experiment& experiment, std::uint32_t iterations);

/// What running fair and mltcp by flows from one constellation costs, about, in flows whose rates are computed anew: of
/// all that send, whenever one begins or ends, or goes on to another share under MLTCP.
double flow_work_of(const Experiment& experiment, std::uint32_t iterations);

/// "mltcp.advice/1" (docs/how-to/advise.md).
std::string to_json(const Advice& advice);

}  // namespace mltcp::experiment
