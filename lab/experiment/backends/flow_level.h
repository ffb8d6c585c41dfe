// Jobs at flow level: iterations of training jobs over sim::FlowNetwork, for clusters too large for packet level.
//
// A job behaves as under its driver at packet level (rank_driver.h): the same iterations with the same compute times
// from the same seed, connections on the paths that their packets would take, and for each worker or rank its own
// progress, as for its shard; ranks have their own gates, too. Connections from a worker to its receiver, or from a
// rank to another, that are on the same path are one flow, on which messages go in the order of the sender's list.
//
// A send is done a round trip after its last byte has left, a receive half of one. Messages that are barriers take a
// byte and a round trip like others. A rank that nothing holds up may be any number of iterations ahead of those that
// it sends to; over packets it waits for them.
//
// Wire bytes per application byte are those of full packets of the MTU: frame over payload. If a job's acknowledgements
// share a link with its data, as on the links of a ring, its wire bytes include them: an empty packet for every two
// full ones. Acknowledgements that share links only with other jobs' data are not counted.
//
// A burst also has latencies that the fluid lacks. At its start: in slow start a window of w bytes takes a round trip
// R, of which only w / C is used at path rate C; this counts for the rounds from the initial window until w / C reaches
// R or the burst ends. A connection is in slow start if it was idle for longer than a probe timeout. At its end: the
// round trip of the last packet in an empty network.
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
  /// Latency of every burst, added after its last byte; empty: as derived above.
  std::optional<Nanos> burst_latency;
};

/// Jobs on a shared network, which may be added and removed at any time.
class FlowLevelCluster {
 public:
  /// Counts from 0 in the order of add_job(); never reused.
  using JobId = std::uint32_t;
  struct Iteration {
    std::uint32_t number = 0;  ///< of the job, from 0
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
  /// A job, until it is removed; times are the cluster's. This and the function below throw InputError if there is no
  /// such job (any more).
  [[nodiscard]] RunningJob& job(JobId job);
  /// Ends the job at once.
  void remove(JobId job);
  /// Number of jobs not removed.
  [[nodiscard]] std::size_t jobs() const;

  void on_iteration(OnIteration callback);
  /// Runs until `until`, or until `stop`, called after every event, returns true; returns whether it was stopped. Then
  /// now() is `until`, the time of that event, or, for Nanos::never(), that of the last event.
  bool run(Nanos until, const std::function<bool()>& stop = {});
  [[nodiscard]] Nanos now() const;

  [[nodiscard]] const FlowFabric& fabric() const;
  /// Use of a link until now(). Contended also means: by different workers of one job.
  [[nodiscard]] sim::FlowNetwork::LinkUse use(std::uint32_t link);
  /// Number of jobs, including removed ones, with data on the link.
  [[nodiscard]] std::size_t jobs_on(std::uint32_t link) const;
  /// Records the use of the link over time, by job number; see sim::FlowNetwork::meter().
  void meter(std::uint32_t link, fabric::UsageMeter* meter);
  [[nodiscard]] const sim::FlowNetwork::Counters& counters() const;
  /// Has run() fill in `recorder`, which outlives this object, from now() on: of the jobs that there are, none of which
  /// may be removed then. Columns of packets stay 0.
  void record(SeriesRecorder& recorder);
  /// The last row, at now().
  void finish_record();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Warnings before a run, one line each: identical jobs that share a link and start together stay in step for ever, as
/// a fluid has no noise that would let one get ahead.
std::vector<std::string> warnings_at_flow_level(const Experiment& experiment);

}  // namespace mltcp::experiment
