// Tests packets that wait for a neighbour, and their destinations.
#include "mltcp/transport/ethernet/resolver.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace mltcp {
namespace {

using namespace literals;

constexpr encap::MacAddress kOwnMac{2, 0, 0, 0, 0, 1};
constexpr encap::MacAddress kPeerMac{2, 0, 0, 0, 0, 2};
const Address kOwn = Address::v4(0x0A000001, 7);
const Address kPeer = Address::v4(0x0A000002, 7);

class ResolverTest : public testing::Test {
 protected:
  /// Sends all frames that are due at `now`, and then the waiting packets whose destination is known. Returns the
  /// number of frames.
  std::size_t serve(Nanos now) {
    std::array<std::byte, Neighbours::kLongestFrame> frame{};
    std::size_t frames = 0;
    while (resolver.frame(frame, now) != 0) ++frames;
    resolver.flush(
        now,
        [&](int waited, const encap::MacAddress& mac) {
          EXPECT_EQ(mac, kPeerMac);
          sent.push_back(waited);
        },
        [&](int waited) { dropped.push_back(waited); });
    return frames;
  }
  /// Delivers the peer's answer to the question about the peer's address.
  void answer(Nanos now) {
    Neighbours peer({.mac = kPeerMac, .own = kPeer, .gateway = {}});
    peer.announce();
    Resolver<int> other({.mac = kPeerMac, .own = kPeer, .gateway = {}}, 1);
    std::array<std::byte, Neighbours::kLongestFrame> question{};
    Neighbours asker({.mac = kOwnMac, .own = kOwn, .gateway = {}});
    EXPECT_EQ(asker.find(kPeer, now).state, Neighbours::State::asked);
    const std::size_t size = asker.frame(question, now);
    EXPECT_TRUE(other.receive(std::span(question).first(size), now));
    const std::size_t reply = other.frame(question, now);
    ASSERT_GT(reply, 0u);
    EXPECT_TRUE(resolver.receive(std::span(question).first(reply), now));
  }

  Resolver<int> resolver{{.mac = kOwnMac, .own = kOwn, .gateway = {}}, 2};
  std::vector<int> sent;
  std::vector<int> dropped;
};

TEST_F(ResolverTest, route_to__asks_and_what_waits_goes_with_the_answer) {
  EXPECT_FALSE(resolver.is_due());
  EXPECT_EQ(resolver.route_to(kPeer, 1_ms).state, Neighbours::State::asked);
  EXPECT_TRUE(resolver.is_due());
  EXPECT_EQ(resolver.deadline(), Nanos()) << "the question is due at once";
  EXPECT_TRUE(resolver.wait(kPeer, 1));
  EXPECT_TRUE(resolver.wait(kPeer, 2));
  EXPECT_FALSE(resolver.wait(kPeer, 3)) << "two wait at most";
  EXPECT_EQ(serve(1_ms), 1u);
  EXPECT_TRUE(sent.empty());
  EXPECT_FALSE(resolver.is_due(2_ms));
  answer(2_ms);
  EXPECT_TRUE(resolver.is_due(2_ms));
  serve(2_ms);
  EXPECT_EQ(sent, (std::vector<int>{1, 2}));
  EXPECT_EQ(resolver.route_to(kPeer, 3_ms).mac, kPeerMac);
}

TEST_F(ResolverTest, deadline__is_when_the_question_is_asked_again_and_then_given_up) {
  resolver.route_to(kPeer, 0_ms);
  EXPECT_TRUE(resolver.wait(kPeer, 1));
  EXPECT_EQ(serve(0_ms), 1u);
  for (int again = 0; again < 2; ++again) {
    const Nanos due = resolver.deadline();
    EXPECT_EQ(due, 1_s * (again + 1));
    EXPECT_EQ(serve(due), 1u);
    EXPECT_TRUE(dropped.empty());
  }
  EXPECT_EQ(serve(resolver.deadline()), 0u);
  EXPECT_EQ(dropped, std::vector<int>{1}) << "nobody has answered";
}

TEST_F(ResolverTest, clear__gives_back_what_waits) {
  resolver.route_to(kPeer, 0_ms);
  EXPECT_TRUE(resolver.wait(kPeer, 5));
  std::vector<int> back;
  resolver.clear([&](int waited) { back.push_back(waited); });
  EXPECT_EQ(back, std::vector<int>{5});
}

}  // namespace
}  // namespace mltcp
