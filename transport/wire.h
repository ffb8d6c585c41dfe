// The wire format: the one place where bytes from the network are parsed and bytes for the network are written.
//
// A packet is one UDP payload: a fixed header, then frames. All integers are little-endian.
//
//   packet header, 36 bytes
//   offset size
//        0    1  magic, and version of this header: 0xA3
//        1    1  flags: 1 full integrity (the checksum covers the payload too), 2 acknowledge at once,
//                8 the packet carries data of a job (job, iteration and progress are set),
//                4 sealed (see below), 128 lowest bit of the epoch of the sender's keys;
//                bits 4 to 6: if n is above 0, the sender asks for one acknowledgement for 2^n packets until its next
//                packet; if n is 0, the receiver chooses;
//                in a sealed packet, flag 1 means clear (see below) instead of full integrity
//        2    2  length of what the checksum always covers: this header and all frames, except the bytes of a last
//                DATA frame that are gathered from the user's buffer
//        4    4  CRC-32C of the covered bytes, computed with this field as zero
//        8    8  tag: the secret number that the connection's receiver has drawn and sent in CONNECT or ACCEPT; 0 in
//                CONNECT. In RESET, the tag of the packet that is answered
//       16    4  destination connection id (0: CONNECT or RESET)
//       20    4  packet number, low 32 bits
//       24    4  span: packet number minus the oldest packet number that the sender still tracks (saturated)
//       28    4  job; without flag 8, when the packet with the largest number of the ACK arrived: ns on the sender's
//                clock modulo 2^32, 0 if not known
//       32    2  iteration, low 16 bits
//       34    2  progress: bytes_ratio of the iteration in 1/65535
//
// Sealed packets (packet_seal.h) have an authentication tag of 96 bits at offset 4, in place of checksum and tag. The
// authentication tag covers the whole packet. Everything after the header is encrypted, unless the packet is clear.
// Packets with CONNECT or ACCEPT are clear, because these frames agree on the keys.
//
// The job tag has a fixed offset so that a switch or a receiver can read a packet's job and its progress without any
// connection state.
//
//   frames: type (1 byte), then (size of each field in bytes in parentheses)
//   DATA     flags (1; 1 = last of its message), length (2), message (4), offset (4), bytes
//   ACK      range count (1); hops of the latest packet (1; 0 = not known); flags (1; 1 = a credit field is present,
//            2 = a whole-messages field replaces the ECT(1) count, 4 = a marks field is present); delay in ns (4);
//            largest packet number (8);
//            cumulative counts modulo 2^32: ECT(0) packets (4), ECT(1) packets or whole messages (4),
//            CE packets (4), CE bytes (4); then first range length - 1 (4);
//            if flag 1 is set, credit as in CREDIT (4);
//            if flag 4 is set, marks (8): bit n tells whether packet (largest number - n) arrived with a CE mark;
//            then for each further range, in descending order: gap - 1 (4), length - 1 (4)
//            Whole messages: all messages with lower numbers are complete in the receiver's buffers. The field may take
//            the place of the ECT(1) count because nobody sends ECT(1). A packet changed from ECT(0) to ECT(1) on its
//            way is detected by an ECT(0) count that is too low.
//   CREDIT   flags (1; 1 = final), 0 (2), number of receive buffers posted since the connection began (4)
//   PING     0 (7); as long as RESET, so that a RESET may answer it
//   CONNECT  version wanted (1), max packet (2), source connection id (4), credit (4), the client's tag (8), lowest
//            and highest version that the client supports (1, 1), number of path values of the client's packets,
//            minus 1 (1), 0 (1)
//   KEY      0 (3), id of the job's key (8), random bytes of the sender (16), after CONNECT or ACCEPT of a
//            connection whose packets are sealed
//   TOKEN    0 (3), cookie (8), after CONNECT and KEY: the cookie from RETRY
//   ACCEPT   version chosen (1), max packet (2), source connection id (4), credit (4), the server's tag (8), highest
//            version that the server supports (1), number of path values of the server's packets, minus 1 (1), 0 (2)
//   RETRY    0 (3), cookie (8): the server stored nothing, and accepts a CONNECT that returns the cookie
//   CLOSE    0 (1), reason (2); a receiver treats unknown reasons as "done"
//   RESET    0 (3), connection id (4): there is no such connection here (any more)
//   TRIMMED  0 (3), largest packet number (8), map (8): bit n tells that packet (largest number - n) arrived without
//   its
//            end, which a switch has removed for lack of room. Its contents must be sent again
//   PADDING  0 (1), length (2), that many bytes without meaning: fills a size probe up to its size
//
// A packet to connection 0 contains either CONNECT, which KEY and TOKEN may follow, or RESET, and nothing else. RETRY,
// and CLOSE without a connection, are shorter than the CONNECT that they answer. RESET is not longer than the packet
// that it answers. So an attacker with a forged source address cannot amplify its traffic.
//
// Message numbers, credit and packet numbers are 64 bits wide internally, and are sent modulo 2^32. widen() restores
// the upper bits.
//
// Versions: with the same magic, the header's layout and the positions of CONNECT's versions and source are the same.
// Both ends use the highest version that they have in common. The server chooses a version, and names the highest
// version that it supports. So a client detects an attacker who made the server choose a lower version. Version 2
// (magic 0xA1) had no tags; a CONNECT of version 2 is answered with a CLOSE in the format of version 2. Version 3 added
// tags, KEY, TOKEN, RETRY, RESET and PADDING, and sealed packets. With version 4, the packets of a connection may come
// from several UDP source ports. An end that says in CONNECT or ACCEPT that its packets do gets marks in ACKs. Version
// 5 added TRIMMED.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "mltcp/base/units.h"
#include "mltcp/transport/packet_seal.h"

