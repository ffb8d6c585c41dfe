// Implements ring_loop.h.
#include "ring_loop.h"

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <atomic>
#include <cstring>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/dpdk/ring_port.h"

namespace mltcp::bench {
namespace {

constexpr std::size_t kHeaderBytes = 42;
constexpr std::size_t kMaxBurst = 64;

std::string unique_name() {
  static std::atomic<unsigned> loops{0};
  return fmt::format("loop{}", loops++);
}

}  // namespace

struct RingLoop::Impl {
  Impl(std::size_t frame_bytes_, std::size_t burst_)
      : frame_bytes(static_cast<std::uint16_t>(frame_bytes_)),
        burst(static_cast<std::uint16_t>(burst_)),
        name(unique_name()),
        pool(name, 4095, static_cast<std::uint32_t>(frame_bytes_)),
        there(name + "a", 1024),
        back(name + "b", 1024),
        a(name + "a", back, there, pool),
        b(name + "b", there, back, pool),
        payload(frame_bytes_ - kHeaderBytes, std::byte{0x5A}) {
    header.fill(std::byte{0x5A});
  }

  template <bool copy>
  std::size_t round() {
    std::array<rte_mbuf*, kMaxBurst> packets;
    if (rte_pktmbuf_alloc_bulk(pool.get(), packets.data(), burst) != 0) return 0;
    for (std::uint16_t i = 0; i < burst; ++i) {
      std::byte* const frame = rte_pktmbuf_mtod(packets[i], std::byte*);
      std::memcpy(frame, header.data(), kHeaderBytes);
      if constexpr (copy) std::memcpy(frame + kHeaderBytes, payload.data(), payload.size());
      packets[i]->data_len = frame_bytes;
      packets[i]->pkt_len = frame_bytes;
    }
    const std::uint16_t sent = rte_eth_tx_burst(a.id(), 0, packets.data(), burst);
    for (std::uint16_t i = sent; i < burst; ++i) rte_pktmbuf_free(packets[i]);
    const std::uint16_t received = rte_eth_rx_burst(b.id(), 0, packets.data(), burst);
    for (std::uint16_t i = 0; i < received; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, rte_pktmbuf_mtod_offset(packets[i], const std::byte*, 12), sizeof word);
      seen += word;
    }
    rte_pktmbuf_free_bulk(packets.data(), received);
    return received;
  }

  std::uint16_t frame_bytes;
  std::uint16_t burst;
  std::string name;
  dpdk::PacketPool pool;
  dpdk::PacketRing there;
  dpdk::PacketRing back;
  dpdk::RingPort a;
  dpdk::RingPort b;
  std::array<std::byte, kHeaderBytes> header{};
  std::vector<std::byte> payload;
  std::uint64_t seen = 0;  ///< prevents the compiler from removing the reads
};

RingLoop::RingLoop(std::size_t frame_bytes, std::size_t burst) {
  if (frame_bytes < 64 || frame_bytes > 9000 || burst < 1 || burst > kMaxBurst) {
    throw InputError(fmt::format("a ring loop of {} bytes in bursts of {}: give 64 to 9000 bytes and bursts of 1 to {}",
                                 frame_bytes, burst, kMaxBurst));
  }
  impl_ = std::make_unique<Impl>(frame_bytes, burst);
}

RingLoop::~RingLoop() = default;

std::size_t RingLoop::round() { return impl_->round<false>(); }
std::size_t RingLoop::round_with_copy() { return impl_->round<true>(); }
std::uint32_t RingLoop::buffers_in_use() const { return impl_->pool.in_use(); }

}  // namespace mltcp::bench
