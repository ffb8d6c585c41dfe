// A PacketIo that records the packets of another PacketIo. Only captures create CapturedIos, so programs without
// captures have no overhead.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "mltcp/transport/capture/capture.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::capture {

class CapturedIo final : public PacketIo {
 public:
  /// `io` and `tap` must outlive the CapturedIo.
  CapturedIo(PacketIo& io, Tap& tap) : io_(io), tap_(tap) {}

  /// Sets the result of feeders(): one CapturedIo for each feeder of `io`. The feeders must outlive this object.
  void set_feeders(std::vector<PacketIo*> feeders) { feeders_ = std::move(feeders); }

  [[nodiscard]] const Limits& limits() const override { return io_.limits(); }
  std::size_t receive(std::span<RxPacket> out) override;
  std::size_t send(std::span<const TxPacket> packets) override;
  [[nodiscard]] Nanos deadline() const override { return io_.deadline(); }
  [[nodiscard]] bool is_blocked() const override { return io_.is_blocked(); }
  [[nodiscard]] std::uint64_t activity() const override { return io_.activity(); }
  std::optional<Wakeup> begin_waiting() override { return io_.begin_waiting(); }
  void end_waiting() override { io_.end_waiting(); }
  void arm() override { io_.arm(); }
  void disarm() override { io_.disarm(); }
  [[nodiscard]] std::span<PacketIo* const> feeders() const override { return feeders_; }

 private:
  PacketIo& io_;
  Tap& tap_;
  std::vector<PacketIo*> feeders_;
};

}  // namespace mltcp::capture
