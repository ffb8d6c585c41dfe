// Tests frame headers and checksums: published vectors, round trips, an independent slow checksum, every truncation,
// seeded random damage, tags, DSCP tables, checksums left to the NIC, and frames in pieces.
#include "mltcp/transport/ethernet/encapsulation.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "../random_bytes.h"
#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::encap {
namespace {

using ByteVector = std::vector<std::byte>;

/// Returns the sum of RFC 1071 section 4.1, computed from one big-endian word at a time.
std::uint16_t slow_sum(std::span<const std::byte> data) {
  std::uint32_t total = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto value = std::to_integer<std::uint32_t>(data[i]);
    total += i % 2 == 0 ? value << 8 : value;
    total = (total & 0xFFFF) + (total >> 16);
  }
  return static_cast<std::uint16_t>(total);
}

/// Returns a partial sum as a big-endian number.
std::uint16_t big_endian(std::uint16_t partial) {
  std::array<std::uint8_t, 2> bytes{};
  std::memcpy(bytes.data(), &partial, 2);
  return static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
}

std::uint16_t word_at(std::span<const std::byte> data, std::size_t offset) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(data[offset]) << 8 |
                                    std::to_integer<unsigned>(data[offset + 1]));
}

Address v6(std::uint8_t last, std::uint16_t port) {
  Address address;
  address.ip = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
  address.port = port;
  return address;
}

Headers headers_for(bool ipv4, Ecn ecn = Ecn::ect0) {
  Headers headers;
  headers.source_mac = {2, 0, 10, 1, 0, 1};
  headers.destination_mac = {2, 0, 10, 2, 0, 1};
  headers.source = ipv4 ? Address::v4(0x0A010001, 4793) : v6(1, 4793);
  headers.destination = ipv4 ? Address::v4(0x0A020001, 4794) : v6(2, 4794);
  headers.ecn = ecn;
  return headers;
}

ByteVector frame_of(const Headers& headers, std::span<const std::byte> payload) {
  const std::size_t before = header_bytes(headers.destination, headers.vlan);
  ByteVector frame(before + payload.size());
  const std::uint16_t partial = copy_and_sum(frame.data() + before, payload.data(), payload.size());
  EXPECT_EQ(write_headers(headers, payload.size(), partial, frame.data()), before);
  return frame;
}

/// Parses a copy of `frame` without spare memory, so that AddressSanitizer detects a read beyond the end.
Reject parse_exact(std::span<const std::byte> frame, Frame& out, VerifyUdp verify = VerifyUdp::yes) {
  static ByteVector exact;
  ByteVector(frame.begin(), frame.end()).swap(exact);
  return parse(exact, verify, out);
}

/// Recomputes the IPv4 header checksum after a test changed the header.
void reseal_ipv4(ByteVector& frame) {
  frame[24] = frame[25] = std::byte{0};
  const std::size_t ip_bytes = (std::to_integer<std::size_t>(frame[14]) & 15) * 4;
  const auto checksum = static_cast<std::uint16_t>(~slow_sum(std::span(frame).subspan(14, ip_bytes)));
  frame[24] = static_cast<std::byte>(checksum >> 8);
  frame[25] = static_cast<std::byte>(checksum);
}

TEST(EncapsulationSum, MatchesTheExampleOfRfc1071) {
  const auto data = bytes_of({0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7});
  EXPECT_EQ(big_endian(sum(data.data(), data.size())), 0xDDF2);
}

TEST(EncapsulationSum, MatchesAKnownIpv4Header) {
  // This header is a widely printed example. Its checksum is 0xB861.
  const auto header = bytes_of({0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                0x00, 0x00, 0xC0, 0xA8, 0x00, 0x01, 0xC0, 0xA8, 0x00, 0xC7});
  EXPECT_EQ(static_cast<std::uint16_t>(~big_endian(sum(header.data(), header.size()))), 0xB861);
}

TEST(EncapsulationSum, EqualsTheSlowOneAtEveryLengthAndAlignment) {
  const auto data = random_bytes(700, 1);
  for (std::size_t offset = 0; offset < 9; ++offset) {
    for (std::size_t size = 0; size + offset <= data.size(); ++size) {
      const auto piece = std::span(data).subspan(offset, size);
      ASSERT_EQ(big_endian(sum(piece.data(), size)), slow_sum(piece)) << "offset " << offset << " size " << size;
    }
  }
}

TEST(EncapsulationSum, DoesNotOverflowOnTheLargestPacketOfOnes) {
  const ByteVector ones(65535, std::byte{0xFF});
  EXPECT_EQ(big_endian(sum(ones.data(), ones.size())), slow_sum(ones));
}

TEST(EncapsulationSum, CopyCopiesExactlyAndSumsTheSame) {
  const auto data = random_bytes(400, 2);
  for (std::size_t offset = 0; offset < 3; ++offset) {
    for (std::size_t size = 0; size + offset <= data.size(); ++size) {
      ByteVector copy(size + 2, std::byte{0xEE});
      ASSERT_EQ(copy_and_sum(copy.data() + 1, data.data() + offset, size), sum(data.data() + offset, size));
      ASSERT_EQ(std::memcmp(copy.data() + 1, data.data() + offset, size), 0);
      ASSERT_EQ(copy.front(), std::byte{0xEE});
      ASSERT_EQ(copy.back(), std::byte{0xEE});
    }
  }
}

