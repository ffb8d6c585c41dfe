// A shard's datapath on one UDP socket of the kernel, over IPv4 or IPv6. It needs no privileges.
//
// Sending: consecutive packets with the same destination, ECN codepoint and priority form one message with UDP_SEGMENT
// (generic segmentation offload, GSO, udp(7)). The kernel gathers the message from the headers and payloads of the
// packets. One sendmmsg(2) sends several messages. All packets of a message except the last have the same length, so a
// shorter packet ends the message. If the kernel or the device refuses a message but accepts its packets singly, the
// socket stops using UDP_SEGMENT.
//
// Receiving: recvmmsg(2) with UDP_GRO may deliver several packets as one message, which SocketIo splits. If the
// caller's buffer is full, the next calls return the remaining packets.
//
// Limits of sockets: the hop count is only right if senders start with a TTL of 64 (RFC 1700), as MLTCP does. The
// counters do not include packets that the kernel drops for a wrong checksum. They do not include drops at the sender
// either, for example by a queueing discipline.
//
// References: ip(7) for IP_TOS, IP_RECVTOS, IP_RECVTTL and IP_MTU_DISCOVER; RFC 3542 for IPV6_TCLASS, IPV6_RECVTCLASS
// and IPV6_RECVHOPLIMIT; socket(7) for SO_RXQ_OVFL; RFC 3168 for ECN; RFC 2474 for class selectors; RFC 8899 section 3
// for DF on all packets.
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

/// The kernel's calls. Tests replace them to simulate refusals.
struct SocketCalls {
  decltype(&::sendmmsg) send = &::sendmmsg;
  decltype(&::recvmmsg) receive = &::recvmmsg;
};

struct SocketIoConfig {
  /// The address and UDP port to bind to. An IP address of zeros binds to all addresses of the machine. The kernel's
  /// routes then choose the source address of each packet.
  Address address;
  std::uint32_t mtu = 1500;  ///< longest IP packet in bytes, 576 to 65535; larger values count as 65535
  /// Index of the interface, for link-local IPv6 addresses (RFC 4007); 0 if unknown.
  std::uint32_t interface = 0;
  std::uint32_t buffer_bytes = 4 << 20;  ///< requested size in bytes of the kernel's buffer, for each direction
  SocketCalls calls{};
};

struct SocketIoCounters {
  std::uint64_t received_packets = 0;
  std::uint64_t received_messages = 0;  ///< messages from the kernel; with GRO a message may contain several packets
  std::uint64_t truncated = 0;          ///< received messages that exceeded the maximum length
  std::uint64_t missed = 0;             ///< packets dropped because the socket's buffer was full, as last reported
  std::uint64_t sent_packets = 0;
  std::uint64_t sent_messages = 0;  ///< messages given to the kernel; with GSO a message may contain several packets
  std::uint64_t full = 0;           ///< calls of send() that could not send all packets
  std::uint64_t unsendable = 0;     ///< packets to port 0, to the wrong IP version, or longer than limits() allow
  std::uint64_t too_big = 0;        ///< packets longer than the interface carries (EMSGSIZE)
  std::uint64_t refused = 0;        ///< packets that the kernel refused for another reason, e.g. no route or a firewall
};

class SocketIo final : public PacketIo {
 public:
  static constexpr std::uint32_t kMaxBurst = 128;
  static constexpr std::uint32_t kMaxSegments = 64;  ///< Linux's limit for the segments of a GSO message
  /// Maximum UDP payload in bytes over IPv4; IPv6 would allow 20 more.
  static constexpr std::uint32_t kLongestPayload = 65507;
  /// After the kernel has refused a packet that fits the interface, this number of calls of send() use the interface's
  /// MTU instead of the kernel's path MTU. The kernel learns the path MTU from ICMP messages, which anybody can send.
  static constexpr std::uint32_t kNarrowPathCalls = 1024;
  /// A refusal is forgotten after this many shorter packets to the same destination, or once a packet of the refused
  /// length passes.
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
  /// Returns the number of packets dropped so far because the socket's receive buffer was full. Makes a system call, so
  /// do not use it on the data path.
  [[nodiscard]] std::uint64_t missed() const;
  /// Returns whether send() combines packets into messages (GSO); false once the kernel has refused to send them
  /// combined.
  [[nodiscard]] bool segments() const { return gso_; }
  /// Returns whether the kernel may deliver several packets as one message (GRO).
  [[nodiscard]] bool coalesces() const { return gro_; }
  /// Returns the size of the kernel's receive buffer in bytes. The kernel counts a packet's memory, which is about
  /// twice its length.
  [[nodiscard]] std::uint32_t receive_buffer() const { return receive_buffer_; }
  /// Returns whether the latest packet that exceeded the kernel's path MTU went to this IP address. Returns false again
  /// after a packet of that length passes, or after kShorterPacketsToForget shorter packets, because the sender has
  /// then found the path MTU. Packets that exceed the kernel's path MTU are still sent. May be called from any thread.
  [[nodiscard]] bool is_narrow(const Address& peer) const {
    return narrow_mark_.load(std::memory_order_relaxed) == mark_of(peer);
  }

 private:
  static constexpr std::size_t kBuffers = 64;
  /// More than the longest message, because GRO delivers at most 65,535 bytes. The stride adds 17 cache lines, so that
  /// equal offsets in neighbouring buffers do not share a cache set.
  static constexpr std::size_t kBufferBytes = 65536;
  static constexpr std::size_t kBufferStride = kBufferBytes + 17 * 64;
  using Buffers = std::array<std::byte, kBuffers * kBufferStride>;
  static constexpr std::size_t kSendControlBytes = 48;      // for ECN and segment length
  static constexpr std::size_t kReceiveControlBytes = 128;  // for ECN, TTL, drop count and segment length

  /// A message from the kernel with packets that are not yet returned to the caller.
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
  /// Returns a hash of the IP address; never 0.
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
  std::uint32_t overflow_ = 0;  ///< the kernel's drop count as last reported; wraps around
  std::size_t narrow_bytes_ = 0;
  /// Packets that passed since the latest refusal and are shorter than the refused packet.
  std::uint32_t shorter_passed_ = 0;
  /// Number of further calls of send() that ignore the kernel's path MTU; 0 if the path MTU applies.
  std::uint32_t narrow_calls_left_ = 0;
  Address narrow_path_;
  std::atomic<std::uint64_t> narrow_mark_{0};  ///< mark_of(narrow_path_); 0 if no path is narrow

  // Arguments of sendmmsg().
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
  /// A stack: the buffer freed last is used next, because it is in the cache.
  std::array<std::size_t, kBuffers> free_{};
  std::size_t free_count_ = 0;
  std::array<std::size_t, kBuffers> spent_{};  ///< buffers that the next receive() frees
  std::size_t spent_count_ = 0;
  std::array<Message, kBuffers> messages_{};  ///< messages from `first_` up to `end_` have packets left
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  std::size_t packets_a_message_ = 1;  ///< packets per message in the latest fetch()
  std::size_t expected_ = 1;           ///< number of messages to request; grows while all requested ones arrive
  std::size_t prepared_ = 0;           ///< number of headers that are ready for fetch()
};

/// Returns the length of each packet, except perhaps the last, in a message of `bytes` bytes. `segment` is the length
/// that the kernel reports. If `segment` is invalid, the message is one packet.
constexpr std::size_t segment_bytes(std::size_t bytes, int segment) {
  return segment > 0 && static_cast<std::size_t>(segment) < bytes ? static_cast<std::size_t>(segment) : bytes;
}

}  // namespace mltcp::socket
