// The interface to run an experiment's jobs, in virtual or real time, and its implementations.
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
  /// Runs the jobs of `plan` until all have recorded their iterations; the result has no statistics. `tick` is called
  /// with the fraction done, 0 to 1. Throws like run_experiment().
  Run run(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick);
  /// Sets up the jobs of `plan`; both arguments must outlive the result. Throws InputError for unsupported features.
  virtual std::unique_ptr<LiveRun> prepare(const Experiment& experiment, const RunPlan& plan) = 0;
  /// The entry in the table of datapaths, with the capabilities.
  [[nodiscard]] virtual const DatapathKind& kind() const = 0;
  /// Name of the datapath in result files.
  [[nodiscard]] std::string datapath() const { return std::string(kind().name); }
  [[nodiscard]] bool real_time() const { return kind().real_time; }
  /// Whether messages carry real bytes, verified on arrival, instead of only lengths.
  [[nodiscard]] virtual bool real_payload() const = 0;
  /// One line for people that describes the datapath; may be empty.
  [[nodiscard]] virtual std::string description() const = 0;
};

/// A datapath with packets: creates networks, one at a time, on which jobs are driven (rank_driver.h).
class PacketDatapath : public Datapath {
 public:
  std::unique_ptr<LiveRun> prepare(const Experiment& experiment, const RunPlan& plan) final;
  /// `usage_bin`: initial bin width of the links' meters; 0: the default.
  /// `machines`: model of the loops of hosts and switch; virtual time only.
  virtual std::unique_ptr<JobNetwork> make(const fabric::DumbbellConfig& config, const fabric::MachineModel& machines,
                                           Nanos usage_bin) = 0;
  /// A network of switches with ports for the jobs in `placements`. Throws InputError if topologies are not supported.
  virtual std::unique_ptr<JobNetwork> make(const fabric::SwitchedNetworkConfig& config,
                                           std::span<const workload::Placement> placements, Nanos usage_bin) = 0;
};

/// Virtual time. With `real_payload` every byte is carried and verified, which is slower.
std::unique_ptr<PacketDatapath> make_sim_datapath(bool real_payload = false);

/// Virtual time, at flow level instead of packets (flow_level.h). Runs throw InputError for unsupported features.
std::unique_ptr<Datapath> make_flow_datapath();

/// Real time over DPDK rings. `cores`: CPU list such as "0" or "0,1"; empty: the first usable CPU. `largest`: the
/// largest network to be created, for which memory is reserved. Once per process. Throws InputError for an invalid core
/// list, RunError if DPDK cannot start or this build has no DPDK.
std::unique_ptr<PacketDatapath> make_ring_datapath(const std::string& cores, const fabric::DumbbellConfig& largest);

/// The datapaths of this build, by their names in experiment files.
const std::vector<std::string>& available_datapaths();

}  // namespace mltcp::experiment
