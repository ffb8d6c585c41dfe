// Tests messages: every length near the limits between code paths, several messages in a packet, the order of buffers,
// truncation, and both directions at once.
#include <gtest/gtest.h>

#include "../transport/test_network.h"

namespace mltcp::message_test {
namespace {

using namespace testing_network;
using MessageConnected = ConnectedTest;

TEST(Message, length__every_interesting_one_arrives_byte_exact) {
  // Data of up to 256 bytes is copied. 1424 bytes (`full_payload`) are the longest data that fits into one packet.
  Pair pair;
  const auto [c, s] = pair.connect();
  for (const std::size_t length :
       {0U,    1U,    2U,    63U,   64U,   65U,   255U,  256U,    257U,    258U,    1000U,   1383U,     1384U,
        1385U, 1423U, 1424U, 1425U, 1428U, 2848U, 2849U, 10'000U, 65'535U, 65'536U, 65'537U, 1'000'000U}) {
    const auto message = random_bytes(length, length + 1);
    ByteVector buffer(length + 8, std::byte{0xEE});
    ASSERT_EQ(pair.s().receive(s, std::span(buffer).first(length), length), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, length + 7), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1)) << length;
    const Completion sent = pair.client().completions.back();
    EXPECT_EQ(sent.kind, Kind::sent);
    EXPECT_EQ(sent.status, Status::ok);
    EXPECT_EQ(sent.connection, c);
    EXPECT_EQ(sent.tag, length + 7);
    EXPECT_EQ(sent.bytes, length);
    const Completion received = pair.server().completions.back();
    EXPECT_EQ(received.kind, Kind::received);
    EXPECT_EQ(received.status, Status::ok);
    EXPECT_EQ(received.connection, s);
    EXPECT_EQ(received.tag, length);
    EXPECT_EQ(received.bytes, length);
    EXPECT_FALSE(received.has_job);
    ASSERT_TRUE(std::equal(message.begin(), message.end(), buffer.begin())) << length;
    for (std::size_t i = length; i < buffer.size(); ++i) ASSERT_EQ(buffer[i], std::byte{0xEE});
  }
  EXPECT_EQ(pair.c().stats(c)->retransmitted_packets, 0u);
  EXPECT_EQ(pair.c().stats(c)->lost_packets, 0u);
}

TEST_F(MessageConnected, empty__may_come_from_no_address_at_all) {
  ASSERT_EQ(pair.s().receive(s, {}, 1), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, {}, 2), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(pair.server().completions.back().bytes, 0u);
  EXPECT_EQ(pair.server().completions.back().status, Status::ok);
}

TEST_F(MessageConnected, short_ones__fill_a_packet_up) {
  constexpr std::size_t bytes = 32;
  constexpr std::size_t count = (1472 - wire::kHeaderBytes) / (wire::kDataFrameBytes + bytes);
  const auto message = random_bytes(bytes);
  ByteVector buffer(bytes);
  for (std::size_t i = 0; i < 2 * count; ++i) ASSERT_EQ(pair.s().receive(s, buffer, i), PostResult::ok);
  pair.run_for(1_s);
  pair.log.clear();
  for (std::size_t i = 0; i < 2 * count; ++i) ASSERT_EQ(pair.c().send(c, message, i), PostResult::ok);
  EXPECT_TRUE(pair.transfer(2 * count, 2 * count));
  EXPECT_EQ(pair.count([](const Parsed& packet) { return is_data(packet); }), 2u);
}

TEST_F(MessageConnected, several__share_a_packet) {
  std::vector<ByteVector> messages;
  std::vector<ByteVector> buffers;
  for (std::size_t i = 0; i < 40; ++i) {
    messages.push_back(random_bytes(i % 5 == 0 ? 0 : 20, i));
    buffers.emplace_back(messages.back().size());
  }
  for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(pair.s().receive(s, buffers[i], i), PostResult::ok);
  pair.run_for(1_ms);
  pair.log.clear();
  for (std::size_t i = 0; i < 40; ++i) ASSERT_EQ(pair.c().send(c, messages[i], i), PostResult::ok);
  ASSERT_TRUE(pair.transfer(40, 40));
  EXPECT_EQ(buffers, messages);
  EXPECT_LE(pair.count([](const Parsed& p) { return p.from == 0 && is_data(p); }), 2u);
  std::uint64_t next = 0;
  for (const Completion& completion : pair.server().of(Kind::received)) EXPECT_EQ(completion.tag, next++);
}

