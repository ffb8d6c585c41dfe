// Jobs at flow level: the iterations of training jobs over sim::FlowNetwork, for clusters that are too large for
// packets.
//
// A job does what the job driver makes it do at packet level (job_driver.h): its iterations are those of the same
// engine, with the same compute times from the same seed; its connections take the paths that their packets would take;
// and each worker counts its own progress through an iteration, as its shard does. Connections of a worker on one path
// are one flow.
//
// What a byte takes of a link is what packets of the MTU take, full ones: frame over payload. Where acknowledgements of
// a job share a link with its data, as on the links of a ring, the job's bytes there pay for them, too: an empty packet
// for two full ones. Acknowledgements that meet other jobs' data only are not counted.
//
// A burst costs time that the fluid doesn't know, its latency. Before: in slow start a window of w bytes takes a round
// trip R, of which only w / C are used at the rate C of the path; the rounds from the initial window on until w / C is
// R or the burst has ended. A connection is in slow start when it has been idle for longer than a probe timeout. After:
// the round trip of the last packet in an empty network.
//
// Not modelled: losses, marks, queues, buffers, pauses, and the time for which congestion control is under way to the
// shares that F stands for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/cc/augmentation.h"
#include "mltcp/experiment/backends/flow_fabric.h"
#include "mltcp/experiment/engine/job_spec.h"
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/fabric/dumbbell.h"
#include "mltcp/sim/flow_network.h"
#include "mltcp/sim/switched_network.h"
#include "mltcp/transport/phase_gate.h"
#include "mltcp/workload/job.h"

namespace mltcp::experiment {

struct FlowLevelOptions {
  std::uint32_t weight_steps = sim::FlowNetwork::Options{}.weight_steps;
  /// Of every burst, all of it after its last byte; empty: as derived above.
  std::optional<Nanos> burst_latency;
};

/// Jobs that come and go at any time.
class FlowLevelCluster {
 public:
  /// Counts from 0 in the order of add_job(), and is not given again.
  using JobId = std::uint32_t;
  struct Iteration {
    std::uint32_t number = 0;  ///< of the job, from 0 on
    Nanos start;
    Nanos length;
    bool last = false;  ///< of those to record
  };
  /// Told of each iteration that is recorded, at its end, now(). May call anything but run().
  using OnIteration = std::function<void(JobId job, const Iteration& iteration)>;

  explicit FlowLevelCluster(FlowFabric fabric, const FlowLevelOptions& options = {});
  ~FlowLevelCluster();
  FlowLevelCluster(const FlowLevelCluster&) = delete;
  FlowLevelCluster& operator=(const FlowLevelCluster&) = delete;

  /// The job starts at job.start, or now if that is past. Throws InputError for what can't be run.
  JobId add_job(JobSpec spec);
  /// The job ends at once. Throws InputError if there is no such job (any more), like all that follow.
  void remove(JobId job);
  /// Holds the job's iterations to the slots of `plan`, in time of the cluster, from now on (phase_gate.h). Returns
  /// PlanState::active, or why the job has no plan now.
  PlanState set_plan(JobId job, const PhasePlan& plan);
  void clear_plan(JobId job);
  [[nodiscard]] GateStats gate_stats(JobId job) const;
  /// All that was recorded: name, times, bytes; no statistics yet.
  [[nodiscard]] JobResult result(JobId job) const;
  /// Iterations recorded, and whether those are all that were asked for.
  [[nodiscard]] std::size_t recorded(JobId job) const;
  [[nodiscard]] bool done(JobId job) const;
  /// Jobs that have not been removed.
  [[nodiscard]] std::size_t jobs() const;

  void on_iteration(OnIteration callback);
  /// Runs until `until`, or until `stop`, which is asked after every event, is true; returns whether it stopped.
  /// Afterwards now() is `until`, the time of that event, or for Nanos::never() of the last one.
  bool run(Nanos until, const std::function<bool()>& stop = {});
  [[nodiscard]] Nanos now() const;

  [[nodiscard]] const FlowFabric& fabric() const;
  /// Of a link of the fabric, until now(). Contended: by different workers of one job, too.
  [[nodiscard]] sim::FlowNetwork::LinkUse use(std::uint32_t link);
  /// Jobs, past ones included, whose data takes the link.
  [[nodiscard]] std::size_t jobs_on(std::uint32_t link) const;
  /// Counts who uses the link when, by number of the job; see sim::FlowNetwork::meter().
  void meter(std::uint32_t link, fabric::UsageMeter* meter);
  [[nodiscard]] const sim::FlowNetwork::Counters& counters() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// What to know before the jobs run, a line each: jobs that meet, are alike and start together do the same for ever, as
/// a fluid has no noise that would let one of them be ahead.
std::vector<std::string> warnings_at_flow_level(const Experiment& experiment);

}  // namespace mltcp::experiment
