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
  std::string policy;  ///< see policy_named()
  std::vector<workload::Job> jobs;
  std::uint32_t iterations = 0;
  std::uint32_t first_number = 0;  ///< number of the first of `jobs`; the others follow
  /// The phase plan of each job, relative to the experiment's time 0; empty: no job has one.
  std::vector<std::optional<PhasePlan>> slots;
  bool metered = true;  ///< at flow level: record each job's use of links over time
  Nanos usage_bin;      ///< initial bin width of the links' meters; 0: the network's default
  /// Called before the jobs start and then every `slice`, between calls of LiveRun::run(). `running` is in the order of
  /// `jobs`. Datapath hosts uses kSlice instead of `slice`.
  std::function<void(std::span<RunningJob* const> running, Nanos epoch, Nanos now)> between;
  Nanos slice = kSlice;
  /// Called at the end with the links' meters; those of unused links may be missing.
  std::function<void(std::span<const JobNetwork::LinkView> links, Nanos epoch)> finished;

  SeriesRecorder* series = nullptr;  ///< records the run; null: no series
  /// Captures the packets of the hosts; empty: no capture. Has no effect on a datapath without packets.
  std::optional<capture::CaptureOptions> capture;
  /// Called at the end of the run with the result of the capture: a line for people, and whether it has all packets.
  std::function<void(const std::string& line, bool is_complete)> captured;

  [[nodiscard]] std::uint32_t iterations_of(const workload::Job& job) const {
    return job.iterations > 0 ? job.iterations : iterations;
  }
};

/// The network of `experiment`: its bottleneck with one pair of hosts per job.
fabric::DumbbellConfig network_of(const Experiment& experiment);

/// The cost of an iteration of the job, for progress displays: in virtual time the bytes that it sends, in real time
/// its duration in isolation in nanoseconds. 1 or more.
double work_of(const workload::Job& job, const Experiment& experiment, bool real_time);

}  // namespace mltcp::experiment
