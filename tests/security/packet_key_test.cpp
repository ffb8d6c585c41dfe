// Tests the seals of a connection. Only the peer can open a sealed packet, whether or not the packet is encrypted. This
// holds across epochs, and for late packets.
#include "mltcp/transport/security/packet_key.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "mltcp/base/error.h"

namespace mltcp::security {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
EndRandom end_random(unsigned first) {
  EndRandom random{};
  for (std::size_t i = 0; i < random.size(); ++i) random[i] = static_cast<std::byte>(first + i);
  return random;
}

/// A packet that owns its memory.
struct Packet {
  std::uint64_t number = 0;
  bool epoch = false;
  bool clear = false;
  Bytes header = bytes_of("0123456789abcdefghijklmn");
  Bytes body;
  PacketSeal::Tag tag{};

  [[nodiscard]] SealedPacket shape() const {
    const std::span<const std::byte> h(header);
    const std::span<const std::byte> b(body);
    const std::size_t half = b.size() / 2;
    return {number, epoch, clear, {h.first(4), h.subspan(4)}, {b.first(half), b.subspan(half)}};
  }
};

Packet sealed(PacketSeal& seal, std::uint64_t number, std::uint64_t acked, std::string_view text, bool clear = false) {
  Packet packet{.number = number, .epoch = seal.next_epoch(number, acked).bit, .clear = clear, .body = bytes_of(text)};
  Bytes out(packet.body.size());
  packet.tag = seal.seal(packet.shape(), out.data());
  if (!clear) packet.body = out;
  return packet;
}
bool opens(PacketSeal& seal, const Packet& packet, std::string_view text) {
  Bytes out = packet.body;
  return seal.open(packet.shape(), packet.tag, out.data()) && out == bytes_of(text);
}

constexpr std::uint64_t kNothingAcked = ~std::uint64_t{0};

class PacketKeyTest : public ::testing::Test {
 protected:
  void start(std::uint64_t packets_an_epoch) {
    key_ = packet_key(job_, Protection::encrypt, packets_an_epoch);
    client_ = engine_->connect(*key_, end_random(1));
    server_ = engine_->accept(*key_, end_random(1), end_random(2));
    client_->meet(end_random(2));
  }