TEST(EncapsulationSum, JoinsPiecesAtOddAndEvenOffsets) {
  const auto data = random_bytes(301, 3);
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    const std::uint16_t joined = join(sum(data.data(), cut), sum(data.data() + cut, data.size() - cut), cut);
    ASSERT_EQ(big_endian(joined), slow_sum(data)) << "cut at " << cut;
  }
}

TEST(EncapsulationSum, UpdatesAsInRfc1624) {
  // This is the example of RFC 1624 section 4. With the checksum 0xDD2F, a change of 0x5555 to 0x3285 gives 0x0000, not
  // 0xFFFF.
  EXPECT_EQ(update_checksum(0xDD2F, 0x5555, 0x3285), 0x0000);
}

class EncapsulationFrame : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Ip, EncapsulationFrame, testing::Values(true, false),
                         [](const auto& version) { return version.param ? "v4" : "v6"; });

TEST_P(EncapsulationFrame, RoundTripsEveryFieldAndLength) {
  for (const Ecn ecn : {Ecn::not_ect, Ecn::ect1, Ecn::ect0, Ecn::ce}) {
    for (std::size_t size = 0; size < 200; ++size) {
      const Headers headers = headers_for(GetParam(), ecn);
      const auto payload = random_bytes(size, 10 + size);
      const auto frame = frame_of(headers, payload);
      Frame parsed;
      ASSERT_EQ(parse_exact(frame, parsed), Reject::none) << "size " << size;
      EXPECT_EQ(parsed.headers.source, headers.source);
      EXPECT_EQ(parsed.headers.destination, headers.destination);
      EXPECT_EQ(parsed.headers.source_mac, headers.source_mac);
      EXPECT_EQ(parsed.headers.destination_mac, headers.destination_mac);
      EXPECT_EQ(parsed.headers.ecn, ecn);
      ASSERT_EQ(parsed.payload.size(), size);
      EXPECT_TRUE(std::equal(payload.begin(), payload.end(), parsed.payload.begin()));
    }
  }
}

TEST_P(EncapsulationFrame, CarriesPriorityAndHopsBesideEcn) {
  for (unsigned priority = 0; priority < 8; ++priority) {
    Headers headers = headers_for(GetParam(), Ecn::ce);
    headers.priority = static_cast<std::uint8_t>(priority);
    headers.time_to_live = static_cast<std::uint8_t>(kTimeToLive - priority);
    const ByteVector frame = frame_of(headers, {});
    // The DSCP of class selector n is n << 3. The DSCP is in the upper six bits of the traffic class.
    const unsigned traffic_class = GetParam() ? std::to_integer<unsigned>(frame[15]) : word_at(frame, 14) >> 4 & 0xFFU;
    EXPECT_EQ(traffic_class, priority << 3 << 2 | 3U);
    Frame out;
    ASSERT_EQ(parse(frame, VerifyUdp::yes, out), Reject::none);
    EXPECT_EQ(out.headers.priority, priority);
    EXPECT_EQ(out.headers.ecn, Ecn::ce);
    EXPECT_EQ(hops_of(out.headers), priority);
  }
  Headers other;
  other.time_to_live = 255;  // above the initial value of this project's hosts, so the number of hops is unknown
  EXPECT_EQ(hops_of(other), 0U);
}

TEST_P(EncapsulationFrame, HasTheChecksumsOfAnIndependentComputation) {
  const bool ipv4 = GetParam();
  for (std::size_t size = 0; size < 1473; size += 67) {
    Headers headers = headers_for(ipv4);
    const auto noise = random_bytes(32, size);  // addresses whose sum has a carry in every position
    for (std::size_t i = ipv4 ? 12 : 0; i < 16; ++i) {
      headers.source.ip[i] = std::to_integer<std::uint8_t>(noise[i] | std::byte{0x80});
      headers.destination.ip[i] = std::to_integer<std::uint8_t>(noise[16 + i] | std::byte{0x80});
    }
    const auto frame = frame_of(headers, random_bytes(size, 20 + size));
    Frame parsed;
    EXPECT_EQ(parse_exact(frame, parsed), Reject::none);
    const std::span<const std::byte> bytes(frame);
    if (ipv4) {
      EXPECT_EQ(slow_sum(bytes.subspan(14, 20)), 0xFFFF);
    }
    const std::size_t ip_bytes = ipv4 ? 20 : 40;
    const auto udp = bytes.subspan(14 + ip_bytes);
    ByteVector pseudo(bytes.begin() + (ipv4 ? 26 : 22), bytes.begin() + static_cast<std::ptrdiff_t>(14 + ip_bytes));
    for (const std::size_t value : {std::size_t{17}, udp.size()}) {
      pseudo.push_back(static_cast<std::byte>(value >> 8));
      pseudo.push_back(static_cast<std::byte>(value));
    }
    pseudo.insert(pseudo.end(), udp.begin(), udp.end());
    EXPECT_EQ(slow_sum(pseudo), 0xFFFF) << "size " << size;
    EXPECT_EQ(word_at(udp, 4), udp.size());
  }
}

