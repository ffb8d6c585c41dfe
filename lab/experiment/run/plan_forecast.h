// Predicts whether slots pay: replays jobs that share links as fluids from their profiles, with and without slots.
//
// A job repeats its measured iteration: silent parts take their time, and sending takes as long as its share of the
// links requires. All parallel transfers of a job are slowed down together by the link with the smallest share, as
// messages of a collective wait for each other. Shares are max-min fair between jobs, or in the ratio of F of their
// progress, where congestion control with MLTCP would converge (cc/fluid_model.h). Slots are enforced by the
// transport's gate (transport/phase_gate.h), and repaired as the plan keeper does (scheduler/repair.h). Jitter varies
// the silent parts.
//
// Without slots, the mean is over random starts; under MLTCP these are followed for some iterations of convergence. Not
// modelled, as at flow level (flow_level.h): losses, queues, and the noise by which fairly sharing jobs drift.
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

/// A job of a problem: data needed in addition to the problem's.
struct ForecastJob {
  Nanos first_send;   ///< time from the start of an iteration to its first bytes
  double jitter = 0;  ///< standard deviation of its compute time, as a share of its period
  PhasePlan slots;    ///< of its communication phases; used by forecast_slots()
};

/// Predicted iteration times, relative to those in isolation.
struct Forecast {
  double mean = 1;           ///< over jobs and iterations
  double tail = 1;           ///< longest iteration of the second half, mean over jobs
  std::vector<double> jobs;  ///< mean, by job
  bool known = true;         ///< false: the replay was aborted before every job had completed an iteration
  bool complete = true;      ///< false: the replay or a repair ended early because of the work limit
  std::uint64_t work = 0;    ///< work of repairs, see scheduler::Repair
};

/// Jobs share links by F of their progress, or fairly without `function`.
Forecast forecast_sharing(const scheduler::Problem& problem, std::span<const ForecastJob> jobs,
                          const std::optional<cc::Aggressiveness>& function);
/// Jobs are held to their slots; otherwise as above. `timetable`: for repairs; null: gates without repairs.
Forecast forecast_slots(const scheduler::Problem& problem, std::span<const ForecastJob> jobs,
                        const std::optional<cc::Aggressiveness>& function, const scheduler::Timetable* timetable);

}  // namespace mltcp::experiment
