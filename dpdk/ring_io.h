// A datapath of the transport over one DPDK ring port: Ethernet, IPv4 and UDP headers with checksums around what is
// sent, and checked on what is received. One copy each way: into a packet buffer, summed on the way, and out of it by
// the transport.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "mltcp/dpdk/ring_port.h"
#include "mltcp/ethernet/encapsulation.h"
#include "mltcp/transport/packet_io.h"

struct rte_mbuf;

namespace mltcp::dpdk {

class FrameWriter;

using RejectCounters = std::array<std::uint64_t, encap::kRejects>;  ///< indexed by encap::Reject

struct HostCounters {
  std::uint64_t sent_packets = 0;
  std::uint64_t received_packets = 0;  ///< given to the transport
  std::uint64_t ring_full = 0;         ///< calls of send() that the full ring cut short
  std::uint64_t no_buffer = 0;         ///< calls of send() that the empty pool cut short
  std::uint64_t unsendable = 0;        ///< too long, not to an IPv4 address, or without bytes; discarded
  RejectCounters rejected{};           ///< received frames that were discarded
};

struct RingIoOptions {
  /// Payloads of so many bytes and more are sent by reference, to be read from the sender's memory by the other end of
  /// the wire, which is in this process; 0: all are copied.
  std::uint32_t zero_copy_from = 0;
  /// UDP checksums are computed and verified. A wire that is memory damages nothing; without them packets carry none.
  bool checksums = true;
};

/// One host's end of its wire.
class RingHost : public PacketIo {
 public:
  [[nodiscard]] virtual const Address& address() const = 0;
  [[nodiscard]] virtual const HostCounters& counters() const = 0;
};

class RingIo : public RingHost {
 public:
  static constexpr std::uint32_t burst = 32;

  /// A host with `address` (IPv4) on a port of its own, called `name`, that transmits into `transmit` and receives from
  /// `receive`; all of them and `pool` outlive it. Packets to another address are discarded. Throws RunError.
  RingIo(const std::string& name, const Address& address, std::uint32_t mtu, const PacketRing& receive_ring,
         const PacketRing& transmit_ring, const PacketPool& pool, const RingIoOptions& options = {});
  ~RingIo() override;
  RingIo(const RingIo&) = delete;
  RingIo& operator=(const RingIo&) = delete;

  [[nodiscard]] const Address& address() const override { return address_; }
  [[nodiscard]] const HostCounters& counters() const override { return counters_; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override;
  std::size_t send(std::span<const TxPacket> packets) override;

  /// Whether there is what a poll could wait for: a packet, or room to send after there was none.
  [[nodiscard]] bool ready() const;
  void unblock() { blocked_ = false; }
  /// Gives the packets that were received last back.
  void release();

  RingPort host_port;
  std::uint64_t put = 0;  ///< packets put into the transmit ring

 private:
  encap::Reject check(rte_mbuf* mbuf, RxPacket& packet) const;

  Address address_;
  const PacketRing& receive_ring_;
  const PacketRing& transmit_ring_;
  Limits limits_;
  std::unique_ptr<FrameWriter> writer_;
  HostCounters counters_;
  std::array<rte_mbuf*, burst> held_{};
  std::size_t held_count_ = 0;
  rte_mempool* pool_;
  encap::VerifyUdp verify_;
  std::uint32_t mtu_;
  bool blocked_ = false;
};

}  // namespace mltcp::dpdk