TEST_P(EncapsulationFrame, WritesAllOnesForAChecksumOfZero) {
  const Headers headers = headers_for(GetParam());
  // The payload has two bytes, which cancel the sum of all other bytes. The computed checksum is therefore 0.
  ByteVector payload(2);
  auto frame = frame_of(headers, payload);
  const std::size_t field = header_bytes(headers.destination) - 2;
  payload[0] = frame[field];
  payload[1] = frame[field + 1];
  frame = frame_of(headers, payload);
  EXPECT_EQ(word_at(frame, field), 0xFFFF);
  Frame parsed;
  EXPECT_EQ(parse_exact(frame, parsed), Reject::none);
}

TEST_P(EncapsulationFrame, RefusesEveryTruncation) {
  const auto frame = frame_of(headers_for(GetParam()), random_bytes(100, 4));
  for (std::size_t size = 0; size < frame.size(); ++size) {
    Frame parsed;
    ASSERT_EQ(parse_exact(std::span(frame).first(size), parsed), Reject::truncated) << "size " << size;
  }
}

TEST_P(EncapsulationFrame, IgnoresEthernetPadding) {
  auto frame = frame_of(headers_for(GetParam()), random_bytes(5, 5));
  frame.resize(frame.size() + 13, std::byte{0xA5});
  Frame parsed;
  ASSERT_EQ(parse_exact(frame, parsed), Reject::none);
  EXPECT_EQ(parsed.payload.size(), 5u);
}

TEST_P(EncapsulationFrame, FindsEveryFlippedBitThatChecksumsCover) {
  const bool ipv4 = GetParam();
  const auto frame = frame_of(headers_for(ipv4), random_bytes(64, 6));
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto damaged = frame;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    Frame parsed;
    const Reject reject = parse_exact(damaged, parsed);
    const std::size_t byte = bit / 8;
    // No checksum covers the Ethernet addresses or the traffic class, flow label and hop limit of IPv6.
    const bool covered = byte >= 12 && (ipv4 || byte == 12 || byte == 13 || byte >= 22 || byte == 18 || byte == 19 ||
                                        byte == 20 || (byte == 14 && bit % 8 >= 4));
    EXPECT_EQ(reject == Reject::none, !covered) << "byte " << byte << " bit " << bit % 8;
  }
}

TEST_P(EncapsulationFrame, SurvivesRandomDamage) {
  Random random(7);
  const auto frame = frame_of(headers_for(GetParam()), random_bytes(80, 8));
  for (int round = 0; round < 20'000; ++round) {
    auto damaged = frame;
    damaged.resize(random.below(frame.size() + 20));
    for (std::uint64_t flips = random.below(12); flips > 0 && !damaged.empty(); --flips) {
      damaged[random.below(std::min<std::size_t>(damaged.size(), 64))] = static_cast<std::byte>(random.next());
    }
    if (GetParam() && damaged.size() > 34 && random.chance(0.5)) {
      damaged[14] = static_cast<std::byte>(0x45 + random.below(3));
      if ((std::to_integer<std::size_t>(damaged[14]) & 15) * 4 + 14 <= damaged.size()) reseal_ipv4(damaged);
    }
    Frame parsed;
    if (parse_exact(damaged, parsed, random.chance(0.5) ? VerifyUdp::yes : VerifyUdp::no) == Reject::none) {
      EXPECT_LE(parsed.payload.size() + 42, damaged.size());
    }
  }
}

TEST_P(EncapsulationFrame, MarksCongestionAndKeepsTheChecksumRight) {
  for (const Ecn ecn : {Ecn::ect0, Ecn::ect1, Ecn::ce}) {
    for (std::size_t size = 0; size < 70; ++size) {
      auto frame = frame_of(headers_for(GetParam(), ecn), random_bytes(size, 9));
      ASSERT_TRUE(mark_congestion(frame));
      Frame parsed;
      ASSERT_EQ(parse_exact(frame, parsed), Reject::none);
      EXPECT_EQ(parsed.headers.ecn, Ecn::ce);
      EXPECT_EQ(frame, frame_of(headers_for(GetParam(), Ecn::ce), random_bytes(size, 9)));
    }
  }
  auto frame = frame_of(headers_for(GetParam(), Ecn::not_ect), random_bytes(10, 9));
  const auto before = frame;
  EXPECT_FALSE(mark_congestion(frame));
  EXPECT_EQ(frame, before);
}

