// A datapath that loses some of the packets that it sends, for programs that count memory allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "count_allocations.h"
#include "mltcp/base/random.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp {
namespace {

/// Wraps a datapath. Its own memory allocations are not counted.
class LossyIo final : public PacketIo {
 public:
  LossyIo(PacketIo& io, std::uint64_t seed) : io_(io), random_(seed) {}

  [[nodiscard]] const Limits& limits() const override { return io_.limits(); }
  std::size_t receive(std::span<RxPacket> out) override {
    const bool before = counting.exchange(false);
    const std::size_t count = io_.receive(out);
    counting = before;
    return count;
  }
  std::size_t send(std::span<const TxPacket> packets) override {
    const bool before = counting.exchange(false);
    std::size_t count = 0;
    for (; count < packets.size(); ++count)
      if (!random_.chance(loss) && io_.send(packets.subspan(count, 1)) == 0) break;
    counting = before;
    return count;
  }

  double loss = 0;

 private:
  PacketIo& io_;
  Random random_;
};

}  // namespace
}  // namespace mltcp
