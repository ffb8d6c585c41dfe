// Datapath sim: packets in virtual time (see datapath.h).
#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/backends/internal/dumbbell_network.h"
#include "mltcp/lab/experiment/backends/topology_network.h"
#include "mltcp/lab/experiment/engine/job_network.h"
#include "mltcp/lab/sim/dumbbell.h"

namespace mltcp::experiment {
namespace {

class SimDatapath final : public PacketDatapath {
 public:
  explicit SimDatapath(bool real_payload) : real_payload_(real_payload) {}
  std::unique_ptr<JobNetwork> make(const fabric::DumbbellConfig& config, const fabric::MachineModel& machines,
                                   Nanos usage_bin) override {
    sim::DumbbellOptions options;
    options.machines = machines;
    if (usage_bin.count > 0) options.usage_bin = usage_bin;
    options.virtual_payload = !real_payload_;
    return std::make_unique<DumbbellNetwork<sim::Dumbbell>>(config, options);
  }
  std::unique_ptr<JobNetwork> make(const fabric::SwitchedNetworkConfig& config,
                                   std::span<const workload::Placement> placements, Nanos usage_bin) override {
    sim::SwitchedNetworkOptions options;
    options.virtual_payload = !real_payload_;
    options.meters = true;
    if (usage_bin.count > 0) options.usage_bin = usage_bin;
    auto network = std::make_unique<TopologyNetwork>(config, options);
    for (const workload::Placement& placement : placements) network->add(placement.job, placement.workers);
    return network;
  }
  [[nodiscard]] const DatapathKind& kind() const override { return datapath_kind("sim"); }
  [[nodiscard]] bool real_payload() const override { return real_payload_; }
  [[nodiscard]] std::string description() const override { return std::string(kind().summary); }

 private:
  bool real_payload_;
};

}  // namespace

std::unique_ptr<PacketDatapath> make_sim_datapath(bool real_payload) {
  return std::make_unique<SimDatapath>(real_payload);
}

}  // namespace mltcp::experiment
