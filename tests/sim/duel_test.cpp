// Tests duels of congestion controls in virtual time: their shares of a bottleneck, and how fast they reach these
// shares.
#include "duel.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <utility>

#include "mltcp/cc/nscc.h"
#include "mltcp/cc/swift.h"

namespace mltcp::sim {
namespace {

using namespace literals;

const std::array<std::string, 6> algorithms{"reno", "cubic", "dctcp", "dcqcn", "swift", "nscc"};

/// Returns a link of 1 Gbps that marks above 30 kB and has a buffer that never fills. All flows have the same Swift
/// target, and the same base round-trip time of NSCC, whose target is reached where the link begins to mark.
DuelConfig marking_link() {
  cc::Parameters parameters;
  parameters.edit<cc::Swift>().base_target = Nanos(150'000);
  parameters.edit<cc::Nscc>().base_rtt = Nanos(150'000);
  DuelConfig config;
  config.buffer = 250'000;
  config.ecn_threshold = 30'000;
  config.parameters = std::make_shared<const cc::Parameters>(parameters);
  return config;
}

double goodput_of_a_full_link() { return 1424.0 / 1514; }

TEST(Duel, equals__share_evenly_and_fill_the_link) {
  for (const std::string& cc : algorithms) {
    Duel duel(marking_link(), {{.cc = cc}, {.cc = cc, .start = 100_ms}});
    duel.run_until(4_s);
    EXPECT_NEAR(duel.share(0, 1_s, 4_s), 0.5, 0.03) << cc;
    // DCQCN reduces its rate by alpha / 2 at each notification and raises it in steps. So DCQCN uses less of the link
    // than the other controls.
    EXPECT_GE(duel.utilization(1_s, 4_s), (cc == "dcqcn" ? 0.93 : 0.98) * goodput_of_a_full_link()) << cc;
    // DCQCN starts at line rate, which overflows the buffer.
    if (cc != "dcqcn") {
      EXPECT_EQ(duel.bottleneck().dropped_packets, 0U) << cc;
    }
  }
}

// Shares of the first flow of each pair, from 1 to 4 s. Reno, CUBIC and DCQCN get nearly equal shares, because a mark
// reduces their window or rate to about 0.5 or 0.7 of its value. DCTCP reduces its window only by alpha / 2, so it gets
// most of the link. Swift gets little. The link marks above 20 packets, so the other controls keep a longer queue than
// Swift's target, and NSCC's target is longer still.
TEST(Duel, pairs__shares_of_all_pairs) {
  const std::map<std::pair<std::string, std::string>, double> expected{
      {{"reno", "cubic"}, 0.48},  {{"reno", "dctcp"}, 0.13},  {{"reno", "dcqcn"}, 0.51},  {{"reno", "swift"}, 0.88},
      {{"cubic", "dctcp"}, 0.11}, {{"cubic", "dcqcn"}, 0.48}, {{"cubic", "swift"}, 0.95}, {{"dctcp", "dcqcn"}, 0.79},
      {{"dctcp", "swift"}, 0.99}, {{"dcqcn", "swift"}, 0.96}, {{"reno", "nscc"}, 0.14},   {{"cubic", "nscc"}, 0.15},
      {{"dctcp", "nscc"}, 0.18},  {{"dcqcn", "nscc"}, 0.17},  {{"swift", "nscc"}, 0.01},
  };
  for (const auto& [pair, share] : expected) {
    const DuelConfig config = marking_link();
    Duel duel(config, {{.cc = pair.first}, {.cc = pair.second}});
    duel.run_until(4_s);
    EXPECT_NEAR(duel.share(0, 1_s, 4_s), share, 0.06) << pair.first << " against " << pair.second;
    EXPECT_GE(duel.utilization(1_s, 4_s), 0.93 * goodput_of_a_full_link());

    // At the link's rate, two transfers of 50 MB take 851 ms together. The flow with the smaller share ends last.
    // Before this end, the link is idle for 30 ms at most: a flow with almost no share, such as Swift against DCTCP,
    // needs 30 ms to fill the link.
    Duel race(config, {{.cc = pair.first, .bytes = 50'000'000}, {.cc = pair.second, .bytes = 50'000'000}});
    race.run_until(1_s);
    const Nanos first = race.finished(0);
    const Nanos second = race.finished(1);
    ASSERT_FALSE(first.is_never() || second.is_never()) << pair.first << " against " << pair.second;
    EXPECT_NEAR(std::max(first, second).seconds(), 0.851, 0.035) << pair.first << " against " << pair.second;
    if (std::abs(share - 0.5) > 0.1) {
      EXPECT_EQ(first<second, share> 0.5) << pair.first << " against " << pair.second;
      const double winner = std::max(share, 1 - share);
      EXPECT_NEAR(std::min(first, second).seconds(), 0.851 / 2 / winner, 0.06);
    }
  }
}

// The second flow has a longer path. The RTT ratio is about 5 to 1, because a queue of 30 kB adds little to 400 us.
// With window algorithms, the share of the first flow is between 0.8 and 0.96. Rate algorithms are not affected.
TEST(Duel, longer_path__costs_windows_and_not_rates) {
  for (const std::string cc : {"reno", "cubic", "dctcp", "dcqcn"}) {
    Duel duel(marking_link(), {{.cc = cc}, {.cc = cc, .extra_delay = 200_us}});
    duel.run_until(4_s);
    const double share = duel.share(0, 1_s, 4_s);
    if (cc == "dcqcn") {
      EXPECT_NEAR(share, 0.5, 0.03);
    } else {
      EXPECT_GT(share, 0.8) << cc;
      EXPECT_LT(share, 0.96) << cc;
    }
  }
  // Swift also reacts to the path's delay, so a common target must include the longest path (the hops in section 3.5 of
  // the Swift paper). In this test, the common target does not include the path of the second flow.
  Duel starved(marking_link(), {{.cc = "swift"}, {.cc = "swift", .extra_delay = 200_us}});
  starved.run_until(2_s);
  EXPECT_GT(starved.share(0, 1_s, 2_s), 0.95);
}

TEST(Duel, late_flow__gets_its_share_and_leaves_it_again) {
  for (const std::string& cc : algorithms) {
    Duel duel(marking_link(), {{.cc = cc}, {.cc = cc, .start = 1_s}, {.cc = cc, .start = 2_s, .bytes = 40'000'000}});
    duel.run_until(5_s);
    for (std::size_t flow : {std::size_t{0}, std::size_t{1}}) {
      EXPECT_NEAR(duel.share(flow, 1200_ms, 2_s), 0.5, 0.05) << cc << " flow " << flow;
      EXPECT_NEAR(duel.share(flow, 2200_ms, 2900_ms), 1.0 / 3, 0.04) << cc << " flow " << flow;
    }
    const Nanos gone = duel.finished(2);
    ASSERT_LT(gone, 3500_ms) << cc;
    for (std::size_t flow : {std::size_t{0}, std::size_t{1}})
      EXPECT_NEAR(duel.share(flow, 3700_ms, 5_s), 0.5, 0.05) << cc << " flow " << flow;
  }
}

// MLTCP is based on this property: with gain F against gain 1, a flow gets a share of about F / (1 + F).
TEST(Duel, gain__decides_the_shares) {
  for (const std::string& cc : algorithms) {
    double before = 0;
    for (const double gain : {0.25, 0.5, 1.0, 2.0}) {
      Duel duel(marking_link(), {{.cc = cc, .gain = gain}, {.cc = cc}});
      duel.run_until(3_s);
      const double share = duel.share(0, 1_s, 3_s);
      EXPECT_NEAR(share, gain / (1 + gain), 0.09) << cc << " " << gain;
      EXPECT_GT(share, before) << cc << " " << gain;
      before = share;
    }
  }
}

TEST(Duel, decrease_variant__parts_the_shares_further) {
  for (const std::string& cc : algorithms) {
    for (const double gain : {0.5, 2.0}) {
      Duel plain(marking_link(), {{.cc = cc, .gain = gain}, {.cc = cc}});
      Duel both(marking_link(), {{.cc = cc, .gain = gain, .scale_decrease = true}, {.cc = cc}});
      plain.run_until(3_s);
      both.run_until(3_s);
      const double difference = both.share(0, 1_s, 3_s) - plain.share(0, 1_s, 3_s);
      EXPECT_GT(gain > 1 ? difference : -difference, 0.02) << cc << " " << gain;
      EXPECT_GE(both.utilization(1_s, 3_s), 0.9 * goodput_of_a_full_link()) << cc << " " << gain;
    }
  }
}

// Without marks, drops from a buffer of 75 kB decide the shares.
TEST(Duel, drops__gain_decides_the_shares_too) {
  for (const std::string cc : {"reno", "cubic"}) {
    for (const double gain : {0.25, 2.0}) {
      DuelConfig config;
      config.buffer = 75'000;
      Duel duel(config, {{.cc = cc, .gain = gain}, {.cc = cc}});
      duel.run_until(4_s);
      EXPECT_NEAR(duel.share(0, 1_s, 4_s), gain / (1 + gain), 0.08) << cc << " " << gain;
    }
  }
}

}  // namespace
}  // namespace mltcp::sim