namespace mltcp::wire {

static_assert(std::endian::native == std::endian::little, "the wire format is written and read in place");

constexpr std::uint8_t magic = 0xA3;
constexpr std::uint8_t kProtocolVersion = 5;  ///< the highest supported version
constexpr std::uint8_t kMinVersion = 3;
constexpr std::uint8_t kVersionWithPaths = 4;     ///< the first one in which packets may have several source ports
constexpr std::uint8_t kVersionWithTrimming = 5;  ///< the first one with TRIMMED
constexpr std::size_t kHeaderBytes = 36;
constexpr std::size_t kDataFrameBytes = 12;
constexpr std::size_t kAckFrameBytes = 36;  ///< size with one range and without credit
constexpr std::size_t kAckCreditBytes = 4;
constexpr std::size_t kAckMarksBytes = 8;
constexpr std::size_t kAckRangeBytes = 8;
constexpr std::size_t kMaxAckRanges = 32;
constexpr std::size_t kMaxAckBytes = kAckFrameBytes + kAckCreditBytes + (kMaxAckRanges - 1) * kAckRangeBytes;
constexpr std::size_t kCreditFrameBytes = 8;
constexpr std::size_t kPingFrameBytes = 8;
constexpr std::size_t kConnectFrameBytes = 24;
constexpr std::size_t kAcceptFrameBytes = 24;
constexpr std::size_t kCloseFrameBytes = 4;
constexpr std::size_t kCookieFrameBytes = 12;  ///< size of RETRY and TOKEN
constexpr std::size_t kResetFrameBytes = 8;
constexpr std::size_t kKeyFrameBytes = 28;
constexpr std::size_t kTrimmedFrameBytes = 20;
constexpr std::size_t kPaddingFrameBytes = 4;  ///< size without the padding bytes
static_assert(std::max(kCookieFrameBytes, kCloseFrameBytes) <= kConnectFrameBytes, "answers to CONNECT");
static_assert(kResetFrameBytes <= kPingFrameBytes, "a PING may be answered by RESET");

/// Minimum size that every path must carry: a header, an ACK with all ranges, every control frame and some data.
constexpr std::size_t kSmallestPacket = kHeaderBytes + kMaxAckBytes + kAcceptFrameBytes + kKeyFrameBytes +
                                        kCreditFrameBytes + kCloseFrameBytes + kPingFrameBytes + kDataFrameBytes + 64;
static_assert(kSmallestPacket <= 548, "fits the smallest IP packet that every host accepts (RFC 1122)");

/// A message's length is at most 4 GiB: the offset of its last byte fits 32 bits.
constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{1} << 32;

enum HeaderFlags : std::uint8_t {
  full_integrity = 1,
  ack_now = 2,
  sealed = 4,
  has_job = 8,
  epoch = 128,
  clear = full_integrity,  ///< in a sealed packet: its contents are not encrypted
};

/// Returns header flags that ask for one acknowledgement for every `packets` packets (the Ack Ratio of RFC 4340). The
/// number is rounded down to a power of two from 2 to 128. If `packets` is below 2, the receiver chooses.
constexpr std::uint8_t ask_ack_ratio(std::uint32_t packets) {
  return static_cast<std::uint8_t>(packets < 2 ? 0
                                               : std::min(std::countl_zero(1U) - std::countl_zero(packets), 7) << 4);
}
/// Returns the number of packets per acknowledgement that the header flags ask for; 1 if the receiver chooses.
constexpr std::uint32_t asked_ack_ratio(std::uint8_t flags) { return 1U << (flags >> 4 & 7); }

enum class FrameType : std::uint8_t {
  data = 1,
  ack = 2,
  credit = 3,
  ping = 4,
  connect = 5,
  accept = 6,
  close = 7,
  retry = 8,
  token = 9,
  reset = 10,
  key = 11,
  padding = 12,
  trimmed = 13,
};

/// The job that a packet belongs to, and how far the job's iteration is.
struct JobTag {
  std::uint32_t job = 0;
  std::uint16_t iteration = 0;  ///< low 16 bits of the iteration's number
  std::uint16_t progress = 0;   ///< bytes_ratio of the iteration in 1/65535
};

struct Header {
  std::uint8_t flags = 0;
  std::uint32_t connection = 0;
  std::uint32_t span = 0;
  std::uint64_t packet_number = 0;  ///< in a received packet, only the low 32 bits
  JobTag job;
  std::uint64_t tag = 0;

