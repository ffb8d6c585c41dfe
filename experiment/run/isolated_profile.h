// What each job does when it has the network to itself: how long its iterations take, how much they vary, and what they
// ask of each link, measured with the links' meters. The scheduler's input, and what "isolated" means in results.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/backends/datapath.h"
#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/scheduler/demand.h"

namespace mltcp::experiment {

struct Profile {
  /// A link that the job sends over. Time 0 of the demand is the begin of an iteration, its period is the profile's.
  struct Use {
    std::size_t link = 0;  ///< of JobNetwork::links()
    std::string name;
    Rate capacity;
    scheduler::Demand demand;
  };
  Nanos period;          ///< median iteration, without jitter and stragglers
  Nanos compute;         ///< what it computed in an iteration
  double deviation = 0;  ///< standard deviation of iterations, as a share of the period
  Nanos first_send;      ///< from the begin of an iteration to its first bytes
  std::vector<Use> uses;
};

/// The profile of the job when it computes `compute` in an iteration instead of what it did: what it asks of the links
/// stays as it is, with longer or shorter silence in between.
Profile with_compute(const Profile& profile, Nanos compute);

/// Told the share of the work that is done, and which job is being measured.
using ProfileProgress = std::function<void(double fraction, const std::string& job)>;

/// Iterations of each of the runs that profile_jobs() makes: one for all jobs that are alike. The first one, with its
/// slow start, isn't counted.
std::uint32_t profile_iterations(const Experiment& experiment);

/// What profile_jobs() costs, see work_of().
double profile_work(const Experiment& experiment, bool real_time);

/// Of each job of the experiment, each alone on the network. What comes later in a job's life (pause, change) is left
/// out. Throws as run_experiment() does. `threads`: jobs at a time, see RunOptions; `progress` is called by one at a
/// time.
std::vector<Profile> profile_jobs(const Experiment& experiment, Datapath& datapath,
                                  const ProfileProgress& progress = {}, std::uint32_t threads = 1);

}  // namespace mltcp::experiment