  JobKey job_ = JobKey::generate();
  std::shared_ptr<const PacketKey> key_ = packet_key(job_);
  std::unique_ptr<SealEngine> engine_ = key_->make_engine();
  std::unique_ptr<PacketSeal> client_ = engine_->connect(*key_, end_random(1));
  std::unique_ptr<PacketSeal> server_ = engine_->accept(*key_, end_random(1), end_random(2));
};

TEST_F(PacketKeyTest, ends__open_what_the_other_sealed_and_not_their_own) {
  client_->meet(end_random(2));
  const Packet question = sealed(*client_, 0, kNothingAcked, "question");
  EXPECT_NE(question.body, bytes_of("question"));
  EXPECT_TRUE(opens(*server_, question, "question"));
  EXPECT_FALSE(opens(*client_, question, "question"));
  const Packet answer = sealed(*server_, 0, kNothingAcked, "answer");
  EXPECT_TRUE(opens(*client_, answer, "answer"));
  EXPECT_FALSE(opens(*server_, answer, "answer"));
}

TEST_F(PacketKeyTest, packet__is_bound_to_its_number_header_epoch_and_mode) {
  client_->meet(end_random(2));
  const Packet packet = sealed(*client_, 7, kNothingAcked, "some text");
  ASSERT_TRUE(opens(*server_, packet, "some text"));
  Packet other = packet;
  other.number = 8;
  EXPECT_FALSE(opens(*server_, other, "some text"));
  other = packet;
  other.header[23] ^= std::byte{1};
  EXPECT_FALSE(opens(*server_, other, "some text"));
  other = packet;
  other.epoch = true;
  EXPECT_FALSE(opens(*server_, other, "some text"));
  other = packet;
  other.clear = true;
  EXPECT_FALSE(opens(*server_, other, "some text"));
  EXPECT_TRUE(opens(*server_, packet, "some text"));
}

TEST_F(PacketKeyTest, clear_packet__can_be_read_and_not_changed) {
  client_->meet(end_random(2));
  Packet packet = sealed(*client_, 3, kNothingAcked, "in the clear", true);
  EXPECT_EQ(packet.body, bytes_of("in the clear"));
  EXPECT_TRUE(opens(*server_, packet, "in the clear"));
  packet.body[0] ^= std::byte{1};
  EXPECT_FALSE(server_->open(packet.shape(), packet.tag, nullptr));
}

TEST_F(PacketKeyTest, other_key_or_other_random__opens_nothing) {
  client_->meet(end_random(2));
  const Packet packet = sealed(*client_, 0, kNothingAcked, "secret");
  const auto other_key = packet_key(JobKey::generate());
  EXPECT_FALSE(opens(*engine_->accept(*other_key, end_random(1), end_random(2)), packet, "secret"));
  EXPECT_FALSE(opens(*engine_->accept(*key_, end_random(3), end_random(2)), packet, "secret"));
  EXPECT_FALSE(opens(*engine_->accept(*key_, end_random(1), end_random(3)), packet, "secret"));
  // A second host has the same job key and its own engine.
  const auto elsewhere = packet_key(job_);
  EXPECT_EQ(elsewhere->id(), key_->id());
  const auto engine = elsewhere->make_engine();
  EXPECT_TRUE(opens(*engine->accept(*elsewhere, end_random(1), end_random(2)), packet, "secret"));
}

TEST_F(PacketKeyTest, forged_answer__is_not_opened_and_the_true_one_is_nevertheless) {
  const Packet answer = sealed(*server_, 0, kNothingAcked, "answer");
  EXPECT_FALSE(opens(*client_, answer, "answer"));  // the client has not called meet() yet
  client_->meet(end_random(9));
  EXPECT_FALSE(opens(*client_, answer, "answer"));
  client_->meet(end_random(2));
  EXPECT_TRUE(opens(*client_, answer, "answer"));
}

TEST_F(PacketKeyTest, greeting__is_opened_by_whoever_has_the_key) {
  Packet packet{.number = 0, .clear = true, .body = bytes_of("connect")};
  packet.tag = client_->seal_greeting(packet.shape());
  EXPECT_TRUE(engine_->opens_greeting(*key_, end_random(1), packet.shape(), packet.tag));
  EXPECT_FALSE(engine_->opens_greeting(*key_, end_random(2), packet.shape(), packet.tag));
  EXPECT_FALSE(engine_->opens_greeting(*packet_key(JobKey::generate()), end_random(1), packet.shape(), packet.tag));
  packet.body[1] ^= std::byte{1};
  EXPECT_FALSE(engine_->opens_greeting(*key_, end_random(1), packet.shape(), packet.tag));
}

TEST_F(PacketKeyTest, greeting_that_is_repeated__is_that_of_the_same_client_and_key) {
  Packet packet{.number = 5, .clear = true, .body = bytes_of("connect")};
  packet.tag = client_->seal_greeting(packet.shape());
  EXPECT_TRUE(server_->opens_greeting(key_->id(), end_random(1), packet.shape(), packet.tag));
  const auto other_key = packet_key(JobKey::generate());
  const auto other_client = engine_->connect(*key_, end_random(3));
  const auto other_job = engine_->connect(*other_key, end_random(1));
  packet.tag = other_client->seal_greeting(packet.shape());
  EXPECT_FALSE(server_->opens_greeting(key_->id(), end_random(3), packet.shape(), packet.tag));
  EXPECT_FALSE(server_->opens_greeting(key_->id(), end_random(1), packet.shape(), packet.tag));
  packet.tag = other_job->seal_greeting(packet.shape());
  EXPECT_FALSE(server_->opens_greeting(other_key->id(), end_random(1), packet.shape(), packet.tag));
  EXPECT_FALSE(server_->opens_greeting(key_->id(), end_random(1), packet.shape(), packet.tag));
}

TEST_F(PacketKeyTest, keys_of_a_job_that_encrypt_and_that_do_not__are_different) {
  const auto authenticates = packet_key(job_, Protection::authenticate);
  EXPECT_EQ(key_->id(), job_.id());
  EXPECT_NE(authenticates->id(), key_->id());
  client_->meet(end_random(2));
  const Packet packet = sealed(*client_, 3, kNothingAcked, "in the clear", true);
  EXPECT_FALSE(
      engine_->accept(*authenticates, end_random(1), end_random(2))->open(packet.shape(), packet.tag, nullptr));
}

TEST_F(PacketKeyTest, epochs__follow_each_other_at_both_ends) {
  start(10);
  std::array<bool, 45> epochs{};
  for (std::uint64_t number = 0; number < 45; ++number) {
    const Packet packet = sealed(*client_, number, number == 0 ? kNothingAcked : number - 1, "text");
    epochs[number] = packet.epoch;
    EXPECT_TRUE(opens(*server_, packet, "text")) << number;
  }
  for (std::uint64_t number = 0; number < 45; ++number) EXPECT_EQ(epochs[number], number / 10 % 2 == 1) << number;
}

TEST_F(PacketKeyTest, epoch__does_not_end_before_something_of_it_is_acknowledged) {
  start(10);
  for (std::uint64_t number = 0; number < 30; ++number)
    EXPECT_FALSE(sealed(*client_, number, kNothingAcked, "text").epoch) << number;
  EXPECT_TRUE(sealed(*client_, 30, 4, "text").epoch);
  for (std::uint64_t number = 31; number < 50; ++number)
    // no packet of the new epoch is acknowledged yet
    EXPECT_TRUE(sealed(*client_, number, 29, "text").epoch) << number;
  EXPECT_FALSE(sealed(*client_, 50, 30, "text").epoch);
}

TEST_F(PacketKeyTest, epoch__is_overdue_as_long_as_nothing_of_it_is_acknowledged) {
  start(10);
  for (std::uint64_t number = 0; number < 30; ++number)
    EXPECT_EQ(client_->next_epoch(number, kNothingAcked).overdue, number >= 10) << number;
  EXPECT_FALSE(client_->next_epoch(30, 29).overdue);
  EXPECT_FALSE(client_->next_epoch(39, 29).overdue);
  EXPECT_TRUE(client_->next_epoch(40, 29).overdue);
}

TEST_F(PacketKeyTest, late_packet_of_the_epoch_before__is_opened) {
  start(10);
  std::vector<Packet> packets;
  for (std::uint64_t number = 0; number < 25; ++number)
    packets.push_back(sealed(*client_, number, number == 0 ? kNothingAcked : number - 1, "text"));
  for (const std::uint64_t number : {0U, 10U, 9U, 20U, 19U, 11U, 24U, 15U})
    EXPECT_TRUE(opens(*server_, packets[number], "text")) << number;
  EXPECT_FALSE(opens(*server_, packets[5], "text"));  // the keys of this packet, two epochs old, are deleted
}

TEST_F(PacketKeyTest, forged_epoch__moves_nothing) {
  start(10);
  ASSERT_TRUE(opens(*server_, sealed(*client_, 0, kNothingAcked, "text"), "text"));
  Packet forged = sealed(*client_, 1, 0, "text");
  forged.epoch = true;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(opens(*server_, forged, "text"));
  EXPECT_TRUE(opens(*server_, sealed(*client_, 2, 0, "text"), "text"));
}

TEST_F(PacketKeyTest, settings_out_of_range__are_refused) {
  EXPECT_THROW(packet_key(job_, Protection::encrypt, 0), InputError);
  EXPECT_THROW(packet_key(job_, Protection::encrypt, (1U << 23) + 1), InputError);
  EXPECT_TRUE(packet_key(job_)->encrypts());
  EXPECT_FALSE(packet_key(job_, Protection::authenticate)->encrypts());
}

}  // namespace
}  // namespace mltcp::security
