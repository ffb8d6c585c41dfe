// Tests the list of addresses that have sent false information: how long they are rejected, which other addresses are
// rejected with them, and when they are forgotten.
#include "mltcp/transport/internal/violators.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace mltcp::transport::violators_test {
namespace {

constexpr Nanos kSecond{1'000'000'000};
const Address violator = Address::v4(0x0A000001, 1);

TEST(Violators, address__is_held_off_twice_as_long_each_time_up_to_some_minutes) {
  Violators violators;
  Nanos now = kSecond;
  EXPECT_FALSE(violators.holds_off(violator, now));
  EXPECT_FALSE(violators.knows(violator, Nanos()));
  for (const int seconds : {1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256}) {
    violators.add(violator, now);
    EXPECT_EQ(violators.until(violator), now + kSecond * seconds);
    EXPECT_TRUE(violators.holds_off(violator, now + kSecond * seconds - Nanos(1)));
    now += kSecond * seconds;
    EXPECT_FALSE(violators.holds_off(violator, now));
    EXPECT_TRUE(violators.knows(violator, now));
  }
}

TEST(Violators, address__is_forgotten_after_it_was_honest_for_long) {
  Violators violators;
  for (int i = 0; i < 3; ++i) violators.add(violator, kSecond * (1 << i));
  const Nanos then = violators.until(violator) + Violators::kForgottenAfter;
  EXPECT_TRUE(violators.knows(violator, then - Nanos(1)));
  EXPECT_FALSE(violators.knows(violator, then));
  violators.add(violator, then);
  EXPECT_EQ(violators.until(violator), then + kSecond) << "as the first time";
}

TEST(Violators, violations_of_many_connections_at_once__count_as_one) {
  Violators violators;
  for (int i = 0; i < 9; ++i) violators.add(violator, kSecond + Nanos(i));
  EXPECT_EQ(violators.until(violator), kSecond * 2);
}

TEST(Violators, others__are_not_held_off) {
  Violators violators;
  violators.add(violator, kSecond);
  EXPECT_TRUE(violators.holds_off(Address::v4(0x0A000001, 2), kSecond)) << "who lies chooses his port";
  EXPECT_FALSE(violators.holds_off(Address::v4(0x0A000002, 1), kSecond));
  const auto six = [](std::uint8_t subnet, std::uint8_t host) {
    Address address;
    address.ip = {0xFD, 0, 0, 0, 0, 0, 0, subnet, 0, 0, 0, 0, 0, 0, 0, host};
    return address;
  };
  violators.add(six(1, 1), kSecond);
  EXPECT_TRUE(violators.holds_off(six(1, 1), kSecond));
  EXPECT_FALSE(violators.holds_off(six(1, 2), kSecond)) << "a neighbour may be honest";
  EXPECT_TRUE(violators.knows(six(1, 2), kSecond)) << "a host may have any address of its subnet";
  EXPECT_FALSE(violators.knows(six(2, 1), kSecond));
}

TEST(Violators, many_addresses_of_one_subnet__have_no_other_subnet_forgotten) {
  Violators violators;
  Address address;
  address.ip = {0xFD, 1};
  violators.add(address, kSecond);
  const Address first = address;
  address.ip[1] = 2;
  for (std::uint32_t i = 0; i < 2 * Violators::kMaxEntries; ++i) {
    address.ip[14] = static_cast<std::uint8_t>(i >> 8);
    address.ip[15] = static_cast<std::uint8_t>(i);
    violators.add(address, kSecond * 2);
  }
  EXPECT_TRUE(violators.knows(first, kSecond * 3));
}

TEST(Violators, many_addresses__are_bounded_and_who_is_held_off_longest_stays) {
  Violators violators;
  for (int i = 0; i < 5; ++i) violators.add(violator, kSecond * (1 << i));
  const Nanos now = kSecond * 20;
  for (std::uint32_t i = 0; i < 10 * Violators::kMaxEntries; ++i) violators.add(Address::v4(0x0B000000 + i, 1), now);
  EXPECT_TRUE(violators.holds_off(violator, now));
  std::size_t held = 0;
  for (std::uint32_t i = 0; i < 10 * Violators::kMaxEntries; ++i)
    held += violators.holds_off(Address::v4(0x0B000000 + i, 1), now) ? 1U : 0U;
  EXPECT_EQ(held, Violators::kMaxEntries - 1);
}

}  // namespace
}  // namespace mltcp::transport::violators_test
