// Converts an experiment into a scheduling problem (scheduler/problem.h), and the solution into a result file: how
// compatible the jobs are on each shared link, and when each should start.
//
// A demand is that of a job in isolation. Ideal: each transfer takes bytes / rate at its place in the iteration, queued
// behind the previous one if they overlap; nothing else takes time. Measured: the simulator runs the job alone on the
// experiment's network.
//
// A dumbbell has one link. On a topology, each flow of each worker takes the same path as in the simulator, and the
// links used by at least two jobs are considered (scheduler/cluster.h). If flows of one job share a link, that link
// slows the job down. Jobs that are `unaware` follow no plan and are ignored.
//
// Formulas: arXiv 2308.00852 (CASSINI, NSDI 2024), sections 3 and 4.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/base/topology.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/files/plan_file.h"
#include "mltcp/lab/experiment/run/demand.h"
#include "mltcp/scheduler/demand.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::experiment {

inline constexpr std::string_view kScheduleSchema = "mltcp.schedule/1";

struct ScheduleOptions {
  scheduler::SolveOptions solve;
  bool measure = false;  ///< measure demands and periods by the simulator instead of using ideal ones
  /// With `measure`: use the slack that policy schedule would choose (plan.h) with solve.max_stretch, in place of
  /// solve.slack.
  bool make_room = false;
  std::size_t max_bursts = kMaxBursts;  ///< per job and iteration; further bursts are merged with neighbours
  /// Called with the progress, 0 to 1, and a description of the current work; may be empty.
  std::function<void(double, const std::string&)> progress;
};

/// The solution. Jobs and components are referred to by index.
struct ScheduleResult {
  struct ScheduledJob {
    std::string name;
    bool unaware = false;  ///< has no slot: the members below do not apply
    Nanos period;          ///< of an iteration in isolation
    Nanos slot_period;     ///< never shorter than `period`
    Nanos time_shift;      ///< iterations start at time_shift + k * slot_period; below slot_period
    Nanos first_send;      ///< time from the start of an iteration to its first bytes
    std::uint32_t component = 0;

    [[nodiscard]] double stretch() const {
      return static_cast<double>(slot_period.count) / static_cast<double>(period.count) - 1;
    }
  };
  /// The use of a link by a job.
  struct Use {
    std::uint32_t job = 0;
    scheduler::Demand demand;       ///< relative to the start of the job's iteration
    std::uint32_t repetitions = 0;  ///< number of its slots in the link's perimeter
    double rotation = 0;            ///< radians, below 2 pi / repetitions
  };
  /// The score of a link, considered alone, without one of its jobs.
  struct Removal {
    std::uint32_t job = 0;
    double score = 1;
    double upper_bound = 1;
  };
  struct Link {
    std::string name;
    Rate capacity;
    /// Whether the jobs' peaks together exceed the capacity. If not, shifts do not matter on this link: score 1,
    /// perimeter 0, no repetitions or rotations.
    bool competed = true;
    std::uint32_t component = 0;
    std::vector<Use> uses;
    scheduler::LinkSolution solution;
    double unshifted_score = 1;  ///< if all jobs of the link started at the same time
    /// For links with a score below 1 and at most kMaxJudgedJobs jobs; otherwise both are empty. Removals are best
    /// first.
    std::vector<Removal> removals;
    std::vector<std::vector<double>> pair_scores;  ///< by index in `uses`
  };
  /// Jobs whose shifts depend on each other, with a common perimeter.
  struct Component {
    std::vector<std::uint32_t> jobs;
    Nanos perimeter;
    double stretch = 0;        ///< maximum stretch of a slot
    bool within_limit = true;  ///< no slot is stretched beyond SolveOptions::max_stretch
    std::uint32_t loops = 0;   ///< number of independent loops, see scheduler/affinity.h
    double lost = 0;  ///< cost of the loops: sum over their links of the best score alone minus the actual score
  };

  /// Links that form loops with the jobs on them and were therefore solved jointly.
  struct Loop {
    std::uint32_t count = 0;           ///< number of independent loops
    std::vector<std::uint32_t> jobs;   ///< ascending
    std::vector<std::uint32_t> links;  ///< indices of ScheduleResult::links, ascending
  };

  std::string experiment;
  bool measured = false;
  std::uint32_t angles = 0;        ///< SolveOptions::angles
  double drift = 0;                ///< SolveOptions::drift
  std::vector<ScheduledJob> jobs;  ///< in the experiment's order
  std::vector<Link> links;         ///< topology: those used by at least two jobs; dumbbell: its only link
  std::vector<Component> components;
  std::vector<Loop> joint;
  double score = 1;  ///< mean of the links' scores
  double upper_bound = 1;
  bool optimal = true;
  std::uint32_t loops = 0;
  double lost = 0;
  /// If jobs are not compatible: the SolveOptions::slack or max_stretch that makes all of them compatible with all else
  /// unchanged, verified by solving. In steps of 0.001, and not always minimal. Empty if none was found up to kMaxHelp,
  /// or if the worst link has more than kMaxJudgedJobs jobs or 2000 bursts.
  std::optional<double> enough_slack;
  std::optional<double> enough_stretch;
  /// A combination, if neither alone was found to suffice.
  struct Together {
    double slack;
    double max_stretch;
  };
  std::optional<Together> enough_together;
  std::shared_ptr<const Topology> topology;  ///< the experiment's; null for a dumbbell
  std::vector<std::string> warnings;         ///< one line each
  std::optional<Provenance> provenance;      ///< written if set
};

/// Removals and pair scores, which take long to compute, are computed for links with at most this number of jobs.
inline constexpr std::size_t kMaxJudgedJobs = 24;
/// Maximum of enough_slack and enough_stretch.
inline constexpr double kMaxHelp = 0.5;
/// Throws InputError for invalid options or an experiment without possible slots (see scheduler::choose_slots()),
/// RunError if measuring fails. Measuring always uses datapath sim.
ScheduleResult make_schedule(const Experiment& experiment, const ScheduleOptions& options);

/// "mltcp.schedule/1" (docs/explanation/scheduler.md). Invalid UTF-8 is replaced.
std::string to_json(const ScheduleResult& schedule);

/// The slots as a plan for running jobs (docs/reference/plan-file.md), on the experiment's clock, for jobs that compete
/// on a link and whose slots are within the limit. Tolerance and correction are the experiment's.
PlanFile plan_of(const ScheduleResult& schedule, const ScheduleSettings& settings);

/// Four decimals; values below 1 are never rounded up to 1.
std::string score_text(double score);

/// Indices of ScheduleResult::links, lowest scores first; links without competition last.
std::vector<std::size_t> worst_first(const ScheduleResult& schedule);

/// The options with which all jobs are compatible, as "--slack 0.05 or --max-stretch 0.1"; empty if none were found.
std::string help_of(const ScheduleResult& schedule);

/// One or two sentences for people: how compatible the jobs on the link are, and how to improve that.
std::string verdict(const ScheduleResult& schedule, const ScheduleResult::Link& link);

}  // namespace mltcp::experiment