TEST(EncapsulationReject, NamesTheReason) {
  const auto good = frame_of(headers_for(true), random_bytes(30, 11));
  Frame parsed;
  const auto changed = [&](std::size_t at, unsigned value, bool seal) {
    auto frame = good;
    frame[at] = static_cast<std::byte>(value);
    if (seal) reseal_ipv4(frame);
    return parse_exact(frame, parsed);
  };
  EXPECT_EQ(changed(12, 0x81, false), Reject::not_ip);         // EtherType
  EXPECT_EQ(changed(14, 0x65, false), Reject::not_ip);         // version 6 in an IPv4 frame
  EXPECT_EQ(changed(14, 0x44, false), Reject::bad_length);     // IP header of 16 bytes
  EXPECT_EQ(changed(22, 63, false), Reject::bad_ip_checksum);  // a changed time to live
  EXPECT_EQ(changed(17, 19, true), Reject::bad_length);        // total length shorter than the IP header
  EXPECT_EQ(changed(17, 27, true), Reject::bad_length);        // total length without space for a UDP header
  EXPECT_EQ(changed(16, 1, true), Reject::truncated);          // total length longer than the frame
  EXPECT_EQ(changed(20, 0x20, true), Reject::fragment);        // flag for more fragments
  EXPECT_EQ(changed(21, 0x01, true), Reject::fragment);        // fragment offset
  EXPECT_EQ(changed(23, 6, true), Reject::not_udp);            // TCP
  EXPECT_EQ(changed(39, 7, false), Reject::bad_length);        // UDP length shorter than the UDP header
  EXPECT_EQ(changed(39, 39, false), Reject::bad_length);       // UDP length longer than the packet
  EXPECT_EQ(changed(50, 0, false), Reject::bad_udp_checksum);  // payload
  EXPECT_EQ(changed(20, 0x00, true), Reject::none);            // fragmentation is permitted, but not used
}

TEST(EncapsulationReject, AnIpv4ChecksumOfZeroMeansNotComputed) {
  auto frame = frame_of(headers_for(true), random_bytes(30, 12));
  frame[40] = frame[41] = std::byte{0};
  frame[60] ^= std::byte{1};
  Frame parsed;
  EXPECT_EQ(parse_exact(frame, parsed), Reject::none);
}

TEST(EncapsulationReject, AnIpv6ChecksumOfZeroIsRefused) {
  auto frame = frame_of(headers_for(false), random_bytes(30, 12));
  frame[60] = frame[61] = std::byte{0};
  Frame parsed;
  EXPECT_EQ(parse_exact(frame, parsed), Reject::bad_udp_checksum);
}

TEST(EncapsulationReject, Ipv6FragmentsOtherProtocolsAndMappedAddresses) {
  const auto good = frame_of(headers_for(false), random_bytes(30, 13));
  Frame parsed;
  auto frame = good;
  frame[20] = std::byte{44};
  EXPECT_EQ(parse_exact(frame, parsed), Reject::fragment);
  frame[20] = std::byte{58};
  EXPECT_EQ(parse_exact(frame, parsed), Reject::not_udp);
  frame = good;
  const Address mapped = Address::v4(0x0A010001, 0);
  std::memcpy(frame.data() + 22, mapped.ip.data(), 16);
  EXPECT_EQ(parse_exact(frame, parsed), Reject::not_for_us);
}

TEST(EncapsulationParse, SkipsIpv4Options) {
  const auto payload = random_bytes(30, 14);
  auto frame = frame_of(headers_for(true), payload);
  frame.insert(frame.begin() + 34, 8, std::byte{1});  // inserts 8 no-operation options
  frame[14] = std::byte{0x47};
  frame[17] = static_cast<std::byte>(std::to_integer<unsigned>(frame[17]) + 8);
  reseal_ipv4(frame);
  Frame parsed;
  ASSERT_EQ(parse_exact(frame, parsed), Reject::none);
  EXPECT_TRUE(std::equal(payload.begin(), payload.end(), parsed.payload.begin(), parsed.payload.end()));
}

TEST(EncapsulationParse, ASwitchDoesNotLookAtTheUdpChecksum) {
  auto frame = frame_of(headers_for(true), random_bytes(30, 15));
  frame[50] ^= std::byte{1};
  Frame parsed;
  EXPECT_EQ(parse_exact(frame, parsed, VerifyUdp::no), Reject::none);
  EXPECT_EQ(parse_exact(frame, parsed, VerifyUdp::yes), Reject::bad_udp_checksum);
}

