// The datapath boundary: how the transport receives and sends packets, in bursts, without knowing whether a
// simulator, DPDK rings or a NIC is below.
//
// A "packet" here is a UDP payload. The datapath adds and removes what is below it (Ethernet, IP and UDP headers
// and checksums), or models it. One virtual call per burst, never one per packet or byte.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "mltcp/base/units.h"
#include "mltcp/transport/address.h"

namespace mltcp {

/// The ECN codepoint of the IP header (RFC 3168 section 5), with its bits' value.
enum class Ecn : std::uint8_t { not_ect = 0, ect1 = 1, ect0 = 2, ce = 3 };

/// How many packets within a datapath still point to the payload of one message. A datapath that keeps a payload counts
/// it here until it is done with it, on whatever thread that is.
struct PayloadHold {
  std::atomic<std::uint32_t> packets{0};
};

/// A packet to send: `header`, then `payload`, as one UDP payload. The split lets a datapath take the user's
/// bytes by reference instead of copying them.
struct TxPacket {
  const Address* destination = nullptr;
  std::span<const std::byte> header;
  /// The user's bytes. `payload.data() == nullptr` with a size above 0 is a *virtual* payload: its length counts
  /// on the wire but it has no bytes. Only a datapath whose limits say `virtual_payload` is handed one.
  std::span<const std::byte> payload;
  Ecn ecn = Ecn::not_ect;
  /// 0 to 7, higher first: the class of the queues that the packet passes, as in IEEE 802.1Q, and the class selector
  /// CSn of its DSCP (RFC 2474 section 4.2.2) unless the datapath has a table of others. Queues without classes ignore
  /// it.
  std::uint8_t priority = 0;
  /// If it is not null, the datapath may go on reading `payload` after send(), for as long as it has the packet counted
  /// in `hold`. It need not: it may copy as well.
  PayloadHold* hold = nullptr;
};
inline constexpr std::uint32_t kPriorities = 8;

/// A received packet.
struct RxPacket {
  Address source;
  /// The UDP payload, all of it that exists but `tail`.
  std::span<const std::byte> bytes;
  /// Length of a virtual payload that follows `bytes`; 0 on every real datapath.
  std::uint32_t virtual_bytes = 0;
  Ecn ecn = Ecn::not_ect;
  std::uint8_t priority = 0;  ///< as it was sent
  /// Switches that have forwarded it, as far as its TTL tells on a real network; 0 = not known.
  std::uint8_t hops = 0;
  /// What follows `bytes` where the packet lies in two pieces. Only between a header and the payload that were handed
  /// to send() as two; other pieces a datapath joins.
  std::span<const std::byte> tail{};
};

class PacketIo {
 public:
  struct Limits {
    /// Longest UDP payload in bytes that can be sent (header and payload together).
    std::uint32_t max_packet_bytes = 1472;
    /// Bytes that the layers below add to each packet on the wire (Ethernet 14, IPv4 20, UDP 8). Pacing counts
    /// them, so that a rate is a rate of the wire.
    std::uint32_t overhead_bytes = 42;
    /// Most packets per call of receive() or send(); 1 or more.
    std::uint32_t burst = 32;
    /// Packets without payload bytes can be sent (simulator).
    bool virtual_payload = false;
    /// ECN codepoints of sent packets reach the wire, and those of received packets the transport. Without it they are
    /// Ecn::not_ect, and nothing that needs ECN runs here.
    bool ecn = true;
    /// RxPacket::hops is told.
    bool hops = true;
    /// Classes of TxPacket::priority that are kept apart, 1 to kPriorities; with 1 all is one class.
    std::uint32_t priorities = kPriorities;
    /// Payloads of so many bytes and more are worth to be kept instead of copied (see TxPacket::hold); 0: never.
    std::uint32_t keeps_payload_from = 0;
  };

  virtual ~PacketIo() = default;

  /// Constant over the life of the datapath.
  [[nodiscard]] virtual const Limits& limits() const = 0;

  /// Fills `out` from the front with packets that have arrived and returns how many; 0 when there are none.
  /// The bytes they point to belong to the datapath and stay valid until the next call of receive().
  virtual std::size_t receive(std::span<RxPacket> out) = 0;

  /// Sends `packets` in order and returns how many were taken, a prefix; fewer than all means that the datapath
  /// is full for now, and the caller offers the rest again later. Headers and payloads are read during the call
  /// only, but for payloads with a hold: after it the caller may change or free them. What is taken may still be lost
  /// on the way.
  virtual std::size_t send(std::span<const TxPacket> packets) = 0;

  // For who drives a datapath in real time (PollLoop does all of this): when to call, and how to sleep until then.

  /// When receive() has something to do although nothing arrives, such as to ask a neighbour's address again; never()
  /// if not. Shard::poll() returns no later time.
  [[nodiscard]] virtual Nanos deadline() const { return Nanos::never(); }
  /// Whether send() took less than all, or keeps for later what it took: poll again soon, as nobody tells of room.
  [[nodiscard]] virtual bool is_blocked() const { return false; }
  /// Grows when packets come or go, those included that never reach the transport: a loop that sees it stand still has
  /// nothing to do.
  [[nodiscard]] virtual std::uint64_t activity() const { return 0; }

  /// How a thread that sleeps learns of packets.
  struct Wakeup {
    /// Readable (POLLIN) while or once there are packets; the datapath's own, to be waited for and nothing else. -1:
    /// the files of its feeders() tell.
    int file = -1;
    /// The file tells only of packets that come after arm(). Else of all that are there.
    bool needs_arming = false;
  };
  /// Has the datapath tell the calling thread of packets until end_waiting(), which the same thread calls. Nothing, and
  /// nothing to end, if it can't: then only polling finds them.
  virtual std::optional<Wakeup> begin_waiting() { return std::nullopt; }
  virtual void end_waiting() {}
  /// Before the thread sleeps. What came earlier may not be told of: poll once more in between. After it: disarm().
  virtual void arm() {}
  virtual void disarm() {}
  /// The datapaths that may find packets for this one and hand them over. A packet that is handed over wakes nobody, so
  /// that who sleeps polls all of these as well.
  [[nodiscard]] virtual std::span<PacketIo* const> feeders() const { return {}; }
};

}  // namespace mltcp