  /// Returns when the latest packet arrived that the packet's ACK acknowledges: ns on the clock of the packet's sender,
  /// modulo 2^32. Returns 0 if the packet does not say.
  [[nodiscard]] std::uint32_t arrival() const { return (flags & has_job) != 0 ? 0 : job.job; }
  /// Requires a packet without has_job.
  void set_arrival(Nanos time) { job.job = static_cast<std::uint32_t>(time.count) | 1; }
};

struct DataFrame {
  bool last = false;
  std::uint32_t message = 0;
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  const std::byte* bytes = nullptr;  ///< null for a virtual payload
};

/// Packet numbers first..last, both inclusive.
struct PacketRange {
  // No initialisers, because a frame contains space for many ranges, and most are never read.
  std::uint64_t first;
  std::uint64_t last;
};

/// A receiver's packet counts by ECN codepoint, modulo 2^32.
struct EcnCounts {
  std::uint32_t ect0_packets = 0;
  std::uint32_t ect1_packets = 0;
  std::uint32_t ce_packets = 0;
  std::uint32_t ce_bytes = 0;
};

struct AckFrame {  // NOLINT(cppcoreguidelines-pro-type-member-init): ranges, see PacketRange
  std::uint32_t delay_ns = 0;
  std::uint8_t hops = 0;  ///< number of switches that the latest packet traversed; 0 = not known
  EcnCounts ecn;
  bool has_credit = false;
  std::uint32_t credit = 0;  ///< see CreditFrame::messages
  bool has_whole = false;    ///< true if the ACK contains `whole` instead of ecn.ect1_packets
  std::uint32_t whole = 0;   ///< messages with lower numbers are complete at the receiver; modulo 2^32
  std::uint64_t marks = 0;   ///< bit n: packet (largest number - n) arrived with a CE mark
  std::uint32_t range_count = 0;
  std::array<PacketRange, kMaxAckRanges>
      ranges;  ///< in descending order, with a gap of at least one packet number between them
};

struct ConnectFrame {
  std::uint8_t version = kProtocolVersion;
  std::uint16_t max_packet = 0;
  std::uint32_t source_connection = 0;
  std::uint32_t credit = 0;
  std::uint64_t tag = 0;              ///< the tag that packets to the sender of this frame must contain
  std::uint8_t lowest = kMinVersion;  ///< lowest version that the client supports; only in CONNECT
  std::uint8_t highest = kProtocolVersion;
  std::uint32_t paths = 1;  ///< number of path values of this end's packets, 1 to 256
};

/// Returns whether a CONNECT is plausible: its sender has an id, accepts packets of kSmallestPacket bytes, and asks for
/// a version that it supports.
constexpr bool is_plausible(const ConnectFrame& connect) {
  return connect.source_connection != 0 && connect.max_packet >= kSmallestPacket && connect.lowest <= connect.version &&
         connect.version <= connect.highest;
}
/// Returns the version that a server of this program chooses for a client; 0 if there is no common version.
constexpr std::uint8_t chosen_version(const ConnectFrame& connect) {
  const std::uint8_t highest = std::min(connect.highest, kProtocolVersion);
  return highest >= std::max(connect.lowest, kMinVersion) ? highest : 0;
}
/// Returns whether ACCEPT names the version that the server must choose: the highest that both ends support.
constexpr bool is_right_choice(const ConnectFrame& accept) {
  return accept.version == std::min(accept.highest, kProtocolVersion) && accept.version >= kMinVersion;
}

/// Packets of which only the beginning has arrived.
struct TrimmedFrame {
  std::uint64_t largest = 0;
  std::uint64_t map = 0;  ///< bit n: packet (largest - n)
};

struct CreditFrame {
  std::uint32_t messages = 0;  ///< buffers posted since the connection began, modulo 2^32
  bool final = false;          ///< no more buffers will be posted
};

enum class CloseReason : std::uint16_t {
  done = 0,
  refused = 1,
  full = 2,
  version = 3,
  aborted = 4,
  idle = 5,
  violation = 6,  ///< the receiver of this frame has acknowledged packets that were never sent to it
  key = 7,        ///< the client lacks a required key, or has a key although this server uses none
};

/// Contents of a KEY frame: the id of the job's key, and the random bytes that one end contributes.
struct KeyFrame {
  std::uint64_t id = 0;
  EndRandom random{};
};

/// A parsed frame. `type` determines which member is set.
struct Frame {
  FrameType type = FrameType::ping;
  DataFrame data;
  AckFrame ack;
  CreditFrame credit;
  TrimmedFrame trimmed;
  ConnectFrame connect;  ///< contents of CONNECT and ACCEPT
  CloseReason close = CloseReason::done;
  std::uint16_t padding = 0;  ///< number of padding bytes
  std::uint64_t cookie = 0;   ///< cookie of RETRY and TOKEN
  std::uint32_t reset = 0;    ///< connection id in RESET
  KeyFrame key;
};

/// The reason why a packet or frame was rejected.
enum class ParseError : std::uint8_t { none, truncated, foreign, checksum, malformed };

/// Parses a packet: first its header, then one frame after the other. Stores pointers into the packet's bytes, which
/// must outlive the parsed frames.
class Reader {
 public:
  /// Parses the header. `virtual_bytes` is the length of a payload without bytes that follows `packet` (simulator
  /// only).
  ParseError begin(std::span<const std::byte> packet, std::uint32_t virtual_bytes, Header& header) {
    return begin(packet, {}, virtual_bytes, header);
  }
  /// Parses the header. `tail` is the end of the packet's payload, if it is stored apart from `packet`.
  ParseError begin(std::span<const std::byte> packet, std::span<const std::byte> tail, std::uint32_t virtual_bytes,
                   Header& header);
  /// Parses the header of a packet that was trimmed and is not sealed. Its checksum is verified only if all covered
  /// bytes have arrived; otherwise, returns ParseError::truncated. With full integrity, nothing is verified.
  static ParseError trimmed_header(std::span<const std::byte> packet, Header& header);
  /// Parses the header of a packet for which is_sealed() is true. The header is not authenticated before the packet is
  /// opened. Its tag field is 0.
  static ParseError sealed_header(std::span<const std::byte> packet, Header& header);
  /// Begins to parse the contents, after the header, of a packet that was opened.
  void begin_opened(std::span<const std::byte> body, std::span<const std::byte> tail, std::uint32_t virtual_bytes);
  /// Parses the next frame into `frame`. Returns false at the end of the packet, or on an error (see error()).
  bool next(Frame& frame) {
    if (left_ >= kDataFrameBytes && *at_ == std::byte{static_cast<std::uint8_t>(FrameType::data)}) [[likely]]
      return next_data(frame);
    return next_other(frame);
  }
  [[nodiscard]] ParseError error() const { return error_; }

