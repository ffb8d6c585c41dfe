// Testbeds over the simulator and over DPDK rings (see testbed.h).
#include "mltcp/experiment/testbed.h"

#include <type_traits>

#include "mltcp/base/error.h"
#include "mltcp/experiment/switched_testbed.h"
#include "mltcp/sim/dumbbell.h"
#if MLTCP_HAS_DPDK
#include "mltcp/dpdk/eal.h"
#include "mltcp/dpdk/ring_dumbbell.h"
#endif

namespace mltcp::experiment {
namespace {

// Simulator and rings have the same shape; what differs is how they are made and how late they were.
template <typename Dumbbell>
class DumbbellTestbed : public Testbed {
 public:
  template <typename... Arguments>
  explicit DumbbellTestbed(Arguments&&... arguments) : network_(std::forward<Arguments>(arguments)...) {}

  PacketIo& host(const End& end) override { return at(end); }
  const Address& address(const End& end) override { return at(end).address(); }
  void attach(const End& end, Pollable& pollable) override { network_.attach(at(end), pollable); }
  void wake(const End& end) override { network_.wake(at(end)); }
  bool run(Nanos until, const std::function<bool()>& stop) override { return network_.run(until, stop); }
  [[nodiscard]] Nanos now() const override { return network_.now(); }
  [[nodiscard]] std::vector<LinkView> links() const override {
    if constexpr (std::is_same_v<Dumbbell, sim::Dumbbell>) {
      const auto link = network_.bottleneck_id();
      return {{"bottleneck", &network_.link_config(link), &network_.link_counters(link), &network_.usage()}};
    } else {
      const fabric::Link& link = network_.bottleneck();
      return {{"bottleneck", &link.config(), &link.counters(), &network_.usage()}};
    }
  }
  [[nodiscard]] std::optional<Stalls> stalls() const override { return std::nullopt; }

 protected:
  auto& at(const End& end) { return end.side == Side::sender ? network_.left(end.job) : network_.right(end.job); }
  Dumbbell network_;
};

class SimFactory final : public TestbedFactory {
 public:
  explicit SimFactory(bool real_payload) : real_payload_(real_payload) {}
  std::unique_ptr<Testbed> make(const fabric::DumbbellConfig& config, const sim::MachineModel& machines,
                                Nanos usage_bin) override {
    sim::DumbbellOptions options;
    options.machines = machines;
    if (usage_bin.count > 0) options.usage_bin = usage_bin;
    options.virtual_payload = !real_payload_;
    return std::make_unique<DumbbellTestbed<sim::Dumbbell>>(config, options);
  }
  std::unique_ptr<Testbed> make(const sim::SwitchedNetworkConfig& config, std::span<const Placement> placements,
                                Nanos usage_bin) override {
    sim::SwitchedNetworkOptions options;
    options.virtual_payload = !real_payload_;
    options.meters = true;
    if (usage_bin.count > 0) options.usage_bin = usage_bin;
    auto testbed = std::make_unique<SwitchedTestbed>(config, options);
    for (const Placement& placement : placements) testbed->add(placement.job, placement.workers);
    return testbed;
  }
  [[nodiscard]] std::string datapath() const override { return "sim"; }
  [[nodiscard]] bool real_time() const override { return false; }
  [[nodiscard]] bool real_payload() const override { return real_payload_; }
  [[nodiscard]] std::string description() const override { return "virtual time"; }

 private:
  bool real_payload_;
};

#if MLTCP_HAS_DPDK
class RingTestbed final : public DumbbellTestbed<dpdk::RingDumbbell> {
 public:
  using DumbbellTestbed::DumbbellTestbed;
  [[nodiscard]] std::optional<Stalls> stalls() const override {
    const LoopCounters& hosts = network_.host_loop();
    const LoopCounters& others = network_.switch_loop();
    return Stalls{std::max(hosts.longest_gap, others.longest_gap), hosts.stalled + others.stalled};
  }
};

class RingFactory final : public TestbedFactory {
 public:
  RingFactory(const std::string& cores, const fabric::DumbbellConfig& largest) : eal_(options(cores, largest)) {}
  std::unique_ptr<Testbed> make(const fabric::DumbbellConfig& config, const sim::MachineModel& /*machines*/,
                                Nanos usage_bin) override {
    if (config.classes != 1) throw InputError("the switch of datapath ring has no priority queues; use datapath sim");
    dpdk::RingOptions options;
    if (usage_bin.count > 0) options.usage_bin = usage_bin;
    return std::make_unique<RingTestbed>(eal_, config, options);
  }
  std::unique_ptr<Testbed> make(const sim::SwitchedNetworkConfig& /*config*/, std::span<const Placement> /*placements*/,
                                Nanos /*usage_bin*/) override {
    throw InputError("datapath ring has one switch and no topology; use datapath sim");
  }
  [[nodiscard]] std::string datapath() const override { return "ring"; }
  [[nodiscard]] bool real_time() const override { return true; }
  [[nodiscard]] bool real_payload() const override { return true; }
  [[nodiscard]] std::string description() const override { return eal_.description(); }

 private:
  static dpdk::EalOptions options(const std::string& cores, const fabric::DumbbellConfig& largest) {
    dpdk::EalOptions options;
    options.cores = cores;
    options.memory_mb = dpdk::RingDumbbell::memory_mb(largest);
    return options;
  }
  dpdk::Eal eal_;
};
#endif

}  // namespace

std::unique_ptr<TestbedFactory> make_sim_factory(bool real_payload) {
  return std::make_unique<SimFactory>(real_payload);
}

std::unique_ptr<TestbedFactory> make_ring_factory([[maybe_unused]] const std::string& cores,
                                                  [[maybe_unused]] const fabric::DumbbellConfig& largest) {
#if MLTCP_HAS_DPDK
  return std::make_unique<RingFactory>(cores, largest);
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