ByteVector with_tag(ByteVector frame, unsigned protocol, unsigned control) {
  const auto tag = bytes_of({protocol >> 8, protocol & 0xFF, control >> 8, control & 0xFF});
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

TEST_P(EncapsulationFrame, Vlan_IsATagInAnOtherwiseEqualFrame) {
  for (const unsigned vlan : {1U, 0x123U, unsigned{kMaxVlan}}) {
    for (unsigned priority = 0; priority < 8; ++priority) {
      Headers headers = headers_for(GetParam());
      headers.priority = static_cast<std::uint8_t>(priority);
      const auto payload = random_bytes(priority + 20, vlan);
      const auto untagged = frame_of(headers, payload);
      headers.vlan = static_cast<std::uint16_t>(vlan);
      EXPECT_EQ(header_bytes(headers.destination, headers.vlan), header_bytes(headers.destination) + 4);
      const auto frame = frame_of(headers, payload);
      EXPECT_EQ(frame, with_tag(untagged, 0x8100, priority << 13 | vlan));
      Frame parsed;
      ASSERT_EQ(parse_exact(frame, parsed), Reject::none);
      EXPECT_EQ(parsed.headers.vlan, vlan);
      EXPECT_EQ(parsed.headers.priority, priority);
      EXPECT_EQ(parsed.headers.source, headers.source);
      EXPECT_EQ(parsed.headers.source_mac, headers.source_mac);
      EXPECT_TRUE(std::equal(payload.begin(), payload.end(), parsed.payload.begin(), parsed.payload.end()));
      ASSERT_EQ(parse_exact(untagged, parsed), Reject::none);
      EXPECT_EQ(parsed.headers.vlan, 0);  // no VLAN remains from the previous frame
    }
  }
}

TEST_P(EncapsulationFrame, Vlan_OneTagIsReadAndNoOther) {
  const auto frame = frame_of(headers_for(GetParam()), random_bytes(40, 30));
  Frame parsed;
  EXPECT_EQ(parse_exact(with_tag(frame, 0x88A8, 5), parsed), Reject::not_ip);
  EXPECT_EQ(parse_exact(with_tag(with_tag(frame, 0x8100, 5), 0x8100, 5), parsed), Reject::not_ip);
  EXPECT_EQ(parse_exact(with_tag(with_tag(frame, 0x8100, 5), 0x88A8, 5), parsed), Reject::not_ip);
  EXPECT_EQ(parse_exact(with_tag(with_tag(frame, 0x88A8, 5), 0x8100, 5), parsed), Reject::not_ip);
  // A tag with a priority but VLAN 0 is not a VLAN, so the DSCP gives the priority.
  ASSERT_EQ(parse_exact(with_tag(frame, 0x8100, 0xE000), parsed), Reject::none);
  EXPECT_EQ(parsed.headers.vlan, 0);
  EXPECT_EQ(parsed.headers.priority, 0);
  ASSERT_EQ(parse_exact(with_tag(frame, 0x8100, 0x1FFF), parsed), Reject::none);  // with the bit "drop eligible"
  EXPECT_EQ(parsed.headers.vlan, 0xFFF);
  const auto tagged = with_tag(frame, 0x8100, 5);
  for (std::size_t size = 0; size < tagged.size(); ++size) {
    ASSERT_EQ(parse_exact(std::span(tagged).first(size), parsed), Reject::truncated) << "size " << size;
  }
}

TEST_P(EncapsulationFrame, Vlan_FramesAreMarkedToo) {
  Headers headers = headers_for(GetParam(), Ecn::ect1);
  headers.vlan = 9;
  auto frame = frame_of(headers, random_bytes(33, 31));
  ASSERT_TRUE(mark_congestion(frame));
  headers.ecn = Ecn::ce;
  EXPECT_EQ(frame, frame_of(headers, random_bytes(33, 31)));
  headers.ecn = Ecn::not_ect;
  frame = frame_of(headers, random_bytes(33, 31));
  EXPECT_FALSE(mark_congestion(frame));
}

TEST_P(EncapsulationFrame, Dscp_IsWrittenAndReadByTheTable) {
  const std::array<std::uint8_t, 8> values{0, 10, 18, 26, 34, 46, 48, 63};
  const DscpMap dscp(values);
  for (unsigned priority = 0; priority < 8; ++priority) {
    Headers headers = headers_for(GetParam(), Ecn::ect0);
    headers.priority = static_cast<std::uint8_t>(priority);
    headers.vlan = 7;
    ByteVector frame(header_bytes(headers.destination, headers.vlan));
    write_headers(headers, 0, 0, frame.data(), dscp);
    EXPECT_EQ(word_at(frame, 14), priority << 13 | 7U);
    const unsigned traffic_class = GetParam() ? std::to_integer<unsigned>(frame[19]) : word_at(frame, 18) >> 4 & 0xFFU;
    EXPECT_EQ(traffic_class, unsigned{values[priority]} << 2 | 2U);
    Frame parsed;
    ASSERT_EQ(parse(frame, VerifyUdp::yes, parsed, VerifyIp::yes, dscp), Reject::none);
    EXPECT_EQ(parsed.headers.priority, priority);
    EXPECT_EQ(parsed.headers.ecn, Ecn::ect0);
    ASSERT_EQ(parse(frame, VerifyUdp::yes, parsed), Reject::none);
    EXPECT_EQ(parsed.headers.priority, values[priority] >> 3);
  }
}

TEST(EncapsulationDscp, TablesReadBackWhatTheyCan) {
  for (unsigned value = 0; value < 64; ++value) {
    EXPECT_EQ(kClassSelectors.priority(static_cast<std::uint8_t>(value)), value >> 3);
  }
  const DscpMap two({0, 0, 0, 26, 26, 26, 26, 48});
  EXPECT_EQ(two.priority(0), 0);
  EXPECT_EQ(two.priority(26), 3);  // the lowest priority with DSCP 26
  EXPECT_EQ(two.priority(48), 7);
  EXPECT_EQ(two.priority(46), 5);  // not in the table, so it counts as a class selector
  EXPECT_EQ(two.dscp(6), 26);
  try {
    const DscpMap bad({0, 8, 16, 24, 64, 40, 48, 56});
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "the DSCP 64 of priority 4 is out of range; give 0 to 63");
  }
}

