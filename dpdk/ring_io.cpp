// The datapath over a ring port; see ring_io.h.
#include "mltcp/dpdk/ring_io.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include <algorithm>
#include <cstring>

#include "mltcp/base/handoff.h"
#include "mltcp/dpdk/burst.h"

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
      pool_(pool.get()),
      options_(options),
      frame_limit_(mtu + static_cast<std::uint32_t>(encap::kEthernetBytes)) {
  limits_.max_packet_bytes = mtu - static_cast<std::uint32_t>(encap::kIpv4Bytes + encap::kUdpBytes);
  limits_.overhead_bytes = encap::kIpv4OverheadBytes;
  limits_.burst = burst;
  limits_.virtual_payload = false;
  limits_.keeps_payload_from = options.zero_copy_from;
  headers_.source = address;
  headers_.source_mac = mac_of(address);
}

RingIo::~RingIo() { release(); }

std::size_t RingIo::receive(std::span<RxPacket> out) {
  const auto most = static_cast<std::uint16_t>(std::min<std::size_t>(out.size(), burst));
  std::size_t count = 0;
  // Bursts of nothing but bad frames are passed over: 0 tells the caller that there is nothing more.
  do {
    release();
    held_count_ = receive_burst(host_port.id(), receive_ring_, held_.data(), most);
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
  std::size_t count = std::min<std::size_t>(packets.size(), burst);
  // The switch only takes from this ring, so there is at least that much room below.
  const std::size_t room = rte_ring_free_count(transmit_ring_.get());
  if (room < count) [[unlikely]] {
    count = room;
    ++counters_.ring_full;
    blocked_ = true;
  }
  std::array<rte_mbuf*, burst> mbufs;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `count`
  const std::size_t allocated = allocate_packets(pool_, mbufs.data(), count);
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
  rte_mbuf* rest = nullptr;
  if (packet.hold != nullptr && options_.zero_copy_from > 0) rest = referring_to(packet.payload, *packet.hold);
  std::uint16_t partial = 0;
  if (options_.checksums) {
    partial = encap::copy_and_sum(data, packet.header.data(), header);
    if (payload != 0) {
      partial = encap::join(partial,
                            rest != nullptr ? encap::sum(packet.payload.data(), payload)
                                            : encap::copy_and_sum(data + header, packet.payload.data(), payload),
                            header);
    }
  } else {
    std::memcpy(data, packet.header.data(), header);
    if (payload != 0 && rest == nullptr) std::memcpy(data + header, packet.payload.data(), payload);
  }
  headers_.destination = *packet.destination;
  headers_.destination_mac = mac_of(*packet.destination);
  headers_.ecn = packet.ecn;
  headers_.priority = packet.priority;
  encap::write_headers(headers_, bytes, partial, frame);
  if (!options_.checksums) std::memset(data - 2, 0, 2);  // UDP's own way to say that there is none
  mbuf->pkt_len = static_cast<std::uint32_t>(encap::kIpv4OverheadBytes + bytes);
  mbuf->data_len = static_cast<std::uint16_t>(mbuf->pkt_len - (rest != nullptr ? payload : 0));
  if (rest != nullptr) {
    mbuf->next = rest;
    mbuf->nb_segs = 2;
  }
  return true;
}

rte_mbuf* RingIo::referring_to(std::span<const std::byte> payload, PayloadHold& hold) {
  rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool_);
  if (mbuf == nullptr) [[unlikely]]
    return nullptr;  // the payload is copied then
  take_over(pool_);
  // What DPDK keeps for it lies in the buffer's own room, which the payload leaves empty.
  auto* const shared = reinterpret_cast<rte_mbuf_ext_shared_info*>(rte_mbuf_to_baddr(mbuf));
  shared->free_cb = [](void* /*address*/, void* opaque) {
    static_cast<PayloadHold*>(opaque)->packets.fetch_sub(1, std::memory_order_release);
  };
  shared->fcb_opaque = &hold;
  rte_mbuf_ext_refcnt_set(shared, 1);
  hold.packets.fetch_add(1, std::memory_order_relaxed);
  // The other end only reads it.
  rte_pktmbuf_attach_extbuf(mbuf, const_cast<std::byte*>(payload.data()), RTE_BAD_IOVA,
                            static_cast<std::uint16_t>(payload.size()), shared);
  mbuf->data_len = static_cast<std::uint16_t>(payload.size());
  return mbuf;
}

encap::Reject RingIo::check(rte_mbuf* mbuf, RxPacket& packet) const {
  if (mbuf->pkt_len > frame_limit_ || mbuf->nb_segs > 2) return encap::Reject::oversized;
  encap::Layout layout;
  const std::span<std::byte> first = frame_of(mbuf);
  const encap::Reject reject = encap::parse_headers(first, mbuf->pkt_len, layout);
  if (reject != encap::Reject::none) return reject;
  if (layout.headers.destination != address_ || layout.headers.destination_mac != headers_.source_mac)
    return encap::Reject::not_for_us;
  packet.bytes = first.subspan(layout.payload_offset);
  packet.tail = {};
  if (mbuf->nb_segs == 2) {
    packet.tail = frame_of(mbuf->next);
    if (packet.bytes.size() + packet.tail.size() != layout.payload_bytes) return encap::Reject::bad_length;
  } else {
    packet.bytes = packet.bytes.first(layout.payload_bytes);
  }
  if (options_.checksums) {
    std::uint16_t sum = encap::sum(packet.bytes.data(), packet.bytes.size());
    if (!packet.tail.empty())
      sum = encap::join(sum, encap::sum(packet.tail.data(), packet.tail.size()), packet.bytes.size());
    if (!encap::udp_checksum_holds(first, layout, sum)) return encap::Reject::bad_udp_checksum;
  }
  packet.source = layout.headers.source;
  packet.virtual_bytes = 0;
  packet.ecn = layout.headers.ecn;
  packet.priority = layout.headers.priority;
  packet.hops = encap::hops_of(layout.headers);
  return encap::Reject::none;
}

}  // namespace mltcp::dpdk
