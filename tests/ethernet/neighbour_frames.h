// Frames of ARP and Neighbour Discovery for tests, built without the tested code.
#pragma once

#include "mltcp/transport/ethernet/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/random.h"

namespace mltcp::neighbour_frames {

using namespace literals;
using encap::MacAddress;
using ByteVector = std::vector<std::byte>;
using State = Neighbours::State;

inline constexpr MacAddress kMacA{2, 0, 0, 0, 0, 1};
inline constexpr MacAddress kMacB{2, 0, 0, 0, 0, 2};
inline constexpr MacAddress kMacC{2, 0, 0, 0, 0, 3};
inline constexpr MacAddress kNobody{};
inline constexpr MacAddress kBroadcast{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

/// Returns the bytes that `text` gives as hexadecimal digits. Spaces are ignored.
inline ByteVector hex(std::string_view text) {
  ByteVector bytes;
  std::string digits;
  for (const char c : text) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes.push_back(static_cast<std::byte>(std::stoul(digits, nullptr, 16)));
    digits.clear();
  }
  return bytes;
}
inline ByteVector padded(ByteVector frame) {
  frame.resize(60);
  return frame;
}

inline Address v4(std::uint8_t last, std::uint8_t third = 0) {
  return Address::v4(0x0A000000U | unsigned{third} << 8 | last, 0);
}
inline Address v6(std::string_view digits) {
  Address address;
  const ByteVector bytes = hex(digits);
  std::memcpy(address.ip.data(), bytes.data(), 16);
  return address;
}
inline const Address a6 = v6("20010db8 00000000 00000000 00000001");
inline const Address b6 = v6("20010db8 00000000 00000000 00abcdef");
inline const Address c6 = v6("20010db8 00000000 00000000 00000003");
inline const Address all_nodes = v6("ff020000 00000000 00000000 00000001");
inline const Address a6_group = v6("ff020000 00000000 00000001 ff000001");
inline const MacAddress a6_group_mac{0x33, 0x33, 0xFF, 0, 0, 1};

inline NeighbourConfig config_v4() { return {.mac = kMacA, .own = v4(1), .gateway = {}}; }
inline NeighbourConfig config_v6() { return {.mac = kMacA, .own = a6, .prefix_bits = 64, .gateway = {}}; }

inline void put(ByteVector& out, const MacAddress& mac) {
  for (const auto byte : mac) out.push_back(static_cast<std::byte>(byte));
}
inline void put_ip(ByteVector& out, const Address& address) {
  for (std::size_t i = address.is_v4() ? 12 : 0; i < 16; ++i) out.push_back(static_cast<std::byte>(address.ip[i]));
}
inline void put_number(ByteVector& out, unsigned number) {
  out.push_back(static_cast<std::byte>(number >> 8));
  out.push_back(static_cast<std::byte>(number));
}

struct Arp {
  unsigned operation = 2;
  MacAddress sender_mac = kMacB;
  Address sender = v4(2);
  MacAddress target_mac = kMacA;
  Address target = v4(1);
  MacAddress to = kMacA;
  MacAddress from = kMacB;
};
inline ByteVector frame_of(const Arp& arp) {
  ByteVector frame;
  put(frame, arp.to);
  put(frame, arp.from);
  for (const unsigned number : {0x0806U, 1U, 0x0800U, 0x0604U, arp.operation}) put_number(frame, number);
  put(frame, arp.sender_mac);
  put_ip(frame, arp.sender);
  put(frame, arp.target_mac);
  put_ip(frame, arp.target);
  return frame;
}

inline constexpr unsigned kSolicited = 0x40;
inline constexpr unsigned kOverrideKnown = 0x20;

struct Discovery {
  unsigned type = 136;
  unsigned flags = kSolicited | kOverrideKnown;
  Address source = b6;
  Address destination = a6;
  Address target = b6;
  std::string option = "0201 020000000002";
  MacAddress to = kMacA;
  MacAddress from = kMacB;
};

/// Writes the checksum of the ICMPv6 message in an untagged frame, as in RFC 4443 section 2.3.
inline void seal(ByteVector& frame) {
  frame[56] = frame[57] = std::byte{0};
  std::uint32_t total = 58 + static_cast<std::uint32_t>(frame.size() - 54);
  for (std::size_t i = 22; i < frame.size(); ++i) {
    total += std::to_integer<std::uint32_t>(frame[i]) << (i % 2 == 0 ? 8 : 0);
    total = (total & 0xFFFF) + (total >> 16);
  }
  frame[56] = static_cast<std::byte>(~total >> 8);
  frame[57] = static_cast<std::byte>(~total);
}
inline ByteVector frame_of(const Discovery& discovery) {
  const ByteVector option = hex(discovery.option);
  ByteVector frame;
  put(frame, discovery.to);
  put(frame, discovery.from);
  for (const unsigned number : {0x86DDU, 0x6000U, 0U, static_cast<unsigned>(24 + option.size()), 0x3AFFU}) {
    put_number(frame, number);
  }
  put_ip(frame, discovery.source);
  put_ip(frame, discovery.destination);
  for (const unsigned number : {discovery.type << 8, 0U, discovery.flags << 8, 0U}) put_number(frame, number);
  put_ip(frame, discovery.target);
  frame.insert(frame.end(), option.begin(), option.end());
  seal(frame);
  return frame;
}
inline Discovery solicitation(const Address& source, std::string option = "0101 020000000002") {
  return {.type = 135,
          .flags = 0,
          .source = source,
          .destination = a6_group,
          .target = a6,
          .option = std::move(option),
          .to = a6_group_mac};
}

inline ByteVector with_tag(ByteVector frame, unsigned control) {
  ByteVector tag;
  put_number(tag, 0x8100);
  put_number(tag, control);
  frame.insert(frame.begin() + 12, tag.begin(), tag.end());
  return frame;
}

/// Passes a copy of `frame` without spare memory to `end`, so that AddressSanitizer detects a read beyond the end.
inline bool hear(Neighbours& end, const ByteVector& frame, Nanos now) {
  const ByteVector exact(frame.begin(), frame.end());
  return end.receive(exact, now);
}

/// Returns all frames that `end` has to send at `now`.
inline std::vector<ByteVector> say(Neighbours& end, Nanos now) {
  std::vector<ByteVector> frames;
  for (;;) {
    ByteVector out(Neighbours::kLongestFrame, std::byte{0xEE});
    const std::size_t size = end.frame(out, now);
    if (size == 0) return frames;
    for (std::size_t i = size; i < out.size(); ++i) EXPECT_EQ(out[i], std::byte{0xEE}) << "written beyond the frame";
    out.resize(size);
    frames.push_back(std::move(out));
  }
}
inline ByteVector say_one(Neighbours& end, Nanos now) {
  auto frames = say(end, now);
  EXPECT_EQ(frames.size(), 1u);
  return frames.empty() ? ByteVector{} : frames.front();
}

inline void expect_known(Neighbours& end, const Address& address, const MacAddress& mac, Nanos now) {
  const auto found = end.find(address, now);
  EXPECT_EQ(found.state, State::known);
  EXPECT_EQ(found.mac, mac);
}

/// Lets `end`, whose address is v4(1), look up v4(last). Then delivers the answer that v4(last) has the MAC address
/// kMacB.
inline void teach(Neighbours& end, std::uint8_t last, Nanos now) {
  (void)end.find(v4(last), now);
  (void)say(end, now);
  EXPECT_TRUE(hear(end, frame_of(Arp{.sender = v4(last)}), now));
}
inline void teach_v6(Neighbours& end, Nanos now) {
  (void)end.find(b6, now);
  (void)say(end, now);
  EXPECT_TRUE(hear(end, frame_of(Discovery{}), now));
  expect_known(end, b6, kMacB, now);
}

// Frames

}  // namespace mltcp::neighbour_frames
