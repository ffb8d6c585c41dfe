// From an experiment to the question that the scheduler answers (scheduler/problem.h), and its answer as a result file:
// how well the jobs fit on each link that they share, and when each should begin.
//
// A job is drawn as it is when it has the network to itself. Ideally: at its rate for bytes / rate, each transfer where
// it stands in the iteration, queued behind the one before it if they overlap; nothing else takes time. Measured: as
// the simulator moves it, alone on the experiment's network.
//
// A dumbbell has one link. On a topology each flow of each worker takes the path on which the simulator sends it, and
// the links that two jobs or more use are looked at (scheduler/cluster.h); a job whose own flows meet on a link is as
// slow as that link makes it. Jobs that are `unaware` keep to no plan and have no part in it.
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

#include "mltcp/base/topology.h"
#include "mltcp/base/units.h"
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/experiment/files/plan_file.h"
#include "mltcp/experiment/results/provenance.h"
#include "mltcp/scheduler/demand.h"
#include "mltcp/scheduler/problem.h"

namespace mltcp::experiment {

inline constexpr std::string_view kScheduleSchema = "mltcp.schedule/1";

struct ScheduleOptions {
  scheduler::SolveOptions solve;
  bool measure = false;  ///< demands and periods from the simulator instead of the ideal ones
  /// The slack that slots need to be kept, as policy schedule takes it (plan.h) with solve.max_stretch, instead of
  /// solve.slack; with `measure`.
  bool make_room = false;
  /// Told from time to time how far it is, 0 to 1, and what is done; may be empty.
  std::function<void(double, const std::string&)> progress;
};

/// The answer. Jobs and components are referred to by index.
struct ScheduleResult {
  struct Job {
    std::string name;
    bool unaware = false;  ///< has no slot: the next five say nothing
    Nanos period;          ///< of an iteration alone
    Nanos slot_period;     ///< in which it runs, never shorter
    Nanos time_shift;      ///< its iterations begin at time_shift + k * slot_period; below slot_period
    Nanos first_send;      ///< from the begin of an iteration to its first bytes
    std::uint32_t component = 0;

    [[nodiscard]] double stretch() const {
      return static_cast<double>(slot_period.count) / static_cast<double>(period.count) - 1;
    }
  };
  /// A job on a link.
  struct Use {
    std::uint32_t job = 0;
    scheduler::Demand demand;       ///< in time of the job's iteration
    std::uint32_t repetitions = 0;  ///< of its slot in the link's perimeter
    double rotation = 0;            ///< radians, below 2 pi / repetitions
  };
  /// Without one of the jobs, the link alone.
  struct Removal {
    std::uint32_t job = 0;
    double score = 1;
    double upper_bound = 1;
  };
  struct Link {
    std::string name;
    Rate capacity;
    /// The jobs' peaks exceed the capacity together. If they don't, shifts don't matter here: score 1, perimeter 0, no
    /// repetitions and rotations.
    bool competed = true;
    std::uint32_t component = 0;
    std::vector<Use> uses;
    scheduler::LinkSolution solution;
    double unshifted_score = 1;  ///< if all jobs of the link began together
    /// Of a link with a score below 1 and at most kMostJudgedJobs jobs; otherwise both are empty. Removals best first.
    std::vector<Removal> removals;
    std::vector<std::vector<double>> pair_scores;  ///< by place in `uses`
  };
  /// Jobs whose shifts depend on each other, and which run in one rhythm.
  struct Component {
    std::vector<std::uint32_t> jobs;
    Nanos perimeter;
    double stretch = 0;        ///< of the slot most stretched
    bool within_limit = true;  ///< no slot is stretched beyond SolveOptions::max_stretch
    std::uint32_t loops = 0;   ///< independent ones, see scheduler/affinity.h
    double lost = 0;           ///< what they cost: sum over their links of best score alone less score together
  };

  /// Links that form loops with the jobs that meet on them, and were solved together for that.
  struct Loop {
    std::uint32_t count = 0;           ///< independent ones
    std::vector<std::uint32_t> jobs;   ///< in order
    std::vector<std::uint32_t> links;  ///< indices of ScheduleResult::links, in order
  };

  std::string experiment;
  bool measured = false;
  std::uint32_t angles = 0;  ///< SolveOptions::angles
  double drift = 0;          ///< SolveOptions::drift
  std::vector<Job> jobs;     ///< in the order of the experiment
  std::vector<Link> links;   ///< of the topology that two jobs or more use; of a dumbbell its one, whoever uses it
  std::vector<Component> components;
  std::vector<Loop> joint;
  double score = 1;  ///< mean of the links' scores
  double upper_bound = 1;
  bool optimal = true;
  std::uint32_t loops = 0;
  double lost = 0;
  /// Where jobs don't fit: SolveOptions::slack or max_stretch with which all of them do, whatever else stays as it is;
  /// the solution with that very number was looked at. In steps of 0.001, and a little more than the least where little
  /// effort didn't find that. Empty where none was found up to kMostHelp, and where the worst link has more than
  /// kMostJudgedJobs jobs or 2000 bursts.
  std::optional<double> enough_slack;
  std::optional<double> enough_stretch;
  /// Where neither alone was found to do.
  struct Together {
    double slack;
    double max_stretch;
  };
  std::optional<Together> enough_together;
  std::shared_ptr<const Topology> topology;  ///< the experiment's; null for a dumbbell
  std::vector<std::string> warnings;         ///< each one line
  std::optional<Provenance> provenance;      ///< written if it is known
};

/// With more jobs on a link, nobody is told what it would be without each of them or of each pair: it takes too long.
inline constexpr std::size_t kMostJudgedJobs = 24;
/// Slots that are longer by more help nobody.
inline constexpr double kMostHelp = 0.5;
/// Throws InputError for an experiment that has no slots (see scheduler::choose_slots()) or bad options, and RunError
/// where measuring fails. The simulator that measures is datapath sim, whatever the experiment runs on.
ScheduleResult make_schedule(const Experiment& experiment, const ScheduleOptions& options);

/// "mltcp.schedule/1" (docs/scheduler.md). Text that is not UTF-8 has its bad bytes replaced.
std::string to_json(const ScheduleResult& schedule);

/// The slots as a plan for running jobs (docs/plans.md), on the experiment's clock: of those that compete on a link
/// whose slots are within the limit. How the jobs keep to it is what the experiment says.
PlanFile plan_of(const ScheduleResult& schedule, const ScheduleSettings& settings);

/// Four decimals, but nothing short of 1 looks like it.
std::string score_text(double score);

/// Places in ScheduleResult::links, the worst first: the reader wants to know what doesn't fit. Those where any shifts
/// do are last.
std::vector<std::size_t> worst_first(const ScheduleResult& schedule);

/// The options with which all jobs fit, as "--slack 0.05 or --max-stretch 0.1"; empty where none were found.
std::string help_of(const ScheduleResult& schedule);

/// One sentence or two, for people: how compatible the jobs of the link are, and what would help.
std::string verdict(const ScheduleResult& schedule, const ScheduleResult::Link& link);

}  // namespace mltcp::experiment
