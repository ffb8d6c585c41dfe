// Datapath ring: DPDK rings in real time (see datapath.h). Throws RunError if this build has no DPDK.
#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/internal/dumbbell_network.h"
#if MLTCP_HAS_DPDK
#include "mltcp/dpdk/eal.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/realtime/ring_dumbbell.h"
#endif

namespace mltcp::experiment {

#if MLTCP_HAS_DPDK
namespace {

class RingNetwork final : public DumbbellNetwork<realtime::RingDumbbell> {
 public:
  using DumbbellNetwork::DumbbellNetwork;
  [[nodiscard]] std::optional<Stalls> stalls() const override {
    const LoopCounters& hosts = network_.host_loop();
    const LoopCounters& others = network_.switch_loop();
    return Stalls{std::max(hosts.longest_gap, others.longest_gap), hosts.stalled + others.stalled};
  }
};

class RingDatapath final : public PacketDatapath {
 public:
  RingDatapath(const std::string& cores, const fabric::DumbbellConfig& largest) : eal_(options(cores, largest)) {}
  std::unique_ptr<JobNetwork> make(const fabric::DumbbellConfig& config, const fabric::MachineModel& /*machines*/,
                                   Nanos usage_bin) override {
    if (config.classes != 1) throw InputError("the switch of datapath ring has no priority queues; use datapath sim");
    realtime::RingOptions options;
    if (usage_bin.count > 0) options.usage_bin = usage_bin;
    return std::make_unique<RingNetwork>(eal_, config, options);
  }
  std::unique_ptr<JobNetwork> make(const fabric::SwitchedNetworkConfig& /*config*/,
                                   std::span<const workload::Placement> /*placements*/, Nanos /*usage_bin*/) override {
    throw InputError("datapath ring has one switch and no topology; use datapath sim");
  }
  [[nodiscard]] const DatapathKind& kind() const override { return datapath_kind("ring"); }
  [[nodiscard]] bool real_payload() const override { return true; }
  [[nodiscard]] std::string description() const override { return eal_.description(); }

 private:
  static dpdk::EalOptions options(const std::string& cores, const fabric::DumbbellConfig& largest) {
    dpdk::EalOptions options;
    options.cores = cores;
    options.memory_mb = realtime::RingDumbbell::memory_mb(largest);
    return options;
  }
  dpdk::Eal eal_;
};

}  // namespace
#endif

std::unique_ptr<PacketDatapath> make_ring_datapath([[maybe_unused]] const std::string& cores,
                                                   [[maybe_unused]] const fabric::DumbbellConfig& largest) {
#if MLTCP_HAS_DPDK
  return std::make_unique<RingDatapath>(cores, largest);
#else
  throw RunError(
      "built without DPDK, so there is no datapath \"ring\"; build with -DMLTCP_DPDK=ON, or use --datapath sim");
#endif
}

const std::vector<std::string>& available_datapaths() {
#if MLTCP_HAS_DPDK
  static const std::vector<std::string> names{"sim", "flow", "ring"};
#else
  static const std::vector<std::string> names{"sim", "flow"};
#endif
  return names;
}

}  // namespace mltcp::experiment
