// The datapath interface, through which the transport receives and sends packets in bursts. Simulators, DPDK rings and
// NICs implement it.
//
// A "packet" here is a UDP payload. The datapath adds and removes the lower layers (Ethernet, IP and UDP headers and
// checksums), or models them. There is one virtual call per burst, never one per packet or byte.
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

/// Reference count of a message's payload: the number of packets inside a datapath that still point to the payload. The
/// datapath increments and decrements the count on any thread.
struct PayloadHold {
  std::atomic<std::uint32_t> packets{0};
};

/// A packet to send. `header` followed by `payload` is one UDP payload. The split lets a datapath use the user's bytes
/// by reference instead of copying them.
struct TxPacket {
  const Address* destination = nullptr;
  std::span<const std::byte> header;
  /// The user's bytes. If `payload.data()` is null and the size is above 0, the payload is *virtual*: its length counts
  /// on the wire, but it has no bytes. Virtual payloads are used only if Limits::virtual_payload is set.
  std::span<const std::byte> payload;
  Ecn ecn = Ecn::not_ect;
  /// Traffic class from 0 to 7; packets of a higher class are sent first. It is the IEEE 802.1Q priority of the packet
  /// in queues. It is also the DSCP class selector CSn (RFC 2474 section 4.2.2), unless the datapath is configured with
  /// another mapping. Queues without classes ignore this value.
  std::uint8_t priority = 0;
  /// If not null, the datapath may read `payload` after send() has returned, as long as it counts the packet in `hold`.
  /// The datapath may also copy the payload instead.
  PayloadHold* hold = nullptr;
  /// Path value, below Limits::paths. A network with several paths chooses one of them by this value, usually by the
  /// UDP source port that the datapath derives from it. Packets with value 0 come from the datapath's own port.
  std::uint8_t path = 0;

  [[nodiscard]] std::size_t bytes() const noexcept { return header.size() + payload.size(); }
  /// Returns whether the packet has at most `max` bytes and no virtual payload.
  [[nodiscard]] bool fits(std::size_t max) const noexcept {
    return bytes() <= max && (payload.data() != nullptr || payload.empty());
  }
};
inline constexpr std::uint32_t kPriorities = 8;
inline constexpr std::uint32_t kMaxPaths = 256;

/// A received packet.
struct RxPacket {
  Address source;
  /// The UDP payload, without `tail`.
  std::span<const std::byte> bytes;
  /// Length of a virtual payload that follows `bytes`; 0 on every real datapath.
  std::uint32_t virtual_bytes = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;  ///< see TxPacket::priority
  /// Number of switches that have forwarded the packet; 0 if not known. On a real network it is derived from the TTL.
  std::uint8_t hops = 0;
  /// The rest of the payload after `bytes`, if the packet is stored in two pieces. The split may only be between the
  /// header and the payload that the sender gave to send(). A datapath joins pieces that are split elsewhere.
  std::span<const std::byte> tail{};
  /// A switch without room for the packet has removed its end, so that only its first bytes arrived.
  bool is_trimmed = false;
};

class PacketIo {
 public:
  struct Limits {
    /// Maximum size in bytes of a UDP payload that can be sent (header and payload together).
    std::uint32_t max_packet_bytes = 1472;
    /// Bytes that lower layers add to each packet on the wire (Ethernet 14, IPv4 20, UDP 8). Pacing counts them, so
    /// that rates are wire rates.
    std::uint32_t overhead_bytes = 42;
    /// Maximum number of packets per call of receive() or send(); 1 or more.
    std::uint32_t burst = 32;
    /// Whether virtual payloads (without bytes) can be sent. Only simulators support them.
    bool virtual_payload = false;
    /// Whether ECN codepoints are written to sent packets and read from received packets. If false, all packets are
    /// Ecn::not_ect, and algorithms that need ECN are refused.
    bool ecn = true;
    /// Whether the datapath sets RxPacket::hops.
    bool hops = true;
    /// Number of distinct classes of TxPacket::priority, 1 to kPriorities. If 1, priorities are ignored.
    std::uint32_t priorities = kPriorities;
    /// Number of distinct path values of TxPacket::path, 1 to kMaxPaths. If 1, path values are ignored.
    std::uint32_t paths = 1;
    /// Minimum size in bytes of payloads that should be sent by reference, with a TxPacket::hold. If 0, the datapath
    /// always copies payloads.
    std::uint32_t keeps_payload_from = 0;
    /// Number of packets to one destination that together cost little more than one packet, as with segmentation
    /// offload. If congestion control allows it, a connection gathers this many packets before it sends. If the value
    /// is above 1, each call, including receive(), costs as much as several packets. If it is 1, sending packets
    /// together saves nothing. The value is at most `burst`, which should be a multiple of this value.
    std::uint32_t batch = 1;
  };

  virtual ~PacketIo() = default;

  /// Returns the limits, which are constant for the datapath's lifetime.
  [[nodiscard]] virtual const Limits& limits() const = 0;

  /// Fills `out` from the front with received packets and returns their number, 0 if there are none. The packets' bytes
  /// are owned by the datapath and stay valid until the next call of receive().
  virtual std::size_t receive(std::span<RxPacket> out) = 0;

  /// Sends `packets` in order and returns the number of accepted packets, which are always the first ones. If this
  /// number is less than the size of `packets`, the datapath is full, and the caller must offer the rest again. Headers
  /// and payloads may be changed or freed after the call, except payloads with a hold. An accepted packet may still be
  /// lost.
  virtual std::size_t send(std::span<const TxPacket> packets) = 0;

  // Functions for a loop that drives the datapath in real time. PollLoop uses all of them.

  /// Returns the time at which receive() must be called even if no packet arrives, for example to retransmit an ARP
  /// request; never() if there is no such time. The result of Shard::poll() includes this time.
  [[nodiscard]] virtual Nanos deadline() const { return Nanos::never(); }
  /// Returns whether send() accepted fewer packets than offered, or has queued some. If so, poll again soon, because
  /// free space is not signalled.
  [[nodiscard]] virtual bool is_blocked() const { return false; }
  /// Returns a counter that changes with every packet received or sent, including packets that never reach the
  /// transport. A loop that sees no change has been idle.
  [[nodiscard]] virtual std::uint64_t activity() const { return 0; }

  /// Describes how a sleeping thread is notified of packets.
  struct Wakeup {
    /// File descriptor that becomes readable (POLLIN) when packets arrive. It is owned by the datapath. Wait on it, but
    /// do not read it. If -1, wait on the descriptors of feeders() instead.
    int file = -1;
    /// If true, the descriptor signals only packets that arrive after arm(). If false, it signals all pending packets.
    bool needs_arming = false;
  };
  /// Enables notification of the calling thread until end_waiting(), which the same thread must call. Returns an empty
  /// value if the datapath has no notification. Such a datapath can only be polled, and end_waiting() must not be
  /// called.
  virtual std::optional<Wakeup> begin_waiting() { return std::nullopt; }
  virtual void end_waiting() {}
  /// Call arm() before sleeping, then poll once more, because packets that arrived before arm() may not be signalled.
  /// Call disarm() after waking up.
  virtual void arm() {}
  virtual void disarm() {}
  /// Returns the other datapaths that may receive packets for this one and hand them over. A handover does not wake the
  /// sleeping thread, so the thread must poll these datapaths as well.
  [[nodiscard]] virtual std::span<PacketIo* const> feeders() const { return {}; }
};

}  // namespace mltcp
