// Records the packets of a PacketIo (see captured_io.h).
#include "mltcp/transport/capture/captured_io.h"

namespace mltcp::capture {

std::size_t CapturedIo::receive(std::span<RxPacket> out) {
  const std::size_t count = io_.receive(out);
  if (count == 0) return 0;
  const Nanos now = tap_.now();
  for (const RxPacket& packet : out.first(count)) tap_.received(packet, now);
  return count;
}

std::size_t CapturedIo::send(std::span<const TxPacket> packets) {
  // Reads the time before sending, because the peer may receive a packet before send() returns.
  const Nanos now = tap_.now();
  const std::size_t count = io_.send(packets);
  for (const TxPacket& packet : packets.first(count)) tap_.sent(packet, now);
  return count;
}

}  // namespace mltcp::capture
