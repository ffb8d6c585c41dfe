// Tests datapaths on which several packets cost little more than one (PacketIo::Limits::batch): which packets a
// connection gathers into a batch, and which packets it must not delay.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "../transport/test_network.h"

namespace mltcp::batch_test {
namespace {

using namespace testing_network;

constexpr std::uint32_t kBatch = 16;

PacketIo::Limits limits_of(std::uint32_t batch) {
  PacketIo::Limits limits;
  limits.burst = 2 * kBatch;
  limits.batch = batch;
  return limits;
}

struct Sent {
  double packets_a_call = 0;
  Nanos took;
  std::vector<Nanos> at;  ///< times at which packets with data left, from the beginning of the message on
};

/// Sends a message of `bytes` over a path of 10 Gbit/s with `delay` each way. If `loses_one`, one early packet is lost,
/// so that Reno leaves slow start.
Sent send(std::uint32_t batch, Bytes bytes, const ConnectionConfig& config, bool loses_one, Nanos delay = 200_us) {
  Pair pair(config, {}, delay, limits_of(batch));
  pair.rate = Rate(10'000'000'000);
  const auto [c, s] = pair.connect();
  const auto message = random_bytes(bytes);
  ByteVector buffer(message.size());
  EXPECT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  pair.run_for(10_ms);
  std::uint32_t packets = 0;
  pair.fate = [&](const Parsed& packet, auto& fate) {
    fate.drop = loses_one && packet.from == 0 && is_data(packet) && ++packets == 200;
  };
  pair.log.clear();
  const std::size_t calls = pair.client().send_calls;
  const Nanos begin = pair.now();
  EXPECT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  EXPECT_TRUE(pair.transfer(1, 1));
  EXPECT_EQ(buffer, message);
  Sent sent;
  sent.took = pair.now() - begin;
  for (const Parsed& packet : pair.log)
    if (packet.from == 0 && is_data(packet)) sent.at.push_back(packet.at - begin);
  sent.packets_a_call = static_cast<double>(sent.at.size()) / static_cast<double>(pair.client().send_calls - calls);
  return sent;
}

TEST(Batch, long_message__leaves_by_the_batch_and_takes_hardly_longer) {
  const Sent alone = send(1, 20'000'000, {}, true);
  const Sent together = send(kBatch, 20'000'000, {}, true);
  EXPECT_LT(alone.packets_a_call, 6) << "nothing would be gained";
  EXPECT_GT(together.packets_a_call, 1.6 * alone.packets_a_call);
  EXPECT_LT(together.took.seconds(), 1.05 * alone.took.seconds());
}

TEST(Batch, end_of_a_message__is_not_kept_waiting_for_a_batch) {
  // At some of these lengths, only a few packets remain after the last full batch.
  ConnectionConfig config;
  config.adapt_ack_ratio = false;  // the receiver acknowledges every two packets
  std::size_t few = 0;
  for (Bytes packets = 1400; packets < 1400 + kBatch; ++packets) {
    const Sent sent = send(kBatch, packets * 1400, config, true, 2_us);
    ASSERT_GT(sent.packets_a_call, 4) << "no batches";
    const auto tail = std::lower_bound(sent.at.begin(), sent.at.end(), sent.at.back());
    if (sent.at.end() - tail > 4) continue;
    ++few;
    EXPECT_LT(*tail - *std::prev(tail), Rate(10'000'000'000).time_for(8 * 1514)) << sent.at.end() - tail << " packets";
  }
  EXPECT_GT(few, 2U);
}

TEST(Batch, slow_connection__stays_evenly_spaced) {
  ConnectionConfig config;
  config.max_rate = Rate(200'000'000);
  const Sent alone = send(1, 1'000'000, config, false);
  const Sent together = send(kBatch, 1'000'000, config, false);
  EXPECT_LT(together.packets_a_call, 1.2);
  EXPECT_EQ(together.at, alone.at);
}

TEST(Batch, most_of_the_window__is_kept_in_flight) {
  // The initial window of ten packets is smaller than a batch.
  const Sent alone = send(1, 60'000, {}, false, 2_us);
  const Sent together = send(kBatch, 60'000, {}, false, 2_us);
  EXPECT_GT(together.packets_a_call, alone.packets_a_call);
  EXPECT_LT(together.took.seconds(), 1.1 * alone.took.seconds());
}

TEST(Batch, answer__leaves_before_the_next_look_at_packets) {
  for (const std::uint32_t batch : {1U, kBatch}) {
    Pair pair({}, {}, 50_us, limits_of(batch));
    const auto [c, s] = pair.connect();
    ByteVector buffer(64);
    ByteVector answer_buffer(64);
    const auto message = random_bytes(64);
    ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
    ASSERT_EQ(pair.c().receive(c, answer_buffer, 0), PostResult::ok);
    pair.run_for(10_ms);
    std::optional<std::size_t> looks;
    pair.server().on_completion = [&, s = s](const Completion& completion) {
      if (completion.kind != Kind::received) return;
      EXPECT_EQ(pair.s().send(s, message, 0), PostResult::ok);
      looks = pair.server().receive_calls;
    };
    std::size_t looks_before_answer = 0;
    pair.fate = [&](const Parsed& packet, auto&) {
      if (packet.from != 1 || !is_data(packet)) return;
      EXPECT_TRUE(packet.has(FrameType::ack)) << "one packet, not two";
      if (looks) looks_before_answer = pair.server().receive_calls - *std::exchange(looks, std::nullopt);
    };
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    ASSERT_TRUE(pair.client_receives(1_s));
    EXPECT_EQ(looks_before_answer, batch == 1 ? 1U : 0U);
  }
}

// While the program computes, packets of a peer arrive. The shard must read them before it gives the peer up.
TEST(Batch, answer_after_a_long_time__keeps_a_connection_whose_packets_wait) {
  for (const std::uint32_t batch : {1U, kBatch}) {
    Pair pair({}, config_with([](ConnectionConfig& config) { config.idle_limit = 5_s; }), 50_us, limits_of(batch));
    const auto [c, s] = pair.connect();
    ByteVector buffers(2);
    std::byte byte{};
    for (std::uint64_t i = 0; i < 2; ++i)
      ASSERT_EQ(pair.s().receive(s, std::span(buffers).subspan(i, 1), i), PostResult::ok);
    pair.run_for(10_ms);
    bool computed = false;
    pair.server().on_completion = [&](const Completion& completion) {
      if (completion.kind == Kind::received && !std::exchange(computed, true)) pair.stand_still(6_s);
    };
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 0), PostResult::ok);
    pair.run_for(10_us);
    ASSERT_EQ(pair.c().send(c, {&byte, 1}, 1), PostResult::ok);
    for (int i = 0; i < 2; ++i) pair.run_for(20_ms);  // the first call ends while the program stands still
    ASSERT_TRUE(computed);
    EXPECT_TRUE(pair.s().exists(s)) << batch;
    EXPECT_EQ(pair.server().count(Kind::received), 2u) << batch;
  }
}

}  // namespace
}  // namespace mltcp::batch_test
