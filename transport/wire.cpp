// Parsing and writing of packets (see wire.h).
#include "mltcp/transport/wire.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "mltcp/transport/crc32c.h"

namespace mltcp::wire {
namespace {

// The header's memory layout; every field is naturally aligned.
struct RawHeader {
  std::uint8_t magic;
  std::uint8_t flags;
  std::uint16_t covered;
  std::uint32_t checksum;
  std::array<std::uint32_t, 2> tag;  // low half first; a 64-bit member would make the struct longer than the header
  std::uint32_t connection;
  std::uint32_t packet_number;
  std::uint32_t span;
  std::uint32_t job;
  std::uint16_t iteration;
  std::uint16_t progress;
};
static_assert(sizeof(RawHeader) == kHeaderBytes);

constexpr std::uint8_t kAckHasCredit = 1;
constexpr std::uint8_t kAckHasWhole = 2;
constexpr std::uint8_t kAckHasMarks = 4;

template <typename T>
T load(const std::byte* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

std::uint32_t checksum(std::span<const std::byte> covered) {
  // The checksum is computed with the checksum field set to 0.
  std::array<std::byte, kHeaderBytes> first{};
  std::memcpy(first.data(), covered.data(), kHeaderBytes);
  store<std::uint32_t>(first.data() + 4, 0);
  std::uint32_t crc = crc32c(0, first);
  return covered.size() > kHeaderBytes ? crc32c(crc, covered.subspan(kHeaderBytes)) : crc;
}

// Writes the common part of CONNECT and ACCEPT.
void greet(std::byte* at, FrameType type, const ConnectFrame& frame) {
  store(at, static_cast<std::uint8_t>(type));
  store(at + 1, frame.version);
  store(at + 2, frame.max_packet);
  store(at + 4, frame.source_connection);
  store(at + 8, frame.credit);
  store(at + 12, frame.tag);
}

void write_cookie(std::byte* at, FrameType type, std::uint64_t cookie) {
  store(at, static_cast<std::uint32_t>(type));
  store(at + 4, cookie);
}

// Parts of protocol version 2 that are needed to answer that version 2 is not supported: the header, and frame sizes.
struct Version2Header {
  std::uint8_t magic;
  std::uint8_t flags;
  std::uint16_t covered;
  std::uint32_t checksum;
  std::uint32_t connection;
  std::uint32_t span;
  std::uint64_t packet_number;
  std::uint64_t job;
};
constexpr std::uint8_t kVersion2Magic = 0xA1;
constexpr std::size_t kVersion2ConnectBytes = sizeof(Version2Header) + 20;
static_assert(sizeof(Version2Header) + kCloseFrameBytes == kVersion2CloseBytes);
static_assert(kVersion2CloseBytes < kVersion2ConnectBytes);

}  // namespace

std::uint32_t source_of_version_2_connect(std::span<const std::byte> packet) {
  if (packet.size() != kVersion2ConnectBytes) return 0;
  auto raw = load<Version2Header>(packet.data());
  if (raw.magic != kVersion2Magic || raw.covered != packet.size() || raw.connection != 0) return 0;
  std::array<std::byte, kVersion2ConnectBytes> copy;
  const std::uint32_t checksum = std::exchange(raw.checksum, 0);
  std::memcpy(copy.data(), packet.data(), copy.size());
  store(copy.data(), raw);
  const std::byte* const frame = copy.data() + sizeof raw;
  if (crc32c(0, copy) != checksum || *frame != std::byte{static_cast<std::uint8_t>(FrameType::connect)}) return 0;
  return load<std::uint32_t>(frame + 4);
}

std::array<std::byte, kVersion2CloseBytes> version_2_close(std::uint32_t connection) {
  std::array<std::byte, kVersion2CloseBytes> packet{};
  store(packet.data(),
        Version2Header{kVersion2Magic, 0, static_cast<std::uint16_t>(packet.size()), 0, connection, 0, 0, 0});
  store(packet.data() + sizeof(Version2Header), static_cast<std::uint16_t>(FrameType::close));
  store(packet.data() + sizeof(Version2Header) + 2, static_cast<std::uint16_t>(CloseReason::version));
  store(packet.data() + 4, crc32c(0, packet));
  return packet;
}

namespace {

/// Reads the header of a packet that is not sealed, and checks all but the checksum.
ParseError read_header(std::span<const std::byte> packet, RawHeader& raw, Header& header) {
  if (packet.size() < kHeaderBytes) return ParseError::truncated;
  raw = load<RawHeader>(packet.data());
  if (raw.magic != magic) return ParseError::foreign;
  if (raw.covered < kHeaderBytes || (raw.flags & (sealed | epoch)) != 0) return ParseError::malformed;
  if (raw.covered > packet.size()) return ParseError::truncated;
  header = {.flags = raw.flags,
            .connection = raw.connection,
            .span = raw.span,
            .packet_number = raw.packet_number,
            .job = {raw.job, raw.iteration, raw.progress},
            .tag = std::bit_cast<std::uint64_t>(raw.tag)};
  return ParseError::none;
}

}  // namespace

ParseError Reader::trimmed_header(std::span<const std::byte> packet, Header& header) {
  RawHeader raw;
  const ParseError error = read_header(packet, raw, header);
  if (error != ParseError::none || (raw.flags & full_integrity) != 0) return error;
  return checksum(packet.first(raw.covered)) == raw.checksum ? ParseError::none : ParseError::checksum;
}

ParseError Reader::begin(std::span<const std::byte> packet, std::span<const std::byte> tail,
                         std::uint32_t virtual_bytes, Header& header) {
  left_ = 0;
  RawHeader raw;
  error_ = read_header(packet, raw, header);
  if (error_ != ParseError::none) return error_;
  std::uint32_t crc = checksum(packet.first(raw.covered));
  if ((raw.flags & full_integrity) != 0) crc = crc32c(crc32c(crc, packet.subspan(raw.covered)), tail);
  if (crc != raw.checksum) return error_ = ParseError::checksum;
  at_ = packet.data() + kHeaderBytes;
  left_ = packet.size() - kHeaderBytes;
  virtual_left_ = virtual_bytes;
  tail_ = tail;
  return ParseError::none;
}

ParseError Reader::sealed_header(std::span<const std::byte> packet, Header& header) {
  const auto raw = load<RawHeader>(packet.data());
  if (raw.covered < kHeaderBytes) return ParseError::malformed;
  if (raw.covered > packet.size()) return ParseError::truncated;
  header = {.flags = raw.flags,
            .connection = raw.connection,
            .span = raw.span,
            .packet_number = raw.packet_number,
            .job = {raw.job, raw.iteration, raw.progress}};
  return ParseError::none;
}

void Reader::begin_opened(std::span<const std::byte> body, std::span<const std::byte> tail,
                          std::uint32_t virtual_bytes) {
  error_ = ParseError::none;
  at_ = body.data();
  left_ = body.size();
  virtual_left_ = virtual_bytes;
  tail_ = tail;
}

bool Reader::next_other(Frame& frame) {
  if (left_ == 0) return virtual_left_ == 0 && tail_.empty() ? false : fail();
  const auto type = static_cast<FrameType>(*at_);
  frame.type = type;
  const auto take = [this](std::size_t size) -> const std::byte* {
    if (left_ < size) return nullptr;
    const std::byte* at = at_;
    at_ += size;
    left_ -= size;
    return at;
  };
  switch (type) {
    case FrameType::data:  // the frame is truncated: next() has already parsed complete DATA frames
      return fail();
    case FrameType::ack:
      return next_ack(frame);
    case FrameType::credit:
      if (const std::byte* at = take(kCreditFrameBytes)) {
        frame.credit = {load<std::uint32_t>(at + 4), (load<std::uint8_t>(at + 1) & 1) != 0};
        return true;
      }
      return fail();
    case FrameType::ping:
      return take(kPingFrameBytes) != nullptr || fail();
    case FrameType::connect:
    case FrameType::accept: {
      const bool connect = type == FrameType::connect;
      const std::byte* at = take(connect ? kConnectFrameBytes : kAcceptFrameBytes);
      if (at == nullptr) return fail();
      frame.connect.version = load<std::uint8_t>(at + 1);
      frame.connect.max_packet = load<std::uint16_t>(at + 2);
      frame.connect.source_connection = load<std::uint32_t>(at + 4);
      frame.connect.credit = load<std::uint32_t>(at + 8);
      frame.connect.tag = load<std::uint64_t>(at + 12);
      frame.connect.lowest = connect ? load<std::uint8_t>(at + 20) : frame.connect.version;
      frame.connect.highest = load<std::uint8_t>(at + (connect ? 21 : 20));
      frame.connect.paths = load<std::uint8_t>(at + (connect ? 22 : 21)) + 1U;
      return true;
    }
    case FrameType::close:
      if (const std::byte* at = take(kCloseFrameBytes)) {
        frame.close = static_cast<CloseReason>(load<std::uint16_t>(at + 2));
        return true;
      }
      return fail();
    case FrameType::retry:
    case FrameType::token:
      if (const std::byte* at = take(kCookieFrameBytes)) {
        frame.cookie = load<std::uint64_t>(at + 4);
        return true;
      }
      return fail();
    case FrameType::key:
      if (const std::byte* at = take(kKeyFrameBytes)) {
        frame.key.id = load<std::uint64_t>(at + 4);
        std::memcpy(frame.key.random.data(), at + 12, frame.key.random.size());
        return true;
      }
      return fail();
    case FrameType::reset:
      if (const std::byte* at = take(kResetFrameBytes)) {
        frame.reset = load<std::uint32_t>(at + 4);
        return true;
      }
      return fail();
    case FrameType::trimmed:
      if (const std::byte* at = take(kTrimmedFrameBytes)) {
        frame.trimmed = {load<std::uint64_t>(at + 4), load<std::uint64_t>(at + 12)};
        return true;
      }
      return fail();
    case FrameType::padding:
      if (const std::byte* at = take(kPaddingFrameBytes)) {
        frame.padding = load<std::uint16_t>(at + 2);
        return take(frame.padding) != nullptr || fail();
      }
      return fail();
  }
  return fail();
}

bool Reader::take_last(DataFrame& data) {
  // A payload that is stored elsewhere, or is virtual, must end the packet.
  if (left_ != 0) return fail();
  if (!tail_.empty()) {
    if (data.length != tail_.size() || virtual_left_ != 0) return fail();
    data.bytes = tail_.data();
    tail_ = {};
    return true;
  }
  if (data.length != virtual_left_) return fail();
  data.bytes = nullptr;
  virtual_left_ = 0;
  return true;
}

bool Reader::next_ack(Frame& frame) {
  if (left_ < kAckFrameBytes) return fail();
  AckFrame& ack = frame.ack;
  ack.range_count = load<std::uint8_t>(at_ + 1);
  if (ack.range_count == 0 || ack.range_count > kMaxAckRanges) return fail();
  const auto flags = load<std::uint8_t>(at_ + 3);
  ack.has_credit = (flags & kAckHasCredit) != 0;
  ack.has_whole = (flags & kAckHasWhole) != 0;
  const bool has_marks = (flags & kAckHasMarks) != 0;
  const std::size_t front = kAckFrameBytes + (ack.has_credit ? kAckCreditBytes : 0) + (has_marks ? kAckMarksBytes : 0);
  const std::size_t size = front + (ack.range_count - 1) * kAckRangeBytes;
  if (left_ < size) return fail();
  ack.hops = load<std::uint8_t>(at_ + 2);
  ack.delay_ns = load<std::uint32_t>(at_ + 4);
  auto last = load<std::uint64_t>(at_ + 8);
  ack.ecn = {load<std::uint32_t>(at_ + 16), load<std::uint32_t>(at_ + 20), load<std::uint32_t>(at_ + 24),
             load<std::uint32_t>(at_ + 28)};
  ack.whole = ack.has_whole ? std::exchange(ack.ecn.ect1_packets, 0) : 0;
  std::uint64_t length = load<std::uint32_t>(at_ + 32);
  ack.credit = ack.has_credit ? load<std::uint32_t>(at_ + 36) : 0;
  ack.marks = has_marks ? load<std::uint64_t>(at_ + front - kAckMarksBytes) : 0;
  const std::byte* at = at_ + front;
  for (std::uint32_t i = 0;; ++i) {
    if (length > last) return fail();
    ack.ranges[i] = {last - length, last};
    if (i + 1 == ack.range_count) break;
    const std::uint64_t step =
        std::uint64_t{load<std::uint32_t>(at)} + 2;  // the field is gap - 1; the next range ends gap + 1 below this one
    if (step > last - length) return fail();
    last = last - length - step;
    length = load<std::uint32_t>(at + 4);
    at += kAckRangeBytes;
  }
  at_ += size;
  left_ -= size;
  return true;
}

void Writer::ack(const AckFrame& frame) {
  std::size_t count = frame.range_count;
  const std::size_t front =
      kAckFrameBytes + (frame.has_credit ? kAckCreditBytes : 0) + (frame.marks != 0 ? kAckMarksBytes : 0);
  const std::size_t fits = 1 + (free_bytes() - front) / kAckRangeBytes;
  if (count > fits) count = fits;
  std::byte* at = take(front + (count - 1) * kAckRangeBytes);
  store(at, static_cast<std::uint8_t>(FrameType::ack));
  store(at + 1, static_cast<std::uint8_t>(count));
  store(at + 2, frame.hops);
  store(at + 3,
        static_cast<std::uint8_t>((frame.has_credit ? kAckHasCredit : 0) | (frame.has_whole ? kAckHasWhole : 0) |
                                  (frame.marks != 0 ? kAckHasMarks : 0)));
  store(at + 4, frame.delay_ns);
  store(at + 8, frame.ranges[0].last);
  store(at + 16, frame.ecn.ect0_packets);
  store(at + 20, frame.has_whole ? frame.whole : frame.ecn.ect1_packets);
  store(at + 24, frame.ecn.ce_packets);
  store(at + 28, frame.ecn.ce_bytes);
  store(at + 32, static_cast<std::uint32_t>(frame.ranges[0].last - frame.ranges[0].first));
  if (frame.has_credit) store(at + 36, frame.credit);
  if (frame.marks != 0) store(at + front - kAckMarksBytes, frame.marks);
  at += front;
  for (std::size_t i = 1; i < count; ++i, at += kAckRangeBytes) {
    store(at, static_cast<std::uint32_t>(frame.ranges[i - 1].first - frame.ranges[i].last - 2));
    store(at + 4, static_cast<std::uint32_t>(frame.ranges[i].last - frame.ranges[i].first));
  }
}

void Writer::credit(const CreditFrame& frame) {
  std::byte* at = take(kCreditFrameBytes);
  store(at, static_cast<std::uint32_t>(FrameType::credit) | (frame.final ? 1U << 8 : 0));
  store(at + 4, frame.messages);
}

void Writer::trimmed(const TrimmedFrame& frame) {
  std::byte* at = take(kTrimmedFrameBytes);
  store(at, static_cast<std::uint32_t>(FrameType::trimmed));
  store(at + 4, frame.largest);
  store(at + 12, frame.map);
}

void Writer::ping() { store(take(kPingFrameBytes), static_cast<std::uint64_t>(FrameType::ping)); }

void Writer::connect(const ConnectFrame& frame) {
  std::byte* at = take(kConnectFrameBytes);
  greet(at, FrameType::connect, frame);
  store(at + 20, frame.lowest);
  store(at + 21, frame.highest);
  store(at + 22, static_cast<std::uint16_t>(frame.paths - 1));
}

void Writer::accept(const ConnectFrame& frame) {
  std::byte* at = take(kAcceptFrameBytes);
  greet(at, FrameType::accept, frame);
  store(at + 20, frame.highest | (frame.paths - 1) << 8);
}

void Writer::close(CloseReason reason) {
  std::byte* at = take(kCloseFrameBytes);
  store(at, static_cast<std::uint16_t>(FrameType::close));
  store(at + 2, static_cast<std::uint16_t>(reason));
}

void Writer::retry(std::uint64_t cookie) { write_cookie(take(kCookieFrameBytes), FrameType::retry, cookie); }
void Writer::token(std::uint64_t cookie) { write_cookie(take(kCookieFrameBytes), FrameType::token, cookie); }

void Writer::reset(std::uint32_t connection) {
  std::byte* at = take(kResetFrameBytes);
  store(at, static_cast<std::uint32_t>(FrameType::reset));
  store(at + 4, connection);
}

void Writer::key(const KeyFrame& frame) {
  std::byte* at = take(kKeyFrameBytes);
  store(at, static_cast<std::uint32_t>(FrameType::key));
  store(at + 4, frame.id);
  std::memcpy(at + 12, frame.random.data(), frame.random.size());
}

void Writer::padding(std::uint16_t bytes) {
  std::byte* at = take(kPaddingFrameBytes + bytes);
  store(at, static_cast<std::uint16_t>(FrameType::padding));
  store(at + 2, bytes);
  std::memset(at + kPaddingFrameBytes, 0, bytes);
}

std::span<std::byte> Writer::finish_unsealed(const Header& header) {
  store(buffer_.data(), RawHeader{magic,
                                  header.flags,
                                  static_cast<std::uint16_t>(used_),
                                  0,
                                  {},
                                  header.connection,
                                  static_cast<std::uint32_t>(header.packet_number),
                                  header.span,
                                  header.job.job,
                                  header.job.iteration,
                                  header.job.progress});
  return buffer_.first(used_);
}

std::span<const std::byte> Writer::finish(const Header& header, std::span<const std::byte> payload) {
  const auto covered = std::span<const std::byte>(buffer_.data(), used_);
  store(buffer_.data(), RawHeader{magic, header.flags, static_cast<std::uint16_t>(used_), 0,
                                  std::bit_cast<std::array<std::uint32_t, 2>>(header.tag), header.connection,
                                  static_cast<std::uint32_t>(header.packet_number), header.span, header.job.job,
                                  header.job.iteration, header.job.progress});
  std::uint32_t crc = crc32c(0, covered);
  if ((header.flags & full_integrity) != 0 && payload.data() != nullptr) crc = crc32c(crc, payload);
  store(buffer_.data() + 4, crc);
  return covered;
}

std::optional<JobTag> peek_job_tag(std::span<const std::byte> packet) {
  if (packet.size() < kHeaderBytes) return std::nullopt;
  const auto raw = load<RawHeader>(packet.data());
  if (raw.magic != magic || (raw.flags & has_job) == 0) return std::nullopt;
  return JobTag{raw.job, raw.iteration, raw.progress};
}

std::uint32_t peek_connection(std::span<const std::byte> packet) {
  if (packet.size() < kHeaderBytes) return 0;
  const auto raw = load<RawHeader>(packet.data());
  return raw.magic == magic ? raw.connection : 0;
}

}  // namespace mltcp::wire
