// Tests that only the key decides which addresses collide in a hash table.
#include "mltcp/rdma/internal/keyed_hash.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

#include "mltcp/base/random.h"

namespace mltcp::rdma {
namespace {

constexpr int kKeys = 1000;
constexpr int kKeysOfMeans = 200;
constexpr std::size_t kSets = 1024;

KeyedHash next_hash(Random& random) {
  const std::uint64_t start = random.next();
  return {start, random.next()};
}

/// Returns `address` with up to 12 bits changed: the upper halves of bytes 7, 11 and 15, which are the last bytes of
/// its second, third and fourth 32-bit words. On little-endian machines, two of these bytes are the most significant
/// ones of a 64-bit word.
Address changed(Address address, unsigned bits) {
  address.ip[7] ^= static_cast<std::uint8_t>((bits & 0xF) << 4);
  address.ip[11] ^= static_cast<std::uint8_t>((bits >> 4 & 0xF) << 4);
  address.ip[15] ^= static_cast<std::uint8_t>((bits >> 8 & 0xF) << 4);
  return address;
}

TEST(KeyedHash, addresses_that_differ_in_the_highest_bits__meet_by_chance_alone) {
  const Address address = Address::parse("[2001:db8::1234:5678]:5000");
  Random random(1);
  int equal = 0;
  for (int i = 0; i < kKeys; ++i) {
    const KeyedHash hash = next_hash(random);
    equal += hash(address) == hash(changed(address, 0x888)) ? 1 : 0;
  }
  EXPECT_LE(equal, 1);
}

TEST(KeyedHash, an_address__shares_its_set_with_few_whatever_bits_they_differ_in) {
  const Address v6 = Address::parse("[2001:db8::1234:5678]:5000");
  const Address v4 = Address::parse("10.1.2.3:5000");
  // Counts the collisions of `victim` with 4095 other addresses, and returns the mean over many keys. The expected mean
  // is 4.
  const auto mean = [&](const Address& victim, auto other) {
    Random random(2);
    std::size_t met = 0;
    for (int i = 0; i < kKeysOfMeans; ++i) {
      const KeyedHash hash = next_hash(random);
      const std::size_t set = hash(victim) % kSets;
      for (unsigned bits = 1; bits < 4096; ++bits) met += hash(other(bits)) % kSets == set ? 1U : 0U;
    }
    return static_cast<double>(met) / kKeysOfMeans;
  };
  const auto port = [](Address address, unsigned bits) {
    address.port = static_cast<std::uint16_t>(address.port ^ bits << 4);
    return address;
  };
  EXPECT_NEAR(mean(v6, [&](unsigned bits) { return changed(v6, bits); }), 4, 0.5);
  EXPECT_NEAR(mean(v6, [&](unsigned bits) { return port(v6, bits); }), 4, 0.5);
  EXPECT_NEAR(mean(v4, [&](unsigned bits) { return Address::v4(v4.v4_ip() ^ bits, 5000); }), 4, 0.5);
  EXPECT_NEAR(mean(v4, [&](unsigned bits) { return Address::v4(v4.v4_ip() ^ bits << 20, 5000); }), 4, 0.5);
}

TEST(KeyedHash, words__differ_by_traffic_class_and_port) {
  Random random(3);
  const KeyedHash hash = next_hash(random);
  std::set<std::size_t> seen;
  for (std::uint32_t more = 0; more < 256; ++more)
    for (std::uint16_t port = 1; port <= 16; ++port) seen.insert(hash.of(Address::v4(0x0A000001, port), more));
  EXPECT_EQ(seen.size(), 256u * 16);
}

}  // namespace
}  // namespace mltcp::rdma
