// The datapath over a ring port; see ring_io.h.
#include "mltcp/dpdk/ring_io.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <algorithm>

#include "mltcp/base/handoff.h"
#include "mltcp/dpdk/ring_burst.h"

namespace mltcp::dpdk {
namespace {

encap::MacAddress mac_of(const Address& address) {
  return {0x02, 0x00, address.ip[12], address.ip[13], address.ip[14], address.ip[15]};
}

}  // namespace

RingIo::RingIo(const std::string& name, const Address& address, std::uint32_t mtu, const PacketRing& receive_ring,
               const PacketRing& transmit_ring, const PacketPool& pool)
    : host_port(name, receive_ring, transmit_ring, pool),
      address_(address),
      receive_ring_(receive_ring),
      transmit_ring_(transmit_ring),
      pool_(pool.get()),
      frame_limit_(mtu + static_cast<std::uint32_t>(encap::kEthernetBytes)) {
  limits_.max_packet_bytes = mtu - static_cast<std::uint32_t>(encap::kIpv4Bytes + encap::kUdpBytes);
  limits_.overhead_bytes = encap::kIpv4OverheadBytes;
  limits_.burst = burst;
  limits_.virtual_payload = false;
  headers_.source = address;
  headers_.source_mac = mac_of(address);
}

RingIo::~RingIo() { release(); }

std::size_t RingIo::receive(std::span<RxPacket> out) {
  const auto most = static_cast<std::uint16_t>(std::min<std::size_t>(out.size(), burst));
  std::size_t count = 0;
  encap::Frame frame;
  // Bursts of nothing but bad frames are passed over: 0 tells the caller that there is nothing more.
  do {
    release();
    held_count_ = receive_burst(host_port.id(), receive_ring_, held_.data(), most);
    for (std::size_t i = 0; i < held_count_; ++i) {
      const encap::Reject reject = check(held_[i], frame);
      if (reject != encap::Reject::none) [[unlikely]] {
        ++counters_.rejected[static_cast<std::size_t>(reject)];
        continue;
      }
      out[count++] = {frame.headers.source, frame.payload,          0,
                      frame.headers.ecn,    frame.headers.priority, encap::hops_of(frame.headers)};
    }
  } while (count == 0 && held_count_ != 0);
  counters_.received_packets += count;
  return count;
}

std::size_t RingIo::send(std::span<const TxPacket> packets) {
  std::size_t count = std::min<std::size_t>(packets.size(), burst);
  // The switch only takes from this ring, so there is at least that much room below.
  const std::size_t room = rte_ring_free_count(transmit_ring_.get());
  if (room < count) [[unlikely]] {
    count = room;
    ++counters_.ring_full;
    blocked_ = true;
  }
  std::array<rte_mbuf*, burst> mbufs;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `count`
  const std::size_t allocated = allocate(mbufs.data(), count);
  if (allocated < count) [[unlikely]] {
    count = allocated;
    ++counters_.no_buffer;
    blocked_ = true;
  }
  std::size_t filled = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (fill(packets[i], mbufs[filled])) [[likely]] {
      ++filled;
    } else {
      ++counters_.unsendable;
    }
  }
  const std::size_t sent = send_burst(host_port.id(), transmit_ring_, mbufs.data(), static_cast<std::uint16_t>(filled));
  free_packets(mbufs.data() + sent, count - sent);
  counters_.sent_packets += sent;
  put += sent;
  return count;
}

bool RingIo::ready() const {
  if (rte_ring_empty(receive_ring_.get()) == 0) return true;
  return blocked_ && rte_ring_free_count(transmit_ring_.get()) >= burst;
}
void RingIo::release() {
  free_packets(held_.data(), held_count_);
  held_count_ = 0;
}

std::size_t RingIo::allocate(rte_mbuf** mbufs, std::size_t count) {
  if (rte_pktmbuf_alloc_bulk(pool_, mbufs, static_cast<unsigned>(count)) == 0) [[likely]] {
    take_over(pool_);
    return count;
  }
  std::size_t got = 0;
  while (got < count && (mbufs[got] = rte_pktmbuf_alloc(pool_)) != nullptr) ++got;
  take_over(pool_);
  return got;
}

bool RingIo::fill(const TxPacket& packet, rte_mbuf* mbuf) {
  const std::size_t header = packet.header.size();
  const std::size_t payload = packet.payload.size();
  const std::size_t bytes = header + payload;
  if (packet.destination == nullptr || !packet.destination->is_v4() || bytes > limits_.max_packet_bytes ||
      (packet.payload.data() == nullptr && payload != 0)) [[unlikely]] {
    return false;
  }
  std::byte* const frame = rte_pktmbuf_mtod(mbuf, std::byte*);
  std::byte* const data = frame + encap::kIpv4OverheadBytes;
  std::uint16_t partial = encap::copy_and_sum(data, packet.header.data(), header);
  if (payload != 0) {
    partial = encap::join(partial, encap::copy_and_sum(data + header, packet.payload.data(), payload), header);
  }
  headers_.destination = *packet.destination;
  headers_.destination_mac = mac_of(*packet.destination);
  headers_.ecn = packet.ecn;
  headers_.priority = packet.priority;
  encap::write_headers(headers_, bytes, partial, frame);
  mbuf->data_len = static_cast<std::uint16_t>(encap::kIpv4OverheadBytes + bytes);
  mbuf->pkt_len = mbuf->data_len;
  return true;
}

encap::Reject RingIo::check(rte_mbuf* mbuf, encap::Frame& frame) const {
  if (mbuf->pkt_len > frame_limit_ || mbuf->nb_segs != 1) return encap::Reject::oversized;
  const encap::Reject reject = encap::parse(frame_of(mbuf), encap::VerifyUdp::yes, frame);
  if (reject != encap::Reject::none) return reject;
  if (frame.headers.destination != address_ || frame.headers.destination_mac != headers_.source_mac) {
    return encap::Reject::not_for_us;
  }
  return encap::Reject::none;
}

}  // namespace mltcp::dpdk
