// The datapath interface: how the transport receives and sends packets in bursts, whether a simulator, DPDK rings or a
// NIC is below.
//
// A "packet" here is a UDP payload. The datapath adds and removes the lower layers (Ethernet, IP and UDP headers and
// checksums), or models them. One virtual call per burst, never one per packet or byte.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"

namespace mltcp {

/// The ECN codepoint of the IP header (RFC 3168 section 5); the values are those of the header field.
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

/// Reference count of one message's payload: the number of packets inside a datapath that still point to it. The
/// datapath increments and decrements it, on any thread.
struct PayloadHold {
  std::atomic<std::uint32_t> packets{0};
};

/// A packet to send: `header`, then `payload`, as one UDP payload. The split lets a datapath take the user's
/// bytes by reference instead of copying them.
struct TxPacket {
  const Address* destination = nullptr;
  std::span<const std::byte> header;
  /// The user's bytes. `payload.data() == nullptr` with a size above 0 is a *virtual* payload: its length counts on the
  /// wire, but it has no bytes. Used only if Limits::virtual_payload is set.
  std::span<const std::byte> payload;
  Ecn ecn = Ecn::not_ect;
  /// Traffic class, 0 to 7, higher first: the IEEE 802.1Q priority of the packet in queues, and DSCP class selector CSn
  /// (RFC 2474 section 4.2.2) unless the datapath is configured with another mapping. Queues without classes ignore it.
  std::uint8_t priority = 0;
  /// If not null, the datapath may read `payload` after send() has returned, as long as it counts the packet in `hold`;
  /// or it may copy the payload.
  PayloadHold* hold = nullptr;

  [[nodiscard]] std::size_t bytes() const noexcept { return header.size() + payload.size(); }
  /// Whether the packet has at most `most` bytes and no virtual payload.
  [[nodiscard]] bool fits(std::size_t most) const noexcept {
    return bytes() <= most && (payload.data() != nullptr || payload.empty());
  }
};
inline constexpr std::uint32_t kPriorities = 8;

/// A received packet.
struct RxPacket {
  Address source;
  /// The UDP payload, without `tail`.
  std::span<const std::byte> bytes;
  /// Length of a virtual payload that follows `bytes`; 0 on every real datapath.
  std::uint32_t virtual_bytes = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;  ///< as in TxPacket
  /// Switches that have forwarded the packet, derived from its TTL on a real network; 0 = not known.
  std::uint8_t hops = 0;
  /// The rest of the payload after `bytes`, if the packet is stored in two pieces. The only split allowed is that
  /// between a header and payload given to send(); a datapath joins any others.
  std::span<const std::byte> tail{};
};

class PacketIo {
 public:
  struct Limits {
    /// Maximum UDP payload in bytes that can be sent (header and payload together).
    std::uint32_t max_packet_bytes = 1472;
    /// Bytes that lower layers add to each packet on the wire (Ethernet 14, IPv4 20, UDP 8). Pacing counts them, so
    /// that rates are wire rates.
    std::uint32_t overhead_bytes = 42;
    /// Maximum number of packets per call of receive() or send(); 1 or more.
    std::uint32_t burst = 32;
    /// Virtual payloads (without bytes) can be sent (simulator only).
    bool virtual_payload = false;
    /// ECN codepoints are written to sent packets and read from received ones. If false, all are Ecn::not_ect, and
    /// algorithms that need ECN are refused.
    bool ecn = true;
    /// RxPacket::hops is set.
    bool hops = true;
    /// Number of distinct classes of TxPacket::priority, 1 to kPriorities; 1: priorities are ignored.
    std::uint32_t priorities = kPriorities;
    /// Minimum size in bytes of payloads that should be sent by reference, with a TxPacket::hold; 0: the datapath
    /// always copies.
    std::uint32_t keeps_payload_from = 0;
    /// Number of packets to one destination that together cost little more than one alone, as with segmentation
    /// offload. If congestion control allows it, a connection gathers this many before it sends. With a value above 1,
    /// each call, also of receive(), costs as much as several packets. 1: sending packets together saves nothing. At
    /// most `burst`, which is best a multiple of it.
    std::uint32_t batch = 1;
  };

  virtual ~PacketIo() = default;

  /// Constant for the datapath's lifetime.
  [[nodiscard]] virtual const Limits& limits() const = 0;

  /// Fills `out` from the front with received packets and returns their number, 0 if there are none. Their bytes belong
  /// to the datapath and stay valid until the next call of receive().
  virtual std::size_t receive(std::span<RxPacket> out) = 0;

  /// Sends `packets` in order and returns how many were accepted, always the first ones. If not all were, the datapath
  /// is full and the caller must offer the rest again. Headers and payloads may be changed or freed after the call,
  /// except payloads with a hold. An accepted packet may still be lost.
  virtual std::size_t send(std::span<const TxPacket> packets) = 0;

  // For a loop that drives the datapath in real time: when to call, and how to sleep. PollLoop does all of this.

  /// The time at which receive() must be called even if no packet arrives, for example to retransmit an ARP request;
  /// never() if there is none.
  /// Shard::poll() takes it into account.
  [[nodiscard]] virtual Nanos deadline() const { return Nanos::never(); }
  /// Whether send() accepted fewer packets than offered, or has queued some: poll again soon, because free space is not
  /// signalled.
  [[nodiscard]] virtual bool is_blocked() const { return false; }
  /// A counter that changes with every packet received or sent, including those that never reach the transport: a loop
  /// that sees no change has been idle.
  [[nodiscard]] virtual std::uint64_t activity() const { return 0; }

  /// How a sleeping thread is notified of packets.
  struct Wakeup {
    /// File descriptor that becomes readable (POLLIN) when packets arrive. It belongs to the datapath: wait on it, but
    /// do not read it. -1: wait on the descriptors of feeders() instead.
    int file = -1;
    /// The descriptor signals only packets that arrive after arm(); otherwise it signals all that are pending.
    bool needs_arming = false;
  };
  /// Enables notification of the calling thread until end_waiting(), which the same thread must call. Empty if the
  /// datapath has no notification: it can only be polled, and end_waiting() must not be called.
  virtual std::optional<Wakeup> begin_waiting() { return std::nullopt; }
  virtual void end_waiting() {}
  /// Call arm() before sleeping, then poll once more, because packets that arrived earlier may not be signalled; call
  /// disarm() after waking up.
  virtual void arm() {}
  virtual void disarm() {}
  /// Other datapaths that may receive packets for this one and hand them over. A handover does not wake the sleeping
  /// thread, which therefore must poll these as well.
  [[nodiscard]] virtual std::span<PacketIo* const> feeders() const { return {}; }
};

}  // namespace mltcp
