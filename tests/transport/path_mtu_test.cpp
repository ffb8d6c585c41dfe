#include "mltcp/transport/internal/path_mtu.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace mltcp::transport::path_mtu_test {
namespace {

using Verdict = PathMtu::Verdict;
constexpr Nanos kSecond{1'000'000'000};

PathMtu agreed_on(std::uint32_t bytes) {
  PathMtu mtu;
  mtu.agree(bytes);
  return mtu;
}

/// Sends each probe at once over a path that carries packets of up to `bytes`. Returns the number of probes sent until
/// none is due.
int probe(PathMtu& mtu, std::uint32_t bytes, Nanos now = {}) {
  int sent = 0;
  while (mtu.next_probe() != 0 && sent < 1'000) {
    std::uint32_t lost = 0;
    const std::uint8_t round = mtu.round();
    // The probes of a round are sent together. A loss is detected only after a shorter probe has arrived.
    for (; mtu.next_probe() != 0; ++sent) {
      const std::uint32_t size = mtu.next_probe();
      mtu.on_probe_sent();
      if (size > bytes) {
        lost = size;
      } else {
        mtu.on_probe_acked(size, now);
        break;
      }
    }
    if (lost != 0) mtu.on_probe_lost(lost, round, now);
  }
  return sent;
}

TEST(PathMtu, size_agreed_on__is_used_and_not_tried) {
  const PathMtu mtu = agreed_on(1472);
  EXPECT_EQ(mtu.size(), 1472u);
  EXPECT_EQ(mtu.agreed(), 1472u);
  EXPECT_EQ(mtu.next_probe(), 0u);
  EXPECT_FALSE(mtu.waits_to_raise());
}

class PathMtuTest : public testing::Test {
 protected:
  PathMtu mtu = agreed_on(1472);
};

TEST_F(PathMtuTest, suspicion__is_over_with_one_probe_of_that_size) {
  ASSERT_TRUE(mtu.suspect());
  for (const std::size_t size : {std::size_t{1472}, std::size_t{PathMtu::kBase}, wire::kSmallestPacket}) {
    EXPECT_EQ(mtu.next_probe(), size);
    mtu.on_probe_sent();
  }
  EXPECT_EQ(mtu.next_probe(), 0u);
  EXPECT_EQ(mtu.on_probe_acked(1472, {}), Verdict::healthy);
  EXPECT_EQ(mtu.on_probe_acked(PathMtu::kBase, {}), Verdict::nothing);
  EXPECT_FALSE(mtu.is_suspect());
  EXPECT_EQ(mtu.size(), 1472u);
  EXPECT_EQ(mtu.next_probe(), 0u);
}

/// Sends all probes that are due. Returns the number of their round.
std::uint8_t send_round(PathMtu& mtu) {
  while (mtu.next_probe() != 0) mtu.on_probe_sent();
  return mtu.round();
}

TEST_F(PathMtuTest, suspicion__three_probes_lost_while_others_arrive_show_a_black_hole) {
  mtu.suspect();
  for (std::uint32_t i = 1; i <= PathMtu::kMaxProbes; ++i) {
    ASSERT_EQ(mtu.next_probe(), 1472u);
    const std::uint8_t round = send_round(mtu);
    EXPECT_EQ(mtu.on_probe_acked(PathMtu::kBase, {}), Verdict::nothing);
    EXPECT_EQ(mtu.next_probe(), 0u) << "the other may still arrive";
    EXPECT_EQ(mtu.on_probe_lost(1472, round, {}), i < PathMtu::kMaxProbes ? Verdict::nothing : Verdict::shorter);
  }
  EXPECT_EQ(mtu.size(), PathMtu::kBase);
  EXPECT_EQ(mtu.next_probe(), (1472u + PathMtu::kBase) / 2) << "searches on";
}

TEST_F(PathMtuTest, suspicion__probes_lost_show_nothing_before_a_shorter_one_has_arrived) {
  mtu.suspect();
  for (std::uint32_t i = 1; i <= PathMtu::kMaxProbes + 1; ++i) {
    const std::uint8_t round = send_round(mtu);
    EXPECT_EQ(mtu.on_probe_lost(1472, round, {}), Verdict::nothing);
    EXPECT_EQ(mtu.next_probe(), 1472u) << "something else has arrived, so no timeout asks for another round";
  }
  EXPECT_EQ(mtu.on_probe_acked(wire::kSmallestPacket, {}), Verdict::shorter);
  EXPECT_EQ(mtu.size(), wire::kSmallestPacket);
}

TEST_F(PathMtuTest, outage__is_no_black_hole_however_long) {
  for (int i = 0; i < 300; ++i) {
    mtu.suspect();
    send_round(mtu);
  }
  // The path works again. The shorter probe of the last round arrives before the longer one.
  const std::uint8_t last = mtu.round();
  EXPECT_EQ(mtu.on_probe_acked(PathMtu::kBase, {}), Verdict::nothing);
  for (int i = 1; i <= 255; ++i)
    EXPECT_EQ(mtu.on_probe_lost(1472, static_cast<std::uint8_t>(last + i), {}), Verdict::nothing);
  EXPECT_EQ(mtu.on_probe_acked(1472, {}), Verdict::healthy);
  EXPECT_EQ(mtu.size(), 1472u);
}

TEST_F(PathMtuTest, narrower_than_the_base__is_tried_with_what_is_known_to_arrive) {
  mtu.suspect();
  const std::uint8_t round = send_round(mtu);
  EXPECT_EQ(mtu.on_probe_acked(wire::kSmallestPacket, {}), Verdict::nothing);
  mtu.on_probe_lost(1472, round, {});
  EXPECT_EQ(mtu.next_probe(), 1472u);
  mtu.on_probe_sent();
  EXPECT_EQ(mtu.next_probe(), wire::kSmallestPacket);
  mtu.on_probe_sent();
  EXPECT_EQ(mtu.next_probe(), 0u);
}

TEST_F(PathMtuTest, search__tries_each_size_three_times) {
  mtu.suspect();
  probe(mtu, 1203);
  mtu.look(PathMtu::kRaiseAfter);
  for (std::uint32_t i = 0; i < PathMtu::kMaxProbes; ++i) {
    ASSERT_EQ(mtu.next_probe(), 1472u);
    mtu.on_probe_sent();
    EXPECT_EQ(mtu.next_probe(), 0u) << "one at a time";
    mtu.on_probe_lost(1472, mtu.round(), {});
  }
  EXPECT_LT(mtu.next_probe(), 1472u);
}

TEST(PathMtu, any_path__is_used_to_sixteen_bytes_with_few_probes) {
  for (const std::uint32_t agreed : {1472u, 8972u, 65'507u}) {
    for (std::uint32_t path = wire::kSmallestPacket; path < agreed; path += 1 + path / 37) {
      PathMtu mtu = agreed_on(agreed);
      mtu.suspect();
      int sent = 0;
      for (int i = 0; i < 10; ++i) {
        sent += probe(mtu, path);
        if (mtu.is_suspect()) mtu.suspect();
      }
      EXPECT_LE(mtu.size(), path) << agreed;
      EXPECT_GT(mtu.size() + PathMtu::kGranularity + 1, path) << agreed;
      EXPECT_LE(sent, 60) << agreed << " " << path;
      EXPECT_TRUE(mtu.waits_to_raise());
    }
  }
}

TEST_F(PathMtuTest, path_that_heals__is_found_a_second_later_by_one_probe) {
  mtu.suspect();
  probe(mtu, 1300, kSecond);
  ASSERT_TRUE(mtu.waits_to_raise());
  mtu.look(kSecond + PathMtu::kFirstRaise - Nanos(1));
  EXPECT_EQ(mtu.next_probe(), 0u);
  mtu.look(kSecond + PathMtu::kFirstRaise);
  EXPECT_EQ(mtu.next_probe(), 1472u);
  EXPECT_FALSE(mtu.waits_to_raise());
  mtu.on_probe_sent();
  EXPECT_EQ(mtu.on_probe_acked(1472, kSecond), Verdict::longer);
  EXPECT_EQ(mtu.size(), 1472u);
  EXPECT_EQ(mtu.next_probe(), 0u);
  EXPECT_FALSE(mtu.waits_to_raise());
}

TEST_F(PathMtuTest, path_that_stays_as_it_is__is_asked_again_ever_less_often_down_to_once_a_minute) {
  for (int fall = 1; fall <= 2; ++fall) {
    mtu.suspect();
    Nanos now = kSecond;
    probe(mtu, 1300, now);
    const std::uint32_t size = mtu.size();
    for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60, 60}) {
      mtu.look(now + kSecond * seconds - Nanos(1));
      ASSERT_EQ(mtu.next_probe(), 0u) << seconds;
      now += kSecond * seconds;
      mtu.look(now);
      EXPECT_GT(probe(mtu, 1300, now), 0);
      EXPECT_GE(mtu.size(), size);
      EXPECT_LE(mtu.size(), 1300u);
      ASSERT_TRUE(mtu.waits_to_raise());
    }
    mtu.look(now + PathMtu::kRaiseAfter);
    probe(mtu, 1472, now);  // the path carries 1472 bytes again, so the next search starts from 1472
    ASSERT_EQ(mtu.size(), 1472u);
  }
}

TEST(PathMtu, smallest_packets__can_not_be_suspected) {
  PathMtu mtu = agreed_on(wire::kSmallestPacket);
  EXPECT_FALSE(mtu.suspect());
  EXPECT_EQ(mtu.next_probe(), 0u);
}

TEST_F(PathMtuTest, second_fall__is_below_the_base) {
  mtu.suspect();
  probe(mtu, 1203);
  ASSERT_EQ(mtu.size(), PathMtu::kBase);
  mtu.suspect();
  EXPECT_EQ(mtu.next_probe(), PathMtu::kBase);
  mtu.on_probe_sent();
  EXPECT_EQ(mtu.next_probe(), wire::kSmallestPacket);
}

TEST_F(PathMtuTest, probes_that_come_late__count_for_what_they_show) {
  mtu.suspect();
  probe(mtu, 1210);
  EXPECT_EQ(mtu.on_probe_acked(1472, {}), Verdict::longer) << "it was no black hole";
  EXPECT_EQ(mtu.size(), 1472u);
  EXPECT_EQ(mtu.on_probe_acked(1300, {}), Verdict::nothing);
  EXPECT_EQ(mtu.on_probe_lost(1300, 0, {}), Verdict::nothing);
  EXPECT_EQ(mtu.size(), 1472u);
}

}  // namespace
}  // namespace mltcp::transport::path_mtu_test
