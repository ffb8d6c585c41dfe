// Packets as texts, for tests of datapaths.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::rdma {

struct Text {
  std::string bytes;
  Ecn ecn;
  std::uint8_t priority;
  std::uint8_t hops;
  Address source;
};

inline std::vector<Text> received(PacketIo& io, std::size_t wanted, Nanos patience = Nanos(20'000'000'000)) {
  std::vector<Text> got;
  std::array<RxPacket, 64> packets;
  const Nanos end = monotonic_now() + patience;
  while (got.size() < wanted && monotonic_now() < end) {
    const std::size_t count = io.receive(packets);
    for (std::size_t i = 0; i < count; ++i)
      got.push_back({std::string(reinterpret_cast<const char*>(packets[i].bytes.data()), packets[i].bytes.size()),
                     packets[i].ecn, packets[i].priority, packets[i].hops, packets[i].source});
    if (count == 0) std::this_thread::yield();
  }
  return got;
}

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::span<const std::byte> bytes_of(std::string&& text) = delete;  // it would be gone

/// Runs `io` until `done`, which is soon; false if it isn't.
inline bool runs_until(PacketIo& io, const std::function<bool()>& done, Nanos patience = Nanos(20'000'000'000)) {
  std::array<RxPacket, 64> packets;
  for (const Nanos end = monotonic_now() + patience; monotonic_now() < end;) {
    io.receive(packets);
    if (done()) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace mltcp::rdma
