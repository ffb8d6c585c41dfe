// Tests what both RDMA datapaths (UD datagrams and Ethernet frames) have in common: bursts, full queues, absent peers,
// shards, sleeping threads, and queue pairs that fail.
#include <gtest/gtest.h>

#include "hosts.h"
#include "mltcp/base/clock.h"

namespace mltcp::rdma::each_datapath_test {
namespace {

/// Creates hosts with a UD datapath at 127.0.0.1, 127.0.0.2 and so on.
struct OnVerbs {
  using Io = VerbsIo;
  static constexpr std::uint16_t kPort = kVerbsPort;
  VerbsHost host(std::uint8_t last, const HostDatapathConfig& config = {}, std::uint16_t shards = 1) {
    return {fabric, fmt::format("127.0.0.{}", last), config, shards};
  }
  FakeFabric fabric;
};
struct OnFrames {
  using Io = RawIo;
  static constexpr std::uint16_t kPort = kRawPort;
  RawHost host(std::uint8_t last, const HostDatapathConfig& config = {}, std::uint16_t shards = 1) {
    return {network, fmt::format("127.0.0.{}", last), last, {.config = config, .shards = shards}};
  }
  RawNetwork network;
};

template <typename Kind>
class EachDatapath : public testing::Test {
 protected:
  Kind on;
};
using Kinds = testing::Types<OnVerbs, OnFrames>;
TYPED_TEST_SUITE(EachDatapath, Kinds);

TYPED_TEST(EachDatapath, a_burst__is_posted_at_once_and_signalled_once) {
  auto a = this->on.host(1);
  auto b = this->on.host(2);
  ASSERT_TRUE(resolves(a, b.address));
  const std::string text(500, 'x');
  const std::vector<TxPacket> packets(TypeParam::Io::kBurst,
                                      {.destination = &b.address, .header = bytes_of(text), .payload = {}});
  for (int i = 0; i < 100; ++i) {
    const auto posts = a.pair().posts;
    const auto signalled = a.pair().signalled;
    ASSERT_EQ(a.io().send(packets), packets.size());
    EXPECT_EQ(a.pair().posts, posts + 1);
    EXPECT_EQ(a.pair().signalled, signalled + 1);
    ASSERT_EQ(received(b.io(), packets.size()).size(), packets.size());
  }
}

TYPED_TEST(EachDatapath, a_full_send_queue__leaves_packets_to_the_caller_until_there_are_completions) {
  auto a = this->on.host(1, {.device = {}, .queue_packets = 64});
  auto b = this->on.host(2);
  ASSERT_TRUE(resolves(a, b.address));
  a.pair().withholds_completions = true;
  const std::string text(500, 'x');
  const std::vector<TxPacket> packets(48, {.destination = &b.address, .header = bytes_of(text), .payload = {}});
  EXPECT_EQ(a.io().send(packets), 48u);
  EXPECT_EQ(a.io().send(packets), 16u);
  EXPECT_TRUE(a.io().is_blocked());
  EXPECT_EQ(a.io().send(packets), 0u);
  a.pair().complete_up_to(47);
  EXPECT_EQ(a.io().send(packets), 48u) << "those up to the one that is complete";
  EXPECT_EQ(received(b.io(), 112).size(), 112u);
}

TYPED_TEST(EachDatapath, unknown_peer__is_unreachable_until_it_is_there) {
  auto a = this->on.host(1);
  const Address unknown_peer = Address::parse("127.0.0.9", TypeParam::kPort);
  send_text(a.io(), unknown_peer);
  EXPECT_EQ(a.io().counters().waited, 1u);
  ASSERT_TRUE(runs_until(a.io(), [&] { return a.io().counters().unreachable == 1; }));
  send_text(a.io(), unknown_peer);
  EXPECT_EQ(a.io().counters().unreachable, 2u) << "for a while at once";
  EXPECT_EQ(a.datapath->losses().unsent, 2u);
  auto late = this->on.host(9);
  ASSERT_TRUE(resolves(a, unknown_peer));
  send_text(a.io(), unknown_peer);
  EXPECT_EQ(received(late.io(), 1).size(), 1u);
}

TYPED_TEST(EachDatapath, multicast_and_unspecified_addresses__are_not_sent_to) {
  auto a = this->on.host(1);
  std::uint64_t refused = 0;
  for (const char* const ip : {"224.0.0.1", "239.1.2.3", "255.255.255.255", "0.0.0.0", "0.1.2.3"}) {
    EXPECT_EQ(send_text(a.io(), Address::parse(ip, 5000)), 1u);
    EXPECT_EQ(a.io().counters().unsendable, ++refused) << ip;
  }
  EXPECT_EQ(send_text(a.io(), Address::parse("10.0.0.9", 5000)), 1u);
  EXPECT_EQ(a.io().counters().unsendable, refused);
}

TYPED_TEST(EachDatapath, shards__have_a_queue_pair_and_a_port_each) {
  auto a = this->on.host(1, {}, 2);
  auto b = this->on.host(2, {}, 3);
  EXPECT_EQ(b.datapath->shards(), 3);
  EXPECT_EQ(b.device->pairs.size(), 3u);
  for (std::uint16_t shard = 0; shard < 3; ++shard) {
    Address to = b.address;
    to.port = static_cast<std::uint16_t>(to.port + shard);
    ASSERT_TRUE(runs_until(a.io(1), [&] { return a.io(1).resolve(to); }));
    send_text(a.io(1), to);
    const auto got = received(b.io(shard), 1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].source.port, TypeParam::kPort + 1);
  }
}

TYPED_TEST(EachDatapath, a_sleeper__is_woken_by_packets_and_by_the_answer_that_its_packets_wait_for) {
  if constexpr (std::is_same_v<TypeParam, OnFrames>) this->on.network.segment.answers_late = true;
  auto a = this->on.host(1);
  auto b = this->on.host(2);
  a.io().arm();
  b.io().arm();
  EXPECT_TRUE(b.io().begin_waiting()->needs_arming);
  send_text(a.io(), b.address);
  EXPECT_TRUE(wakes(a.io())) << "by the answer";
  a.io().disarm();
  std::array<RxPacket, 8> packets;
  a.io().receive(packets);
  EXPECT_EQ(a.io().counters().sent_packets, 1u);
  EXPECT_TRUE(wakes(b.io())) << "by the packet";
  b.io().disarm();
  EXPECT_EQ(b.io().receive(packets), 1u);
  b.io().arm();
  EXPECT_FALSE(wakes(b.io(), 0)) << "no more";
}

TYPED_TEST(EachDatapath, a_queue_pair_that_fails__is_made_ready_again) {
  auto a = this->on.host(1);
  auto b = this->on.host(2);
  ASSERT_TRUE(resolves(a, b.address));
  for (unsigned round = 1; round <= 3; ++round) {
    b.pair().break_down();
    ASSERT_EQ(send_text(a.io(), b.address), 1u) << "which is lost";
    ASSERT_TRUE(runs_until(b.io(), [&] { return b.io().counters().recoveries == round; }));
    ASSERT_EQ(send_text(a.io(), b.address), 1u);
    ASSERT_EQ(received(b.io(), 1).size(), 1u) << round;
  }
  EXPECT_GT(b.pair().posted.size(), 900u) << "of 1024 buffers";
}

}  // namespace
}  // namespace mltcp::rdma::each_datapath_test
