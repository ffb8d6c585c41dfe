// Tests goodput under loss and reordering. Also tests that the tolerance of losses does no harm if congestion causes
// the losses. bench/loss_bench prints complete tables.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "duel.h"
#include "mltcp/cc/nscc.h"
#include "mltcp/cc/swift.h"

namespace mltcp::sim {
namespace {

using namespace literals;

constexpr double kFull = 1424.0 / 1514;  // goodput of a full link as a share of its rate

/// Returns a link with round-trip time `rtt`. Its buffer holds two bandwidth-delay products, and its marking threshold
/// is a sixth of one bandwidth-delay product.
DuelConfig path(Rate rate, Nanos rtt) {
  DuelConfig config;
  config.rate = rate;
  config.delay = rtt / 4;
  const Bytes window = rate.bytes_in(rtt);
  config.buffer = std::max<Bytes>(2 * window, 100'000);
  config.ecn_threshold = std::max<Bytes>(window / 6, 30'000);
  config.message_bytes = 64 * 1024;
  config.messages = static_cast<int>(4 * window / config.message_bytes) + 16;
  cc::Parameters parameters;
  parameters.edit<cc::Swift>().base_target = rtt * 2;
  parameters.edit<cc::Nscc>().base_rtt = rtt;
  config.parameters = std::make_shared<const cc::Parameters>(parameters);
  return config;
}

double goodput(const DuelConfig& config, const std::string& cc, Nanos from, Nanos to) {
  Duel duel(config, {{.cc = cc}});
  duel.run_until(to);
  EXPECT_EQ(duel.stats(0).persistent_congestions, 0U) << cc;
  return duel.utilization(from, to) / kFull;
}

TEST(Recovery, random_loss__costs_no_rate_where_marks_or_delay_tell) {
  for (const std::string cc : {"dctcp", "swift", "dcqcn", "nscc"}) {
    DuelConfig config = path(Rate(100'000'000), 10_ms);
    config.faults.loss = 0.001;
    EXPECT_GE(goodput(config, cc, 2_s, 3_s), 0.95) << cc;
    config.faults.loss = 0.01;
    EXPECT_GE(goodput(config, cc, 2_s, 3_s), 0.9) << cc;
    config.faults.loss = 0.03;
    EXPECT_GE(goodput(config, cc, 2_s, 3_s), 0.8) << cc;
  }
}

// The expected window is sqrt(3 / (2 p)) packets (RFC 5348, section 3.1, without timeouts). By RFC 9438, CUBIC behaves
// like Reno on paths of low bandwidth and delay.
TEST(Recovery, random_loss__leaves_reno_and_cubic_what_their_formula_says) {
  for (const std::string cc : {"reno", "cubic"}) {
    for (const double loss : {0.003, 0.01}) {
      DuelConfig config = path(Rate(100'000'000), 10_ms);
      config.faults.loss = loss;
      const double packets_per_second = std::sqrt(1.5 / loss) / 0.010;
      const double share = packets_per_second * 1514 * 8 / 100e6;
      const double got = goodput(config, cc, 5_s, 35_s);
      EXPECT_GE(got, 0.9 * share) << cc << " " << loss;
      EXPECT_LE(got, 1.6 * share) << cc << " " << loss << ": each loss is answered";
    }
  }
}

TEST(Recovery, reordering__by_more_than_a_round_trip_is_learned) {
  for (const std::string cc : {"reno", "cubic", "dctcp", "swift", "dcqcn"}) {
    DuelConfig config = path(Rate(1'000'000'000), 500_us);
    config.faults.reordering = 0.2;
    config.faults.reorder_delay = 5_ms;
    EXPECT_GE(goodput(config, cc, 300_ms, 500_ms), 0.8) << cc;
  }
}

TEST(Recovery, reordering__and_real_losses_among_it) {
  DuelConfig config = path(Rate(1'000'000'000), 500_us);
  config.faults.reordering = 0.1;
  config.faults.reorder_delay = 2_ms;
  config.faults.loss = 0.003;
  EXPECT_GE(goodput(config, "dctcp", 300_ms, 500_ms), 0.8);
}

// On a link that drops and does not mark, DCTCP behaves like Reno. Swift tolerates light losses until the first heavy
// loss at the end of slow start, and then reacts to each loss.
TEST(Recovery, losses_of_a_link_that_does_not_mark__are_answered) {
  DuelConfig config = path(Rate(200'000'000), 2_ms);
  config.buffer = 30'000;
  config.ecn_threshold = 0;
  config.ecn_capable = true;
  Duel reno(config, {{.cc = "reno"}, {.cc = "reno"}});
  Duel dctcp(config, {{.cc = "dctcp"}, {.cc = "reno"}});
  reno.run_until(4_s);
  dctcp.run_until(4_s);
  EXPECT_NEAR(dctcp.share(0, 1_s, 4_s), 0.5, 0.1);
  const auto lost = [](const Duel& duel) {
    return static_cast<double>(duel.bottleneck().dropped_packets) /
           static_cast<double>(duel.bottleneck().offered_packets);
  };
  EXPECT_LT(lost(dctcp), 2 * lost(reno));
}

TEST(Recovery, incast__of_64_into_a_small_buffer_fills_the_link) {
  for (const std::string cc : {"dctcp", "swift", "nscc"}) {
    DuelConfig config = path(Rate(1'000'000'000), 100_us);
    std::vector<DuelFlow> flows(64, DuelFlow{.cc = cc});
    Duel duel(config, flows);
    duel.run_until(300_ms);
    EXPECT_GE(duel.utilization(100_ms, 300_ms) / kFull, 0.95) << cc;
  }
}

}  // namespace
}  // namespace mltcp::sim
