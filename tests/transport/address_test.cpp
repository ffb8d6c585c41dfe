// Addresses: text, the IPv4 mapping, and the hash.
#include "mltcp/transport/address.h"

#include <gtest/gtest.h>

#include <unordered_set>

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

TEST(AddressHash, hash__tells_neighbours_apart) {
  std::unordered_set<std::size_t> seen;
  for (std::uint32_t ip = 0; ip < 100; ++ip)
    for (std::uint16_t port = 0; port < 100; ++port) seen.insert(AddressHash{}(Address::v4(0x0A000000 + ip, port)));
  EXPECT_GT(seen.size(), 9990u);
}

}  // namespace
}  // namespace mltcp
