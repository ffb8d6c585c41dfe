// Interface Datapath, which runs an experiment's jobs in virtual or real time, and functions that create its
// implementations.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/experiment/files/datapath_kind.h"
#include "mltcp/lab/experiment/files/experiment.h"
#include "mltcp/lab/experiment/results/results.h"
#include "mltcp/lab/fabric/dumbbell.h"
#include "mltcp/lab/sim/loop_model.h"
#include "mltcp/lab/sim/switched_network.h"
#include "mltcp/lab/workload/worker_hosts.h"

namespace mltcp::experiment {

class LiveRun;
struct RunPlan;

/// Runs an experiment's jobs.
class Datapath {
 public:
  virtual ~Datapath() = default;
  /// Runs the jobs of `plan` until every job has recorded its iterations. The returned run has no statistics. Calls
  /// `tick` with the fraction of the work done, 0 to 1. Throws the same errors as run_experiment().
  Run run(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick);
  /// Sets up the jobs of `plan`. `experiment` and `plan` must outlive the result. Throws InputError if the experiment
  /// needs a feature that this datapath does not support.
  virtual std::unique_ptr<LiveRun> prepare(const Experiment& experiment, const RunPlan& plan) = 0;
  /// Returns this datapath's entry in the table of datapaths, which lists its capabilities.
  [[nodiscard]] virtual const DatapathKind& kind() const = 0;
  /// Returns the name of this datapath in result files.
  [[nodiscard]] std::string datapath() const { return std::string(kind().name); }
  [[nodiscard]] bool real_time() const { return kind().real_time; }
  /// Returns whether messages carry real bytes that receivers verify. If false, messages have only lengths.
  [[nodiscard]] virtual bool real_payload() const = 0;
  /// Returns a description of this datapath for people, one line; may be empty.
  [[nodiscard]] virtual std::string description() const = 0;
};

/// A datapath that transmits packets. Creates networks, one at a time; job drivers (rank_driver.h) run the jobs on
/// them.
class PacketDatapath : public Datapath {
 public:
  std::unique_ptr<LiveRun> prepare(const Experiment& experiment, const RunPlan& plan) final;
  /// Creates a dumbbell network. `machines` models the loops of the hosts and the switch; datapaths in real time ignore
  /// it. `usage_bin` is the initial bin width of the links' usage meters; 0 selects the default.
  virtual std::unique_ptr<JobNetwork> make(const fabric::DumbbellConfig& config, const fabric::MachineModel& machines,
                                           Nanos usage_bin) = 0;
  /// Creates a network of switches with ports for the jobs in `placements`. Throws InputError if this datapath does not
  /// support topologies.
  virtual std::unique_ptr<JobNetwork> make(const fabric::SwitchedNetworkConfig& config,
                                           std::span<const workload::Placement> placements, Nanos usage_bin) = 0;
};

/// Creates datapath sim, which runs in virtual time. With `real_payload`, messages carry real bytes that receivers
/// verify; runs are then slower.
std::unique_ptr<PacketDatapath> make_sim_datapath(bool real_payload = false);

/// Creates datapath flow, which simulates flows instead of packets in virtual time (flow_level.h). Its runs throw
/// InputError for unsupported features.
std::unique_ptr<Datapath> make_flow_datapath();

/// Creates datapath ring, which runs in real time over DPDK rings. May be called once per process. `cores` is a list of
/// CPUs such as "0" or "0,1"; if it is empty, the first usable CPU is used. Memory is reserved for `largest`, the
/// largest network to be created. Throws InputError for an invalid CPU list, RunError if DPDK cannot start or this
/// build has no DPDK.
std::unique_ptr<PacketDatapath> make_ring_datapath(const std::string& cores, const fabric::DumbbellConfig& largest);

/// Returns the names, as in experiment files, of the datapaths in this build.
const std::vector<std::string>& available_datapaths();

}  // namespace mltcp::experiment