 private:
  bool fail() {
    error_ = ParseError::malformed;
    return false;
  }
  bool next_data(Frame& frame) {
    std::uint64_t front = 0;
    std::memcpy(&front, at_, sizeof front);
    frame.type = FrameType::data;
    DataFrame& data = frame.data;
    data.last = (front >> 8 & 1) != 0;
    data.length = static_cast<std::uint16_t>(front >> 16);
    data.message = static_cast<std::uint32_t>(front >> 32);
    std::memcpy(&data.offset, at_ + sizeof front, sizeof data.offset);
    at_ += kDataFrameBytes;
    left_ -= kDataFrameBytes;
    data.bytes = at_;
    if (data.length > left_) return take_last(data);
    at_ += data.length;
    left_ -= data.length;
    return true;
  }
  bool take_last(DataFrame& data);
  bool next_ack(Frame& frame);
  bool next_other(Frame& frame);

  const std::byte* at_ = nullptr;
  std::size_t left_ = 0;
  std::uint32_t virtual_left_ = 0;
  std::span<const std::byte> tail_;
  ParseError error_ = ParseError::none;
};

/// Writes the header and frames of a packet. The caller must check free_bytes() before each frame.
class Writer {
 public:
  /// `buffer` must have at least kHeaderBytes bytes and outlive the writer.
  explicit Writer(std::span<std::byte> buffer) : buffer_(buffer), used_(kHeaderBytes) {}

