// Tests how the names of UDP ports are parsed.
#include "mltcp/socket/udp_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::socket {
namespace {

using testing::HasSubstr;

TEST(UdpName, parse__reads_interfaces_and_addresses) {
  EXPECT_EQ(parse_udp_name("udp:"), UdpName{});
  EXPECT_EQ(parse_udp_name("udp:eth0"), (UdpName{"eth0", {}}));
  EXPECT_EQ(parse_udp_name("udp:enp1s0f1.100"), (UdpName{"enp1s0f1.100", {}}));
  EXPECT_EQ(parse_udp_name("udp:127.0.0.1"), (UdpName{"", Address::v4(0x7F000001, 0)}));
  EXPECT_EQ(parse_udp_name("udp:fd00::1"), (UdpName{"", Address::parse("fd00::1")}));
  EXPECT_EQ(parse_udp_name("udp:::1"), (UdpName{"", Address::parse("::1")}));
}

TEST(UdpName, parse__says_what_is_wrong) {
  const auto error_of = [](const char* text) { return message_of<InputError>([&] { parse_udp_name(text); }); };
  EXPECT_EQ(error_of("udp"), "port \"udp\": the colon is missing; write udp:, udp:IFACE, udp:IP");
  EXPECT_THAT(error_of("udp:[fd00::1]"), HasSubstr("the address has brackets"));
  EXPECT_THAT(error_of("udp:10.0.0.1:62400"), HasSubstr("the UDP port belongs to the host"));
  EXPECT_THAT(error_of("udp:10.0.0"), HasSubstr("port \"udp:10.0.0\": "));
  EXPECT_THAT(error_of("udp:an-interface-of-19"), HasSubstr("15 characters at most"));
}

TEST(UdpName, is_udp_name__leaves_other_ports_alone) {
  EXPECT_TRUE(is_udp_name("udp"));
  EXPECT_TRUE(is_udp_name("udp:nosuch0"));
  for (const char* const other : {"af_packet:eth0", "udpx:eth0", "", "net_udp0", "3b:00.0"})
    EXPECT_FALSE(is_udp_name(other)) << other;
}

}  // namespace
}  // namespace mltcp::socket
