// Jobs at flow level: iterations of training jobs over sim::FlowNetwork, for clusters too large for packet level.
//
// A job behaves as at packet level (rank_driver.h). It has the same iterations and, with the same seed, the same
// compute times. Its connections use the paths that their packets would take. Each worker or rank has its own progress;
// ranks also have their own gates. All connections from a worker to its receiver, or from one rank to another rank,
// that use the same path form one flow. A flow carries messages in the order in which the sender starts them.
//
// A send is done one round-trip time after its last byte has left the sender. The receive is done half a round-trip
// time after this byte has left. A barrier is a message of one byte and takes as long as any other message. A rank that
// depends on no other rank may be any number of iterations ahead of the ranks to which it sends. At packet level, this
// rank would wait for the ranks to which it sends.
//
// The wire bytes per application byte are those of full packets: frame size / payload. If a job's acknowledgements use
// the same link as its data (as in a ring of workers), the wire bytes include the acknowledgements. There is one empty
// packet for every two full packets. Acknowledgements that share a link only with data of other jobs are not counted.
//
// The fluid model transmits at full rate at once, so two latencies are added to each burst. The first latency is slow
// start, which applies if the connection was idle for longer than a probe timeout. In slow start, sending a window of w
// bytes takes a round-trip time R, but occupies a path with rate C only for w / C. For each round, R - w / C is added,
// from the initial window until w / C reaches R or the burst ends. The second latency is the round-trip time of the
// burst's last packet in an empty network.
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
  /// If set, this latency is added after the last byte of every burst, and no slow start is modelled. If empty, slow
  /// start is modelled, and the round-trip time of the burst's last packet is added.
  std::optional<Nanos> burst_latency;
};

/// Jobs on a shared network. Jobs can be added and removed at any time.
class FlowLevelCluster {
 public:
  /// The number of a job, from 0 in the order of add_job(); never reused.
  using JobId = std::uint32_t;
  struct Iteration {
    std::uint32_t number = 0;  ///< number of the iteration within the job, from 0
    Nanos start;
    Nanos length;
    bool last = false;  ///< whether this is the last iteration to record
  };
  /// Called at the end of each recorded iteration, at time now(). May call any function except run().
  using OnIteration = std::function<void(JobId job, const Iteration& iteration)>;

  explicit FlowLevelCluster(FlowFabric fabric, const FlowLevelOptions& options = {});
  ~FlowLevelCluster();
  FlowLevelCluster(const FlowLevelCluster&) = delete;
  FlowLevelCluster& operator=(const FlowLevelCluster&) = delete;

  /// Adds a job that starts at job.start, or at now() if job.start has passed. Throws InputError if the job cannot run.
  JobId add_job(JobSpec spec);
  /// Returns a job; valid until the job is removed. Its times are on the clock of now(). job() and remove() throw
  /// InputError if the job does not exist.
  [[nodiscard]] RunningJob& job(JobId job);
  /// Ends and removes the job at once.
  void remove(JobId job);
  /// Returns the number of jobs that have not been removed.
  [[nodiscard]] std::size_t jobs() const;

  void on_iteration(OnIteration callback);
  /// Runs until `until`, or until `stop` returns true, which is called after every event. Returns whether `stop`
  /// returned true. Afterwards, now() is the time of the latest event if `stop` returned true or `until` is
  /// Nanos::never(). If not, now() is `until`.
  bool run(Nanos until, const std::function<bool()>& stop = {});
  [[nodiscard]] Nanos now() const;

  [[nodiscard]] const FlowFabric& fabric() const;
  /// Returns the use of a link until now(). If several workers of one job use the link at the same time, this use
  /// counts as contended.
  [[nodiscard]] sim::FlowNetwork::LinkUse use(std::uint32_t link);
  /// Returns the number of jobs, including removed jobs, that have sent data over the link.
  [[nodiscard]] std::size_t jobs_on(std::uint32_t link) const;
  /// Records the use of the link over time, by job number, in `meter`; see sim::FlowNetwork::meter().
  void meter(std::uint32_t link, fabric::UsageMeter* meter);
  [[nodiscard]] const sim::FlowNetwork::Counters& counters() const;
  /// Makes run() record series of the current jobs in `recorder` from now() on. `recorder` must outlive this object.
  /// These jobs must not be removed afterwards. Columns about packets stay 0.
  void record(SeriesRecorder& recorder);
  /// Records the last row of the series, at now().
  void finish_record();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Returns warnings for use before a run, one line each, about identical jobs that share a link and start together. At
/// flow level there is no noise that would separate such jobs.
std::vector<std::string> warnings_at_flow_level(const Experiment& experiment);

}  // namespace mltcp::experiment
