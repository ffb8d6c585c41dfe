// A datapath of the transport over a DPDK ring port. It adds Ethernet, IPv4 and UDP headers with checksums when
// sending, and verifies them when receiving. A payload is copied once when it is sent, into a packet buffer, and once
// when it is received, by the transport.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "mltcp/dpdk/ring_port.h"
#include "mltcp/transport/ethernet/encapsulation.h"
#include "mltcp/transport/packet_io.h"

struct rte_mbuf;

namespace mltcp::dpdk {

class FrameWriter;

using RejectCounters = std::array<std::uint64_t, encap::kRejects>;  ///< indexed by encap::Reject

struct HostCounters {
  std::uint64_t sent_packets = 0;
  std::uint64_t received_packets = 0;  ///< packets passed to the transport
  std::uint64_t ring_full = 0;         ///< send() calls cut short because the ring was full
  std::uint64_t no_buffer = 0;         ///< send() calls cut short because the pool was empty
  std::uint64_t unsendable = 0;  ///< packets discarded because they were too long, virtual, or not to an IPv4 address
  RejectCounters rejected{};     ///< received frames that were discarded
};

struct RingIoOptions {
  /// Payloads of at least this many bytes are sent by reference: the receiver, in the same process, reads the sender's
  /// memory. 0 if all payloads are to be copied.
  std::uint32_t zero_copy_from = 0;
  /// Compute and verify UDP checksums. If false, packets carry no UDP checksums. This is safe, because packets in
  /// memory are not corrupted.
  bool checksums = true;
};

/// The host at one end of a pair of rings.
class RingHost : public PacketIo {
 public:
  [[nodiscard]] virtual const Address& address() const = 0;
  [[nodiscard]] virtual const HostCounters& counters() const = 0;
};

class RingIo : public RingHost {
 public:
  static constexpr std::uint32_t kBurst = 32;

  /// Creates a host with IPv4 `address` on its own port `name`. The port receives from `receive_ring` and sends into
  /// `transmit_ring`. The rings and `pool` must outlive the host. Received packets that are not for `address` are
  /// discarded. Throws RunError if the port cannot be made.
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

  /// Returns whether a poll would make progress: a packet has arrived, or there is space again after send() was
  /// refused.
  [[nodiscard]] bool ready() const;
  void unblock() { blocked_ = false; }
  /// Frees the packets received last.
  void release();

  RingPort host_port;
  std::uint64_t put = 0;  ///< total packets put into the transmit ring

 private:
  encap::Reject check(rte_mbuf* mbuf, RxPacket& packet) const;

  Address address_;
  const PacketRing& receive_ring_;
  const PacketRing& transmit_ring_;
  Limits limits_;
  std::unique_ptr<FrameWriter> writer_;
  HostCounters counters_;
  std::array<rte_mbuf*, kBurst> held_{};
  std::size_t held_count_ = 0;
  rte_mempool* pool_;
  encap::VerifyUdp verify_;
  std::uint32_t mtu_;
  bool blocked_ = false;
};

}  // namespace mltcp::dpdk
