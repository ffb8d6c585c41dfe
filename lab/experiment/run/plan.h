// From measured jobs to slots: which jobs compete on which links, the scheduler's solution, and when each job's
// communication phases may begin.
//
// Slots get slack in addition to the jobs' own periods, as otherwise a job that was late once would stay late. Lateness
// is a random walk reflected where the job waits for its slot: each iteration adds its deviation, with standard
// deviation sigma (a share of the period), and subtracts the slack s. Like the waiting time of a queue in heavy traffic
// (Kingman, 1962; Harrison, Brownian Motion and Stochastic Flow Systems, 1985), it exceeds the tolerance tau with
// probability exp(-2 s tau / sigma^2). Slack costs s periods per iteration. A gate without repairs pays a period for
// each drift, and the total is minimal at
//
//   s = sigma^2 / (2 tau) * ln(2 tau / sigma^2)
//
// for sigma^2 < 2 tau. Stragglers are handled by corrections. Slots that are repaired (plan_keeper.h) need only minimum
// slack: a late job delays the others once, by the excess over the free time behind its slot, which costs less than
// slack in every iteration. For such slots a drift is a delay of more than that free time and of more than 1% of the
// period.
//
// Jobs that are not compatible have excess demand in every period, and would be later and later. Longer slots make
// room: all of them are lengthened by the minimum share with which the score is 1.
//
// Slots are only used where they pay: iteration times with and without slots are predicted (plan_forecast.h), and jobs
// get slots only if neither mean nor tail is worse with them. Variants are compared: slots as they are or with
// additional room, and, for a score below 1, initial slots that overlap or are disjoint (the solver considers the whole
// circle, but jobs that have collided once are late from then on).
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

/// Keeps what plan_jobs() found, so that a later call for the same jobs with other starts needs no search. Settings and
/// options must be the same each time. Thread-safe; one thread at a time searches.
struct PlanMemo {
  std::mutex mutex;
  std::vector<Profile> profiles;  ///< by job, as of the search
  std::vector<Nanos> jitters;     ///< by job; never() if it is unaware
  std::shared_ptr<const void> found;
  std::uint64_t searches = 0;  ///< number of searches
};

/// How slots are maintained, and how jobs share links otherwise.
struct PlanOptions {
  /// MLTCP's function by which competing jobs share links; empty: fair sharing.
  std::optional<cc::Aggressiveness> sharing;
  /// A keeper notices jobs that have missed their slots, and repairs the plan at once.
  bool repaired = false;
  PlanMemo* memo = nullptr;  ///< null: none
};

/// Maximum size of a group of connected jobs for repairs, whose cost grows at least with the square of that; larger
/// groups rely on the gates alone.
inline constexpr std::size_t kMaxRepairedJobs = 24;

/// Work limit for trying slots for a group of connected jobs, about two seconds, in step meetings examined by the
/// solver plus the work of repairs (scheduler::Repair). Measured demands with hundreds of bursts on several links would
/// take minutes otherwise. Not a time, so that results are the same on every machine.
inline constexpr std::uint64_t kMaxPlanWork = 200'000'000;

struct Schedule {
  /// Jobs that share links, directly or through others.
  struct Group {
    std::vector<std::size_t> jobs;  ///< indices of the timetable's jobs
    std::shared_ptr<const scheduler::Timetable> timetable;
    Forecast slots;          ///< with the best slots found
    Forecast sharing;        ///< without slots
    bool fit = false;        ///< no two of them overlap in these slots
    bool repaired = false;   ///< the slots rely on repairs
    std::uint64_t work = 0;  ///< work done by planning, in the unit of kMaxPlanWork
  };
  /// By job: its slots, relative to the experiment's time 0. Empty for jobs that are unaware or share no link, and if
  /// no slots pay.
  std::vector<std::optional<PhasePlan>> slots;
  std::vector<std::string> reasons;  ///< by job: why it has no slots; empty for those that have some
  std::vector<std::size_t> groups;   ///< by job: equal for those that share links, directly or through others
  std::vector<Group> planned;        ///< by group
  std::vector<Nanos> delays;         ///< by job: by how much its start is delayed, so that it begins on its slot
  ScheduleSummary summary;
};

/// The slack of slots without repairs, for a job whose iteration times deviate by `sigma` (a share of the period).
double slack_for(double sigma, double tolerance);

/// The minimum share, up to `most`, by which slots must be longer than with `options` for a score of 1. 0 if it is 1
/// already, if no share suffices or none was found within kMaxPlanWork, and for more than 64 jobs. Found by search, so
/// it may be slightly too large. `work`, if given, is the work done so far, and is increased.
double room_for(const scheduler::Problem& problem, const scheduler::SolveOptions& options, double most,
                std::uint64_t* work = nullptr);

/// The maximum slack that plan_jobs() gives to any slots, whether they pay or not; 0 if no jobs compete.
double slack_for(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                 std::span<const Profile> profiles);

/// `jobs` (with their start times) and `profiles` are by job. A common shift of all jobs is free: it is chosen to delay
/// their starts least. Throws InputError if the clocks' uncertainty exceeds what the slots' tolerance allows.
Schedule plan_jobs(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                   std::span<const Profile> profiles, const PlanOptions& options = {});

}  // namespace mltcp::experiment
