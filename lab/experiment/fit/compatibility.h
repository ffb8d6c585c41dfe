// Converts an experiment into a scheduling problem (scheduler/problem.h), and the solution into a result. The result
// tells how compatible the jobs are on each shared link, and when each job should start.
//
// A job's demand describes its use of a link while it runs alone. An ideal demand assumes that each transfer takes
// bytes / rate, that overlapping transfers are sent one after the other, and that nothing else takes time. For a
// measured demand, the simulator runs the job alone on the experiment's network.
//
// A dumbbell has one link. On a topology, each flow of each worker takes the same path as in the simulator. The
// scheduler considers only links that at least two jobs use (scheduler/cluster.h). If several flows of one job share a
// link, that link can slow the job down. Jobs that are `unaware` follow no plan and are ignored.
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
  bool measure = false;  ///< whether to measure demands and periods in the simulator; ideal demands are used if false
  /// Whether to ignore solve.slack and use the slack that policy schedule would choose (plan.h) with solve.max_stretch.
  /// Requires `measure`.
  bool add_margin = false;
  /// Maximum number of bursts per job and iteration; further bursts are merged with adjacent ones.
  std::size_t max_bursts = kMaxBursts;
  /// Called with the progress, 0 to 1, and a description of the current step. May be empty.
  std::function<void(double, const std::string&)> progress;
};

/// The solution. Refers to jobs and components by index.
struct ScheduleResult {
  struct ScheduledJob {
    std::string name;
    bool unaware = false;  ///< whether the job has no slot; the fields below are then not set
    Nanos period;          ///< duration of an iteration in isolation
    Nanos slot_period;     ///< time between the job's slots; at least `period`
    Nanos time_shift;      ///< less than slot_period; iteration k = 0, 1, ... starts at time_shift + k * slot_period
    Nanos first_send;      ///< time from the start of an iteration to its first bytes
    std::uint32_t component = 0;

    [[nodiscard]] double stretch() const {
      return static_cast<double>(slot_period.count) / static_cast<double>(period.count) - 1;
    }
  };
  /// How a job uses a link.
  struct Use {
    std::uint32_t job = 0;
    scheduler::Demand demand;       ///< demand of the job; times are relative to the start of its iteration
    std::uint32_t repetitions = 0;  ///< number of the job's slots in the link's perimeter
    double rotation = 0;            ///< rotation angle in radians, less than 2 pi / repetitions
  };
  /// The score that a link would have without one of its jobs. Effects on other links are not considered.
  struct Removal {
    std::uint32_t job = 0;
    double score = 1;
    double upper_bound = 1;
  };
  struct Link {
    std::string name;
    Rate capacity;
    /// Whether the sum of the jobs' peak rates exceeds the capacity. If false, time shifts do not matter on this link:
    /// its score is 1, its perimeter is 0, and repetitions and rotations are not set.
    bool competed = true;
    std::uint32_t component = 0;
    std::vector<Use> uses;
    scheduler::LinkSolution solution;
    double unshifted_score = 1;  ///< score if all jobs of the link started at the same time
    /// Removals, best first. Removals and pair scores are empty unless the link's score is below 1 and the link has at
    /// most kMaxJudgedJobs jobs.
    std::vector<Removal> removals;
    std::vector<std::vector<double>> pair_scores;  ///< score of each pair of jobs, by their indices in `uses`
  };
  /// Jobs whose time shifts depend on each other. They have a common perimeter.
  struct Component {
    std::vector<std::uint32_t> jobs;
    Nanos perimeter;
    double stretch = 0;        ///< maximum stretch of a slot
    bool within_limit = true;  ///< whether no slot is stretched beyond SolveOptions::max_stretch
    std::uint32_t loops = 0;   ///< number of independent loops, see scheduler/affinity.h
    /// Cost of the loops: sum over their links of (best score of the link in isolation - actual score).
    double lost = 0;
  };

  /// Links and jobs that form loops, so that the links were solved jointly.
  struct Loop {
    std::uint32_t count = 0;           ///< number of independent loops
    std::vector<std::uint32_t> jobs;   ///< numbers of the jobs, ascending
    std::vector<std::uint32_t> links;  ///< indices of ScheduleResult::links, ascending
  };

  std::string experiment;
  bool measured = false;
  std::uint32_t angles = 0;        ///< SolveOptions::angles
  double drift = 0;                ///< SolveOptions::drift
  std::vector<ScheduledJob> jobs;  ///< in the experiment's order
  std::vector<Link> links;         ///< dumbbell: its only link; topology: all links that at least two jobs use
  std::vector<Component> components;
  std::vector<Loop> joint;
  double score = 1;  ///< mean of the links' scores
  double upper_bound = 1;
  bool optimal = true;
  std::uint32_t loops = 0;
  double lost = 0;
  /// The slack (SolveOptions::slack), or the stretch (SolveOptions::max_stretch), that makes all jobs compatible if no
  /// other option changes. In steps of 0.001. Verified by solving, but not always minimal. Empty if the jobs are
  /// compatible already, or if no value up to kMaxHelp was found. Also empty if the worst link has more than
  /// kMaxJudgedJobs jobs or 2000 bursts.
  std::optional<double> enough_slack;
  std::optional<double> enough_stretch;
  /// A slack and a stretch that together make all jobs compatible. Set only if neither enough_slack nor enough_stretch
  /// is set.
  struct Together {
    double slack;
    double max_stretch;
  };
  std::optional<Together> enough_together;
  std::shared_ptr<const Topology> topology;  ///< the experiment's topology; null for a dumbbell
  std::vector<std::string> warnings;         ///< one line each
  std::optional<Provenance> provenance;      ///< origin of the file; written only if set
};

/// Maximum number of jobs on a link for which removals and pair scores are computed, because they take long.
inline constexpr std::size_t kMaxJudgedJobs = 24;
/// Maximum value of enough_slack and enough_stretch.
inline constexpr double kMaxHelp = 0.5;
/// Computes a schedule. Throws InputError for invalid options or an experiment without possible slots (see
/// scheduler::choose_slots()), RunError if measuring fails. Measures with datapath sim, regardless of the experiment's
/// datapath.
ScheduleResult make_schedule(const Experiment& experiment, const ScheduleOptions& options);

/// Returns the schedule as JSON, "mltcp.schedule/1" (docs/explanation/scheduler.md). Replaces invalid UTF-8.
std::string to_json(const ScheduleResult& schedule);

/// Returns the slots as a plan for running jobs (docs/reference/plan-file.md), on the experiment's clock. Contains the
/// jobs that compete on a link and whose slots are within the stretch limit. Takes tolerance and correction from
/// `settings`.
PlanFile plan_of(const ScheduleResult& schedule, const ScheduleSettings& settings);

/// Returns the score with four decimals. Never rounds a value below 1 up to 1.
std::string score_text(double score);

/// Returns the indices of ScheduleResult::links, lowest scores first. Links without competition come last.
std::vector<std::size_t> worst_first(const ScheduleResult& schedule);

/// Returns the options with which all jobs are compatible, such as "--slack 0.05 or --max-stretch 0.1"; empty if none
/// were found.
std::string help_of(const ScheduleResult& schedule);

/// Returns one or two sentences for people: how compatible the jobs on the link are, and how to improve their
/// compatibility.
std::string verdict(const ScheduleResult& schedule, const ScheduleResult::Link& link);

}  // namespace mltcp::experiment
