// Tests CRC-32C with published vectors, and compares the processor's instruction with the table for every length and
// alignment.
#include "mltcp/transport/crc32c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "../random_bytes.h"

namespace mltcp::crc32c_test {
namespace {

using Function = std::uint32_t (*)(std::uint32_t, std::span<const std::byte>);

class Crc32c : public testing::TestWithParam<Function> {};
INSTANTIATE_TEST_SUITE_P(both, Crc32c, testing::Values(&crc32c, &crc32c_portable));

TEST_P(Crc32c, vectors__of_rfc_3720_appendix_b4) {
  std::vector<std::byte> data(32);
  EXPECT_EQ(GetParam()(0, data), 0x8A9136AAu) << "32 bytes of zeros";
  std::fill(data.begin(), data.end(), std::byte{0xFF});
  EXPECT_EQ(GetParam()(0, data), 0x62A8AB43u) << "32 bytes of ones";
  for (unsigned i = 0; i < 32; ++i) data[i] = static_cast<std::byte>(i);
  EXPECT_EQ(GetParam()(0, data), 0x46DD794Eu) << "incrementing";
  for (unsigned i = 0; i < 32; ++i) data[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(GetParam()(0, data), 0x113FDB5Cu) << "decrementing";
  std::vector<std::byte> read(48);
  read[0] = std::byte{0x01};
  read[1] = std::byte{0xC0};
  read[16] = std::byte{0x14};
  read[22] = std::byte{0x04};
  read[27] = std::byte{0x14};
  read[31] = std::byte{0x18};
  read[32] = std::byte{0x28};
  read[40] = std::byte{0x02};
  EXPECT_EQ(GetParam()(0, read), 0xD9963A56u) << "an iSCSI read command";
}

TEST_P(Crc32c, vectors__the_check_value_and_nothing) {
  const std::string_view text = "123456789";
  EXPECT_EQ(GetParam()(0, std::as_bytes(std::span(text))), 0xE3069283u);
  EXPECT_EQ(GetParam()(0, {}), 0u);
  EXPECT_EQ(GetParam()(0x12345678, {}), 0x12345678u);
}

TEST_P(Crc32c, increments__give_the_checksum_of_the_whole) {
  const auto data = random_bytes(1500, 3);
  const std::uint32_t whole = GetParam()(0, data);
  for (std::size_t cut = 0; cut <= data.size(); ++cut) {
    const auto all = std::span<const std::byte>(data);
    ASSERT_EQ(GetParam()(GetParam()(0, all.first(cut)), all.subspan(cut)), whole) << "cut at " << cut;
  }
}

TEST_P(Crc32c, detects__every_single_bit_of_a_packet) {
  auto data = random_bytes(200, 4);
  const std::uint32_t whole = GetParam()(0, data);
  for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    ASSERT_NE(GetParam()(0, data), whole) << "bit " << bit;
    data[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
}

TEST(Crc32cAgreement, portable__equals_hardware_for_every_length) {
  for (std::size_t length = 0; length <= 2000; ++length) {
    // a separate allocation, so that a sanitizer detects reads beyond its end
    const auto data = random_bytes(length, length + 1);
    ASSERT_EQ(crc32c(0, data), crc32c_portable(0, data)) << "length " << length;
  }
}

TEST(Crc32cAgreement, portable__equals_hardware_for_every_offset) {
  const auto data = random_bytes(2100, 5);
  for (std::size_t offset = 0; offset < 64; ++offset)
    for (std::size_t length = 0; length <= 2000; length += offset < 8 ? 1 : 37) {
      const auto part = std::span<const std::byte>(data).subspan(offset, length);
      ASSERT_EQ(crc32c(0xABCD1234, part), crc32c_portable(0xABCD1234, part)) << offset << " + " << length;
    }
}

}  // namespace
}  // namespace mltcp::crc32c_test
