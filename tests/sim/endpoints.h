// Simple endpoints that send and record packets, for tests of the simulator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "mltcp/lab/sim/network.h"

namespace mltcp::sim {

/// A copy of a received packet, with the time of its arrival.
struct Seen {
  Nanos at;
  Address source;
  std::vector<std::byte> bytes;
  std::uint32_t virtual_bytes = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t hops = 0;

  bool operator==(const Seen&) const = default;
};

/// Stores all packets that have arrived, then calls `on_poll` and returns its result.
class Recorder : public Pollable {
 public:
  using OnPoll = std::function<Nanos(Nanos)>;
  explicit Recorder(Host& host, OnPoll on_poll = {}) : host_(host), on_poll_(std::move(on_poll)) {}

  Nanos poll(Nanos now) override {
    polls.push_back(now);
    std::array<RxPacket, 32> in;
    for (;;) {
      const std::size_t count = host_.receive(in);
      for (const RxPacket& packet : std::span(in).first(count))
        seen.push_back({now,
                        packet.source,
                        {packet.bytes.begin(), packet.bytes.end()},
                        packet.virtual_bytes,
                        packet.ecn,
                        packet.hops});
      if (count < in.size()) break;
    }
    return on_poll_ ? on_poll_(now) : Nanos::never();
  }

  std::vector<Nanos> polls;
  std::vector<Seen> seen;

 private:
  Host& host_;
  OnPoll on_poll_;
};

/// Returns a header of `size` bytes, all equal to `fill`.
inline std::vector<std::byte> bytes_of(std::size_t size, unsigned fill = 0x5A) {
  std::vector<std::byte> bytes(size, static_cast<std::byte>(fill));
  return bytes;
}

/// Returns a header with the tag of job `job`, in the format of transport/wire.h.
inline std::vector<std::byte> tagged(std::uint32_t job) {
  auto header = bytes_of(36, 0);
  header[0] = std::byte{0xA3};
  header[1] = std::byte{8};
  for (unsigned i = 0; i < 4; ++i) header[28 + i] = static_cast<std::byte>(job >> (8 * i));
  return header;
}

/// Sends one packet. Returns whether the host accepted it.
inline bool send_one(Host& from, const Address& to, std::span<const std::byte> header,
                     std::span<const std::byte> payload = {}, Ecn ecn = Ecn::not_ect) {
  const TxPacket packet{&to, header, payload, ecn};
  return from.send({&packet, 1}) == 1;
}

/// Returns a virtual payload, which has a length but no bytes.
inline std::span<const std::byte> virtual_payload(std::size_t size) {
  return {static_cast<const std::byte*>(nullptr), size};
}

}  // namespace mltcp::sim