  [[nodiscard]] std::size_t used() const { return used_; }
  [[nodiscard]] std::size_t free_bytes() const { return buffer_.size() - used_; }

  /// Writes only the header of a DATA frame. The bytes follow by copy(), or as gathered payload.
  void data(const DataFrame& frame) {
    std::byte* const at = take(kDataFrameBytes);
    const std::uint64_t front = std::uint64_t{frame.message} << 32 |
                                std::uint64_t{static_cast<std::uint16_t>(frame.length)} << 16 |
                                std::uint64_t{frame.last ? 1U : 0U} << 8 | static_cast<std::uint64_t>(FrameType::data);
    std::memcpy(at, &front, sizeof front);
    std::memcpy(at + sizeof front, &frame.offset, sizeof frame.offset);
  }
  void copy(const std::byte* bytes, std::size_t size) {
    if (size > 0) std::memcpy(take(size), bytes, size);
  }
  /// Writes `size` zeros as the bytes of a virtual payload.
  void zeros(std::size_t size) {
    if (size > 0) std::memset(take(size), 0, size);
  }
  /// Writes an ACK with as many ranges as fit into free_bytes().
  void ack(const AckFrame& frame);
  void credit(const CreditFrame& frame);
  void trimmed(const TrimmedFrame& frame);
  void ping();
  void connect(const ConnectFrame& frame);
  void accept(const ConnectFrame& frame);
  void close(CloseReason reason);
  void retry(std::uint64_t cookie);
  void token(std::uint64_t cookie);
  void reset(std::uint32_t connection);
  void key(const KeyFrame& frame);
  /// Writes a PADDING frame of kPaddingFrameBytes + `bytes` bytes.
  void padding(std::uint16_t bytes);

