// Frame headers and checksums: published vectors, round trips, an independent slow checksum, every truncation, and
// seeded random damage.
#include "mltcp/transport/encapsulation.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "mltcp/base/random.h"

namespace mltcp::encap {
namespace {

using ByteVector = std::vector<std::byte>;

ByteVector bytes_of(std::initializer_list<unsigned> values) {
  ByteVector result;
  for (const unsigned value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

ByteVector random_bytes(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  ByteVector result(size);
  for (auto& byte : result) byte = static_cast<std::byte>(random.next());
  return result;
}

/// The sum of RFC 1071 section 4.1 taken literally: big-endian words, one at a time.
std::uint16_t slow_sum(std::span<const std::byte> data) {
  std::uint32_t total = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const auto value = std::to_integer<std::uint32_t>(data[i]);
    total += i % 2 == 0 ? value << 8 : value;
    total = (total & 0xFFFF) + (total >> 16);
  }
  return static_cast<std::uint16_t>(total);
}

/// A partial sum as a big-endian number.
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
  ByteVector frame(header_bytes(headers.destination) + payload.size());
  const std::uint16_t partial =
      copy_and_sum(frame.data() + header_bytes(headers.destination), payload.data(), payload.size());
  EXPECT_EQ(write_headers(headers, payload.size(), partial, frame.data()), header_bytes(headers.destination));
  return frame;
}

/// Parses a copy that ends exactly where the frame ends, so that AddressSanitizer sees a read past it.
Reject parse_exact(std::span<const std::byte> frame, Frame& out, VerifyUdp verify = VerifyUdp::yes) {
  static ByteVector exact;
  ByteVector(frame.begin(), frame.end()).swap(exact);
  return parse(exact, verify, out);
}

/// Writes the IPv4 header checksum again after a test changed the header.
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
  // A header that is widely printed as a worked example; its checksum is 0xB861.
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
  // The example of its section 4: 0xDD2F with 0x5555 becoming 0x3285 is 0x0000, not 0xFFFF.
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
    // DSCP class selector n is n << 3, and the DSCP the upper six bits of the traffic class.
    const unsigned traffic_class = GetParam() ? std::to_integer<unsigned>(frame[15]) : word_at(frame, 14) >> 4 & 0xFFU;
    EXPECT_EQ(traffic_class, priority << 3 << 2 | 3U);
    Frame out;
    ASSERT_EQ(parse(frame, VerifyUdp::yes, out), Reject::none);
    EXPECT_EQ(out.headers.priority, priority);
    EXPECT_EQ(out.headers.ecn, Ecn::ce);
    EXPECT_EQ(hops_of(out.headers), priority);
  }
  Headers other;
  other.time_to_live = 255;  // an end with another habit: nothing is known
  EXPECT_EQ(hops_of(other), 0U);
}

TEST_P(EncapsulationFrame, HasTheChecksumsOfAnIndependentComputation) {
  const bool ipv4 = GetParam();
  for (std::size_t size = 0; size < 1473; size += 67) {
    const auto frame = frame_of(headers_for(ipv4), random_bytes(size, 20 + size));
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
  // Two bytes that make up for all the others bring the computed checksum to 0.
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
    // No checksum covers the Ethernet addresses, nor IPv6's traffic class, flow label and hop limit.
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
  EXPECT_EQ(changed(14, 0x44, false), Reject::bad_length);     // header of 16 bytes
  EXPECT_EQ(changed(22, 63, false), Reject::bad_ip_checksum);  // time to live
  EXPECT_EQ(changed(17, 19, true), Reject::bad_length);        // total length below the header's
  EXPECT_EQ(changed(17, 27, true), Reject::bad_length);        // no room for a UDP header
  EXPECT_EQ(changed(16, 1, true), Reject::truncated);          // total length beyond the frame
  EXPECT_EQ(changed(20, 0x20, true), Reject::fragment);        // more fragments
  EXPECT_EQ(changed(21, 0x01, true), Reject::fragment);        // an offset
  EXPECT_EQ(changed(23, 6, true), Reject::not_udp);            // TCP
  EXPECT_EQ(changed(39, 7, false), Reject::bad_length);        // UDP length below its header's
  EXPECT_EQ(changed(39, 39, false), Reject::bad_length);       // UDP length beyond the packet's
  EXPECT_EQ(changed(50, 0, false), Reject::bad_udp_checksum);  // payload
  EXPECT_EQ(changed(20, 0x00, true), Reject::none);            // fragmentation allowed, yet not done
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
  frame.insert(frame.begin() + 34, 8, std::byte{1});  // 8 no-operation options
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

TEST(EncapsulationReject, EveryReasonHasAName) {
  for (std::size_t i = 0; i < kRejects; ++i) {
    EXPECT_NE(to_text(static_cast<Reject>(i)), "unknown");
  }
}

}  // namespace
}  // namespace mltcp::encap
