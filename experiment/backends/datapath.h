// What runs an experiment's jobs, in virtual or in real time: the one interface that runs and profiles are made with,
// and the datapaths behind it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/engine/job_network.h"
#include "mltcp/experiment/files/datapath_kind.h"
#include "mltcp/experiment/files/experiment.h"
#include "mltcp/experiment/results/results.h"
#include "mltcp/fabric/dumbbell.h"
#include "mltcp/sim/loop_model.h"
#include "mltcp/sim/switched_network.h"
#include "mltcp/workload/worker_hosts.h"

namespace mltcp::experiment {

class LiveRun;
struct RunPlan;

/// What runs an experiment's jobs.
class Datapath {
 public:
  virtual ~Datapath() = default;
  /// One run, without statistics: the jobs of `plan` until all have recorded their iterations. `tick` is told the share
  /// that is done. Throws as run_experiment() does.
  Run run(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick);
  /// The jobs of `plan`, set up; both outlive what is returned. Throws InputError for what the datapath doesn't have.
  virtual std::unique_ptr<LiveRun> prepare(const Experiment& experiment, const RunPlan& plan) = 0;
  /// Its entry in the table, for what it is able to do.
  [[nodiscard]] virtual const DatapathKind& kind() const = 0;
  /// As the result file says.
  [[nodiscard]] std::string datapath() const { return std::string(kind().name); }
  [[nodiscard]] bool real_time() const { return kind().real_time; }
  /// Messages carry bytes, which are verified on arrival. Where they don't, only lengths travel.
  [[nodiscard]] virtual bool real_payload() const = 0;
  /// What it runs on, one line for people; empty if there is nothing to say.
  [[nodiscard]] virtual std::string description() const = 0;
};

/// A datapath with packets: makes networks of one kind, one after the other, on which jobs are driven (job_driver.h).
class PacketDatapath : public Datapath {
 public:
  std::unique_ptr<LiveRun> prepare(const Experiment& experiment, const RunPlan& plan) final;
  /// `usage_bin`: width of the bins of the links' meters at first; 0: as it likes.
  /// `machines`: of hosts and switch, in virtual time only.
  virtual std::unique_ptr<JobNetwork> make(const fabric::DumbbellConfig& config, const sim::MachineModel& machines,
                                           Nanos usage_bin) = 0;
  /// With the ends of the jobs in `placements`. Throws InputError where the datapath has no topologies.
  virtual std::unique_ptr<JobNetwork> make(const sim::SwitchedNetworkConfig& config,
                                           std::span<const workload::Placement> placements, Nanos usage_bin) = 0;
};

/// Virtual time. With `real_payload` every byte is carried and verified, at some cost.
std::unique_ptr<PacketDatapath> make_sim_datapath(bool real_payload = false);

/// Virtual time, flows in place of packets (flow_level.h). Its runs throw InputError for what it doesn't have.
std::unique_ptr<Datapath> make_flow_datapath();

/// DPDK rings in real time; `cores` as in "0" or "0,1", empty for the first CPU that may be used. `largest` is the
/// largest network that will be made, for which memory is set aside. Once per process. Throws InputError for a bad
/// core list, RunError where DPDK can't start or this build has no DPDK.
std::unique_ptr<PacketDatapath> make_ring_datapath(const std::string& cores, const fabric::DumbbellConfig& largest);

/// The datapaths of this build, by the names that experiment files use.
const std::vector<std::string>& available_datapaths();

}  // namespace mltcp::experiment
