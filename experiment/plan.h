// From measured jobs to slots: which jobs meet on which links, what the scheduler makes of it, and when each job's up
// phases may begin.
//
// Slots get slack on top of the jobs' own periods, or a job that was late once would stay late. Lateness is a random
// walk that is reflected where the job waits for its slot: each iteration adds its deviation, standard deviation sigma
// (a share of the period), and takes off the slack s. Like the waiting time of a queue in heavy traffic (Kingman, 1962;
// Harrison, Brownian Motion and Stochastic Flow Systems, 1985), it exceeds the tolerance tau with probability
// exp(-2 s tau / sigma^2). That costs a correction of a period, and slack costs s periods per iteration; the sum is
// least at
//
//   s = sigma^2 / (2 tau) * ln(2 tau / sigma^2)
//
// where sigma^2 < 2 tau. Stragglers are left to the gate's corrections.
//
// Jobs that don't fit together have demand left over in every turn of the circle, and would be later and later. Longer
// slots make room: all of them by the least share with which the score is 1. Bursts at the rate of the link leave no
// policy a cheaper order. Where room would cost much more than the collisions do (three times what the fullest link
// loses, half a period, or a tenth where several links are shared, as all jobs pay for the fullest one), slots stay as
// they are.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/experiment_file.h"
#include "mltcp/experiment/profile.h"
#include "mltcp/experiment/results.h"
#include "mltcp/scheduler/problem.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

struct Schedule {
  /// By job: its slots, counted from the experiment's time 0. Nothing for jobs that are unaware or meet no other, and
  /// for those that no slots suit.
  std::vector<std::optional<PhasePlan>> slots;
  std::vector<std::size_t> groups;  ///< by job: equal for those that share links, directly or through others
  std::vector<Nanos> delays;        ///< by job: how much later it starts, so that it begins on its slot
  ScheduleSummary summary;
};

/// Slots on a link that scores less can't be kept, and MLTCP does better without them. Fair sharing doesn't.
inline constexpr double kLeastScoreWithMltcp = 0.98;

/// The slack of slots for a job whose iterations deviate by `sigma` (a share of the period).
double slack_for(double sigma, double tolerance);

/// The least share by which slots have to be longer than `options` makes them for a score of 1; 0 where it is 1
/// already, where that would cost more than it is worth, and for more than 64 jobs. Found by trying, so it may be a
/// little more.
double room_for(const scheduler::Problem& problem, const scheduler::SolveOptions& options);

/// The most slack that plan_jobs() gives any of the jobs' slots; 0 if none of them meet.
double slack_for(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                 std::span<const Profile> profiles);

/// `jobs` (with their start times) and `profiles` are by job. The same shift of all jobs keeps them apart as well: of
/// those, the one that delays the starts least is taken. A job has slots only if each of its links scores
/// `least_score`. Throws InputError for clocks that agree less than the slots' tolerance asks for.
Schedule plan_jobs(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                   std::span<const Profile> profiles, double least_score = 0);

}  // namespace mltcp::experiment
