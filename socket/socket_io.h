// A shard's datapath on one UDP socket of the kernel, over IPv4 or IPv6. It needs no privileges.
//
// Sending: consecutive packets to one destination with one ECN codepoint and priority form one message of UDP_SEGMENT
// (generic segmentation offload, udp(7)), gathered from headers and payloads without a copy. One sendmmsg(2) sends
// several messages. All packets of a message except the last have the same length, so a shorter packet ends it. If the
// kernel or the device refuses such a message but sends its packets singly, UDP_SEGMENT is not used any more.
//
// Receiving: recvmmsg(2), with UDP_GRO, which delivers several packets as one message; it is split here. Packets for
// which the caller had no room are returned by the next calls.
//
// Limits of sockets: hops are only right if senders start with a TTL of 64 (RFC 1700), as MLTCP does. Packets that the
// kernel drops for a wrong checksum, and drops at the sender, for example by a queueing discipline, are not counted.
//
// IP_TOS, IP_RECVTOS, IP_RECVTTL, IP_MTU_DISCOVER: ip(7); IPV6_TCLASS, IPV6_RECVTCLASS, IPV6_RECVHOPLIMIT: RFC 3542;
// SO_RXQ_OVFL: socket(7); ECN: RFC 3168; class selectors: RFC 2474; DF on all packets: RFC 8899 section 3.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "mltcp/transport/address.h"
#include "mltcp/transport/packet_io.h"

namespace mltcp::socket {

/// The kernel's calls, so that tests can simulate refusals.
struct SocketCalls {
  decltype(&::sendmmsg) send = &::sendmmsg;
  decltype(&::recvmmsg) receive = &::recvmmsg;
};

struct SocketIoConfig {
  /// The address and UDP port to bind to; an IP address of zeros: all addresses of the machine. The kernel's routes
  /// then choose a packet's source.
  Address address;
  std::uint32_t mtu = 1500;              ///< longest IP packet, 576 to 65535; larger values count as 65535
  std::uint32_t interface = 0;           ///< its number, for link-local addresses of IPv6 (RFC 4007); 0: unknown
  std::uint32_t buffer_bytes = 4 << 20;  ///< requested size of the kernel's buffer, for each direction
  SocketCalls calls{};
};

struct SocketIoCounters {
  std::uint64_t received_packets = 0;
  std::uint64_t received_messages = 0;  ///< messages from the kernel; several packets each with GRO
  std::uint64_t truncated = 0;          ///< received messages that exceeded the maximum length
  std::uint64_t missed = 0;             ///< packets without room in the socket's buffer, as last reported
  std::uint64_t sent_packets = 0;
  std::uint64_t sent_messages = 0;  ///< several packets each with GSO
  std::uint64_t full = 0;           ///< calls of send() that left packets to the caller
  std::uint64_t unsendable = 0;     ///< another IP version, no port, or longer than limits() allow
  std::uint64_t too_big = 0;        ///< longer than the interface carries (EMSGSIZE)
  std::uint64_t refused = 0;        ///< the kernel refused: no route, a firewall, ...
};

class SocketIo final : public PacketIo {
 public:
  static constexpr std::uint32_t kMaxBurst = 128;
  static constexpr std::uint32_t kMaxSegments = 64;        ///< segments of a GSO message: Linux's limit
  static constexpr std::uint32_t kLongestPayload = 65507;  ///< for IPv4; IPv6 would allow 20 more
  /// The kernel's path MTU comes from ICMP, which anybody can send. If the kernel refuses a packet that fits the
  /// interface, this many calls of send() use the interface's MTU only.
  static constexpr std::uint32_t kNarrowPathCalls = 1024;
  /// A refusal on a path is forgotten after this many shorter packets, or when a packet as long passes.
  static constexpr std::uint32_t kShorterPacketsToForget = 1024;

  /// Opens and binds the socket. Throws InputError if its address or port is not available, RunError for other
  /// failures.
  explicit SocketIo(const SocketIoConfig& config);
  ~SocketIo() override;
  SocketIo(const SocketIo&) = delete;
  SocketIo& operator=(const SocketIo&) = delete;

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  std::size_t receive(std::span<RxPacket> out) override;
  std::size_t send(std::span<const TxPacket> packets) override;
  [[nodiscard]] bool is_blocked() const override { return blocked_; }
  [[nodiscard]] std::uint64_t activity() const override { return counters_.received_messages + counters_.sent_packets; }
  std::optional<Wakeup> begin_waiting() override { return Wakeup{file_, false}; }

  [[nodiscard]] const SocketIoCounters& counters() const { return counters_; }
  /// Number of packets dropped so far because the socket's receive buffer was full. Makes a system call, so do not use
  /// it on the data path.
  [[nodiscard]] std::uint64_t missed() const;
  [[nodiscard]] bool segments() const { return gso_; }   ///< sends several packets as one message, until refused
  [[nodiscard]] bool coalesces() const { return gro_; }  ///< receives several packets as one message
  /// Maximum bytes that the kernel buffers; it counts the memory of a packet, about twice its length.
  [[nodiscard]] std::uint32_t receive_buffer() const { return receive_buffer_; }
  /// Whether the latest packet that exceeded the kernel's path MTU went to this IP address. False again once a packet
  /// of that length passes, or kShorterPacketsToForget shorter ones, because the sender has then found the path MTU.
  /// Such packets are still sent. May be called by any thread.
  [[nodiscard]] bool is_narrow(const Address& peer) const {
    return narrow_mark_.load(std::memory_order_relaxed) == mark_of(peer);
  }

