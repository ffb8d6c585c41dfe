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
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/experiment_file.h"
#include "mltcp/experiment/profile.h"
#include "mltcp/experiment/results.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

struct Schedule {
  /// By job: its slots, counted from the experiment's time 0. Nothing for jobs that are unaware or meet no other, and
  /// for those that no slots within ScheduleSettings::max_stretch suit.
  std::vector<std::optional<PhasePlan>> slots;
  std::vector<std::size_t> groups;  ///< by job: equal for those that share links, directly or through others
  std::vector<Nanos> delays;        ///< by job: how much later it starts, so that it begins on its slot
  ScheduleSummary summary;
};

/// The slack of slots for a job whose iterations deviate by `sigma` (a share of the period).
double slack_for(double sigma, double tolerance);

/// `jobs` (with their start times) and `profiles` are by job. The same shift of all jobs keeps them apart as well: of
/// those, the one that delays the starts least is taken. Throws InputError for clocks that agree less than the slots'
/// tolerance asks for.
Schedule plan_jobs(const ScheduleSettings& settings, std::span<const workload::Job> jobs,
                   std::span<const Profile> profiles);

}  // namespace mltcp::experiment