/// Imitates a NIC that fills in the UDP checksum. The NIC sums all bytes of the UDP packet, including the value in the
/// checksum field.
void fill_in_udp(ByteVector& frame, std::size_t udp_at) {
  const auto checksum = static_cast<std::uint16_t>(~slow_sum(std::span(frame).subspan(udp_at)));
  frame[udp_at + 6] = static_cast<std::byte>((checksum == 0 ? 0xFFFF : checksum) >> 8);
  frame[udp_at + 7] = static_cast<std::byte>(checksum == 0 ? 0xFF : checksum);
}

TEST_P(EncapsulationFrame, Offload_LeavesToTheNicWhatItIsToFillIn) {
  for (const std::uint16_t vlan : {std::uint16_t{0}, std::uint16_t{5}}) {
    for (std::size_t size = 0; size < 100; ++size) {
      Headers headers = headers_for(GetParam());
      headers.vlan = vlan;
      const auto payload = random_bytes(size, 40 + size);
      const auto complete = frame_of(headers, payload);
      const std::size_t before = header_bytes(headers.destination, vlan);
      const std::size_t udp_at = before - kUdpBytes;
      const std::size_t ip_checksum_at = udp_at - 10;
      for (const bool ip : {false, true}) {
        for (const bool udp : {false, true}) {
          ByteVector frame(complete.size());
          std::copy(payload.begin(), payload.end(), frame.begin() + static_cast<std::ptrdiff_t>(before));
          // With an offloaded UDP checksum, write_headers() needs no sum of the payload and must ignore the given
          // value.
          const std::uint16_t partial = udp ? std::uint16_t{0x1234} : sum(payload.data(), size);
          ASSERT_EQ(write_headers(headers, size, partial, frame.data(), kClassSelectors, {.ip = ip, .udp = udp}),
                    before);
          if (ip && GetParam()) {
            EXPECT_EQ(word_at(frame, ip_checksum_at), 0);
            frame[ip_checksum_at] = complete[ip_checksum_at];
            frame[ip_checksum_at + 1] = complete[ip_checksum_at + 1];
          }
          if (udp) fill_in_udp(frame, udp_at);
          ASSERT_EQ(frame, complete) << "size " << size << " ip " << ip << " udp " << udp;
        }
      }
    }
  }
}

TEST(EncapsulationOffload, ThePseudoHeaderSumIsThatOfRfc768) {
  // The addresses are 10.1.0.1 and 10.2.0.1, the protocol is 17, and the length is 8 + 1000 bytes. The sum is 0A01 +
  // 0001 + 0A02 + 0001 + 0011 + 03F0.
  std::array<std::byte, kIpv4OverheadBytes> frame{};
  write_headers(headers_for(true), 1000, 0, frame.data(), kClassSelectors, {.udp = true});
  EXPECT_EQ(word_at(frame, 40), 0x1806);
}

TEST(EncapsulationOffload, WhatTheNicHasVerifiedIsNotVerifiedAgain) {
  auto frame = frame_of(headers_for(true), random_bytes(30, 16));
  frame[24] ^= std::byte{1};
  frame[50] ^= std::byte{1};
  Frame parsed;
  EXPECT_EQ(parse(frame, VerifyUdp::no, parsed, VerifyIp::no), Reject::none);
  EXPECT_EQ(parse(frame, VerifyUdp::no, parsed), Reject::bad_ip_checksum);
  EXPECT_EQ(parse(frame, VerifyUdp::yes, parsed, VerifyIp::no), Reject::bad_udp_checksum);
}

