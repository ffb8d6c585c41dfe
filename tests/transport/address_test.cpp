// Tests addresses: their text form, the mapping of IPv4 addresses, and the hash.
#include "mltcp/transport/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <unordered_set>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp {
namespace {

TEST(Address, v4__is_mapped_and_read_back) {
  const Address address = Address::v4(0x0A000001, 62400);
  EXPECT_TRUE(address.is_v4());
  EXPECT_EQ(address.v4_ip(), 0x0A000001u);
  EXPECT_EQ(to_text(address), "10.0.0.1:62400");
  EXPECT_EQ(to_text(Address::v4(0xFFFFFFFF, 65535)), "255.255.255.255:65535");
}

TEST(Address, v6__as_text_in_brackets) {
  Address address;
  address.ip = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  address.port = 7;
  EXPECT_FALSE(address.is_v4());
  EXPECT_EQ(to_text(address), "[2001:db8:0:0:0:0:0:1]:7");
}

std::string refusal(std::string_view text) {
  return message_of<InputError>([&] { Address::parse(text); });
}

TEST(Address, parse__reads_both_versions_with_and_without_a_port) {
  EXPECT_EQ(Address::parse("10.0.0.1", 62400), Address::v4(0x0A000001, 62400));
  EXPECT_EQ(Address::parse("10.0.0.1:7", 62400), Address::v4(0x0A000001, 7));
  Address v6;
  v6.ip = {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  for (const char* text : {"2001:db8::1", "[2001:db8::1]", "[2001:DB8:0:0:0:0:0:1]:0"})
    EXPECT_EQ(Address::parse(text), v6) << text;
  v6.port = 65535;
  EXPECT_EQ(Address::parse("[2001:db8::1]:65535"), v6);
  EXPECT_EQ(Address::parse(to_text(v6)), v6) << "what to_text() writes";
  EXPECT_TRUE(Address::parse("::ffff:10.0.0.1").is_v4());
}

TEST(Address, parse__says_what_is_wrong_and_how_to_write_it) {
  using testing::HasSubstr;
  for (const char* text : {"", "ten", "10.0.0", "10.0.0.256", "10.0.0.1 ", "1::2::3", "[10.0.0.1]:5", "host:80", ":80"})
    EXPECT_THAT(refusal(text), HasSubstr("no IP address; write one such as 10.0.0.1 or fd00::1")) << text;
  EXPECT_THAT(refusal(std::string_view("10.0.0.1\0x", 10)), HasSubstr("no IP address"));
  for (const char* text : {"10.0.0.1:", "10.0.0.1:65536", "10.0.0.1:-1", "10.0.0.1:7x", "[fd00::1]:"})
    EXPECT_THAT(refusal(text), HasSubstr("is no port; give 0 to 65535")) << text;
  EXPECT_THAT(refusal("[fd00::1"), HasSubstr("the bracket is not closed"));
  EXPECT_THAT(refusal("[fd00::1]7"), HasSubstr("no port follows the bracket"));
  EXPECT_THAT(refusal("ten"), testing::StartsWith("\"ten\": "));
}

TEST(AddressPrefix, parse__reads_an_address_and_the_bits_of_its_network) {
  const AddressPrefix v4 = AddressPrefix::parse("10.0.0.1/24");
  EXPECT_EQ(v4.address, Address::v4(0x0A000001, 0));
  EXPECT_EQ(v4.bits, 24u);
  EXPECT_EQ(AddressPrefix::parse("fd00::1/128").bits, 128u);
  const auto wrong = [](std::string_view text) { return message_of<InputError>([&] { AddressPrefix::parse(text); }); };
  for (const char* text : {"10.0.0.1", "10.0.0.1/", "10.0.0.1/0", "10.0.0.1/33", "fd00::1/129", "10.0.0.1/24x"})
    EXPECT_THAT(wrong(text), testing::HasSubstr("no prefix length")) << text;
  EXPECT_THAT(wrong("ten/24"), testing::HasSubstr("no IP address"));
}

TEST(AddressHash, hash__tells_neighbours_apart) {
  std::unordered_set<std::size_t> seen;
  for (std::uint32_t ip = 0; ip < 100; ++ip)
    for (std::uint16_t port = 0; port < 100; ++port) seen.insert(AddressHash{}(Address::v4(0x0A000000 + ip, port)));
  EXPECT_GT(seen.size(), 9990u);
}

}  // namespace
}  // namespace mltcp
