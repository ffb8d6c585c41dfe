// Plans slots from measured jobs: finds which jobs compete on which links, solves the scheduling problem, and computes
// when each job's communication phases may begin.
//
// Slots get slack in addition to the jobs' own periods, because without slack a job that was late once would stay late.
// Lateness is a random walk that is reflected where the job waits for its slot. Each iteration adds a deviation with
// standard deviation sigma (a share of the period), and subtracts the slack s. Like the waiting time of a queue in
// heavy traffic (Kingman, 1962; Harrison, Brownian Motion and Stochastic Flow Systems, 1985), lateness exceeds the
// tolerance tau with probability exp(-2 s tau / sigma^2). Slack costs s periods per iteration. A gate without repairs
// pays a period for each drift. The total cost is minimal at
//
//   s = sigma^2 / (2 tau) * ln(2 tau / sigma^2)
//
// for sigma^2 < 2 tau. Corrections handle stragglers. Slots that are repaired (plan_keeper.h) need only minimum slack.
// A late job delays other jobs once, by the excess of its lateness over the free time behind its slot. This costs less
// than slack in every iteration. For repaired slots, a drift is a delay that exceeds both this free time and 1% of the
// period.
//
// Jobs that are not compatible have excess demand in every period, and would be later and later. Longer slots avoid
// this: all slots are lengthened by the minimum share for which the score is 1.
//
// Slots are only used where they pay. Iteration times with and without slots are predicted (plan_forecast.h), and jobs
// get slots only if neither mean nor tail is worse with slots. Several variants are compared: slots of minimum length,
// and longer slots. If the score is below 1, initial slots that overlap are also compared with disjoint initial slots.
// The reason is that the solver considers the whole circle, but jobs that have collided once are late from then on.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/run/isolated_profile.h"
#include "mltcp/lab/experiment/run/plan_forecast.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/scheduler/problem.h"
#include "mltcp/scheduler/repair.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

/// Stores what plan_jobs() found, so that a call for the same jobs with other start times needs no search. Use a memo
/// only with the same settings and options. Thread-safe; one thread at a time searches.
struct PlanMemo {
  std::mutex mutex;
  std::vector<Profile> profiles;  ///< profile of each job at the time of the search
  std::vector<Nanos> jitters;     ///< jitter of each job; never() if the job is unaware
  std::shared_ptr<const void> found;
  std::uint64_t searches = 0;  ///< number of searches
};

/// How slots are maintained, and how jobs share links without slots.
struct PlanOptions {
  /// MLTCP's function by which competing jobs share links; empty for fair sharing.
  std::optional<cc::Aggressiveness> sharing;
  /// True if jobs that compete also wait for each other (policy turns), so that none should be slower than with fair
  /// sharing. Forecasts do not contain waits.
  bool turns = false;
  /// True if a keeper detects jobs that have missed their slots, and repairs the plan at once.
  bool repaired = false;
  /// True if the jobs are running, so that each of them pays for the way to its slot. The start of each job is then
  /// when its next iteration would begin without slots.
  bool running = false;
  PlanMemo* memo = nullptr;  ///< null if there is no memo
};

/// Maximum number of connected jobs whose slots are repaired. The cost of repairs grows at least with the square of
/// this number. Larger groups have no repairs and rely on the gates.
inline constexpr std::size_t kMaxRepairedJobs = 24;

/// Work limit for trying slots for a group of connected jobs. The unit is a step meeting examined by the solver; the
/// work of repairs (scheduler::Repair) is added. The limit corresponds to about two seconds. Without it, measured
/// demands with hundreds of bursts on several links would take minutes. The limit is not a time, so that results are
/// the same on every machine.
inline constexpr std::uint64_t kMaxPlanWork = 200'000'000;

struct Schedule {
  /// Jobs that share links, directly or through other jobs.
  struct Group {
    std::vector<std::size_t> jobs;  ///< for each job of the timetable, its number among all jobs
    std::shared_ptr<const scheduler::Timetable> timetable;
    Forecast slots;          ///< forecast with the best slots found
    Forecast sharing;        ///< forecast without slots
    bool fit = false;        ///< true if no two jobs of the group overlap in these slots
    bool repaired = false;   ///< true if the slots rely on repairs
    std::uint64_t work = 0;  ///< work done by planning, in the unit of kMaxPlanWork
  };
  /// Slots of each job, relative to the experiment's time 0. Empty if the job is unaware or shares no link, or if no
  /// slots pay.
  std::vector<std::optional<PhasePlan>> slots;
  std::vector<std::string> reasons;  ///< why each job has no slots; empty for a job that has slots
  /// Number of each job's group. Jobs that share links, directly or through other jobs, have the same group.
  std::vector<std::size_t> groups;
  std::vector<Group> planned;  ///< data of each group, indexed by `groups`
  std::vector<Nanos> delays;   ///< delay of each job's start, so that the job begins on its slot
  ScheduleSummary summary;
};

/// Returns the slack of slots without repairs, for a job whose iteration times deviate by `sigma`. Both are shares of
/// the period.
double slack_for(double sigma, double tolerance);

/// Returns the minimum share, up to `max`, by which slots must be longer than with `options` for a score of 1. Returns
/// 0 if the score is already 1, if no share up to `max` suffices, or if there are more than 64 jobs. Also returns 0 if
/// the search reaches kMaxPlanWork before it finds a share. The share is found by search, so it may be slightly too
/// large. `work` may be null; otherwise it is the work done so far, and is increased.
double margin_for(const scheduler::Problem& problem, const scheduler::SolveOptions& options, double max,
                  std::uint64_t* work = nullptr);

/// Returns the maximum slack that plan_jobs() gives to any slots, whether these pay or not. Returns 0 if no jobs
/// compete.
double slack_for(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                 std::span<const Profile> profiles);

/// Plans the slots of all jobs. `jobs` (with their start times) and `profiles` have one entry per job. A common shift
/// of all jobs does not change the plan, so plan_jobs() chooses the shift that delays the starts of jobs least. Throws
/// InputError if the uncertainty of the clocks exceeds what the slots' tolerance allows.
Schedule plan_jobs(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                   std::span<const Profile> profiles, const PlanOptions& options = {});

}  // namespace mltcp::experiment