  /// Writes the header of a packet that is to be sealed, without its authentication tag. Returns all bytes written.
  std::span<std::byte> finish_unsealed(const Header& header);
  /// Writes the packet header and its checksum, which covers `payload` too if the header's flags ask for full
  /// integrity. Returns all bytes written, header and frames.
  std::span<const std::byte> finish(const Header& header, std::span<const std::byte> payload);

 private:
  std::byte* take(std::size_t size) {
    std::byte* at = buffer_.data() + used_;
    used_ += size;
    return at;
  }

  std::span<std::byte> buffer_;
  std::size_t used_;
};

/// Returns the 64-bit value closest to `expected` whose low 32 bits are `low`.
constexpr std::uint64_t widen(std::uint32_t low, std::uint64_t expected) {
  const auto distance = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(expected));
  const auto wide = static_cast<std::int64_t>(expected) + distance;
  // A negative value stands for the value that is 2^32 higher.
  return wide < 0 ? static_cast<std::uint64_t>(wide) + (std::uint64_t{1} << 32) : static_cast<std::uint64_t>(wide);
}

/// Returns whether the header marks the packet as sealed. Checks magic and length only.
inline bool is_sealed(std::span<const std::byte> packet) {
  return packet.size() >= kHeaderBytes && packet[0] == std::byte{magic} &&
         (packet[1] & std::byte{sealed}) != std::byte{};
}
/// Position of the authentication tag in a sealed packet. seal_of() returns the tag. sealed_parts() returns the parts
/// of the header that the tag covers. Both functions need at least kHeaderBytes bytes.
constexpr std::size_t kSealOffset = 4;
inline PacketSeal::Tag seal_of(std::span<const std::byte> packet) {
  PacketSeal::Tag tag;
  std::memcpy(tag.data(), packet.data() + kSealOffset, tag.size());
  return tag;
}
inline std::array<std::span<const std::byte>, 2> sealed_parts(std::span<const std::byte> packet) {
  constexpr std::size_t behind = kSealOffset + std::tuple_size_v<PacketSeal::Tag>;
  return {packet.first(kSealOffset), packet.subspan(behind, kHeaderBytes - behind)};
}

/// Returns the job tag of a UDP payload, for switches. Checks magic, length and the has_job flag, but not the checksum.
std::optional<JobTag> peek_job_tag(std::span<const std::byte> packet);

/// Returns the destination connection of a UDP payload, for switches that hash flows onto paths. The result is 0 for
/// CONNECT and RESET, and for packets of other protocols. Checks magic and length, but not the checksum.
std::uint32_t peek_connection(std::span<const std::byte> packet);

/// Returns the source connection of a CONNECT of version 2; 0 if `packet` is damaged or is not a CONNECT of version 2.
std::uint32_t source_of_version_2_connect(std::span<const std::byte> packet);
constexpr std::size_t kVersion2CloseBytes = 36;
/// Returns a CLOSE in the format of version 2. It answers a CONNECT of version 2 from source connection `connection`,
/// and reports that version 2 is not supported.
std::array<std::byte, kVersion2CloseBytes> version_2_close(std::uint32_t connection);

/// Returns whether the first frame of a packet is an ACK. Call this function only if peek_connection() has found a
/// connection in the packet, because it checks only the length.
inline bool peek_ack(std::span<const std::byte> packet) {
  return packet.size() > kHeaderBytes && packet[kHeaderBytes] == std::byte{static_cast<std::uint8_t>(FrameType::ack)};
}

}  // namespace mltcp::wire
