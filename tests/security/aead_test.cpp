// Tests AES-128-GCM: a test vector of its specification, the detection of every change, and the reuse of contexts.
#include "mltcp/transport/security/aead.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace mltcp::security {
namespace {

using Bytes = std::vector<std::byte>;
using Spans = std::vector<std::span<const std::byte>>;

Bytes from_hex(std::string_view hex) {
  Bytes bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(digit(hex[i]) << 4 | digit(hex[i + 1])));
  return bytes;
}

TrafficKey key_of(std::string_view key, std::string_view iv) {
  TrafficKey made;
  std::memcpy(made.key.bytes().data(), from_hex(key).data(), 16);
  std::memcpy(made.iv.bytes().data(), from_hex(iv).data(), 12);
  return made;
}
TrafficKey numbered_key(unsigned number) {
  TrafficKey made;
  std::memcpy(made.key.bytes().data(), &number, sizeof number);
  return made;
}

// Test case 4 of McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", whose tag begins with these 96 bits.
const std::string_view kPlain =
    "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba"
    "63"
    "7b39";
const std::string_view kSealed =
    "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d"
    "58"
    "e091";

class AeadTest : public ::testing::Test {
 protected:
  Aead aead_{4};
  TrafficKey key_ = key_of("feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888");
  Bytes bound_ = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  Bytes plain_ = from_hex(kPlain);
};

TEST_F(AeadTest, seal__is_that_of_the_specification) {
  Bytes out(plain_.size());
  const Aead::Tag tag = aead_.seal({key_, 1, 0}, 0, Spans{bound_}, Spans{plain_}, out.data());
  EXPECT_EQ(out, from_hex(kSealed));
  EXPECT_EQ(Bytes(tag.begin(), tag.end()), from_hex("5bc94fbc3221a5db94fae95a"));
}

TEST_F(AeadTest, number__goes_into_the_last_bytes_of_the_nonce) {
  TrafficKey shifted = key_of("feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888");
  shifted.iv.bytes()[4] ^= std::byte{1};
  shifted.iv.bytes()[11] ^= std::byte{2};
  Bytes out(plain_.size());
  const Aead::Tag tag = aead_.seal({shifted, 1, 0}, 0x0100000000000002, Spans{bound_}, Spans{plain_}, out.data());
  EXPECT_EQ(out, from_hex(kSealed));
  EXPECT_TRUE(aead_.open({key_, 2, 1}, 0, Spans{bound_}, Spans{out}, tag, out.data()));
  EXPECT_EQ(out, plain_);
}

TEST_F(AeadTest, pieces__are_as_the_whole) {
  const std::span<const std::byte> all(plain_);
  Bytes out(plain_.size());
  const Spans pieces{all.first(5), all.subspan(5, 0), all.subspan(5, 40), all.subspan(45)};
  const Aead::Tag tag = aead_.seal({key_, 1, 0}, 0, Spans{bound_}, pieces, out.data());
  EXPECT_EQ(out, from_hex(kSealed));
  const std::span<const std::byte> sealed(out);
  Bytes opened(plain_.size());
  EXPECT_TRUE(
      aead_.open({key_, 1, 0}, 0, Spans{bound_}, Spans{sealed.first(17), sealed.subspan(17)}, tag, opened.data()));
  EXPECT_EQ(opened, plain_);
}

TEST_F(AeadTest, in_place__is_as_apart) {
  Bytes packet = plain_;
  const Aead::Tag tag = aead_.seal({key_, 1, 0}, 0, Spans{bound_}, Spans{packet}, packet.data());
  EXPECT_EQ(packet, from_hex(kSealed));
  EXPECT_TRUE(aead_.open({key_, 1, 0}, 0, Spans{bound_}, Spans{packet}, tag, packet.data()));
  EXPECT_EQ(packet, plain_);
}