TEST_F(MessageConnected, mixed_lengths__keep_the_order_of_buffers) {
  Random random(5);
  std::vector<ByteVector> messages;
  std::vector<ByteVector> buffers;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t length = random.chance(0.5) ? random.below(300) : random.below(20'000);
    messages.push_back(random_bytes(length, i));
    buffers.emplace_back(length);
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ASSERT_EQ(pair.s().receive(s, buffers[i], i), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, messages[i], i), PostResult::ok);
  }
  ASSERT_TRUE(pair.transfer(300, 300));
  EXPECT_EQ(buffers, messages);
}

TEST_F(MessageConnected, reordering__completes_what_is_whole_first_and_in_its_own_buffer) {
  std::array<ByteVector, 3> buffers{ByteVector(1000), ByteVector(1000), ByteVector(1000)};
  for (std::size_t i = 0; i < 3; ++i) ASSERT_EQ(pair.s().receive(s, buffers[i], i), PostResult::ok);
  pair.run_for(1_ms);
  pair.fate = [](const Parsed& packet, Fate& fate) {
    const wire::Frame* data = packet.find(FrameType::data);
    fate.drop = data != nullptr && data->data.message == 0 && packet.at < 13_ms;
  };
  const auto first = random_bytes(1000, 1);
  const auto second = random_bytes(1000, 2);
  const auto third = random_bytes(1000, 3);
  ASSERT_EQ(pair.c().send(c, first, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, second, 1), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, third, 2), PostResult::ok);
  ASSERT_TRUE(pair.transfer(3, 3));
  const auto received = pair.server().of(Kind::received);
  EXPECT_EQ(received.back().tag, 0u);
  EXPECT_EQ(buffers[0], first);
  EXPECT_EQ(buffers[1], second);
  EXPECT_EQ(buffers[2], third);
}

TEST(Message, sent__comes_in_the_order_of_the_messages) {
  for (const bool pack : {true, false})
    for (const bool loss : {true, false})
      for (const std::size_t size : {0U, 100U, 1000U, 1400U, 5000U}) {
        Pair pair(config_with([=](ConnectionConfig& config) { config.pack_messages = pack; }));
        const auto [c, s] = pair.connect();
        Random random(size + 1);
        pair.fate = [&](const Parsed&, Fate& fate) { fate.drop = loss && random.chance(0.1); };
        ByteVector in(size);
        const ByteVector out(size);
        constexpr std::uint64_t messages = 50;
        for (std::uint64_t i = 0; i < messages; ++i) ASSERT_EQ(pair.s().receive(s, in, i), PostResult::ok);
        pair.run_for(10_ms);
        for (std::uint64_t i = 0; i < messages; ++i) ASSERT_EQ(pair.c().send(c, out, i), PostResult::ok);
        ASSERT_TRUE(pair.transfer(messages, messages));
        const auto sent = pair.client().of(Kind::sent);
        for (std::uint64_t i = 0; i < messages; ++i) ASSERT_EQ(sent[i].tag, i) << pack << loss << size;
      }
}