TEST_P(EncapsulationFrame, Pieces_ReadAsTheWholeFrame) {
  Headers headers = headers_for(GetParam());
  headers.vlan = 3;
  const auto frame = frame_of(headers, random_bytes(150, 50));
  const std::size_t before = header_bytes(headers.destination, headers.vlan);
  Frame whole;
  ASSERT_EQ(parse_exact(frame, whole), Reject::none);
  for (std::size_t cut = 0; cut <= frame.size(); ++cut) {
    const ByteVector first(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(cut));
    Layout layout;
    const Reject reject = parse_headers(first, frame.size(), layout);
    ASSERT_EQ(reject, cut < before ? Reject::truncated : Reject::none) << "cut at " << cut;
    if (reject != Reject::none) continue;
    EXPECT_EQ(layout.payload_offset, before);
    EXPECT_EQ(layout.payload_bytes, 150u);
    EXPECT_EQ(layout.headers.source, headers.source);
    EXPECT_EQ(layout.headers.vlan, 3);
    // The payload is summed in three pieces. The first piece may be empty.
    const std::size_t second_cut = cut + (frame.size() - cut) / 3;
    std::uint16_t partial = sum(frame.data() + before, cut - before);
    partial = join(partial, sum(frame.data() + cut, second_cut - cut), cut - before);
    partial = join(partial, sum(frame.data() + second_cut, frame.size() - second_cut), second_cut - before);
    EXPECT_TRUE(udp_checksum_holds(first, layout, partial)) << "cut at " << cut;
    const auto wrong = static_cast<std::uint16_t>(partial ^ 0x0100U);
    EXPECT_FALSE(udp_checksum_holds(first, layout, wrong));
  }
  // parse_headers() compares the lengths in the headers with the length of the frame.
  Layout layout;
  EXPECT_EQ(parse_headers(std::span(frame).first(before), frame.size() - 1, layout), Reject::truncated);
  ASSERT_EQ(parse_headers(std::span(frame).first(before), frame.size() + 9, layout), Reject::none);
  EXPECT_EQ(layout.payload_bytes, 150u);
  // This frame has no UDP checksum.
  auto without = frame;
  without[before - 2] = without[before - 1] = std::byte{0};
  ASSERT_EQ(parse_headers(without, without.size(), layout), Reject::none);
  EXPECT_EQ(udp_checksum_holds(without, layout, 0x5555), GetParam());
}

TEST(EncapsulationPieces, TheLongestHeadersFitWhatIsPromised) {
  Headers headers = headers_for(true);
  headers.vlan = 3;
  auto frame = frame_of(headers, random_bytes(50, 51));
  frame.insert(frame.begin() + 38, 40, std::byte{1});  // 40 bytes of no-operation options, the maximum
  frame[18] = std::byte{0x4F};
  frame[21] = static_cast<std::byte>(std::to_integer<unsigned>(frame[21]) + 40);
  Layout layout;
  EXPECT_EQ(parse_headers(std::span(frame).first(kMaxHeaderBytes), frame.size(), layout), Reject::bad_ip_checksum);
  ASSERT_EQ(parse_headers(std::span(frame).first(kMaxHeaderBytes), frame.size(), layout, VerifyIp::no), Reject::none);
  EXPECT_EQ(layout.payload_offset, kMaxHeaderBytes);
  EXPECT_TRUE(udp_checksum_holds(frame, layout, sum(frame.data() + kMaxHeaderBytes, 50)));
  EXPECT_EQ(parse_headers(std::span(frame).first(kMaxHeaderBytes - 1), frame.size(), layout, VerifyIp::no),
            Reject::truncated);
}

TEST(EncapsulationReject, EveryReasonHasAName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kRejects; ++i) {
    const std::string_view name = to_text(static_cast<Reject>(i));
    EXPECT_NE(name, "unknown");
    EXPECT_NE(name, "");
    EXPECT_TRUE(names.insert(name).second) << name << " stands for two";
  }
}

