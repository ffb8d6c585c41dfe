// Tests the headers of packets in messages of UD queue pairs.
#include "mltcp/rdma/ud_packet.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/transport/ethernet/encapsulation.h"

namespace mltcp::rdma {
namespace {

const Address kOwn = Address::v4(0x0A000002, 5000);
const Address kOwn6 = Address::parse("[fd00::2]:5000");

/// Returns a message as a device delivers it from 10.0.0.1:4000 over IPv4.
std::vector<std::byte> message_v4(std::uint8_t traffic, std::uint8_t time_to_live = 64) {
  std::vector<std::byte> bytes(kGrhBytes + kShimBytes + 8, std::byte{0xEE});
  const unsigned char ip[20] = {0x45, traffic, 0, 68, 0, 0, 0x40, 0, time_to_live, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2};
  std::memcpy(&bytes[20], ip, sizeof ip);
  const auto sum = static_cast<std::uint16_t>(~encap::sum(&bytes[20], 20));
  std::memcpy(&bytes[30], &sum, sizeof sum);
  const Shim shim = make_shim(4000, 5000);
  std::memcpy(&bytes[kGrhBytes], shim.data(), shim.size());
  return bytes;
}

std::vector<std::byte> message_v6(std::uint8_t traffic, std::uint8_t next_header = 17) {
  std::vector<std::byte> bytes(kGrhBytes + kShimBytes);
  bytes[0] = static_cast<std::byte>(0x60 | traffic >> 4);
  bytes[1] = static_cast<std::byte>((traffic & 15) << 4);
  bytes[6] = std::byte{next_header};
  bytes[7] = std::byte{62};
  const Address from = Address::parse("fd00::1");
  std::memcpy(&bytes[8], from.ip.data(), 16);
  std::memcpy(&bytes[24], kOwn6.ip.data(), 16);
  const Shim shim = make_shim(4000, 5000);
  std::memcpy(&bytes[kGrhBytes], shim.data(), shim.size());
  return bytes;
}

TEST(UdPacket, read_arrival__takes_sender_ecn_priority_and_hops_from_an_ipv4_header_in_the_last_20_bytes) {
  Arrival got;
  ASSERT_TRUE(read_arrival(message_v4(5 << 5 | 3, 61), Network::roce_v4, kOwn, got));
  EXPECT_EQ(got.source, Address::v4(0x0A000001, 4000));
  EXPECT_EQ(got.destination_port, 5000);
  EXPECT_EQ(got.ecn, Ecn::ce);
  EXPECT_EQ(got.priority, 5);
  EXPECT_EQ(got.hops, 3);
}

TEST(UdPacket, read_arrival__takes_the_same_from_an_ipv6_header) {
  Arrival got;
  ASSERT_TRUE(read_arrival(message_v6(2 << 5 | 2), Network::roce_v6, kOwn6, got));
  EXPECT_EQ(got.source, Address::parse("[fd00::1]:4000"));
  EXPECT_EQ(got.ecn, Ecn::ect0);
  EXPECT_EQ(got.priority, 2);
  EXPECT_EQ(got.hops, 2);
}

TEST(UdPacket, read_arrival__knows_neither_ecn_nor_hops_of_infiniband) {
  Arrival got;
  ASSERT_TRUE(read_arrival(message_v6(2 << 5 | 3, 0x1B), Network::infiniband, kOwn6, got));
  EXPECT_EQ(got.ecn, Ecn::not_ect);
  EXPECT_EQ(got.hops, 0);
  EXPECT_EQ(got.priority, 2);
  EXPECT_FALSE(read_arrival(message_v6(0, 17), Network::infiniband, kOwn6, got));
}

TEST(UdPacket, read_arrival__refuses_what_makes_no_sense) {
  Arrival got;
  const auto with = [](std::size_t at, std::uint8_t value) {
    auto bytes = message_v4(0);
    bytes[at] = std::byte{value};
    return bytes;
  };
  EXPECT_TRUE(read_arrival(message_v4(0), Network::roce_v4, kOwn, got));
  EXPECT_FALSE(read_arrival(with(20, 0x65), Network::roce_v4, kOwn, got)) << "version 6";
  EXPECT_FALSE(read_arrival(with(20, 0x46), Network::roce_v4, kOwn, got)) << "options";
  EXPECT_FALSE(read_arrival(with(21, 3), Network::roce_v4, kOwn, got)) << "checksum";
  EXPECT_FALSE(read_arrival(with(29, 6), Network::roce_v4, kOwn, got)) << "TCP";
  EXPECT_FALSE(read_arrival(message_v4(0), Network::roce_v4, Address::v4(0x0A000003, 5000), got)) << "another's";
  EXPECT_FALSE(read_arrival(message_v4(0), Network::roce_v6, kOwn6, got));
  EXPECT_FALSE(read_arrival(message_v6(0), Network::roce_v4, kOwn, got));
  auto unsummed = with(30, 0);
  unsummed[31] = std::byte{0};
  EXPECT_TRUE(read_arrival(unsummed, Network::roce_v4, kOwn, got)) << "a software device's, to itself";
  auto no_port = message_v4(0);
  no_port[kGrhBytes] = no_port[kGrhBytes + 1] = std::byte{0};
  EXPECT_FALSE(read_arrival(no_port, Network::roce_v4, kOwn, got));
  const std::vector<std::byte> whole = message_v4(0);
  for (std::size_t length = 0; length < kGrhBytes + kShimBytes; ++length)
    EXPECT_FALSE(read_arrival(std::span(whole).first(length), Network::roce_v4, kOwn, got)) << length;
}

TEST(UdPacket, read_arrival__takes_no_sender_that_is_no_host) {
  Arrival got;
  const auto from = [&](const char* ip, const Address& own) {
    const Address source = Address::parse(ip);
    auto bytes = source.is_v4() ? message_v4(0) : message_v6(0);
    if (source.is_v4()) {
      std::memcpy(&bytes[32], source.ip.data() + 12, 4);
      std::memcpy(&bytes[36], own.ip.data() + 12, 4);
      bytes[30] = bytes[31] = std::byte{0};
    } else {
      std::memcpy(&bytes[8], source.ip.data(), 16);
      std::memcpy(&bytes[24], own.ip.data(), 16);
    }
    return read_arrival(bytes, own.is_v4() ? Network::roce_v4 : Network::roce_v6, own, got);
  };
  for (const char* const ip : {"10.0.0.1", "1.0.0.1", "126.255.255.255", "128.0.0.1", "223.255.255.255"})
    EXPECT_TRUE(from(ip, kOwn)) << ip;
  for (const char* const ip : {"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "239.255.255.255", "255.255.255.255"})
    EXPECT_FALSE(from(ip, kOwn)) << ip;
  EXPECT_TRUE(from("127.0.0.1", Address::parse("127.0.0.2:5000"))) << "within a machine";
  for (const char* const ip : {"fd00::1", "2001:db8::1", "fe80::1"}) EXPECT_TRUE(from(ip, kOwn6)) << ip;
  for (const char* const ip : {"::", "::1", "ff02::1"}) EXPECT_FALSE(from(ip, kOwn6)) << ip;
  EXPECT_TRUE(from("::1", Address::parse("[::1]:5000")));
}

TEST(UdPacket, read_arrival__bears_a_hundred_thousand_messages_of_any_bytes) {
  Random random(3);
  std::uint64_t taken = 0;
  for (int i = 0; i < 100'000; ++i) {
    const bool is_v4 = random.below(2) == 0;
    std::vector<std::byte> bytes = is_v4 ? message_v4(static_cast<std::uint8_t>(random.next())) : message_v6(0);
    for (std::uint64_t changes = random.below(3); changes > 0; --changes)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size() + 1));
    bytes.shrink_to_fit();  // lets a sanitizer detect reads beyond the end of the message
    for (const Network network : {Network::roce_v4, Network::roce_v6, Network::infiniband}) {
      Arrival got;
      const Address& own = network == Network::roce_v4 ? kOwn : kOwn6;
      if (!read_arrival(bytes, network, own, got)) continue;
      ++taken;
      ASSERT_TRUE(is_host(got.source, own));
      ASSERT_NE(got.source.port, 0);
      ASSERT_LT(got.priority, kPriorities);
      ASSERT_GE(bytes.size(), kGrhBytes + kShimBytes);
    }
  }
  EXPECT_GT(taken, 10'000u);
}

TEST(UdPacket, overheads__are_those_of_the_headers_on_the_wire) {
  // Bytes per header: IPv4 20, IPv6 40, UDP 8, BTH 12, DETH 8, ICRC 4, Ethernet 14, shim 4.
  EXPECT_EQ(network_overhead(Network::roce_v4), 20u + 8 + 12 + 8 + 4);
  EXPECT_EQ(wire_overhead(Network::roce_v4), 14u + 52 + 4);
  EXPECT_EQ(network_overhead(Network::roce_v6), 40u + 8 + 12 + 8 + 4);
  // Bytes per header, in the order of the sum: LRH 8, VCRC 2, GRH 40, BTH 12, DETH 8, ICRC 4, shim 4.
  EXPECT_EQ(wire_overhead(Network::infiniband), 8u + 2 + 40 + 12 + 8 + 4 + 4);
}

TEST(UdPacket, traffic_class__is_class_selector_and_ecn) {
  EXPECT_EQ(traffic_class({.header = {}, .payload = {}, .ecn = Ecn::ect0, .priority = 5}), 5 << 5 | 2);
  EXPECT_EQ(traffic_class({.header = {}, .payload = {}, .ecn = Ecn::not_ect, .priority = 0}), 0);
}

}  // namespace
}  // namespace mltcp::rdma
