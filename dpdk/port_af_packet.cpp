// Ports that use a packet socket (packet(7)), on any interface and any kernel.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "mltcp/dpdk/port_kernel.h"

namespace mltcp::dpdk {
namespace {

/// Bytes of the header in a slot of the socket's ring, before a received frame and before a sent frame.
constexpr std::uint32_t kSlotReceive = 96;
constexpr std::uint32_t kSlotSend = 32;
constexpr std::uint32_t kShortestSlot = 2048;
/// Extra bytes, so that frames longer than allowed can be detected and rejected.
constexpr std::uint32_t kLengthSlack = 64;

class AfPacketKind final : public KernelPortKind {
 public:
  AfPacketKind(PortName name, const PortConfig& config)
      : KernelPortKind(std::move(name), config, {AF_PACKET, "packet", "CAP_NET_RAW", "build it with CONFIG_PACKET"}) {}

  void adapt(PortPlan& plan) override {
    KernelPortKind::adapt(plan);
    slot_bytes_ = std::bit_ceil(std::max(plan.frame() + kLengthSlack + kSlotReceive, kShortestSlot));
    plan.data_bytes = slot_bytes_ - kSlotSend;
    plan.buffers = config().spare_buffers + 512;  // frames are copied from and to slots, so slots hold no buffers
  }

 protected:
  std::string arguments(const PortPlan& plan) override {
    // A block contains whole slots, and must consist of whole pages.
    return fmt::format("iface={},qpairs={},blocksz={},framesz={},framecnt={}", name().target, config().queues,
                       std::max(slot_bytes_, static_cast<std::uint32_t>(getpagesize())), slot_bytes_, plan.descriptors);
  }

 private:
  std::uint32_t slot_bytes_ = 0;
};

}  // namespace

std::unique_ptr<PortKind> make_af_packet_kind(PortName name, const PortConfig& config) {
  return std::make_unique<AfPacketKind>(std::move(name), config);
}

}  // namespace mltcp::dpdk
