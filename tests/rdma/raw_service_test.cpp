// Tests the service thread's work for Ethernet frames, step by step in virtual time.
#include "mltcp/rdma/raw_service.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>

#include "fake_device.h"
#include "mltcp/rdma/kernel_routes.h"

namespace mltcp::rdma::raw_service_test {
namespace {

using namespace mltcp::literals;
using State = KernelRoutes::State;
using Way = KernelRoutes::Way;

/// An emulated kernel whose neighbour table the test sets. Counts the address requests that the service triggers.
struct Kernel {
  std::map<std::array<std::uint8_t, 16>, Way> ways;
  bool asks_for_ever = false;
  std::uint64_t questions = 0;
};

class TestRoutes final : public KernelRoutes {
 public:
  explicit TestRoutes(Kernel& kernel) : kernel_(kernel) {}
  Way find(const Address& destination, bool may_ask) override {
    if (may_ask) ++kernel_.questions;
    const auto found = kernel_.ways.find(destination.ip);
    if (found != kernel_.ways.end()) return found->second;
    return {may_ask || kernel_.asks_for_ever ? State::asked : State::unreachable, {}};
  }
  [[nodiscard]] int event_file() const override { return -1; }
  void take_events() override {}
  [[nodiscard]] std::string why_lost() const override { return "it is lost"; }

 private:
  Kernel& kernel_;
};

struct Fixture {
  Kernel kernel;
  FakeFabric fabric;
  FakeDevice device{fabric, "10.0.0.1"};
  RawService service{device, std::make_unique<TestRoutes>(kernel), 2};

  void want(std::uint32_t route, std::uint32_t generation, const Address& to) {
    EXPECT_TRUE(service.mailbox(0).requests.push({.route = route, .generation = generation, .destination = to}));
  }
  std::optional<WayNews> news() { return service.mailbox(0).news.pop(); }
};

const Address kPeer = Address::parse("10.0.0.2", 0);
constexpr encap::MacAddress kMac{2, 0, 0, 0, 0, 2};

TEST(RawService, a_neighbour_that_is_asked_for__is_told_of_once_it_is_known) {
  Fixture t;
  t.want(5, 1, kPeer);
  t.service.step(false, 1_s);
  EXPECT_EQ(t.kernel.questions, 1u);
  EXPECT_FALSE(t.news());
  t.kernel.asks_for_ever = true;
  t.service.step(true, 1100_ms);
  EXPECT_FALSE(t.news());
  t.kernel.ways[kPeer.ip] = {State::known, kMac};
  t.service.step(true, 1101_ms);
  const auto news = t.news();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->route, 5u);
  EXPECT_EQ(news->way, (Way{State::known, kMac}));
  EXPECT_EQ(t.kernel.questions, 1u);
  // If no kernel event arrives, the service looks the neighbour up ten times a second.
  const Address other = Address::parse("10.0.0.3", 0);
  t.want(6, 2, other);
  t.service.step(false, 1150_ms);
  t.kernel.ways[other.ip] = {State::known, kMac};
  t.service.step(false, 1160_ms);
  EXPECT_FALSE(t.news());
  t.service.step(false, 1260_ms);
  EXPECT_TRUE(t.news());
}

TEST(RawService, one_that_the_kernel_asks_for_in_vain__is_given_up) {
  Fixture t;
  t.want(5, 1, kPeer);
  t.service.step(false, 1_s);
  t.service.step(true, 1500_ms);  // the kernel has given up the search for the neighbour
  auto news = t.news();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->way.state, State::unreachable);
  // If the kernel never gives up, the service gives up after kGiveUpAfter.
  t.kernel.asks_for_ever = true;
  t.want(5, 2, kPeer);
  t.service.step(false, 2_s);
  t.service.step(true, 2_s + RawService::kGiveUpAfter - 1_ms);
  EXPECT_FALSE(t.news());
  t.service.step(true, 2_s + RawService::kGiveUpAfter);
  news = t.news();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->generation, 2u);
  EXPECT_EQ(news->way.state, State::unreachable);
}