TEST_F(MessageConnected, longer_than_its_buffer__is_truncated_and_nothing_is_written_beyond) {
  for (const std::size_t length : {1U, 100U, 1424U, 1425U, 20'000U})
    for (const std::size_t missing : {1U, 50U, 1000U, 1500U}) {
      const std::size_t capacity = length - std::min<std::size_t>(length, missing);
      const auto message = random_bytes(length, length);
      ByteVector buffer(capacity + 100, std::byte{0xEE});
      ASSERT_EQ(pair.s().receive(s, std::span(buffer).first(capacity), 3), PostResult::ok);
      ASSERT_EQ(pair.c().send(c, message, 4), PostResult::ok);
      ASSERT_TRUE(pair.transfer(1, 1));
      EXPECT_EQ(pair.server().completions.back().status, Status::truncated);
      EXPECT_EQ(pair.server().completions.back().bytes, length) << "the length of the message, not of the buffer";
      EXPECT_EQ(pair.client().completions.back().status, Status::ok);
      ASSERT_TRUE(std::equal(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(capacity), message.begin()));
      for (std::size_t i = capacity; i < buffer.size(); ++i) ASSERT_EQ(buffer[i], std::byte{0xEE});
    }
}

TEST_F(MessageConnected, receive_virtual__counts_and_drops_real_bytes) {
  const auto message = random_bytes(30'000);
  ASSERT_EQ(pair.s().receive_virtual(s, 30'000, 1), PostResult::ok);
  ASSERT_EQ(pair.s().receive_virtual(s, 100, 2), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(2, 2));
  const auto received = pair.server().of(Kind::received);
  EXPECT_EQ(received[0].status, Status::ok);
  EXPECT_EQ(received[1].status, Status::truncated);
  EXPECT_EQ(received[1].bytes, 30'000u);
}

TEST_F(MessageConnected, both_directions__at_once_on_one_connection) {
  const auto there = random_bytes(500'000, 1);
  const auto back = random_bytes(400'000, 2);
  ByteVector at_server(there.size());
  ByteVector at_client(back.size());
  ASSERT_EQ(pair.s().receive(s, at_server, 0), PostResult::ok);
  ASSERT_EQ(pair.c().receive(c, at_client, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, there, 0), PostResult::ok);
  ASSERT_EQ(pair.s().send(s, back, 0), PostResult::ok);
  pair.run_for(1_s);
  EXPECT_EQ(at_server, there);
  EXPECT_EQ(at_client, back);
  EXPECT_EQ(pair.client().count(Kind::sent), 1u);
  EXPECT_EQ(pair.server().count(Kind::sent), 1u);
  EXPECT_EQ(pair.c().stats(c)->lost_packets + pair.s().stats(s)->lost_packets, 0u);
}

TEST(Message, one_buffer__may_be_sent_on_several_connections) {
  // As in a broadcast, two messages use the same memory. The first message completes while packets of the second one
  // wait in a full datapath.
  Pair pair({}, {}, 50_us, {.burst = 8});
  const auto message = random_bytes(10'000);
  std::array<ConnectionId, 2> ids{};
  std::array<ByteVector, 2> buffers{ByteVector(message.size()), ByteVector(message.size())};
  for (std::size_t i = 0; i < 2; ++i) {
    ConnectionId server = 0;
    std::tie(ids[i], server) = pair.connect();
    ASSERT_EQ(pair.s().receive(server, buffers[i], 0), PostResult::ok);
  }
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().send(ids[0], message, 0), PostResult::ok);
  pair.run_for(80_us);
  ASSERT_EQ(pair.client().count(Kind::sent), 0u);
  pair.client().free_places = 0;
  ASSERT_EQ(pair.c().send(ids[1], message, 0), PostResult::ok);
  pair.run_for(100_us);
  ASSERT_EQ(pair.client().count(Kind::sent), 1u);
  pair.client().free_places = ~std::size_t{0};
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffers[0], message);
  EXPECT_EQ(buffers[1], message);
  EXPECT_EQ(pair.c().stats(ids[1])->lost_packets, 0u) << "nothing was lost on the wire";
}

TEST(Message, wrap__of_message_numbers_is_far_but_their_window_holds) {
  // 70,000 messages, which must arrive in order, are more than the 65,536 slots of the ring.
  ConnectionConfig config;
  config.max_sends = 64;
  config.max_receives = 64;
  Pair pair(config, config, 5_us);
  pair.logging = false;
  const auto [c, s] = pair.connect();
  std::uint64_t posted = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  const std::array<std::byte, 3> message{};
  const auto post = [&, client = c] {
    while (sent < 70'000 && pair.c().send(client, message, sent) == PostResult::ok) ++sent;
  };
  const auto post_receives = [&, server = s] {
    while (pair.s().receive_virtual(server, 3, posted) == PostResult::ok) ++posted;
  };
  pair.client().on_completion = [&](const Completion&) { post(); };
  pair.server().on_completion = [&](const Completion& completion) {
    ASSERT_EQ(completion.tag, received++);
    post_receives();
  };
  post_receives();
  post();
  pair.run([&] { return received == 70'000; }, pair.now() + 60_s);
  EXPECT_EQ(received, 70'000u);
}

}  // namespace
}  // namespace mltcp::message_test
