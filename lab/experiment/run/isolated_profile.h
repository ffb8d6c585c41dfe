// The profile of each job running alone on the network: duration and variation of its iterations, and its demand on
// each link, measured by the links' meters. Profiles are the input of the scheduler, and define "isolated" in results.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::experiment {

struct Profile {
  /// A link that carries the job's data. Time 0 of the demand is the start of an iteration. The demand has the same
  /// period as the profile.
  struct Use {
    std::size_t link = 0;  ///< index in JobNetwork::links()
    std::string name;
    Rate capacity;
    scheduler::Demand demand;
    bool operator==(const Use&) const = default;
  };
  Nanos period;          ///< median length of an iteration, without jitter and stragglers
  Nanos compute;         ///< compute time per iteration
  double deviation = 0;  ///< standard deviation of iteration times, as a share of the period
  Nanos first_send;      ///< time from the start of an iteration to its first bytes
  std::vector<Use> uses;
  bool operator==(const Profile&) const = default;
};

/// Returns the profile that the job would have if it computed `compute` per iteration. The bursts stay the same, with
/// longer or shorter silence between them.
Profile with_compute(const Profile& profile, Nanos compute);

/// Called with the fraction of the work done, and the name of the job being measured.
using ProfileProgress = std::function<void(double fraction, const std::string& job)>;

/// Returns the number of iterations that profile_jobs() runs for each set of identical jobs. The profile ignores the
/// first of these iterations, because it includes slow start.
std::uint32_t profile_iterations(const Experiment& experiment);

/// Returns the cost of profile_jobs(), in the unit of work_of().
double profile_work(const Experiment& experiment, bool real_time);

/// Measures each job of the experiment alone on the network, without the job's disturbances (pause, change). Throws
/// like run_experiment(). `threads` is the number of jobs measured in parallel, as in RunOptions. Calls of `progress`
/// are serialised.
std::vector<Profile> profile_jobs(const Experiment& experiment, Datapath& datapath,
                                  const ProfileProgress& progress = {}, std::uint32_t threads = 1);

}  // namespace mltcp::experiment