 private:
  static constexpr std::size_t kBuffers = 64;
  /// More than the longest message: kernels deliver at most 65,535 bytes by GRO. The rest avoids that equal offsets in
  /// neighbouring buffers share a cache set.
  static constexpr std::size_t kBufferBytes = 65536;
  static constexpr std::size_t kBufferStride = kBufferBytes + 17 * 64;
  using Buffers = std::array<std::byte, kBuffers * kBufferStride>;
  static constexpr std::size_t kSendControlBytes = 48;      // ECN and length of segments
  static constexpr std::size_t kReceiveControlBytes = 128;  // ECN, TTL, drops, length of segments

  /// A message from the kernel whose packets have not all been returned.
  struct Message {
    std::size_t buffer = 0;
    std::size_t at = 0;
    std::size_t end = 0;
    std::size_t segment = 0;
    Address source;
    Ecn ecn = Ecn::not_ect;
    std::uint8_t priority = 0;
    std::uint8_t hops = 0;
  };
  union Name {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  struct alignas(8) SendControl {
    std::array<std::byte, kSendControlBytes> bytes;
  };
  struct alignas(8) ReceiveControl {
    std::array<std::byte, kReceiveControlBytes> bytes;
  };
  enum class Fate : std::uint8_t { taken, blocked };

  void open();
  void bind_to_address();
  void ask_for_buffers(std::uint32_t bytes);
  bool set(int level, int option, int value) const;

  [[nodiscard]] bool is_sendable(const TxPacket& packet) const;
  std::size_t write_messages(std::span<const TxPacket> packets, bool together);
  void address_message(std::size_t message, const TxPacket& packet, std::size_t segment_bytes, std::size_t segments);
  Fate send_messages(std::span<const TxPacket> packets, std::size_t messages, std::size_t& done);
  Fate on_refusal(int error, std::span<const TxPacket> packets, std::size_t& done);
  Fate send_alone(std::span<const TxPacket> packets, std::size_t& done);
  void note_passed(std::span<const TxPacket> packets);
  void note_narrow(const TxPacket& packet);
  void forget_narrow();
  /// Mark of an IP address; never 0.
  static std::uint64_t mark_of(const Address& address);
  bool believe_path(bool believed) const;

  std::size_t serve(std::span<RxPacket> out);
  void prepare(std::size_t headers);
  std::size_t fetch(std::size_t wanted);
  void take(std::size_t number, std::size_t buffer);

  const SocketCalls calls_;
  const Address address_;
  const bool v4_;
  const std::uint32_t interface_;
  Limits limits_;
  int file_ = -1;
  bool gso_ = false;
  bool gro_ = false;
  bool blocked_ = false;
  std::uint32_t receive_buffer_ = 0;
  SocketIoCounters counters_;
  std::uint32_t overflow_ = 0;  ///< the kernel's count as last reported; wraps around
  std::size_t narrow_bytes_ = 0;
  std::uint32_t shorter_passed_ = 0;     ///< shorter packets that passed since the latest refusal
  std::uint32_t narrow_calls_left_ = 0;  ///< calls of send() that ignore the kernel's path MTU; 0: it applies
  Address narrow_path_;
  std::atomic<std::uint64_t> narrow_mark_{0};  ///< mark_of(narrow_path_); 0: none

  // Sending: arguments of sendmmsg().
  std::array<mmsghdr, kMaxBurst> tx_headers_{};
  std::array<std::uint32_t, kMaxBurst> tx_packets_{};  ///< number of packets in each message
  std::array<Name, kMaxBurst> tx_names_{};
  std::array<SendControl, kMaxBurst> tx_controls_{};
  std::array<iovec, std::size_t{2} * kMaxBurst> tx_pieces_{};

  // Receiving.
  std::array<mmsghdr, kBuffers> rx_headers_{};
  std::array<Name, kBuffers> rx_names_{};
  std::array<ReceiveControl, kBuffers> rx_controls_{};
  std::array<iovec, kBuffers> rx_pieces_{};
  std::unique_ptr<Buffers> buffers_;
  std::array<std::size_t, kBuffers> free_{};  ///< a stack: the buffer freed last is used next: it is in the cache
  std::size_t free_count_ = 0;
  std::array<std::size_t, kBuffers> spent_{};  ///< freed when the next receive() begins
  std::size_t spent_count_ = 0;
  std::array<Message, kBuffers> messages_{};  ///< messages from `first_` on have packets left
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  std::size_t packets_a_message_ = 1;  ///< packets per message in the latest fetch()
  std::size_t expected_ = 1;           ///< messages to ask for: one in vain after each costs a system call
  std::size_t prepared_ = 0;           ///< headers that are ready for fetch()
};

/// The length of the packets in a message of `bytes`, for which the kernel reports `told`: all of it if `told` is
/// invalid.
constexpr std::size_t segment_bytes(std::size_t bytes, int told) {
  return told > 0 && static_cast<std::size_t>(told) < bytes ? static_cast<std::size_t>(told) : bytes;
}

}  // namespace mltcp::socket
