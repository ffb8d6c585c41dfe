// UDP source ports of frames, by path value (transport/ethernet/frame_writer.h).
#include "mltcp/transport/ethernet/frame_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

namespace mltcp::encap {
namespace {

TEST(FrameWriter, path_values__are_source_ports_and_frames_stay_intact) {
  for (const char* const ip : {"10.0.0.1:62400", "[fd00::1]:62400"}) {
    const Address source = Address::parse(ip);
    const Address to = Address::parse(source.is_v4() ? "10.0.0.2:62400" : "[fd00::2]:62400");
    FrameWriter writer({.mac = {}, .source = source, .mtu = 1500});
    std::array<std::byte, 40> header{};
    header.fill(std::byte{7});
    std::set<std::uint16_t> ports;
    for (std::uint32_t path = 0; path < kMaxPaths; ++path) {
      TxPacket packet;
      packet.destination = &to;
      packet.header = header;
      packet.path = static_cast<std::uint8_t>(path);
      std::array<std::byte, 200> bytes{};
      const std::size_t size = writer.write(packet, {}, bytes.data(), true);
      Frame frame;
      ASSERT_EQ(parse(std::span(bytes).first(size), VerifyUdp::yes, frame), Reject::none) << path;
      EXPECT_EQ(frame.headers.source.ip, source.ip);
      EXPECT_EQ(frame.headers.destination, to);
      if (path == 0) {
        EXPECT_EQ(frame.headers.source.port, 62400);
      }
      ports.insert(frame.headers.source.port);
    }
    EXPECT_EQ(ports.size(), kMaxPaths);
    EXPECT_GE(*ports.begin(), 49'152U);
  }
}

TEST(FrameWriter, source_ports__differ_at_the_end_of_the_range_and_below_it) {
  for (const int port : {1, 4791, 49'152, 65'000, 65'535}) {
    const auto own = static_cast<std::uint16_t>(port);
    std::set<std::uint16_t> ports;
    for (std::uint32_t path = 0; path < kMaxPaths; ++path)
      ports.insert(source_port(own, static_cast<std::uint8_t>(path)));
    EXPECT_EQ(ports.size(), kMaxPaths) << own;
    EXPECT_TRUE(ports.contains(own));
  }
}

}  // namespace
}  // namespace mltcp::encap
