// The profile of each job running alone on the network: duration and variation of its iterations, and its demand on
// each link, measured by the links' meters. Input of the scheduler, and the definition of "isolated" in results.
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
  /// A link that carries the job's data. The demand's time 0 is the start of an iteration; its period is the profile's.
  struct Use {
    std::size_t link = 0;  ///< index in JobNetwork::links()
    std::string name;
    Rate capacity;
    scheduler::Demand demand;
    bool operator==(const Use&) const = default;
  };
  Nanos period;          ///< median iteration, without jitter and stragglers
  Nanos compute;         ///< compute time per iteration
  double deviation = 0;  ///< standard deviation of iteration times, as a share of the period
  Nanos first_send;      ///< time from the start of an iteration to its first bytes
  std::vector<Use> uses;
  bool operator==(const Profile&) const = default;
};

/// The profile of the job if it computed `compute` per iteration: the bursts stay the same, with longer or shorter
/// silence between them.
Profile with_compute(const Profile& profile, Nanos compute);

/// Called with the fraction of the work done, and the job being measured.
using ProfileProgress = std::function<void(double fraction, const std::string& job)>;

/// Number of iterations of each run of profile_jobs(); there is one run for all identical jobs. The first iteration,
/// with its slow start, is not counted.
std::uint32_t profile_iterations(const Experiment& experiment);

/// Cost of profile_jobs(), in the unit of work_of().
double profile_work(const Experiment& experiment, bool real_time);

/// Measures each job of the experiment alone on the network, without its later disturbances (pause, change). Throws
/// like run_experiment(). `threads`: number of jobs measured in parallel, see RunOptions; calls of `progress` are
/// serialised.
std::vector<Profile> profile_jobs(const Experiment& experiment, Datapath& datapath,
                                  const ProfileProgress& progress = {}, std::uint32_t threads = 1);

}  // namespace mltcp::experiment
