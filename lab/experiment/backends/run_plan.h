// The definition of one run: jobs, policy, slots, and callbacks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/engine/running_job.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/series/series_recorder.h"
#include "mltcp/lab/fabric/dumbbell.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/transport/capture/capture_options.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

/// Default interval between calls of RunPlan::between.
inline constexpr Nanos kSlice{50'000'000};

struct RunPlan {
  std::string policy;  ///< name of a policy, see policy_named()
  std::vector<workload::Job> jobs;
  std::uint32_t iterations = 0;
  std::uint32_t first_number = 0;  ///< job number of `jobs[0]`; numbers are consecutive
  /// The phase plan of each job, by index in `jobs`, relative to the experiment's time 0. An empty vector means that no
  /// job has a plan.
  std::vector<std::optional<PhasePlan>> slots;
  bool has_faults = true;  ///< whether the faults of the topology's links occur
  bool metered = true;     ///< at flow level: whether to record each job's use of links over time
  Nanos usage_bin;         ///< initial bin width of the links' usage meters; 0 selects the network's default
  /// Called before the jobs start, and then every `slice`, between calls of LiveRun::run(). `running` is in the order
  /// of `jobs`. Datapath "hosts" ignores `slice` and uses kSlice.
  std::function<void(std::span<RunningJob* const> running, Nanos epoch, Nanos now)> between;
  Nanos slice = kSlice;
  /// Called at the end of the run with the links' usage meters. Meters of unused links may be null.
  std::function<void(std::span<const JobNetwork::LinkView> links, Nanos epoch)> finished;

  SeriesRecorder* series = nullptr;  ///< records series of the run; null if no series are recorded
  /// Options of a capture of the hosts' packets; empty if packets are not captured. Has no effect on a datapath without
  /// packets.
  std::optional<capture::CaptureOptions> capture;
  /// Called at the end of the run if packets were captured. `line` describes the capture for people; `is_complete`
  /// tells whether it contains all packets.
  std::function<void(const std::string& line, bool is_complete)> captured;

  [[nodiscard]] std::uint32_t iterations_of(const workload::Job& job) const {
    return job.iterations > 0 ? job.iterations : iterations;
  }
};

/// Returns the dumbbell network of `experiment`, with one pair of hosts per job at its bottleneck.
fabric::DumbbellConfig network_of(const Experiment& experiment);

/// Returns the cost of an iteration of the job, for progress displays; at least 1. In virtual time, the cost is the
/// number of bytes that the job sends. In real time, the cost is the iteration's duration in isolation in nanoseconds.
double work_of(const workload::Job& job, const Experiment& experiment, bool real_time);

}  // namespace mltcp::experiment
