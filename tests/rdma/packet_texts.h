// Test helpers that send and receive packets with text as content.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "mltcp/base/clock.h"
#include "mltcp/rdma/resolution.h"
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
// Refuses temporary strings, which would be freed before they are sent.
std::span<const std::byte> bytes_of(std::string&& text) = delete;

/// Sends a packet with `text`. Returns the number of packets that send() accepted.
inline std::size_t send_text(PacketIo& io, const Address& to, const std::string& text = "text",
                             Ecn ecn = Ecn::not_ect) {
  const TxPacket packet{.destination = &to, .header = bytes_of(text), .payload = {}, .ecn = ecn};
  return io.send({&packet, 1});
}

/// Returns whether an event of `io` wakes a waiting thread within `milliseconds`.
inline bool wakes(PacketIo& io, int milliseconds = 5000) {
  pollfd file{io.begin_waiting()->file, POLLIN, 0};
  return poll(&file, 1, milliseconds) == 1;
}

/// Page-aligned memory from which a device reads payloads, or to which it writes received packets.
struct Pages {
  explicit Pages(std::size_t bytes) : memory(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))), size(bytes) {
    std::memset(memory.get(), 'm', bytes);
  }
  [[nodiscard]] std::span<std::byte> span() const { return {memory.get(), size}; }
  struct Free {
    void operator()(std::byte* pages) const { std::free(pages); }
  };
  std::unique_ptr<std::byte, Free> memory;
  std::size_t size;
};

/// Posts a datagram with arbitrary bytes to the queue pair `to`, which no datapath does.
inline void post_datagram(ibv_qp* from, std::span<const std::byte> bytes, std::uint32_t memory_key, ibv_ah* handle,
                          const RemoteQueue& to, unsigned flags = 0) {
  ibv_sge piece{reinterpret_cast<std::uintptr_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()), memory_key};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = flags;
  request.wr.ud.ah = handle;
  request.wr.ud.remote_qpn = to.number;
  request.wr.ud.remote_qkey = to.key;
  ibv_send_wr* refused = nullptr;
  ASSERT_EQ(ibv_post_send(from, &request, &refused), 0);
}

/// Drives `io` until `done` returns true. Returns false if that takes longer than `patience`.
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
