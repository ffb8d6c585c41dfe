// Tests SipHash-2-4 with the vectors that its authors publish. The key and the inputs are the bytes 0, 1, 2, ...
#include "mltcp/base/siphash.h"

#include <gtest/gtest.h>

namespace mltcp {
namespace {

TEST(SipHash, vectors__as_published) {
  constexpr std::array<std::uint64_t, 16> expected{
      0x726FDB47DD0E0E31, 0x74F839C593DC67FD, 0x0D6C8009D9A94F5A, 0x85676696D7FB7E2D,
      0xCF2794E0277187B7, 0x18765564CD99A68D, 0xCBC9466E58FEE3CE, 0xAB0200F58B01D137,
      0x93F5F5799A932462, 0x9E0082DF0BA9E4B0, 0x7A5DBBC594DDB9F3, 0xF4B32F46226BADA7,
      0x751E8FBC860EE5FB, 0x14EA5627C0843D90, 0xF723CA908E7AF2EE, 0xA129CA6149BE45E5};
  constexpr SipKey key{0x0706050403020100, 0x0F0E0D0C0B0A0908};
  std::array<std::byte, 16> input{};
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = static_cast<std::byte>(i);
  for (std::size_t length = 0; length < input.size(); ++length)
    EXPECT_EQ(siphash(key, std::span(input).first(length)), expected[length]) << length;
}

TEST(SipHash, key__each_of_its_bits_changes_the_hash) {
  const std::array<std::byte, 20> input{};
  const std::uint64_t hash = siphash({}, input);
  for (int bit = 0; bit < 128; ++bit) {
    SipKey key{};
    key[static_cast<std::size_t>(bit / 64)] = std::uint64_t{1} << (bit % 64);
    EXPECT_NE(siphash(key, input), hash) << bit;
  }
}

}  // namespace
}  // namespace mltcp
