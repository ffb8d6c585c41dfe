// Tests the dissector in tshark: every field of every kind of frame has the value that was written. The test includes
// packets that the capture or their sender truncates, and random bytes. No line of Lua may fail.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/transport/capture/capture.h"
#include "mltcp/transport/wire.h"
#include "tshark.h"

namespace mltcp::capture::dissector_test {
namespace {

using Json = nlohmann::ordered_json;
using test::Folder;
using test::tshark;

const Address kOwn = Address::v4(0x0A000001, 5555);
const Address kPeer = Address::v4(0x0A000002, 6666);

std::vector<std::byte> packet_of(const wire::Header& header, const std::function<void(wire::Writer&)>& write,
                                 std::span<const std::byte> payload = {}) {
  std::vector<std::byte> buffer(2000);
  wire::Writer writer(buffer);
  write(writer);
  const auto head = writer.finish(header, payload);
  std::vector<std::byte> packet(head.begin(), head.end());
  packet.insert(packet.end(), payload.begin(), payload.end());
  return packet;
}

void capture_to(const std::string& file, std::span<const std::vector<std::byte>> packets, std::uint32_t snap = 65535) {
  std::int64_t time = 0;
  Capture capture({.file = file, .snap_bytes = snap}, [&] { return Nanos(++time * 1000); });
  Tap& tap = capture.add("test", "", kOwn);
  capture.start();
  for (const auto& bytes : packets) {
    RxPacket packet;
    packet.source = kPeer;
    packet.bytes = bytes;
    tap.received(packet, tap.now());
  }
  ASSERT_EQ(capture.finish().dropped, 0U);
}

/// All values of all fields "mltcp.*" of a packet, by field name, in order.
using Fields = std::multimap<std::string, std::string>;

void collect(const Json& node, Fields& into) {
  if (node.is_array()) {
    for (const Json& item : node) collect(item, into);
    return;
  }
  if (!node.is_object()) return;
  for (const auto& [key, value] : node.items()) {
    const auto add = [&](const Json& one) {
      if (one.is_string() && key.starts_with("mltcp.")) into.emplace(key, one.get<std::string>());
      collect(one, into);
    };
    if (value.is_array())
      for (const Json& one : value) add(one);
    else
      add(value);
  }
}

std::vector<Fields> dissect(const std::string& file) {
  const Json packets = Json::parse(tshark(file, "-T json --no-duplicate-keys"));
  std::vector<Fields> result;
  for (const Json& packet : packets) collect(packet.at("_source").at("layers"), result.emplace_back());
  return result;
}

std::string value_of(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  return found == fields.end() ? "none" : found->second;
}

std::vector<std::string> values_of(const Fields& fields, const std::string& name) {
  std::vector<std::string> values;
  const auto [first, last] = fields.equal_range(name);
  for (auto at = first; at != last; ++at) values.push_back(at->second);
  return values;
}

constexpr wire::Header kHeader{.flags = wire::has_job | wire::ack_now | 3 << 4,
                               .connection = 0x12345678,
                               .span = 99,
                               .packet_number = 0x0123456789ABCDEF,
                               .job = {.job = 7, .iteration = 513, .progress = 13107},
                               .tag = 0xFEDCBA9876543210};

std::vector<std::vector<std::byte>> every_kind() {
  const std::vector<std::byte> payload(100, std::byte{0xAB});
  wire::Header plain;
  plain.connection = 1;
  wire::Header full = plain;
  full.flags = wire::full_integrity;
  wire::AckFrame ack;
  ack.delay_ns = 12345;
  ack.hops = 3;
  ack.ecn = {100, 1, 7, 9000};
  ack.has_credit = true;
  ack.credit = 55;
  ack.marks = 0x8000000000000005;
  ack.range_count = 3;
  ack.ranges[0] = {0x100000000, 0x100000009};
  ack.ranges[1] = {50, 60};
  ack.ranges[2] = {0, 40};
  wire::AckFrame whole;
  whole.has_whole = true;
  whole.whole = 31;
  whole.range_count = 1;
  whole.ranges[0] = {5, 5};
  return {
      packet_of(
          kHeader,
          [](wire::Writer& writer) {
            writer.data({true, 3, 4096, 100, nullptr});
          },
          payload),
      packet_of(
          full,
          [](wire::Writer& writer) {
            writer.data({false, 0, 0, 100, nullptr});
          },
          payload),
      packet_of(plain, [&](wire::Writer& writer) { writer.ack(ack); }),
      packet_of(plain, [&](wire::Writer& writer) { writer.ack(whole); }),
      packet_of(plain,
                [](wire::Writer& writer) {
                  writer.credit({77, true});
                }),
      packet_of(plain, [](wire::Writer& writer) { writer.ping(); }),
      packet_of(wire::Header{},
                [](wire::Writer& writer) {
                  writer.connect({3, 1472, 0xAABBCCDD, 9, 0x1122334455667788, 2, 5, 9});
                  writer.token(0x99);
                }),
      packet_of(plain,
                [](wire::Writer& writer) {
                  writer.accept({3, 9000, 0x11, 12, 0x2233, 3, 4, 256});
                }),
      packet_of(plain, [](wire::Writer& writer) { writer.close(wire::CloseReason::aborted); }),
      packet_of(plain,
                [&](wire::Writer& writer) {
                  writer.ack(whole);
                  writer.credit({1, false});
                  writer.data({true, 1, 0, 2, nullptr});
                  writer.copy(payload.data(), 2);
                  writer.data({true, 2, 0, 3, nullptr});
                  writer.copy(payload.data(), 3);
                }),
      packet_of(plain, [](wire::Writer& writer) { writer.retry(0x8877665544332211); }),
      packet_of(wire::Header{}, [](wire::Writer& writer) { writer.reset(0xAABBCCDD); }),
      packet_of(plain, [](wire::Writer& writer) { writer.padding(3); }),
  };
}

TEST(Dissector, every_kind_of_frame__every_field_as_written) {
  if (!test::has_tshark()) GTEST_SKIP() << test::kNoTshark;
  const Folder folder;
  const std::string file = folder.file("all.pcapng");
  capture_to(file, every_kind());
  const auto packets = dissect(file);
  ASSERT_EQ(packets.size(), 13U);
  struct Expected {
    std::size_t packet;
    std::string field;
    std::string value;
  };
  const std::vector<Expected> expected{
      {0, "mltcp.magic", "0xa3"},
      {0, "mltcp.flags", "0x3a"},
      {0, "mltcp.flags.full_integrity", "0"},
      {0, "mltcp.flags.ack_now", "1"},
      {0, "mltcp.flags.has_job", "1"},
      {0, "mltcp.flags.ack_ratio_log2", "3"},
      {0, "mltcp.ack_ratio", "8"},
      {0, "mltcp.covered", "48"},
      {0, "mltcp.checksum.status", "1"},
      {0, "mltcp.tag", "0xfedcba9876543210"},
      {0, "mltcp.connection", "0x12345678"},
      {0, "mltcp.span", "99"},
      {0, "mltcp.packet_number", "2309737967"},
      {0, "mltcp.oldest_tracked", "2309737868"},
      {0, "mltcp.job", "7"},
      {0, "mltcp.iteration", "513"},
      {0, "mltcp.progress", "13107"},
      {0, "mltcp.bytes_ratio", "0.2"},
      {0, "mltcp.frame.type", "1"},
      {0, "mltcp.data.flags", "0x01"},
      {0, "mltcp.data.last", "1"},
      {0, "mltcp.data.length", "100"},
      {0, "mltcp.data.message", "3"},
      {0, "mltcp.data.offset", "4096"},
      {1, "mltcp.flags.full_integrity", "1"},
      {1, "mltcp.checksum.status", "1"},
      {1, "mltcp.data.last", "0"},
      {2, "mltcp.frame.type", "2"},
      {2, "mltcp.ack.range_count", "3"},
      {2, "mltcp.ack.hops", "3"},
      {2, "mltcp.ack.flags", "0x05"},
      {2, "mltcp.ack.has_marks", "1"},
      {2, "mltcp.ack.marks", "0x8000000000000005"},
      {2, "mltcp.ack.has_credit", "1"},
      {2, "mltcp.ack.has_whole", "0"},
      {2, "mltcp.ack.delay_ns", "12345"},
      {2, "mltcp.ack.largest", "4294967305"},
      {2, "mltcp.ack.ect0_packets", "100"},
      {2, "mltcp.ack.ect1_packets", "1"},
      {2, "mltcp.ack.whole", "none"},
      {2, "mltcp.ack.ce_packets", "7"},
      {2, "mltcp.ack.ce_bytes", "9000"},
      {2, "mltcp.ack.first_length", "9"},
      {2, "mltcp.ack.credit", "55"},
      {3, "mltcp.ack.flags", "0x02"},
      {3, "mltcp.ack.whole", "31"},
      {3, "mltcp.ack.marks", "none"},
      {3, "mltcp.ack.ect1_packets", "none"},
      {3, "mltcp.ack.credit", "none"},
      {4, "mltcp.frame.type", "3"},
      {4, "mltcp.credit.flags", "0x01"},
      {4, "mltcp.credit.final", "1"},
      {4, "mltcp.credit.reserved", "0x0000"},
      {4, "mltcp.credit.messages", "77"},
      {5, "mltcp.frame.type", "4"},
      {5, "mltcp.ping.reserved", "0x0000000000000000"},
      {6, "mltcp.frame.type", "5"},
      {6, "mltcp.version", "3"},
      {6, "mltcp.max_packet", "1472"},
      {6, "mltcp.source_connection", "0xaabbccdd"},
      {6, "mltcp.credit", "9"},
      {6, "mltcp.own_tag", "0x1122334455667788"},
      {6, "mltcp.version.least", "2"},
      {6, "mltcp.version.highest", "5"},
      {6, "mltcp.paths", "8"},
      {6, "mltcp.cookie", "0x0000000000000099"},
      {7, "mltcp.frame.type", "6"},
      {7, "mltcp.version", "3"},
      {7, "mltcp.max_packet", "9000"},
      {7, "mltcp.source_connection", "0x00000011"},
      {7, "mltcp.credit", "12"},
      {7, "mltcp.own_tag", "0x0000000000002233"},
      {7, "mltcp.version.least", "none"},
      {7, "mltcp.version.highest", "4"},
      {7, "mltcp.paths", "255"},
      {8, "mltcp.frame.type", "7"},
      {8, "mltcp.close.reserved", "0x00"},
      {8, "mltcp.close.reason", "4"},
      {10, "mltcp.frame.type", "8"},
      {10, "mltcp.cookie", "0x8877665544332211"},
      {11, "mltcp.frame.type", "10"},
      {11, "mltcp.reset.connection", "0xaabbccdd"},
      {12, "mltcp.frame.type", "12"},
      {12, "mltcp.padding.length", "3"},
      {12, "mltcp.padding.bytes", "00:00:00"},
  };
  for (const auto& [packet, field, value] : expected)
    EXPECT_EQ(value_of(packets[packet], field), value) << field << " of packet " << packet;
  EXPECT_EQ(value_of(packets[0], "mltcp.data.bytes").size(), 100U * 3 - 1);
  using Values = std::vector<std::string>;
  EXPECT_EQ(values_of(packets[2], "mltcp.ack.range.first"), (Values{"4294967296", "50", "0"}));
  EXPECT_EQ(values_of(packets[2], "mltcp.ack.range.last"), (Values{"4294967305", "60", "40"}));
  EXPECT_EQ(values_of(packets[2], "mltcp.ack.gap"), (Values{"4294967234", "8"}));
  EXPECT_EQ(values_of(packets[2], "mltcp.ack.length"), (Values{"10", "40"}));
  EXPECT_EQ(values_of(packets[9], "mltcp.frame.type"), (Values{"2", "3", "1", "1"}));
  EXPECT_EQ(values_of(packets[9], "mltcp.data.bytes"), (Values{"ab:ab", "ab:ab:ab"}));
  for (const Fields& fields : packets) {
    EXPECT_EQ(value_of(fields, "mltcp.checksum.status"), "1");
    EXPECT_EQ(value_of(fields, "mltcp.malformed"), "none");
  }
}

TEST(Dissector, info_column__says_what_the_packet_does) {
  if (!test::has_tshark()) GTEST_SKIP() << test::kNoTshark;
  const Folder folder;
  const std::string file = folder.file("all.pcapng");
  capture_to(file, every_kind());
  const std::string text = tshark(file, "");
  for (const char* const part :
       {"DATA 3+4096 last  (100 bytes)  job 7 iteration 513 20%", "ACK 4294967296-4294967305, ...", "CREDIT 77", "PING",
        "CONNECT version 3; TOKEN", "ACCEPT version 3", "RETRY", "RESET of connection 0xaabbccdd", "CLOSE aborted",
        "PADDING 3", "MLTCP"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(Dissector, damaged__checksum_is_bad) {
  if (!test::has_tshark()) GTEST_SKIP() << test::kNoTshark;
  const Folder folder;
  const std::string file = folder.file("bad.pcapng");
  auto packets = every_kind();
  for (auto& packet : packets) packet[9] ^= std::byte{0x10};
  capture_to(file, packets);
  for (const Fields& fields : dissect(file)) EXPECT_EQ(value_of(fields, "mltcp.checksum.status"), "0");
}

/// Expects that tshark's whole output for `file` contains no Lua error.
void expect_no_lua_error(const std::string& file, const std::string& options = "") {
  int status = 0;
  const std::string text = tshark(file, "-V " + options, &status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text.find("Lua Error"), std::string::npos) << text.substr(text.find("Lua Error"), 500);
  EXPECT_EQ(text.find("lua_script"), std::string::npos) << text;
  EXPECT_EQ(text.find("Malformed Packet"), std::string::npos);  // what tshark prints after an exception
}

TEST(Dissector, cut_short_by_the_capture__dissects_what_is_there) {
  if (!test::has_tshark()) GTEST_SKIP() << test::kNoTshark;
  const Folder folder;
  for (std::uint32_t snap = 64; snap < 160; snap += 13) {
    const std::string file = folder.file("cut.pcapng");
    capture_to(file, every_kind(), snap);
    expect_no_lua_error(file, "-d udp.port==5555,mltcp");
  }
}

TEST(Dissector, cut_short_by_the_sender_at_every_length__no_error_of_lua) {
  if (!test::has_tshark()) GTEST_SKIP() << test::kNoTshark;
  const Folder folder;
  const std::string file = folder.file("short.pcapng");
  std::vector<std::vector<std::byte>> all;
  for (const auto& packet : every_kind())
    for (std::size_t size = 0; size < packet.size(); ++size)
      all.emplace_back(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(size));
  capture_to(file, all);
  expect_no_lua_error(file, "-d udp.port==5555,mltcp");
}

TEST(Dissector, random_bytes__no_error_of_lua) {
  if (!test::has_tshark()) GTEST_SKIP() << test::kNoTshark;
  const Folder folder;
  const std::string file = folder.file("random.pcapng");
  Random random(11);
  const auto kinds = every_kind();
  std::vector<std::vector<std::byte>> all;
  for (int i = 0; i < 2000; ++i) {
    auto packet = kinds[random.below(kinds.size())];
    for (std::uint64_t changes = random.below(12); changes > 0; --changes)
      packet[random.below(packet.size())] = static_cast<std::byte>(random.next());
    all.push_back(std::move(packet));
    std::vector<std::byte> noise(random.below(200));
    for (auto& byte : noise) byte = static_cast<std::byte>(random.next());
    if (noise.size() > wire::kHeaderBytes) {
      noise[0] = std::byte{wire::magic};
      noise[wire::kHeaderBytes] = static_cast<std::byte>(1 + random.below(10));
    }
    all.push_back(std::move(noise));
  }
  capture_to(file, all);
  expect_no_lua_error(file, "-d udp.port==5555,mltcp");
}

TEST(Dissector, other_protocols__left_alone) {
  if (!test::has_tshark()) GTEST_SKIP() << test::kNoTshark;
  const Folder folder;
  const std::string file = folder.file("others.pcapng");
  Random random(3);
  std::vector<std::vector<std::byte>> all;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::byte> noise(40 + random.below(200));
    for (auto& byte : noise) byte = static_cast<std::byte>(random.next());
    noise[0] = std::byte{wire::magic};
    all.push_back(std::move(noise));
  }
  capture_to(file, all);
  EXPECT_EQ(tshark(file, "-Y mltcp -T fields -e frame.number"), "");
}

}  // namespace
}  // namespace mltcp::capture::dissector_test
