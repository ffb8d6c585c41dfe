// Predicts whether slots pay. Replays the profiles of jobs that share links, with and without slots. Transfers are
// modelled as fluids.
//
// A job repeats its measured iteration. Silent parts take their measured time. Sending takes as long as the job's share
// of the links requires. The link with the smallest share slows down all parallel transfers of a job together, since
// messages of a collective wait for each other. Jobs share links max-min fairly, or in the ratio that MLTCP's function
// F gives for their progress. MLTCP's congestion control would converge to this ratio (cc/fluid_model.h). The
// transport's gate enforces slots (transport/phase_gate.h). Repairs are those of the plan keeper (scheduler/repair.h).
// Jitter varies the silent parts.
//
// Without slots, the mean is over random starts. Under MLTCP, the jobs then converge for some iterations. Like a run at
// flow level (flow_level.h), the forecast does not model losses, queues, and the noise by which fairly sharing jobs
// drift apart.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/aggressiveness.h"
#include "mltcp/scheduler/problem.h"
#include "mltcp/scheduler/repair.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

/// Error of forecasts as a share of an iteration; forecasts do not model packets. If forecasts with and without slots
/// that keep jobs apart differ by at most this error, slots are used, because their effect is certain.
inline constexpr double kForecastError = 0.01;

/// Data of a job that the forecast needs in addition to the scheduling problem.
struct ForecastJob {
  Nanos first_send;      ///< time from the start of an iteration to its first bytes
  double jitter = 0;     ///< standard deviation of the compute time, as a share of the period
  PhasePlan slots;       ///< slots of the communication phases; used only by forecast_slots()
  bool unaware = false;  ///< follows neither slots nor MLTCP; results do not contain it
};

/// Predicted iteration times, as multiples of isolated iteration times.
struct Forecast {
  double mean = 1;           ///< mean over jobs and iterations
  double tail = 1;           ///< longest iteration in the second half of a replay; mean over jobs
  std::vector<double> jobs;  ///< mean iteration time of each job
  bool known = true;         ///< false if the replay ended before every job had completed enough iterations
  bool complete = true;      ///< false if the replay or a repair ended early because of the work limit
  std::uint64_t work = 0;    ///< work of repairs, see scheduler::Repair
};

// Jobs that are unaware come after all other jobs of the problem.

/// Returns the forecast without slots. Jobs share links in the ratio that `function` gives for their progress, or
/// fairly if `function` is empty.
Forecast forecast_sharing(const scheduler::Problem& problem, std::span<const ForecastJob> jobs,
                          const std::optional<cc::Aggressiveness>& function);
/// Returns the forecast with slots, to which gates hold the jobs. Jobs that overlap share links as in
/// forecast_sharing(). `timetable` is used for repairs; if it is null, there are no repairs.
Forecast forecast_slots(const scheduler::Problem& problem, std::span<const ForecastJob> jobs,
                        const std::optional<cc::Aggressiveness>& function, const scheduler::Timetable* timetable);

}  // namespace mltcp::experiment
