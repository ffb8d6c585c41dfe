// Tests payloads that the datapath reads in place. The program may reuse the memory of a payload only after the
// datapath has released it, whatever happens to the message. The test network checks that payloads do not change before
// their release.
#include <gtest/gtest.h>

#include "../transport/test_network.h"
#include "mltcp/base/error.h"

namespace mltcp {
namespace {

using namespace testing_network;

constexpr PacketIo::Limits kKeeping{.burst = 8, .keeps_payload_from = 512};

// A test must declare messages before the network, because the network may read messages until its destruction.
Pair make(const ShardConfig& shard = {}) { return Pair({}, {}, 50_us, kKeeping, shard); }

using Kept = std::deque<std::shared_ptr<const KeptPayload>>;

TEST(ZeroCopy, sent__waits_until_the_datapath_lets_go) {
  const ByteVector message = random_bytes(20'000);
  Pair pair = make();
  const auto [c, s] = pair.connect();
  pair.keep = std::make_unique<Kept>();
  ByteVector buffer(message.size());
  ASSERT_EQ(pair.s().receive(s, buffer, 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 7), PostResult::ok);
  pair.run_for(50_ms);
  EXPECT_EQ(buffer, message);
  EXPECT_EQ(pair.server().count(Kind::received), 1U);
  EXPECT_GE(pair.keep->size(), 13U);
  while (!pair.keep->empty()) {
    EXPECT_EQ(pair.client().count(Kind::sent), 0U);
    pair.keep->pop_front();
    pair.run_for(1_ms);
  }
  ASSERT_EQ(pair.client().count(Kind::sent), 1U);
  EXPECT_EQ(pair.client().of(Kind::sent)[0].tag, 7U);
}

TEST(ZeroCopy, sent__is_safe_over_losses_and_late_copies) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<ByteVector> messages;
    Pair pair = make({.max_zero_copy_sends = seed % 3 == 0 ? 2U : 1024U});
    const auto [c, s] = pair.connect();
    pair.keep = std::make_unique<Kept>();
    Random random(seed);
    pair.fate = [&](const Parsed&, Fate& fate) {
      fate.drop = random.chance(0.1);
      fate.extra_delay = Nanos(static_cast<std::int64_t>(random.below(200'000)));
      // Releases the oldest payloads so late that their packets may have been acknowledged or lost long before.
      while (pair.keep->size() > 1 + random.below(40)) pair.keep->pop_front();
    };
    constexpr std::size_t count = 30;
    std::vector<ByteVector> originals;
    std::vector<ByteVector> buffers;
    for (std::size_t i = 0; i < count; ++i) {
      originals.push_back(random_bytes(random.below(30'000), 100 * seed + i));
      buffers.emplace_back(originals.back().size());
    }
    messages = originals;
    pair.client().on_completion = [&](const Completion& completion) {
      if (completion.kind != Kind::sent) return;
      EXPECT_EQ(completion.status, Status::ok);
      std::fill(messages[completion.tag].begin(), messages[completion.tag].end(), std::byte{0xDD});
    };
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(pair.s().receive(s, buffers[i], i), PostResult::ok);
      ASSERT_EQ(pair.c().send(c, messages[i], i), PostResult::ok);
    }
    pair.run_for(1_s);
    pair.keep->clear();
    pair.run_for(1_s);
    EXPECT_EQ(pair.client().count(Kind::sent), count) << "seed " << seed;
    EXPECT_EQ(buffers, originals) << "seed " << seed;
    EXPECT_GT(pair.c().stats(c)->retransmitted_packets, 0U);
  }
}

TEST(ZeroCopy, closed__comes_after_what_the_datapath_holds) {
  for (const bool by_peer : {false, true}) {
    const ByteVector message = random_bytes(100'000);
    const ByteVector short_message = random_bytes(100);
    Pair pair = make();
    const auto [c, s] = pair.connect();
    pair.keep = std::make_unique<Kept>();
    ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 1), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, short_message, 2), PostResult::ok);
    pair.run_for(120_us);
    ASSERT_FALSE(pair.keep->empty());
    if (by_peer)
      pair.s().abort(s, pair.now());
    else
      pair.c().abort(c, pair.now());
    pair.run_for(1_s);
    const std::size_t before = pair.client().completions.size();
    ASSERT_EQ(pair.client().count(Kind::sent), 1U) << "the short one was copied";
    EXPECT_EQ(pair.client().count(Kind::closed), 0U);
    pair.keep->clear();
    pair.run_for(1_ms);
    ASSERT_EQ(pair.client().completions.size(), before + 2);
    EXPECT_EQ(pair.client().completions[before].kind, Kind::sent);
    EXPECT_EQ(pair.client().completions[before].tag, 1U);
    EXPECT_EQ(pair.client().completions[before].status, Status::aborted);
    EXPECT_EQ(pair.client().completions[before + 1].kind, Kind::closed);
  }
}

TEST(ZeroCopy, max_zero_copy_sends__bounds_what_is_held) {
  for (const std::uint32_t most : {0U, 1U, 3U}) {
    const ByteVector message = random_bytes(1'000);
    Pair pair = make({.max_zero_copy_sends = most});
    const auto [c, s] = pair.connect();
    pair.keep = std::make_unique<Kept>();
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
      ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    }
    pair.run_for(50_ms);
    EXPECT_EQ(pair.keep->size(), most);
    EXPECT_EQ(pair.client().count(Kind::sent), 5U - most);
    pair.keep->clear();
    pair.run_for(1_ms);
    EXPECT_EQ(pair.client().count(Kind::sent), 5U);
    // All payloads are released, so the next message can use their holds.
    ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
    ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
    pair.run_for(50_ms);
    EXPECT_EQ(pair.keep->size(), most == 0 ? 0U : 1U);
    pair.keep->clear();
  }
  EXPECT_THROW(make({.max_zero_copy_sends = 65'536}), InputError);
}

TEST(ZeroCopy, shard__may_go_before_the_datapath_lets_go) {
  const ByteVector message = random_bytes(50'000);
  Pair pair = make();
  const auto [c, s] = pair.connect();
  pair.keep = std::make_unique<Kept>();
  ASSERT_EQ(pair.s().receive_virtual(s, message.size(), 0), PostResult::ok);
  ASSERT_EQ(pair.c().send(c, message, 0), PostResult::ok);
  pair.run_for(120_us);
  ASSERT_FALSE(pair.keep->empty());
  pair.client().shard.reset();
  pair.keep->clear();  // a sanitizer reports an access to a hold that was freed
}

}  // namespace
}  // namespace mltcp
