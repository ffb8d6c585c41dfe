// Adapts the dumbbells of the simulator and of DPDK rings to interface JobNetwork. Not installed.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "mltcp/lab/experiment/engine/job_network.h"

namespace mltcp::experiment {

// The adapters of simulator and rings differ only in construction and stalls().
template <typename Dumbbell>
class DumbbellNetwork : public JobNetwork {
 public:
  template <typename... Arguments>
  explicit DumbbellNetwork(Arguments&&... arguments) : network_(std::forward<Arguments>(arguments)...) {}

  PacketIo& host(const End& end) override { return at(end); }
  const Address& address(const End& end) override { return at(end).address(); }
  void attach(const End& end, Pollable& pollable) override { network_.attach(at(end), pollable); }
  void wake(const End& end) override { network_.wake(at(end)); }
  bool run(Nanos until, const std::function<bool()>& stop) override { return network_.run(until, stop); }
  [[nodiscard]] Nanos now() const override { return network_.now(); }
  [[nodiscard]] std::vector<LinkView> links() const override {
    if constexpr (requires { network_.bottleneck_id(); }) {
      const auto link = network_.bottleneck_id();
      return {{"bottleneck", &network_.link_config(link), &network_.link_counters(link), &network_.usage()}};
    } else {
      const fabric::Link& link = network_.bottleneck();
      return {{"bottleneck", &link.config(), &link.counters(), &network_.usage()}};
    }
  }
  [[nodiscard]] Bytes queue_bytes(std::size_t /*link*/) const override {
    if constexpr (requires { network_.bottleneck_id(); })
      return network_.queue_bytes(network_.bottleneck_id());
    else
      return network_.bottleneck().queue_bytes_at(network_.now());
  }
  [[nodiscard]] std::optional<Stalls> stalls() const override { return std::nullopt; }

 protected:
  auto& at(const End& end) { return end.side == Side::sender ? network_.left(end.job) : network_.right(end.job); }
  Dumbbell network_;
};

}  // namespace mltcp::experiment