TEST_F(AeadTest, nothing_but_bound__is_authenticated) {
  const Aead::Tag tag = aead_.seal({key_, 1, 0}, 9, Spans{bound_}, {}, nullptr);
  EXPECT_TRUE(aead_.open({key_, 1, 0}, 9, Spans{bound_}, {}, tag, nullptr));
  bound_.back() ^= std::byte{1};
  EXPECT_FALSE(aead_.open({key_, 1, 0}, 9, Spans{bound_}, {}, tag, nullptr));
}

TEST_F(AeadTest, any_bit_that_is_changed__is_found) {
  Bytes sealed(plain_.size());
  Bytes out(plain_.size());
  const Aead::Tag tag = aead_.seal({key_, 1, 0}, 5, Spans{bound_}, Spans{plain_}, sealed.data());
  const auto opens = [&](std::uint64_t number, const Aead::Tag& with) {
    return aead_.open({key_, 1, 0}, number, Spans{bound_}, Spans{sealed}, with, out.data());
  };
  ASSERT_TRUE(opens(5, tag));
  EXPECT_FALSE(opens(4, tag));
  EXPECT_FALSE(aead_.open({numbered_key(1), 2, 0}, 5, Spans{bound_}, Spans{sealed}, tag, out.data()));
  for (Bytes* changed : {&sealed, &bound_})
    for (std::size_t bit = 0; bit < changed->size() * 8; ++bit) {
      (*changed)[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      ASSERT_FALSE(opens(5, tag)) << bit;
      (*changed)[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    }
  for (std::size_t bit = 0; bit < Aead::kTagBytes * 8; ++bit) {
    Aead::Tag changed = tag;
    changed[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    ASSERT_FALSE(opens(5, changed)) << bit;
  }
  EXPECT_TRUE(opens(5, tag));
}

TEST_F(AeadTest, contexts__are_those_of_their_keys_whoever_had_the_place_before) {
  constexpr std::size_t keys = 9;  // more keys than the four contexts
  std::array<Bytes, keys> sealed;
  std::array<Aead::Tag, keys> tags{};
  for (unsigned round = 0; round < 2; ++round)
    for (unsigned i = 0; i < keys; ++i) {
      sealed[i].resize(plain_.size());
      tags[i] = aead_.seal({numbered_key(i), 100 + i, i}, round, Spans{bound_}, Spans{plain_}, sealed[i].data());
    }
  EXPECT_EQ(aead_.contexts_made(), 2 * keys);  // each key has lost its context to another key before its next use
  Bytes out(plain_.size());
  for (unsigned i = 0; i < keys; ++i) {
    EXPECT_TRUE(aead_.open({numbered_key(i), 100 + i, i}, 1, Spans{bound_}, Spans{sealed[i]}, tags[i], out.data()))
        << i;
    EXPECT_EQ(out, plain_);
    EXPECT_FALSE(aead_.open({numbered_key(i), 100 + i, i}, 0, Spans{bound_}, Spans{sealed[i]}, tags[i], out.data()))
        << i;
  }
}

TEST_F(AeadTest, context_kept__is_not_set_up_again) {
  Bytes out(plain_.size());
  for (std::uint64_t number = 0; number < 50; ++number)
    static_cast<void>(aead_.seal({key_, 7, 3}, number, Spans{bound_}, Spans{plain_}, out.data()));
  EXPECT_EQ(aead_.contexts_made(), 1U);
}

TEST_F(AeadTest, forgery_in_between__leaves_the_context_usable) {
  Bytes sealed(plain_.size());
  Bytes out(plain_.size());
  const Aead::Tag tag = aead_.seal({key_, 1, 0}, 1, Spans{bound_}, Spans{plain_}, sealed.data());
  EXPECT_FALSE(aead_.open({key_, 1, 0}, 1, Spans{bound_}, Spans{sealed}, Aead::Tag{}, out.data()));
  EXPECT_TRUE(aead_.open({key_, 1, 0}, 1, Spans{bound_}, Spans{sealed}, tag, out.data()));
}

}  // namespace
}  // namespace mltcp::security
