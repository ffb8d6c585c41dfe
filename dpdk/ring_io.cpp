// The datapath over a ring port; see ring_io.h.
#include "mltcp/dpdk/ring_io.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <algorithm>
#include <cstring>

#include "mltcp/dpdk/burst.h"
#include "mltcp/dpdk/frame_io.h"

namespace mltcp::dpdk {
namespace {

encap::MacAddress mac_of(const Address& address) {
  return {0x02, 0x00, address.ip[12], address.ip[13], address.ip[14], address.ip[15]};
}

}  // namespace

RingIo::RingIo(const std::string& name, const Address& address, std::uint32_t mtu, const PacketRing& receive_ring,
               const PacketRing& transmit_ring, const PacketPool& pool, const RingIoOptions& options)
    : host_port(name, receive_ring, transmit_ring, pool),
      address_(address),
      receive_ring_(receive_ring),
      transmit_ring_(transmit_ring),
      writer_(std::make_unique<FrameWriter>(
          FrameWriter::Config{.pool = pool.get(),
                              .frame = {.mac = mac_of(address),
                                        .source = address,
                                        .mtu = mtu,
                                        .checksums = options.checksums ? Checksums::software : Checksums::ip_only},
                              .by_reference = options.zero_copy_from > 0})),
      pool_(pool.get()),
      verify_(options.checksums ? encap::VerifyUdp::yes : encap::VerifyUdp::no),
      mtu_(mtu) {
  limits_.max_packet_bytes = writer_->max_packet_bytes();
  limits_.overhead_bytes = writer_->overhead_bytes();
  limits_.burst = kBurst;
  limits_.virtual_payload = false;
  limits_.paths = kMaxPaths;
  limits_.keeps_payload_from = options.zero_copy_from;
}

RingIo::~RingIo() { release(); }

std::size_t RingIo::receive(std::span<RxPacket> out) {
  const auto max = static_cast<std::uint16_t>(std::min<std::size_t>(out.size(), kBurst));
  std::size_t count = 0;
  // Bursts with only invalid frames are skipped, because returning 0 means that nothing more is pending.
  do {
    release();
    held_count_ = receive_burst(host_port.id(), receive_ring_, held_.data(), max);
    for (std::size_t i = 0; i < held_count_; ++i) {
      const encap::Reject reject = check(held_[i], out[count]);
      if (reject != encap::Reject::none) [[unlikely]] {
        ++counters_.rejected[static_cast<std::size_t>(reject)];
        continue;
      }
      ++count;
    }
  } while (count == 0 && held_count_ != 0);
  counters_.received_packets += count;
  return count;
}

std::size_t RingIo::send(std::span<const TxPacket> packets) {
  std::size_t count = std::min<std::size_t>(packets.size(), kBurst);
  // Only this thread adds to this ring, so the free space cannot shrink before send_burst() below.
  const std::size_t free = rte_ring_free_count(transmit_ring_.get());
  if (free < count) [[unlikely]] {
    count = free;
    ++counters_.ring_full;
    blocked_ = true;
  }
  std::array<rte_mbuf*, kBurst> mbufs;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `count`
  const std::size_t allocated = allocate_packets(pool_, mbufs.data(), count);
  if (allocated < count) [[unlikely]] {
    count = allocated;
    ++counters_.no_buffer;
    blocked_ = true;
  }
  std::size_t filled = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!writer_->is_sendable(packets[i])) [[unlikely]] {
      ++counters_.unsendable;
      continue;
    }
    writer_->write(packets[i], mac_of(*packets[i].destination), mbufs[filled++]);
  }
  const std::size_t sent = send_burst(host_port.id(), transmit_ring_, mbufs.data(), static_cast<std::uint16_t>(filled));
  free_packets(mbufs.data() + sent, count - sent);
  counters_.sent_packets += sent;
  put += sent;
  return count;
}

bool RingIo::ready() const {
  if (rte_ring_empty(receive_ring_.get()) == 0) return true;
  return blocked_ && rte_ring_free_count(transmit_ring_.get()) >= kBurst;
}
void RingIo::release() {
  free_packets(held_.data(), held_count_);
  held_count_ = 0;
}

encap::Reject RingIo::check(rte_mbuf* mbuf, RxPacket& packet) const {
  if (is_oversized(mbuf, mtu_) || mbuf->nb_segs > 2) return encap::Reject::oversized;
  ReadFrame frame;
  const std::span<const std::byte> tail =
      mbuf->nb_segs == 2 ? std::span<const std::byte>(frame_of(mbuf->next)) : std::span<const std::byte>();
  const encap::Reject reject =
      read_frame(frame_of(mbuf), tail, verify_, encap::VerifyIp::yes, encap::kClassSelectors, frame);
  if (reject != encap::Reject::none) return reject;
  if (frame.headers.destination != address_ || frame.headers.destination_mac != mac_of(address_))
    return encap::Reject::not_for_us;
  packet = packet_of(frame);
  return encap::Reject::none;
}

}  // namespace mltcp::dpdk
