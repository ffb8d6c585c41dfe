// What an experiment runs on: pairs of hosts around one bottleneck, in virtual time or in real time, or the hosts of a
// topology, behind one interface, so that the job driver and the policies know nothing of the difference.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/placement.h"
#include "mltcp/experiment/results.h"
#include "mltcp/fabric/dumbbell.h"
#include "mltcp/fabric/link.h"
#include "mltcp/fabric/usage_meter.h"
#include "mltcp/sim/loop_model.h"
#include "mltcp/sim/switched_network.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/pollable.h"

namespace mltcp::experiment {

class Testbed {
 public:
  enum class Side { sender, receiver };
  /// One end of the traffic of a job's worker: it sends, or its bytes are received.
  struct End {
    Side side = Side::sender;
    std::uint32_t job = 0;     ///< number
    std::uint32_t worker = 0;  ///< always 0 on a dumbbell
  };
  /// A link, as a run has left it.
  struct LinkView {
    std::string_view name;
    const fabric::LinkConfig* config = nullptr;
    const fabric::LinkCounters* counters = nullptr;
    const fabric::UsageMeter* usage = nullptr;
  };

  virtual ~Testbed() = default;

  /// The datapath of an end, owned by the testbed.
  virtual PacketIo& host(const End& end) = 0;
  virtual const Address& address(const End& end) = 0;
  /// Drives `pollable`, which outlives the testbed's last run, on an end.
  virtual void attach(const End& end, Pollable& pollable) = 0;
  /// Polls an end soon, although no packet and no deadline asks for it.
  virtual void wake(const End& end) = 0;
  /// Runs until the time is `until` or `stop` is true; returns whether it was stopped.
  virtual bool run(Nanos until, const std::function<bool()>& stop) = 0;
  [[nodiscard]] virtual Nanos now() const = 0;

  /// The links on which jobs may meet: of a dumbbell the bottleneck, of a topology all. At least one; their meters have
  /// bins of one width.
  [[nodiscard]] virtual std::vector<LinkView> links() const = 0;
  /// How late a real-time datapath was; nothing in virtual time.
  [[nodiscard]] virtual std::optional<Stalls> stalls() const = 0;
};

struct Experiment;
struct RunPlan;

/// What runs an experiment's jobs.
class Datapath {
 public:
  virtual ~Datapath() = default;
  /// One run, without statistics. `tick` is told the share of the iterations that are done. Throws as run_experiment()
  /// does.
  virtual Run run(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick) = 0;
  /// "sim", "flow" or "ring", as the result file says.
  [[nodiscard]] virtual std::string datapath() const = 0;
  /// Time passes by itself, and noise of the machine is in every measurement.
  [[nodiscard]] virtual bool real_time() const = 0;
  /// Messages carry bytes, which are verified on arrival. Where they don't, only lengths travel.
  [[nodiscard]] virtual bool real_payload() const = 0;
  /// What it runs on, one line for people; empty if there is nothing to say.
  [[nodiscard]] virtual std::string description() const = 0;
};

/// A datapath with packets: makes testbeds of one kind, one after the other, and drives jobs on them (job_driver.h).
class TestbedFactory : public Datapath {
 public:
  Run run(const Experiment& experiment, const RunPlan& plan, const std::function<void(double)>& tick) final;
  /// `usage_bin`: width of the bins of the links' meters at first; 0: as it likes.
  /// `machines`: of hosts and switch, in virtual time only.
  virtual std::unique_ptr<Testbed> make(const fabric::DumbbellConfig& config, const sim::MachineModel& machines,
                                        Nanos usage_bin) = 0;
  /// With the ends of the jobs in `placements`. Throws InputError where the datapath has no topologies.
  virtual std::unique_ptr<Testbed> make(const sim::SwitchedNetworkConfig& config, std::span<const Placement> placements,
                                        Nanos usage_bin) = 0;
};

/// Virtual time. With `real_payload` every byte is carried and verified, at some cost.
std::unique_ptr<TestbedFactory> make_sim_factory(bool real_payload = false);

/// Virtual time, flows in place of packets (flow_level.h). Its runs throw InputError for what it doesn't have.
std::unique_ptr<Datapath> make_flow_datapath();

/// DPDK rings in real time; `cores` as in "0" or "0,1", empty for the first CPU that may be used. `largest` is the
/// largest network that will be made, for which memory is set aside. Once per process. Throws InputError for a bad
/// core list, RunError where DPDK can't start or this build has no DPDK.
std::unique_ptr<TestbedFactory> make_ring_factory(const std::string& cores, const fabric::DumbbellConfig& largest);

/// The datapaths of this build, by the names that experiment files use.
const std::vector<std::string>& available_datapaths();

}  // namespace mltcp::experiment
