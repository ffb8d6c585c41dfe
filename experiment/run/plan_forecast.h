// What slots are worth: jobs that share links, replayed as a fluid from their profiles, with slots and without.
//
// A job goes through its iteration as it did alone (profile.h), at full speed where it is silent, and where it sends as
// fast as its share of the links allows: all that it sends in parallel is held up together, by the link that gives it
// least, as the messages of a collective wait for each other. Shares are max-min fair between jobs, or in the ratio of
// F of what each has sent of its iteration, as congestion control with MLTCP would settle (cc/fluid_model.h). Slots are
// kept by the transport's own gate (transport/phase_gate.h), and repaired as the keeper of plans repairs them
// (scheduler/repair.h). Jitter makes the silence longer or shorter.
//
// Without slots phases begin anywhere: the mean is over starts at random, of which fair sharing keeps what MLTCP leaves
// within some iterations. Not modelled, as at flow level (flow_level.h): losses, queues, and the noise by which jobs
// that share fairly wander.
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

/// A job of a problem, besides what the problem says of it.
struct ForecastJob {
  Nanos first_send;   ///< from the begin of an iteration to its first bytes
  double jitter = 0;  ///< standard deviation of what it computes, as a share of its period
  PhasePlan slots;    ///< of its up phases, where slots are asked for
};

/// How long iterations take, by what they take alone.
struct Forecast {
  double mean = 1;           ///< over jobs and iterations
  double tail = 1;           ///< longest iteration of the later half, mean over jobs
  std::vector<double> jobs;  ///< mean of each
  bool known = true;         ///< false: the replay was given up before each job had gone through an iteration
  bool complete = true;      ///< false: it ended early, or a repair did, as repairs took too much work
  std::uint64_t work = 0;    ///< of repairs, see scheduler::Repair
};

/// Jobs that share what they meet on: by F of their progress, or fairly without one.
Forecast forecast_sharing(const scheduler::Problem& problem, std::span<const ForecastJob> jobs,
                          const std::optional<cc::Aggressiveness>& function);
/// Jobs that are held to their slots; `timetable` is that of the slots, for repairs, or null for gates that are left
/// alone. Between the slots they share as above.
Forecast forecast_slots(const scheduler::Problem& problem, std::span<const ForecastJob> jobs,
                        const std::optional<cc::Aggressiveness>& function, const scheduler::Timetable* timetable);

}  // namespace mltcp::experiment