TEST(RawService, what_has_changed__is_told_and_what_has_not_is_not) {
  Fixture t;
  t.kernel.ways[kPeer.ip] = {State::known, kMac};
  t.want(5, 1, kPeer);
  t.service.step(false, 1_s);
  ASSERT_TRUE(t.news());
  t.want(5, 1, kPeer);
  t.service.step(false, 2_s);
  EXPECT_FALSE(t.news());
  t.kernel.ways[kPeer.ip].mac[5] = 9;
  t.want(5, 1, kPeer);
  t.service.step(false, 3_s);
  const auto news = t.news();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->way.mac[5], 9);
  EXPECT_EQ(t.kernel.questions, 0u);
  // If a neighbour is down, its known route stays valid until the kernel reports the neighbour as unreachable.
  t.kernel.ways.clear();
  t.want(5, 1, kPeer);
  t.service.step(false, 4_s);
  EXPECT_FALSE(t.news());
  t.service.step(true, 4500_ms);
  const auto lost = t.news();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->way.state, State::unreachable);
}

TEST(RawService, a_place_that_another_route_has_now__is_told_of_that_one) {
  Fixture t;
  t.want(5, 1, kPeer);
  t.service.step(false, 1_s);
  const Address other = Address::parse("10.0.0.3", 0);
  t.want(5, 2, other);
  t.kernel.ways[kPeer.ip] = {State::known, kMac};
  t.kernel.ways[other.ip] = {State::known, {2, 0, 0, 0, 0, 3}};
  t.service.step(true, 1001_ms);
  const auto news = t.news();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->generation, 2u);
  EXPECT_EQ(news->way.mac[5], 3);
  EXPECT_FALSE(t.news());
}

TEST(RawService, a_place_that_is_pending_for_another__has_its_own_patience) {
  Fixture t;
  t.kernel.asks_for_ever = true;
  t.want(5, 1, kPeer);
  t.service.step(false, 10_s);
  t.want(5, 2, Address::parse("10.0.0.3", 0));
  t.service.step(true, 12_s);
  EXPECT_FALSE(t.news());
  t.service.step(true, 12_s + RawService::kGiveUpAfter - 1_ms);
  EXPECT_FALSE(t.news());
  t.service.step(true, 12_s + RawService::kGiveUpAfter);
  const auto news = t.news();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->generation, 2u);
  EXPECT_EQ(news->way.state, State::unreachable);
}

TEST(RawService, questions_of_the_kernels__are_bounded_and_everybody_gets_an_answer) {
  Fixture t;
  std::uint32_t announced = 0;
  const auto flood = [&](Nanos now, std::uint32_t first) {
    for (std::uint32_t i = 0; i < 2048; ++i) {
      t.want(first + i, first + i + 1, Address::v4(0x0A010000 + first + i, 0));
      if (i % 256 != 255) continue;
      t.service.step(false, now);
      while (t.news()) ++announced;
    }
  };
  flood(10_s, 0);
  EXPECT_EQ(t.kernel.questions, RawService::kMaxQuestions);
  EXPECT_EQ(announced, 2048u - RawService::kMaxQuestions) << "those that were not asked for";
  flood(11_s, 2048);
  EXPECT_EQ(t.kernel.questions, 2 * RawService::kMaxQuestions);
  // There is more news than fits into the mailbox at one time.
  for (Nanos now = 12_s; now < 13_s; now += 10_ms) {
    t.service.step(true, now);
    while (t.news()) ++announced;
  }
  EXPECT_EQ(announced, 4096u);
  // A neighbour in the kernel's table is found during a flood of requests for unknown neighbours.
  t.kernel.ways[kPeer.ip] = {State::known, kMac};
  flood(20_s, 0);
  t.want(4000, 9999, kPeer);
  t.service.step(false, 20_s);
  bool is_found = false;
  while (const auto news = t.news()) is_found = is_found || news->way.state == State::known;
  EXPECT_TRUE(is_found);
}

TEST(RawService, nonsense_of_a_shard__is_passed_over) {
  Fixture t;
  t.want(kRawRoutes, 1, kPeer);
  t.service.step(false, 1_s);
  EXPECT_EQ(t.kernel.questions, 0u);
  EXPECT_EQ(t.service.why_lost(), "");
  t.service.look();
  EXPECT_EQ(t.service.why_lost(), "it is lost");
}

}  // namespace
}  // namespace mltcp::rdma::raw_service_test
