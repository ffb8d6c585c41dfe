// Writes and reads frames in packet buffers, for RingIo and PortIo. Internal to this folder; needs DPDK's headers.
//
// A frame is written into one buffer (transport/ethernet/frame_writer.h). A payload with a hold (TxPacket::hold) is not
// copied if the port can send several segments. A second buffer then refers to the user's bytes as external memory
// (rte_pktmbuf_attach_extbuf), and freeing that buffer (by driver, receiver or sender) releases the hold.
#pragma once

#include <rte_mbuf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "mltcp/base/handoff.h"
#include "mltcp/dpdk/burst.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/ethernet/frame_writer.h"
#include "mltcp/transport/packet_io.h"
#include "mltcp/transport/registered_memory.h"

namespace mltcp::dpdk {

using encap::Checksums;

class FrameWriter {
 public:
  struct Config {
    rte_mempool* pool = nullptr;  ///< pool of buffers that refer to external payloads
    encap::FrameWriter::Config frame{};
    bool by_reference = false;  ///< do not copy payloads with a hold, but refer to them
    /// If not null, payloads are sent by reference only if their memory is registered for the port's DMA. Null if the
    /// CPU reads payloads.
    RegisteredRanges* registered = nullptr;
  };

  explicit FrameWriter(const Config& config)
      : pool_(config.pool), frames_(config.frame), by_reference_(config.by_reference), registered_(config.registered) {
    if (config.frame.checksums != Checksums::port) return;
    const std::size_t network = frames_.network_bytes();
    lengths_ = rte_mbuf_tx_offload(frames_.overhead_bytes() - network, network - encap::kUdpBytes, 0, 0, 0, 0, 0);
    flags_ = config.frame.source.is_v4() ? RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM
                                         : RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM;
  }

  [[nodiscard]] std::uint32_t overhead_bytes() const { return static_cast<std::uint32_t>(frames_.overhead_bytes()); }
  /// Maximum UDP payload in bytes.
  [[nodiscard]] std::uint32_t max_packet_bytes() const { return frames_.max_packet_bytes(); }
  /// Returns whether the packet is short enough, has a destination of the source's IP version, and is not virtual.
  [[nodiscard]] bool is_sendable(const TxPacket& packet) const { return frames_.is_sendable(packet); }

  /// Writes `packet`, which must be sendable, as a frame to `destination` into the new buffer `mbuf`. Returns whether
  /// the frame refers to the payload instead of containing a copy.
  bool write(const TxPacket& packet, const encap::MacAddress& destination, rte_mbuf* mbuf) {
    const std::size_t payload = packet.payload.size();
    rte_mbuf* rest = nullptr;
    if (by_reference_ && packet.hold != nullptr && payload != 0) rest = referring_to(packet);
    const std::size_t written = frames_.write(packet, destination, rte_pktmbuf_mtod(mbuf, std::byte*), rest == nullptr);
    mbuf->ol_flags |= flags_;
    mbuf->tx_offload = lengths_;
    mbuf->data_len = static_cast<std::uint16_t>(written);
    mbuf->pkt_len = static_cast<std::uint32_t>(written + (rest != nullptr ? payload : 0));
    if (rest == nullptr) return false;
    mbuf->next = rest;
    mbuf->nb_segs = 2;
    return true;
  }

