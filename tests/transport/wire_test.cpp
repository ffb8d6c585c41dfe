// Tests the wire format. Each frame is written and read again, every truncation and every flipped bit is rejected, and
// so are malformed frames. Also tests how 32-bit numbers are widened to 64 bits.
#include "mltcp/transport/wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../random_bytes.h"
#include "mltcp/base/random.h"
#include "mltcp/transport/crc32c.h"

namespace mltcp::wire::wire_test {
namespace {

using ByteVector = std::vector<std::byte>;

constexpr Header kSampleHeader{.flags = has_job | ack_now,
                               .connection = 0x12345678,
                               .span = 99,
                               .packet_number = 0x0123456789ABCDEF,
                               .job = {.job = 0xA0B0C0D0, .iteration = 0x1122, .progress = 0x3344},
                               .tag = 0xFEDCBA9876543210};

/// Returns a packet in memory of its exact size, so that a sanitizer detects reads beyond its end.
ByteVector packet_of(const std::function<void(Writer&)>& write, const ByteVector& payload = {},
                     const Header& header = kSampleHeader) {
  ByteVector buffer(2000);
  Writer writer(buffer);
  write(writer);
  const auto head = writer.finish(header, payload);
  ByteVector packet(head.begin(), head.end());
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

ByteVector packet_of_raw(const ByteVector& frames) {
  return packet_of([&](Writer& writer) { writer.copy(frames.data(), frames.size()); });
}

/// Returns the first error in a packet, and the number of frames before it.
std::pair<ParseError, int> parse(std::span<const std::byte> packet, std::uint32_t virtual_bytes = 0) {
  Reader reader;
  Header header;
  if (const ParseError error = reader.begin(packet, virtual_bytes, header); error != ParseError::none)
    return {error, 0};
  Frame frame;
  int frames = 0;
  while (reader.next(frame)) ++frames;
  return {reader.error(), frames};
}

/// Returns the only frame of a packet.
Frame frame_of(std::span<const std::byte> packet, std::uint32_t virtual_bytes = 0) {
  Reader reader;
  Header header;
  Frame frame;
  EXPECT_EQ(reader.begin(packet, virtual_bytes, header), ParseError::none);
  EXPECT_TRUE(reader.next(frame));
  Frame none;
  EXPECT_FALSE(reader.next(none));
  EXPECT_EQ(reader.error(), ParseError::none);
  return frame;
}

AckFrame sample_ack(std::uint32_t ranges) {
  AckFrame ack;
  ack.delay_ns = 12345;
  ack.ecn = {0xFFFFFFFE, 2, 0x80000001, 4};
  ack.has_credit = ranges % 2 != 0;
  ack.credit = 0xFEDCBA98;
  std::uint64_t last = 0x1'0000'0000'0000;
  for (std::uint32_t i = 0; i < ranges; ++i) {
    ack.ranges[i] = {last - i, last};
    last = last - 2 - std::uint64_t{4} * i;
  }
  ack.range_count = ranges;
  return ack;
}

/// Returns one packet of each kind, and one that contains frames of several kinds.
std::vector<std::pair<std::string, ByteVector>> sample_packets() {
  std::vector<std::pair<std::string, ByteVector>> packets;
  const auto payload = random_bytes(300, 1);
  const auto add = [&](const char* name, const std::function<void(Writer&)>& write, const ByteVector& tail = {},
                       Header header = kSampleHeader) { packets.emplace_back(name, packet_of(write, tail, header)); };
  const auto data = [&](Writer& w) { w.data({.last = true, .message = 7, .offset = 100, .length = 300}); };
  Header full = kSampleHeader;
  full.flags |= full_integrity;
  add("data", data, payload);
  add("data with full integrity", data, payload, full);
  add("copied data", [&](Writer& w) {
    w.data({.last = false, .message = 7, .offset = 100, .length = 20});
    w.copy(payload.data(), 20);
  });
  add("empty data", [](Writer& w) { w.data({.last = true, .message = 7, .offset = 0, .length = 0}); });
  add("ack", [](Writer& w) { w.ack(sample_ack(1)); });
  add("ack of many", [](Writer& w) { w.ack(sample_ack(kMaxAckRanges)); });
  add("credit", [](Writer& w) { w.credit({.messages = 0xDEADBEEF}); });
  add("ping", [](Writer& w) { w.ping(); });
  add("trimmed", [](Writer& w) { w.trimmed({9, 5}); });
  add("padding", [](Writer& w) { w.padding(9); });
  add("connect", [](Writer& w) {
    w.connect({.max_packet = 1472, .source_connection = 5, .credit = 6, .tag = 0x8877665544332211});
  });
  add("connect with a cookie", [](Writer& w) {
    w.connect({.max_packet = 1472, .source_connection = 5, .credit = 6, .tag = 0x8877665544332211});
    w.token(0x1122334455667788);
  });
  add("accept", [](Writer& w) { w.accept({.max_packet = 1472, .source_connection = 5, .credit = 6, .tag = 7}); });
  add("retry", [](Writer& w) { w.retry(0x1122334455667788); });
  add("reset", [](Writer& w) { w.reset(0x12345678); });
  add("close", [](Writer& w) { w.close(CloseReason::full); });
  add(
      "everything",
      [&](Writer& w) {
        w.ack(sample_ack(3));
        w.connect({.max_packet = 1472, .source_connection = 5, .credit = 6, .tag = 9});
        w.accept({.max_packet = 1472, .source_connection = 5, .credit = 6});
        w.credit({.messages = 1});
        w.close(CloseReason::done);
        w.ping();
        w.data({.last = true, .message = 6, .offset = 0, .length = 10});
        w.copy(payload.data(), 10);
        w.data({.last = true, .message = 7, .offset = 100, .length = 300});
      },
      payload);
  return packets;
}

TEST(Wire, header__there_and_back) {
  const auto packet = packet_of([](Writer& w) { w.ping(); });
  Reader reader;
  Header header;
  ASSERT_EQ(reader.begin(packet, 0, header), ParseError::none);
  EXPECT_EQ(header.flags, kSampleHeader.flags);
  EXPECT_EQ(header.connection, kSampleHeader.connection);
  EXPECT_EQ(header.span, kSampleHeader.span);
  EXPECT_EQ(header.packet_number, kSampleHeader.packet_number & 0xFFFFFFFF);
  EXPECT_EQ(header.tag, kSampleHeader.tag);
  EXPECT_EQ(header.job.job, kSampleHeader.job.job);
  EXPECT_EQ(header.job.iteration, kSampleHeader.job.iteration);
  EXPECT_EQ(header.job.progress, kSampleHeader.job.progress);
}

TEST(Wire, header__lies_in_memory_as_documented) {
  const auto packet = packet_of([](Writer& w) { w.ping(); });
  ASSERT_EQ(packet.size(), 44u);
  auto expected = bytes_of({0xA3, 0x0A, 44,   0,    0,    0,    0,    0,    0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC,
                            0xFE, 0x78, 0x56, 0x34, 0x12, 0xEF, 0xCD, 0xAB, 0x89, 99,   0,    0,    0,    0xD0, 0xC0,
                            0xB0, 0xA0, 0x22, 0x11, 0x44, 0x33, 4,    0,    0,    0,    0,    0,    0,    0});
  const std::uint32_t checksum = crc32c_portable(0, expected);
  std::memcpy(expected.data() + 4, &checksum, 4);
  EXPECT_EQ(packet, expected);
}

TEST(Wire, data__there_and_back_gathered_and_copied) {
  const auto payload = random_bytes(300, 1);
  for (const bool gathered : {true, false}) {
    const auto packet = packet_of(
        [&](Writer& w) {
          w.data({.last = true, .message = 0xFFFFFFFF, .offset = 0xFFFFFFFE, .length = 300});
          if (!gathered) w.copy(payload.data(), payload.size());
        },
        gathered ? payload : ByteVector{});
    const Frame frame = frame_of(packet);
    ASSERT_EQ(frame.type, FrameType::data);
    EXPECT_TRUE(frame.data.last);
    EXPECT_EQ(frame.data.message, 0xFFFFFFFFu);
    EXPECT_EQ(frame.data.offset, 0xFFFFFFFEu);
    ASSERT_EQ(frame.data.length, 300u);
    EXPECT_EQ(std::memcmp(frame.data.bytes, payload.data(), 300), 0);
  }
}

TEST(Wire, data__several_in_one_packet) {
  const auto payload = random_bytes(300, 1);
  const auto packet = packet_of(
      [&](Writer& w) {
        w.data({.last = true, .message = 1, .offset = 0, .length = 0});
        w.data({.last = false, .message = 2, .offset = 0, .length = 5});
        w.copy(payload.data(), 5);
        w.data({.last = true, .message = 3, .offset = 50, .length = 300});
      },
      payload);
  Reader reader;
  Header header;
  Frame frame;
  ASSERT_EQ(reader.begin(packet, 0, header), ParseError::none);
  ASSERT_TRUE(reader.next(frame));
  EXPECT_EQ(frame.data.message, 1u);
  EXPECT_EQ(frame.data.length, 0u);
  ASSERT_TRUE(reader.next(frame));
  EXPECT_EQ(frame.data.message, 2u);
  EXPECT_FALSE(frame.data.last);
  EXPECT_EQ(std::memcmp(frame.data.bytes, payload.data(), 5), 0);
  ASSERT_TRUE(reader.next(frame));
  EXPECT_EQ(frame.data.message, 3u);
  EXPECT_EQ(std::memcmp(frame.data.bytes, payload.data(), 300), 0);
  EXPECT_FALSE(reader.next(frame));
  EXPECT_EQ(reader.error(), ParseError::none);
}

TEST(Wire, ack__tells_whole_messages_or_ect1_packets) {
  AckFrame ack = sample_ack(3);
  Frame frame = frame_of(packet_of([&](Writer& w) { w.ack(ack); }));
  EXPECT_FALSE(frame.ack.has_whole);
  EXPECT_EQ(frame.ack.whole, 0u);
  EXPECT_EQ(frame.ack.ecn.ect1_packets, 2u);
  const std::size_t size = packet_of([&](Writer& w) { w.ack(ack); }).size();
  ack.has_whole = true;
  ack.whole = 0xFFFFFFF0;
  EXPECT_EQ(packet_of([&](Writer& w) { w.ack(ack); }).size(), size);
  frame = frame_of(packet_of([&](Writer& w) { w.ack(ack); }));
  EXPECT_TRUE(frame.ack.has_whole);
  EXPECT_EQ(frame.ack.marks, 0U);
  EXPECT_EQ(frame.ack.whole, 0xFFFFFFF0u);
  EXPECT_EQ(frame.ack.ecn.ect1_packets, 0u);
  EXPECT_EQ(frame.ack.ecn.ect0_packets, ack.ecn.ect0_packets);
  EXPECT_EQ(frame.ack.ecn.ce_packets, ack.ecn.ce_packets);
  EXPECT_EQ(frame.ack.credit, ack.credit);
}

TEST(Wire, ack__tells_marked_packets) {
  for (const bool has_credit : {false, true}) {
    AckFrame ack = sample_ack(3);
    ack.has_credit = has_credit;
    const std::size_t size = packet_of([&](Writer& w) { w.ack(ack); }).size();
    ack.marks = 0x8000000000000005;
    const auto bytes = packet_of([&](Writer& w) { w.ack(ack); });
    EXPECT_EQ(bytes.size(), size + kAckMarksBytes);
    const Frame frame = frame_of(bytes);
    EXPECT_EQ(frame.ack.marks, ack.marks);
    EXPECT_EQ(frame.ack.has_credit, has_credit);
    EXPECT_EQ(frame.ack.range_count, 3U);
    EXPECT_EQ(frame.ack.ranges[2].last, ack.ranges[2].last);
  }
}

TEST(Wire, ack__there_and_back_with_every_number_of_ranges) {
  for (std::uint32_t count = 1; count <= kMaxAckRanges; ++count) {
    const AckFrame ack = sample_ack(count);
    const Frame frame = frame_of(packet_of([&](Writer& w) { w.ack(ack); }));
    ASSERT_EQ(frame.type, FrameType::ack);
    EXPECT_EQ(frame.ack.delay_ns, 12345u);
    EXPECT_EQ(frame.ack.ecn.ect0_packets, ack.ecn.ect0_packets);
    EXPECT_EQ(frame.ack.ecn.ect1_packets, ack.ecn.ect1_packets);
    EXPECT_EQ(frame.ack.ecn.ce_packets, ack.ecn.ce_packets);
    EXPECT_EQ(frame.ack.ecn.ce_bytes, ack.ecn.ce_bytes);
    EXPECT_EQ(frame.ack.has_credit, count % 2 != 0);
    EXPECT_EQ(frame.ack.credit, count % 2 != 0 ? 0xFEDCBA98u : 0);
    ASSERT_EQ(frame.ack.range_count, count);
    for (std::uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(frame.ack.ranges[i].first, ack.ranges[i].first) << i;
      ASSERT_EQ(frame.ack.ranges[i].last, ack.ranges[i].last) << i;
    }
  }
}

TEST(Wire, ack__writes_as_many_ranges_as_fit) {
  for (std::size_t free_bytes = kAckFrameBytes; free_bytes < kMaxAckBytes + 20; ++free_bytes) {
    ByteVector buffer(kHeaderBytes + free_bytes);
    Writer writer(buffer);
    writer.ack(sample_ack(kMaxAckRanges));
    ASSERT_LE(writer.used(), buffer.size());
    const Frame frame = frame_of(writer.finish(kSampleHeader, {}));
    ASSERT_EQ(frame.ack.range_count, std::min<std::size_t>(kMaxAckRanges, 1 + (free_bytes - kAckFrameBytes) / 8));
  }
}

TEST(Wire, control__there_and_back) {
  for (const bool final : {false, true}) {
    const Frame frame = frame_of(packet_of([&](Writer& w) { w.credit({0xDEADBEEF, final}); }));
    EXPECT_EQ(frame.credit.messages, 0xDEADBEEFu);
    EXPECT_EQ(frame.credit.final, final);
  }
  EXPECT_EQ(frame_of(packet_of([](Writer& w) { w.ping(); })).type, FrameType::ping);
  for (const std::uint16_t bytes : std::initializer_list<std::uint16_t>{0, 1, 700}) {
    const Frame frame = frame_of(packet_of([&](Writer& w) { w.padding(bytes); }));
    EXPECT_EQ(frame.type, FrameType::padding);
    EXPECT_EQ(frame.padding, bytes);
  }
  for (const auto reason :
       {CloseReason::done, CloseReason::refused, CloseReason::full, CloseReason::version, CloseReason::aborted}) {
    const Frame frame = frame_of(packet_of([&](Writer& w) { w.close(reason); }));
    EXPECT_EQ(frame.type, FrameType::close);
    EXPECT_EQ(frame.close, reason);
  }
  const ConnectFrame sent{.version = 200,
                          .max_packet = 65535,
                          .source_connection = 0xFFFFFFF0,
                          .credit = 0xFFFFFFF1,
                          .tag = ~0ULL - 1,
                          .lowest = 100,
                          .highest = 250,
                          .paths = 256};
  for (const bool connect : {true, false}) {
    const Frame frame = frame_of(packet_of([&](Writer& w) { connect ? w.connect(sent) : w.accept(sent); }));
    EXPECT_EQ(frame.type, connect ? FrameType::connect : FrameType::accept);
    EXPECT_EQ(frame.connect.version, sent.version);
    EXPECT_EQ(frame.connect.max_packet, sent.max_packet);
    EXPECT_EQ(frame.connect.source_connection, sent.source_connection);
    EXPECT_EQ(frame.connect.credit, sent.credit);
    EXPECT_EQ(frame.connect.tag, sent.tag);
    EXPECT_EQ(frame.connect.lowest, connect ? sent.lowest : sent.version);
    EXPECT_EQ(frame.connect.highest, sent.highest);
    EXPECT_EQ(frame.connect.paths, sent.paths);
  }
  for (const bool asks : {true, false}) {
    const Frame frame = frame_of(packet_of([&](Writer& w) { asks ? w.retry(~0ULL - 5) : w.token(~0ULL - 5); }));
    EXPECT_EQ(frame.type, asks ? FrameType::retry : FrameType::token);
    EXPECT_EQ(frame.cookie, ~0ULL - 5);
  }
  const Frame reset = frame_of(packet_of([](Writer& w) { w.reset(0xFEDCBA98); }));
  EXPECT_EQ(reset.type, FrameType::reset);
  EXPECT_EQ(reset.reset, 0xFEDCBA98u);
}

TEST(Wire, truncation__every_length_of_every_packet_is_refused) {
  for (const auto& [name, packet] : sample_packets()) {
    ASSERT_EQ(parse(packet).first, ParseError::none) << name;
    for (std::size_t length = 0; length < packet.size(); ++length) {
      const ByteVector cut(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(length));
      ASSERT_NE(parse(cut).first, ParseError::none) << name << " cut to " << length;
      if (length < kHeaderBytes) {
        ASSERT_EQ(parse(cut).first, ParseError::truncated);
      }
    }
  }
}

TEST(Wire, trailing_bytes__are_refused) {
  for (auto [name, packet] : sample_packets()) {
    packet.push_back(std::byte{0});
    ASSERT_NE(parse(packet).first, ParseError::none) << name;
  }
}

TEST(Wire, bit_flips__in_what_the_checksum_covers_are_refused) {
  for (auto [name, packet] : sample_packets()) {
    std::size_t covered = std::to_integer<std::size_t>(packet[2]) | std::to_integer<std::size_t>(packet[3]) << 8;
    if ((std::to_integer<unsigned>(packet[1]) & full_integrity) != 0) covered = packet.size();
    for (std::size_t bit = 0; bit < covered * 8; ++bit) {
      packet[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      Reader reader;
      Header header;
      ASSERT_NE(reader.begin(packet, 0, header), ParseError::none) << name << " bit " << bit;
      packet[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }
    ASSERT_EQ(parse(packet).first, ParseError::none);
  }
}

TEST(Wire, bit_flips__in_a_gathered_payload_are_left_to_lower_layers) {
  auto packet = sample_packets()[0].second;
  packet.back() ^= std::byte{1};
  EXPECT_EQ(parse(packet).first, ParseError::none);
}

TEST(Wire, refusal__says_why) {
  auto packet = packet_of([](Writer& w) { w.ping(); });
  packet[0] = std::byte{0xA2};
  EXPECT_EQ(parse(packet).first, ParseError::foreign);
  packet[0] = std::byte{0xA1};
  EXPECT_EQ(parse(packet).first, ParseError::foreign) << "version 2";
  packet[0] = std::byte{0xA3};
  packet[2] = std::byte{35};
  EXPECT_EQ(parse(packet).first, ParseError::malformed);
  packet[2] = std::byte{45};
  EXPECT_EQ(parse(packet).first, ParseError::truncated);
  packet[2] = std::byte{44};
  packet[9] ^= std::byte{4};
  EXPECT_EQ(parse(packet).first, ParseError::checksum);
}

TEST(Wire, flags_kept_for_later__are_refused) {
  for (const unsigned flag : {4U, 128U}) {
    Header header = kSampleHeader;
    header.flags |= static_cast<std::uint8_t>(flag);
    EXPECT_EQ(parse(packet_of([](Writer& w) { w.ping(); }, {}, header)).first, ParseError::malformed) << flag;
  }
}

TEST(Wire, version__the_highest_in_common_and_no_other) {
  const auto chosen = [](std::uint8_t min, std::uint8_t highest) {
    return chosen_version({.lowest = min, .highest = highest});
  };
  EXPECT_EQ(chosen(kProtocolVersion, kProtocolVersion), kProtocolVersion);
  EXPECT_EQ(chosen(1, 200), kProtocolVersion);
  EXPECT_EQ(chosen(kProtocolVersion + 1, 200), 0);
  EXPECT_EQ(chosen(1, kMinVersion - 1), 0);
  EXPECT_TRUE(is_right_choice({.version = kProtocolVersion, .highest = 200}));
  EXPECT_FALSE(is_right_choice({.version = kProtocolVersion + 1, .highest = 200})) << "not ours";
  EXPECT_FALSE(is_right_choice({.version = kMinVersion - 1, .highest = 200})) << "less than the server could";
  EXPECT_FALSE(is_right_choice({.version = kMinVersion - 1, .highest = kMinVersion - 1}));
}

/// Returns a CONNECT packet as version 2 of the protocol writes it.
ByteVector version_2_connect() {
  auto packet = bytes_of({0xA1, 0, 52, 0, 0, 0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                          0,    0, 0,  0, 0, 0, 5, 2, 0xC0, 0x05, 9, 8, 7, 6, 1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8});
  const std::uint32_t checksum = crc32c_portable(0, packet);
  std::memcpy(packet.data() + 4, &checksum, 4);
  return packet;
}

TEST(Wire, version_2__its_connect_is_known_and_answered_with_less) {
  const auto packet = version_2_connect();
  EXPECT_EQ(parse(packet).first, ParseError::foreign);
  EXPECT_EQ(source_of_version_2_connect(packet), 0x06070809u);
  for (std::size_t i = 0; i < packet.size(); ++i) {
    auto damaged = packet;
    damaged[i] ^= std::byte{1};
    EXPECT_EQ(source_of_version_2_connect(damaged), 0u) << i;
    EXPECT_EQ(source_of_version_2_connect(std::span(packet).first(i)), 0u) << i;
  }
  const auto answer = version_2_close(0x06070809);
  EXPECT_LT(answer.size(), packet.size());
  auto expected = bytes_of(
      {0xA1, 0, 36, 0, 0, 0, 0, 0, 9, 8, 7, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 3, 0});
  const std::uint32_t checksum = crc32c_portable(0, expected);
  std::memcpy(expected.data() + 4, &checksum, 4);
  EXPECT_EQ(ByteVector(answer.begin(), answer.end()), expected);
}

TEST(Wire, unknown_frame__is_malformed) {
  for (unsigned type = 0; type < 256; ++type) {
    if (type >= 1 && type <= 10) continue;
    EXPECT_EQ(parse(packet_of_raw(bytes_of({type, 0, 0, 0, 0, 0, 0, 0}))).first, ParseError::malformed) << type;
  }
}

ByteVector raw_ack(unsigned count, std::uint64_t largest, std::uint32_t first_length,
                   const std::vector<std::pair<std::uint32_t, std::uint32_t>>& more) {
  ByteVector frame = bytes_of({2, count, 0, 0});
  const auto put = [&](auto value) {
    const auto* at = reinterpret_cast<const std::byte*>(&value);
    frame.insert(frame.end(), at, at + sizeof value);
  };
  put(std::uint32_t{5});
  put(largest);
  for (std::uint32_t i = 0; i < 4; ++i) put(i);
  put(first_length);
  for (const auto& [gap, length] : more) {
    put(gap);
    put(length);
  }
  return frame;
}

TEST(Wire, ack__malformed_ranges_are_refused) {
  using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  const auto error = [](const ByteVector& frame) { return parse(packet_of_raw(frame)).first; };
  EXPECT_EQ(error(raw_ack(1, 10, 10, {})), ParseError::none) << "0..10";
  EXPECT_EQ(error(raw_ack(1, 10, 11, {})), ParseError::malformed) << "from below 0";
  EXPECT_EQ(error(raw_ack(0, 10, 1, {})), ParseError::malformed) << "no ranges";
  EXPECT_EQ(error(raw_ack(2, 10, 3, Ranges{{0, 0}})), ParseError::none) << "7..10 and 5";
  EXPECT_EQ(error(raw_ack(2, 10, 3, Ranges{{5, 0}})), ParseError::none) << "7..10 and 0";
  EXPECT_EQ(error(raw_ack(2, 10, 3, Ranges{{6, 0}})), ParseError::malformed) << "a gap down to below 0";
  EXPECT_EQ(error(raw_ack(2, 10, 3, Ranges{{0, 6}})), ParseError::malformed) << "a range down to below 0";
  EXPECT_EQ(error(raw_ack(2, 10, 3, Ranges{{0xFFFFFFFF, 0}})), ParseError::malformed);
  EXPECT_EQ(error(raw_ack(2, 10, 3, Ranges{{0xFFFFFFFE, 0xFFFFFFFF}})), ParseError::malformed);
  EXPECT_EQ(error(raw_ack(2, 10, 3, {})), ParseError::malformed) << "fewer ranges than promised";
  EXPECT_EQ(error(raw_ack(1, ~0ULL, 0xFFFFFFFF, {})), ParseError::none);
  Ranges many(32, {0, 0});
  EXPECT_EQ(error(raw_ack(33, 1000, 0, many)), ParseError::malformed) << "more than 32";
  many.pop_back();
  EXPECT_EQ(error(raw_ack(32, 1000, 0, many)), ParseError::none);
  EXPECT_EQ(error(raw_ack(32, 61, 0, many)), ParseError::malformed) << "32 ranges need 63 packet numbers";
  EXPECT_EQ(error(raw_ack(32, 62, 0, many)), ParseError::none);
}

TEST(Wire, ack__random_bytes_give_falling_ranges_or_none) {
  Random random(9);
  for (int i = 0; i < 20'000; ++i) {
    const auto count = static_cast<unsigned>(1 + random.below(5));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> more(count - 1);
    for (auto& [gap, length] : more) {
      gap = static_cast<std::uint32_t>(random.below(1000));
      length = static_cast<std::uint32_t>(random.below(1000));
    }
    const auto packet =
        packet_of_raw(raw_ack(count, random.below(4000), static_cast<std::uint32_t>(random.below(500)), more));
    Reader reader;
    Header header;
    Frame frame;
    ASSERT_EQ(reader.begin(packet, 0, header), ParseError::none);
    if (!reader.next(frame)) continue;
    for (std::uint32_t k = 0; k < frame.ack.range_count; ++k) {
      ASSERT_LE(frame.ack.ranges[k].first, frame.ack.ranges[k].last);
      ASSERT_LT(frame.ack.ranges[k].last, 4000u);
      if (k > 0) {
        ASSERT_LT(frame.ack.ranges[k].last + 1, frame.ack.ranges[k - 1].first);
      }
    }
  }
}

TEST(Wire, virtual_payload__ends_the_packet) {
  for (const std::uint8_t flags : {std::uint8_t{0}, std::uint8_t{full_integrity}}) {
    Header header = kSampleHeader;
    header.flags = flags;
    ByteVector buffer(100);
    Writer writer(buffer);
    writer.data({.last = false, .message = 1, .offset = 2, .length = 1000});
    // The payload has a length but no bytes, which is how the transport passes a virtual payload to finish().
    const auto head = writer.finish(header, {static_cast<const std::byte*>(nullptr), 1000});
    const Frame frame = frame_of(head, 1000);
    EXPECT_EQ(frame.data.length, 1000u);
    EXPECT_EQ(frame.data.bytes, nullptr);
    EXPECT_EQ(parse(head, 999).first, ParseError::malformed);
    EXPECT_EQ(parse(head, 1001).first, ParseError::malformed);
    EXPECT_EQ(parse(head, 0).first, ParseError::malformed);
  }
}

TEST(Wire, virtual_payload__belongs_to_a_data_frame) {
  EXPECT_EQ(parse(packet_of([](Writer& w) { w.ping(); }), 10).first, ParseError::malformed);
  EXPECT_EQ(parse(packet_of([](Writer&) {}), 10).first, ParseError::malformed);
  // Half of the payload's bytes are present and half are virtual.
  const auto mixed = packet_of([](Writer& w) { w.data({.last = true, .message = 1, .offset = 0, .length = 20}); },
                               random_bytes(10, 1));
  EXPECT_EQ(parse(mixed, 10).first, ParseError::malformed);
}

TEST(Wire, empty_packet__is_valid_and_has_no_frames) {
  EXPECT_EQ(parse(packet_of([](Writer&) {})), std::pair(ParseError::none, 0));
}

TEST(Wire, random_bytes__never_read_beyond_the_end) {
  Random random(11);
  for (int i = 0; i < 50'000; ++i) {
    const auto frames = random_bytes(random.below(120), random.next());
    auto packet = packet_of_raw(frames);
    if (random.chance(0.5) && !frames.empty()) packet[kHeaderBytes] = static_cast<std::byte>(1 + random.below(10));
    packet[1] &= ~std::byte{(sealed | epoch)};
    // Recomputes the checksum, so that the reader parses the changed frames.
    std::memset(packet.data() + 4, 0, 4);
    const std::uint32_t checksum = crc32c(0, packet);
    std::memcpy(packet.data() + 4, &checksum, 4);
    ASSERT_NE(parse(packet, static_cast<std::uint32_t>(random.below(3) * 20)).first, ParseError::checksum);
  }
}

TEST(Widen, near__the_expected_value) {
  EXPECT_EQ(widen(5, 3), 5u);
  EXPECT_EQ(widen(5, 5), 5u);
  EXPECT_EQ(widen(3, 5), 3u);
  EXPECT_EQ(widen(0x7FFFFFFF, 0), 0x7FFFFFFFu);
}

TEST(AckRatio, packets__there_and_back_rounded_down_to_a_power_of_two) {
  const auto back = [](std::uint32_t packets) { return asked_ack_ratio(ask_ack_ratio(packets)); };
  for (const auto& [packets, asked] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
           {0, 1}, {1, 1}, {2, 2}, {3, 2}, {4, 4}, {31, 16}, {32, 32}, {127, 64}, {128, 128}, {0xFFFFFFFF, 128}})
    EXPECT_EQ(back(packets), asked) << packets;
  constexpr auto others = std::uint8_t{full_integrity | ack_now | has_job};
  EXPECT_EQ(ask_ack_ratio(0xFFFFFFFF) & others, 0);
  EXPECT_EQ(asked_ack_ratio(others), 1U);
}

TEST(Widen, around__a_turn_of_32_bits) {
  constexpr std::uint64_t turn = std::uint64_t{1} << 32;
  EXPECT_EQ(widen(0, turn - 1), turn);
  EXPECT_EQ(widen(5, turn - 5), turn + 5);
  EXPECT_EQ(widen(0xFFFFFFFF, turn), turn - 1);
  EXPECT_EQ(widen(0xFFFFFFF0, turn + 5), turn - 16);
  EXPECT_EQ(widen(0, 7 * turn), 7 * turn);
  EXPECT_EQ(widen(0xFFFFFFFF, 7 * turn), 7 * turn - 1);
}

TEST(Widen, near_zero__never_below_it) {
  constexpr std::uint64_t turn = std::uint64_t{1} << 32;
  EXPECT_EQ(widen(0xFFFFFFFF, 0), turn - 1);
  EXPECT_EQ(widen(0xFFFFFFFF, 5), turn - 1);
  EXPECT_EQ(widen(0x80000001, 0), 0x80000001u);
}

TEST(Widen, every__distance_below_half_a_turn) {
  Random random(3);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t expected = (std::uint64_t{1} << 31) + (random.next() >> 4);
    const std::uint64_t value = expected + random.below(0x7FFFFFFF) - random.below(0x7FFFFFFF);
    ASSERT_EQ(widen(static_cast<std::uint32_t>(value), expected), value);
  }
}

TEST(PeekJobTag, tag__of_packets_that_carry_one) {
  const auto packet = packet_of([](Writer& w) { w.ping(); });
  const auto tag = peek_job_tag(packet);
  ASSERT_TRUE(tag.has_value());
  EXPECT_EQ(tag->job, kSampleHeader.job.job);
  EXPECT_EQ(tag->iteration, kSampleHeader.job.iteration);
  EXPECT_EQ(tag->progress, kSampleHeader.job.progress);
}

TEST(PeekJobTag, none__without_flag_magic_or_length) {
  auto packet = packet_of([](Writer& w) { w.ping(); });
  EXPECT_FALSE(peek_job_tag(std::span(packet).first(kHeaderBytes - 1)).has_value());
  EXPECT_TRUE(peek_job_tag(std::span(packet).first(kHeaderBytes)).has_value());
  packet[1] &= ~std::byte{has_job};
  EXPECT_FALSE(peek_job_tag(packet).has_value());
  packet[1] |= std::byte{has_job};
  packet[0] = std::byte{0};
  EXPECT_FALSE(peek_job_tag(packet).has_value());
  EXPECT_FALSE(peek_job_tag({}).has_value());
}

TEST(PeekConnection, connection__of_packets_of_this_protocol) {
  auto packet = packet_of([](Writer& w) { w.ping(); });
  EXPECT_EQ(peek_connection(packet), kSampleHeader.connection);
  EXPECT_EQ(peek_connection(std::span(packet).first(kHeaderBytes)), kSampleHeader.connection);
  EXPECT_EQ(peek_connection(std::span(packet).first(kHeaderBytes - 1)), 0U);
  packet[0] = std::byte{0};
  EXPECT_EQ(peek_connection(packet), 0U);
}

}  // namespace
}  // namespace mltcp::wire::wire_test