/// Returns `frame` with an 802.1Q tag after its addresses. The tag has the given priority and VLAN 5.
ByteVector tagged(ByteVector frame, unsigned priority, unsigned ether_type = 0x8100) {
  const ByteVector tag = bytes_of({ether_type >> 8, ether_type & 0xFF, priority << 5, 5});
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

TEST_P(EncapsulationFrame, AGlanceSeesWhatASwitchNeedsTaggedOrNot) {
  Headers headers = headers_for(GetParam());
  headers.priority = 6;
  const auto plain = frame_of(headers, random_bytes(40, 21));
  Glance seen;
  ASSERT_EQ(glance(plain, plain.size(), seen), FrameFault::none);
  EXPECT_EQ(seen.source_mac, headers.source_mac);
  EXPECT_EQ(seen.destination_mac, headers.destination_mac);
  EXPECT_EQ(seen.priority, 6);
  EXPECT_EQ(seen.ecn, Ecn::ect0);
  EXPECT_EQ(seen.ip_offset, 14U);
  for (const auto& frame : {tagged(plain, 3), tagged(tagged(plain, 7), 3, 0x88A8)}) {
    ASSERT_EQ(glance(frame, frame.size(), seen), FrameFault::none);
    EXPECT_EQ(seen.priority, 3) << "the outer tag's";
    EXPECT_EQ(seen.ecn, Ecn::ect0);
    EXPECT_EQ(seen.ip_offset, frame.size() - plain.size() + 14);
  }
  // glance() does not look behind three tags.
  const auto deep = tagged(tagged(tagged(plain, 1), 2), 4);
  ASSERT_EQ(glance(deep, deep.size(), seen), FrameFault::none);
  EXPECT_EQ(seen.ip_offset, 0U);
  EXPECT_EQ(seen.ecn, Ecn::not_ect);
  // Only the first bytes of the frame are available. The rest is in other segments, or lost.
  EXPECT_EQ(glance(std::span(plain).first(64), plain.size(), seen), FrameFault::none);
  EXPECT_EQ(glance(std::span(plain).first(64), 64, seen), FrameFault::cut_short);
}

TEST_P(EncapsulationFrame, MarksBehindTagsKeepTheChecksumRight) {
  for (std::size_t size = 0; size < 70; ++size) {
    const auto payload = random_bytes(size, size);
    auto frame = tagged(tagged(frame_of(headers_for(GetParam(), Ecn::ect1), payload), 5), 2, 0x88A8);
    ASSERT_TRUE(mark_congestion(frame));
    EXPECT_EQ(frame, tagged(tagged(frame_of(headers_for(GetParam(), Ecn::ce), payload), 5), 2, 0x88A8));
  }
}

TEST_P(EncapsulationFrame, ChecksumsThatAKernelLeftForANicAreSeen) {
  const auto wrong = [](const ByteVector& frame) {
    Glance seen;
    EXPECT_EQ(glance(frame, frame.size(), seen), FrameFault::none);
    return transport_checksum_is_wrong(frame, seen);
  };
  auto frame = frame_of(headers_for(GetParam()), random_bytes(41, 24));
  const std::size_t udp = frame.size() - 41 - 8;
  EXPECT_FALSE(wrong(frame));
  EXPECT_FALSE(wrong(tagged(frame, 1)));
  frame[frame.size() - 3] ^= std::byte{1};
  EXPECT_TRUE(wrong(frame));
  EXPECT_TRUE(wrong(tagged(frame, 1)));
  frame[udp + 6] = frame[udp + 7] = std::byte{0};
  EXPECT_EQ(wrong(frame), !GetParam()) << "none is right over IPv4 alone";
  frame[GetParam() ? 23 : 20] = std::byte{132};  // SCTP
  EXPECT_FALSE(wrong(frame));
  // A TCP packet with an offloaded checksum contains only the sum of the pseudo header.
  frame[GetParam() ? 23 : 20] = std::byte{6};
  EXPECT_TRUE(wrong(frame));
}

TEST(EncapsulationGlance, NamesWhatIsWrongWithAFrame) {
  const auto good = frame_of(headers_for(true), random_bytes(30, 22));
  Glance seen;
  for (std::size_t size = 0; size < 14; ++size)
    EXPECT_EQ(glance(std::span(good).first(size), size, seen), FrameFault::runt);
  const auto tag = tagged(good, 1);
  for (std::size_t size = 14; size < 18; ++size)
    EXPECT_EQ(glance(std::span(tag).first(size), size, seen), FrameFault::runt);
  auto frame = good;
  std::fill_n(frame.begin() + 6, 6, std::byte{0});
  EXPECT_EQ(glance(frame, frame.size(), seen), FrameFault::bad_source);
  frame[6] = std::byte{1};
  EXPECT_EQ(glance(frame, frame.size(), seen), FrameFault::bad_source);
  EXPECT_EQ(glance(std::span(good).first(good.size() - 1), good.size() - 1, seen), FrameFault::cut_short);
  frame = good;
  frame[12] = std::byte{0x08};
  frame[13] = std::byte{0x06};  // ARP
  ASSERT_EQ(glance(frame, frame.size(), seen), FrameFault::none);
  EXPECT_EQ(seen.ip_offset, 0U);
  EXPECT_EQ(seen.priority, 0);
  EXPECT_FALSE(mark_congestion(frame));
}

TEST(EncapsulationGlance, FuzzedFramesAreNeverReadOrMarkedBeyondTheirEnd) {
  Random random(23);
  for (int round = 0; round < 200'000; ++round) {
    // The frame has no spare memory, so that a sanitizer detects reads beyond its end.
    ByteVector frame = random_bytes(random.below(80), random.next());
    if (frame.size() > 20 && random.chance(0.9)) {
      std::size_t at = 12;
      for (std::uint64_t tags = random.below(4); tags > 0 && at + 8 < frame.size(); --tags, at += 4) {
        frame[at] = random.chance(0.5) ? std::byte{0x81} : std::byte{0x88};
        frame[at + 1] = frame[at] == std::byte{0x81} ? std::byte{0} : std::byte{0xA8};
      }
      const bool v4 = random.chance(0.5);
      frame[at] = v4 ? std::byte{0x08} : std::byte{0x86};
      frame[at + 1] = v4 ? std::byte{0} : std::byte{0xDD};
      frame[at + 2] = v4 ? std::byte{0x45} : std::byte{0x60};
      frame[6] &= std::byte{0xFE};
    }
    Glance seen;
    const FrameFault fault = glance(frame, frame.size(), seen);
    if (fault == FrameFault::none && seen.ip_offset != 0) {
      EXPECT_LE(seen.ip_offset + 20, frame.size());
    }
    const ByteVector before = frame;
    if (fault == FrameFault::none) transport_checksum_is_wrong(frame, seen);
    if (mark_congestion(frame)) {
      std::size_t changed = 0;
      for (std::size_t i = 0; i < frame.size(); ++i) changed += frame[i] != before[i] ? 1U : 0U;
      EXPECT_LE(changed, 3U) << "a byte of the traffic class and the checksum";
    } else {
      EXPECT_EQ(frame, before);
    }
  }
}

}  // namespace
}  // namespace mltcp::encap
