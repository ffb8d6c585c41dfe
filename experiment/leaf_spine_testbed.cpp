// A leaf-spine network with the ends of jobs on its hosts (see leaf_spine_testbed.h).
#include "mltcp/experiment/leaf_spine_testbed.h"

#include <map>

namespace mltcp::experiment {
namespace {

sim::LeafSpineOptions options(bool virtual_payload, Nanos usage_bin) {
  sim::LeafSpineOptions options;
  options.virtual_payload = virtual_payload;
  options.meters = true;
  if (usage_bin.count > 0) options.usage_bin = usage_bin;
  return options;
}

class LeafSpineTestbed final : public Testbed {
 public:
  LeafSpineTestbed(const sim::LeafSpineConfig& config, std::span<const Placement> placements, bool virtual_payload,
                   Nanos usage_bin)
      : network_(config, options(virtual_payload, usage_bin)) {
    for (const Placement& placement : placements) {
      Ends& ends = jobs_[placement.job];
      for (const WorkerHosts& worker : placement.workers) {
        ends.senders.push_back(&network_.add_port(worker.from, sender_port(placement.job)));
        ends.receivers.push_back(&network_.add_port(worker.to, receiver_port(placement.job)));
      }
    }
  }

  PacketIo& host(const End& end) override { return at(end); }
  const Address& address(const End& end) override { return at(end).address(); }
  void attach(const End& end, Pollable& pollable) override { network_.attach(at(end), pollable); }
  void wake(const End& end) override { network_.wake(at(end)); }
  bool run(Nanos until, const std::function<bool()>& stop) override { return network_.run(until, stop); }
  [[nodiscard]] Nanos now() const override { return network_.now(); }
  [[nodiscard]] std::vector<LinkView> links() const override {
    std::vector<LinkView> views;
    for (const sim::LeafSpine::NamedLink& link : network_.links())
      views.push_back({link.name, &network_.link_config(link.id), &network_.link_counters(link.id), link.usage});
    return views;
  }
  [[nodiscard]] std::optional<Stalls> stalls() const override { return std::nullopt; }

 private:
  struct Ends {  // by worker
    std::vector<sim::Host*> senders;
    std::vector<sim::Host*> receivers;
  };

  sim::Host& at(const End& end) {
    const Ends& ends = jobs_.at(end.job);
    return *(end.side == Side::sender ? ends.senders : ends.receivers)[end.worker];
  }

  sim::LeafSpine network_;
  std::map<std::uint32_t, Ends> jobs_;
};

}  // namespace

std::unique_ptr<Testbed> make_leaf_spine_testbed(const sim::LeafSpineConfig& config,
                                                 std::span<const Placement> placements, bool virtual_payload,
                                                 Nanos usage_bin) {
  return std::make_unique<LeafSpineTestbed>(config, placements, virtual_payload, usage_bin);
}

}  // namespace mltcp::experiment
