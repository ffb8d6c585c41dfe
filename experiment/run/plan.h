// From measured jobs to slots: which jobs meet on which links, what the scheduler makes of it, and when each job's up
// phases may begin.
//
// Slots get slack on top of the jobs' own periods, or a job that was late once would stay late. Lateness is a random
// walk that is reflected where the job waits for its slot: each iteration adds its deviation, standard deviation sigma
// (a share of the period), and takes off the slack s. Like the waiting time of a queue in heavy traffic (Kingman, 1962;
// Harrison, Brownian Motion and Stochastic Flow Systems, 1985), it exceeds the tolerance tau with probability
// exp(-2 s tau / sigma^2). Slack costs s periods per iteration. A gate that is left alone pays a period for each drift,
// and the sum of both is least at
//
//   s = sigma^2 / (2 tau) * ln(2 tau / sigma^2)
//
// where sigma^2 < 2 tau. Stragglers are left to corrections. Slots that are repaired (plan_keeper.h) need the least
// slack only: a job that is late costs the others what it is late beyond the room behind it, once, which is less than
// slack in every iteration. Lateness is a drift of such slots where it is more than that room, and than a hundredth.
//
// Jobs that don't fit together have demand left over in every turn of the circle, and would be later and later. Longer
// slots make room: all of them by the least share with which the score is 1.
//
// Slots are for jobs that they are worth it for: what iterations take in these slots, and what they would take without,
// is foretold (plan_forecast.h), and jobs have slots only where neither the mean nor the tail is worse for it. Of slots
// as they are and slots with room the better ones are taken, and where the score is below 1, of first slots that meet
// and such that are parted (the solver looks at all of the circle, but jobs that have met once are late from then on).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/experiment/run/isolated_profile.h"
#include "mltcp/experiment/run/plan_forecast.h"
#include "mltcp/scheduler/problem.h"
#include "mltcp/scheduler/repair.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

/// Who keeps the slots, and what jobs do without.
struct PlanOptions {
  /// MLTCP's, with which jobs share links where they meet; fair sharing without.
  std::optional<cc::Aggressiveness> sharing;
  /// Somebody hears of jobs that have missed their slots, and repairs the plan at once.
  bool repaired = false;
};

/// Repairs look at all jobs that hang together, and what they cost grows with the square of their number and more:
/// larger groups keep their slots by themselves.
inline constexpr std::size_t most_repaired_jobs = 24;

/// Work after which no more slots are tried for jobs that hang together, two seconds or so: meetings of steps that the
/// solver looks at, and what repairs look at (scheduler::Repair). Measured demands of hundreds of bursts on several
/// links would take minutes. Not a time, so that results are the same on every machine.
inline constexpr std::uint64_t kMostPlanWork = 200'000'000;

struct Schedule {
  /// Jobs that share links, directly or through others.
  struct Group {
    std::vector<std::size_t> jobs;  ///< by job of the timetable
    std::shared_ptr<const scheduler::Timetable> timetable;
    Forecast slots;          ///< of what was best
    Forecast sharing;        ///< of no slots
    bool fit = false;        ///< in these slots none of them meets another
    bool repaired = false;   ///< they are made for somebody who repairs them
    std::uint64_t work = 0;  ///< that planning took, as of kMostPlanWork
  };
  /// By job: its slots, counted from the experiment's time 0. Nothing for jobs that are unaware or meet no other, and
  /// for those that no slots suit.
  std::vector<std::optional<PhasePlan>> slots;
  std::vector<std::string> reasons;  ///< by job: why it has no slots; empty for those that have
  std::vector<std::size_t> groups;   ///< by job: equal for those that share links, directly or through others
  std::vector<Group> planned;        ///< by group
  std::vector<Nanos> delays;         ///< by job: how much later it starts, so that it begins on its slot
  ScheduleSummary summary;
};

/// The slack of slots that nobody repairs, for a job whose iterations deviate by `sigma` (a share of the period).
double slack_for(double sigma, double tolerance);

/// The least share, `most` at most, by which slots have to be longer than `options` makes them for a score of 1; 0
/// where it is 1 already, where no room does or none was found with kMostPlanWork, and for more than 64 jobs. Found by
/// trying, so it may be a little more. `work`, if given, is what has been done of kMostPlanWork, and is added to.
double room_for(const scheduler::Problem& problem, const scheduler::SolveOptions& options, double most,
                std::uint64_t* work = nullptr);

/// The most slack that plan_jobs() gives any of the jobs' slots, worth it or not; 0 if none of them meet.
double slack_for(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                 std::span<const Profile> profiles);

/// `jobs` (with their start times) and `profiles` are by job. The same shift of all jobs keeps them apart as well: of
/// those, the one that delays the starts least is taken. Throws InputError for clocks that agree less than the slots'
/// tolerance asks for.
Schedule plan_jobs(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                   std::span<const Profile> profiles, const PlanOptions& options = {});

}  // namespace mltcp::experiment
