// Tests the effects of a full datapath: after the completion of a send, the transport must not read the program's
// memory, even if packets that refer to this memory still wait in the datapath. Also tests virtual payloads.
#include <gtest/gtest.h>

#include "../transport/test_network.h"

namespace mltcp::datapath_test {
namespace {

using namespace testing_network;

TEST(UserMemory, sent__is_not_read_after_the_completion) {
  // The acknowledgements of a flight are late, so that the client sends the flight again into a full datapath. Then an
  // acknowledgement of the first copies completes the message, and the program frees its memory. A sanitizer detects
  // any later read.
  for (std::size_t free = 0; free < 12; ++free) {
    Pair pair({}, {}, 50_us, {.burst = 32});
    const auto [c, s] = pair.connect();
    const auto original = random_bytes(14'000);
    auto message = std::make_unique<ByteVector>(original);
    ByteVector buffer(original.size());
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    pair.run_for(1_ms);
    bool blocked = true;
    std::vector<std::pair<Nanos, int>> late;
    pair.fate = [&](const Parsed& packet, Fate& fate) {
      // The server's acknowledgements arrive only after the client's timeout.
      if (packet.from == 1 && blocked) fate.extra_delay = 3_ms;
    };
    pair.client().on_completion = [&](const Completion& completion) {
      if (completion.kind != Kind::sent) return;
      std::fill(message->begin(), message->end(), std::byte{0xDD});
      message.reset();
    };
    ASSERT_EQ(pair.c().send(c, *message, 0), PostResult::ok);
    pair.run_for(45_us);
    pair.client().free_places = free;  // the datapath accepts only `free` more packets, so that retransmissions wait
    pair.run_for(10_ms);
    EXPECT_EQ(message, nullptr) << "completed";
    pair.client().free_places = ~std::size_t{0};
    blocked = false;
    pair.run_for(1_s);
    EXPECT_EQ(buffer, original);
    // The connection must still work.
    const auto next = random_bytes(5000, 9);
    ByteVector next_buffer(next.size());
    pair.client().on_completion = nullptr;
    ASSERT_EQ(pair.s().receive(s, next_buffer, 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, next, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    EXPECT_EQ(next_buffer, next);
  }
}

TEST(UserMemory, sent__is_not_read_after_an_abort_or_a_failure) {
  for (const bool by_peer : {false, true}) {
    Pair pair({}, {}, 50_us, {.burst = 8});
    const auto [c, s] = pair.connect();
    auto message = std::make_unique<ByteVector>(random_bytes(100'000));
    ASSERT_EQ(pair.s().receive_virtual(s, 100'000, 0), PostResult::ok);
    pair.run_for(1_ms);
    pair.client().on_completion = [&](const Completion& completion) {
      if (completion.kind == Kind::sent) message.reset();
    };
    pair.client().free_places = 3;
    ASSERT_EQ(pair.c().send(c, *message, 0), PostResult::ok);
    pair.run_for(100_us);
    ASSERT_NE(message, nullptr);
    if (by_peer)
      pair.s().abort(s, pair.now());
    else
      pair.c().abort(c, pair.now());
    pair.run_for(1_ms);
    EXPECT_EQ(message, nullptr);
    pair.client().free_places = ~std::size_t{0};
    pair.wake_all();
    pair.run_for(1_s);
    EXPECT_FALSE(pair.c().exists(c));
    // If the client aborts, its CLOSE does not fit into the full datapath, so that the server does not learn of the
    // abort.
    if (by_peer) {
      EXPECT_FALSE(pair.s().exists(s));
    }
  }
}

TEST(UserMemory, received__is_not_written_after_the_completion) {
  // Packets arrive twice. When the second copies arrive, the buffer has already been freed.
  Pair pair;
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(30'000);
  auto buffer = std::make_unique<ByteVector>(message.size());
  ASSERT_EQ(pair.s().receive(s, *buffer, 0), PostResult::ok);
  pair.run_for(1_ms);
  pair.fate = [](const Parsed& packet, Fate& fate) {
    if (packet.from == 1) fate.drop = packet.at < 20_ms;  // the client gets no answer and sends repeatedly
  };
  pair.server().on_completion = [&](const Completion& completion) {
    if (completion.kind != Kind::received) return;
    EXPECT_EQ(*buffer, message);
    buffer.reset();
  };
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, nullptr);
  pair.run_for(1_s);
}

TEST(UserMemory, received__is_not_written_after_an_abort) {
  Pair pair;
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(100'000);
  auto buffer = std::make_unique<ByteVector>(message.size());
  ASSERT_EQ(pair.s().receive(s, *buffer, 0), PostResult::ok);
  pair.run_for(1_ms);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.run_for(70_us);
  pair.s().abort(s, pair.now());
  buffer.reset();
  pair.run_for(1_s);
  EXPECT_FALSE(pair.c().exists(c));
}

TEST(VirtualPayload, message__is_counted_like_a_real_one) {
  Pair pair({}, {}, 50_us, {.virtual_payload = true});
  const auto [c, s] = pair.connect();
  for (const Bytes length : {Bytes{0}, Bytes{1}, Bytes{100}, Bytes{257}, Bytes{1'000'000}}) {
    ASSERT_EQ(pair.s().receive_virtual(s, length, 1), PostResult::ok);
    ASSERT_EQ(pair.c().send_virtual(c, length, 2), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    EXPECT_EQ(pair.server().completions.back().bytes, length);
    EXPECT_EQ(pair.server().completions.back().status, Status::ok);
  }
  EXPECT_EQ(pair.c().send_virtual(c, wire::kMaxMessageBytes + 1, 0), PostResult::too_long);
}

TEST(VirtualPayload, into_a_real_buffer__leaves_it_as_it_is) {
  Pair pair({}, {}, 50_us, {.virtual_payload = true});
  const auto [c, s] = pair.connect();
  ByteVector buffer(5000, std::byte{0x11});
  ASSERT_EQ(pair.s().receive(s, buffer, 1), PostResult::ok);
  ASSERT_EQ(pair.c().send_virtual(c, 5000, 2), PostResult::ok);
  ASSERT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, ByteVector(5000, std::byte{0x11}));
}

TEST(VirtualPayload, mixed_with_real_messages__in_one_connection) {
  Pair pair({}, {}, 50_us, {.virtual_payload = true});
  const auto [c, s] = pair.connect();
  const auto small = random_bytes(50);
  std::vector<ByteVector> buffers(20, ByteVector(50));
  Random random(1);
  for (std::size_t i = 0; i < 20; ++i) {
    ASSERT_EQ(pair.s().receive(s, buffers[i], i), PostResult::ok);
    ASSERT_EQ(pair.s().receive_virtual(s, 5000, i), PostResult::ok);
  }
  pair.run_for(1_ms);
  pair.fate = [&](const Parsed&, Fate& fate) { fate.drop = random.chance(0.2); };
  for (std::size_t i = 0; i < 20; ++i) {
    ASSERT_EQ(pair.c().send(c, small, i), PostResult::ok);
    ASSERT_EQ(pair.c().send_virtual(c, 5000, i), PostResult::ok);
  }
  ASSERT_TRUE(pair.transfer(40, 40));
  for (const ByteVector& buffer : buffers) EXPECT_EQ(buffer, small);
}

TEST(Integrity, full__refuses_damaged_payload_and_the_default_leaves_it_to_lower_layers) {
  for (const bool full : {true, false}) {
    ConnectionConfig config;
    config.full_integrity = full;
    Pair pair(config, config);
    const auto [c, s] = pair.connect();
    const auto message = random_bytes(1000);
    ByteVector buffer(1000);
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    pair.run_for(1_ms);
    const auto flag = full ? wire::full_integrity : 0;
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.transfer(1, 1));
    EXPECT_EQ(buffer, message);
    for (const Parsed& packet : pair.log) EXPECT_EQ(packet.header.flags & wire::full_integrity, flag);
  }
}

}  // namespace
}  // namespace mltcp::datapath_test
