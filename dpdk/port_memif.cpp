// Ports on memory shared with another process (memif).
#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <random>

#include "mltcp/dpdk/port_kind.h"

namespace mltcp::dpdk {
namespace {

/// Returns a random MAC address. DPDK's own random addresses would be equal in processes forked before DPDK starts.
std::string random_mac() {
  std::random_device source;
  std::string text = "02";
  for (int i = 0; i < 5; ++i) text += fmt::format(":{:02x}", source() & 0xFF);
  return text;
}

class MemifKind final : public PortKind {
 public:
  using PortKind::PortKind;

  [[nodiscard]] std::string identity() const override { return fmt::format("{} {}", PortKind::identity(), name().id); }
  [[nodiscard]] std::string cure_if_taken() const override {
    return "its two ends must be in two processes; within one process, use ring:left,to=right and ring:right,to=left";
  }
  void adapt(PortPlan& plan) override { plan.buffers = config().spare_buffers + 512; }
  [[nodiscard]] const std::string& device() override {
    static std::atomic<unsigned> instances{0};
    if (device_.empty()) device_ = fmt::format("net_memif{}", instances++);
    return device_;
  }
  std::string driver_wanted() override { return "net_memif"; }

  std::string why_not_plugged(int /*error*/, const PortLog& log) override {
    if (log.has("socket directory")) {
      return fmt::format("port {}: the folder of {} does not exist or can't be written to; make it, or choose another",
                         quoted(), name().target);
    }
    if (!name().server) return {};
    return fmt::format("port {0}: DPDK can't listen on {1}{2}; if no process uses it, remove it: rm {1}", quoted(),
                       name().target, log.words());
  }
  std::string why_not_started(const PortLog& /*log*/) override {
    if (name().server) return {};
    return fmt::format("port {0}: no process listens on {1}; start the end with memif:{1},role=server,id={2} first",
                       quoted(), name().target, name().id);
  }
  [[nodiscard]] bool peer_chooses_segments() const override { return true; }

 protected:
  std::string arguments(const PortPlan& plan) override {
    // A slot holds a whole frame, and is smaller than DPDK's buffers. If a slot were as large as a buffer, DPDK's
    // driver, from 23.03 to 25.11, would give each segment of a packet its own slot, and would not clear the flag that
    // joins slots.
    return fmt::format("role={},id={},socket={},socket-abstract=no,bsize={},rsize={},mac={}",
                       name().server ? "server" : "client", name().id, name().target, (plan.data_bytes - 1) / 64 * 64,
                       std::countr_zero(plan.descriptors), random_mac());
  }

 private:
  std::string device_;
};

}  // namespace

std::unique_ptr<PortKind> make_memif_kind(PortName name, const PortConfig& config) {
  return std::make_unique<MemifKind>(std::move(name), config);
}

}  // namespace mltcp::dpdk