 private:
  /// Returns a buffer that refers to the payload. Returns null if no buffer is free, or if the port cannot read the
  /// payload; the payload is then copied.
  rte_mbuf* referring_to(const TxPacket& packet) {
    rte_iova_t iova = RTE_BAD_IOVA;
    if (registered_ != nullptr) {
      if (!registered_->find(packet.payload)) return nullptr;
      // Ports that read by DMA use the process's virtual addresses.
      iova = reinterpret_cast<rte_iova_t>(packet.payload.data());
    }
    rte_mbuf* mbuf = nullptr;
    if (allocate_packets(pool_, &mbuf, 1) != 1) [[unlikely]]
      return nullptr;
    // DPDK's shared info is stored in the buffer's own data room, which is unused.
    auto* const shared = reinterpret_cast<rte_mbuf_ext_shared_info*>(rte_mbuf_to_baddr(mbuf));
    shared->free_cb = [](void* /*address*/, void* opaque) {
      static_cast<PayloadHold*>(opaque)->packets.fetch_sub(1, std::memory_order_release);
    };
    shared->fcb_opaque = packet.hold;
    rte_mbuf_ext_refcnt_set(shared, 1);
    packet.hold->packets.fetch_add(1, std::memory_order_relaxed);
    // The const_cast is safe, because the payload is only read.
    rte_pktmbuf_attach_extbuf(mbuf, const_cast<std::byte*>(packet.payload.data()), iova,
                              static_cast<std::uint16_t>(packet.payload.size()), shared);
    mbuf->data_len = static_cast<std::uint16_t>(packet.payload.size());
    return mbuf;
  }

  rte_mempool* pool_;
  encap::FrameWriter frames_;
  bool by_reference_;
  RegisteredRanges* registered_;
  std::uint64_t flags_ = 0;    ///< mbuf offload flags; 0 if the port computes no checksums
  std::uint64_t lengths_ = 0;  ///< mbuf header lengths; 0 if the port computes no checksums
};

/// A parsed frame.
struct ReadFrame {
  encap::Headers headers;
  std::span<const std::byte> bytes;  ///< the UDP payload, without `tail`
  std::span<const std::byte> tail;   ///< end of the UDP payload, if it is in a second segment
};

inline RxPacket packet_of(const ReadFrame& frame) { return encap::packet_of(frame.headers, frame.bytes, frame.tail); }

/// Returns whether the frame is longer than `mtu` plus its Ethernet header and its VLAN tag, if any.
inline bool is_oversized(const rte_mbuf* mbuf, std::uint32_t mtu) {
  const std::uint32_t beyond =
      mbuf->pkt_len - std::min(mbuf->pkt_len, mtu + static_cast<std::uint32_t>(encap::kEthernetBytes));
  if (beyond == 0) [[likely]]
    return false;
  const auto* const first = rte_pktmbuf_mtod(mbuf, const std::byte*);
  return beyond > encap::kVlanBytes || mbuf->data_len < encap::kEthernetBytes || first[12] != std::byte{0x81} ||
         first[13] != std::byte{0};
}

/// Returns whether FrameWriter may have written the frame with a payload by reference.
inline bool has_tail(const rte_mbuf* mbuf) { return mbuf->nb_segs == 2 && RTE_MBUF_HAS_EXTBUF(mbuf->next); }

/// Parses a frame whose first segment is `first` and contains all headers. `tail` is the second segment; empty if there
/// is none. `out` is valid only if the result is Reject::none.
inline encap::Reject read_frame(std::span<const std::byte> first, std::span<const std::byte> tail,
                                encap::VerifyUdp verify_udp, encap::VerifyIp verify_ip, const encap::DscpMap& dscp,
                                ReadFrame& out) {
  encap::Layout layout;
  const encap::Reject reject = encap::parse_headers(first, first.size() + tail.size(), layout, verify_ip, dscp);
  if (reject != encap::Reject::none) return reject;
  out.headers = layout.headers;
  out.bytes = first.subspan(layout.payload_offset);
  out.tail = tail;
  if (tail.empty()) {
    out.bytes = out.bytes.first(layout.payload_bytes);
  } else if (out.bytes.size() + tail.size() != layout.payload_bytes) {
    return encap::Reject::bad_length;
  }
  if (verify_udp == encap::VerifyUdp::no) return encap::Reject::none;
  std::uint16_t sum = encap::sum(out.bytes.data(), out.bytes.size());
  if (!tail.empty()) sum = encap::join(sum, encap::sum(tail.data(), tail.size()), out.bytes.size());
  return encap::udp_checksum_holds(first, layout, sum) ? encap::Reject::none : encap::Reject::bad_udp_checksum;
}

}  // namespace mltcp::dpdk
