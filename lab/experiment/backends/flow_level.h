// Jobs at flow level: iterations of training jobs over sim::FlowNetwork, for clusters too large for packet level.
//
// A job behaves as under its driver at packet level (rank_driver.h): the same iterations, the same compute times from
// the same seed, and connections on the paths that their packets would take. Each worker or rank has its own progress,
// as with its shard; ranks also have their own gates. Connections from a worker to its receiver, or from a rank to
// another, that are on the same path are one flow, which carries messages in the order of the sender's list.
//
// A send is done a round trip after its last byte has left, a receive half a round trip after it. Messages that are
// barriers also take one byte and a round trip. A rank that depends on no other may be any number of iterations ahead
// of the ranks to which it sends; over packets it waits for them.
//
// Wire bytes per application byte are those of full packets of the MTU: frame size / payload. If a job's
// acknowledgements share a link with its data, as on the links of a ring, its wire bytes include them: an empty packet
// for every two full ones. Acknowledgements that share links only with other jobs' data are not counted.
//
// A burst also has latencies that the fluid lacks. At its start: in slow start, sending a window of w bytes takes a
// round-trip time R, but uses only w / C of it at path rate C. The rest is added for each round from the initial window
// until w / C reaches R or the burst ends. A connection is in slow start if it was idle for longer than a probe
// timeout. At its end: the round-trip time of the last packet in an empty network.
//
// Not modelled: losses, ECN marks, queues, buffers, pauses, and the time that congestion control takes to converge to
// the shares given by F.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/lab/experiment/backends/flow_fabric.h"
#include "mltcp/lab/experiment/engine/job_spec.h"
#include "mltcp/lab/experiment/engine/running_job.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/experiment/series/series_recorder.h"
#include "mltcp/lab/fabric/dumbbell.h"
#include "mltcp/lab/sim/flow_network.h"
#include "mltcp/lab/sim/switched_network.h"
#include "mltcp/lab/workload/job.h"
#include "mltcp/transport/phase_gate.h"

namespace mltcp::experiment {

struct FlowLevelOptions {
  std::uint32_t weight_steps = sim::FlowNetwork::Options{}.weight_steps;
  /// Latency of every burst, added after its last byte, without slow start; empty: derived as above.
  std::optional<Nanos> burst_latency;
};

/// Jobs on a shared network. They can be added and removed at any time.
class FlowLevelCluster {
 public:
  /// The number of a job, from 0 in the order of add_job(); never reused.
  using JobId = std::uint32_t;
  struct Iteration {
    std::uint32_t number = 0;  ///< number of the iteration within the job, from 0
    Nanos start;
    Nanos length;
    bool last = false;  ///< the last iteration to be recorded
  };
  /// Called for each recorded iteration at its end, now(). May call any function except run().
  using OnIteration = std::function<void(JobId job, const Iteration& iteration)>;

  explicit FlowLevelCluster(FlowFabric fabric, const FlowLevelOptions& options = {});
  ~FlowLevelCluster();
  FlowLevelCluster(const FlowLevelCluster&) = delete;
  FlowLevelCluster& operator=(const FlowLevelCluster&) = delete;

  /// Adds a job that starts at job.start, or now if that is past. Throws InputError if it cannot be run.
  JobId add_job(JobSpec spec);
  /// A job, valid until it is removed; its times are the cluster's. This and the next function throw InputError if the
  /// job does not exist.
  [[nodiscard]] RunningJob& job(JobId job);
  /// Ends the job at once.
  void remove(JobId job);
  /// Number of jobs not removed.
  [[nodiscard]] std::size_t jobs() const;

  void on_iteration(OnIteration callback);
  /// Runs until `until`, or until `stop`, called after every event, returns true; returns whether it was stopped.
  /// Afterwards now() is `until`, or the time of the latest event if it was stopped or `until` is Nanos::never().
  bool run(Nanos until, const std::function<bool()>& stop = {});
  [[nodiscard]] Nanos now() const;

  [[nodiscard]] const FlowFabric& fabric() const;
  /// Use of a link until now(). Use by different workers of one job also counts as contended.
  [[nodiscard]] sim::FlowNetwork::LinkUse use(std::uint32_t link);
  /// Number of jobs, including removed ones, with data on the link.
  [[nodiscard]] std::size_t jobs_on(std::uint32_t link) const;
  /// Records the use of the link over time, by job number; see sim::FlowNetwork::meter().
  void meter(std::uint32_t link, fabric::UsageMeter* meter);
  [[nodiscard]] const sim::FlowNetwork::Counters& counters() const;
  /// From now() on, run() records the current jobs in `recorder`, which must outlive this object. These jobs must not
  /// be removed any more. Columns about packets stay 0.
  void record(SeriesRecorder& recorder);
  /// Records the last row, at now().
  void finish_record();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Warnings before a run, one line each, about identical jobs that share a link and start together: at flow level there
/// is no noise that would separate them.
std::vector<std::string> warnings_at_flow_level(const Experiment& experiment);

}  // namespace mltcp::experiment
