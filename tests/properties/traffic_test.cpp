// Tests rounds of random traffic in virtual time, one for each seed (lab/experiment/traffic). Some connections are
// sealed. All congestion control algorithms are used. The networks lose, duplicate, delay, damage, mark and forge
// packets. Hosts stand still and are restarted. MLTCP_PROPERTY_SEEDS sets the number of seeds. The default is 20.
#include <gtest/gtest.h>

#include <cstdlib>

#include "mltcp/lab/experiment/soak/soak.h"

namespace mltcp::experiment {
namespace {

std::uint64_t rounds() {
  const char* const wanted = std::getenv("MLTCP_PROPERTY_SEEDS");
  return wanted == nullptr ? 20 : std::strtoull(wanted, nullptr, 10);
}

TEST(Properties, hold_over_random_traffic) {
  SoakSettings settings;
  settings.seed = 22;
  settings.rounds = rounds();
  const SoakResults results = run_soak(settings);
  for (const SoakFailure& failure : results.failures)
    FAIL() << failure.what << "\nagain: " << failure.replay << "\n" << failure.state;
  EXPECT_EQ(results.rounds, *settings.rounds);
  // A round without failures proves little if too few events happened.
  const TrafficCounts& counts = results.counts;
  EXPECT_GT(counts.connections, 2 * results.rounds);
  EXPECT_GT(counts.messages, 10 * results.rounds);
  EXPECT_GT(counts.bytes, 10'000 * results.rounds);
  for (const std::uint64_t happened :
       {counts.refused, counts.restarts, counts.stand_stills, counts.faults.lost, counts.faults.doubled,
        counts.faults.damaged, counts.faults.marked, counts.faults.delayed, counts.faults.refused, counts.faults.forged,
        counts.faults.kept, counts.faults.epochs})
    EXPECT_GT(happened, 0U);
}

TEST(Properties, a_round__is_the_same_again) {
  SoakSettings settings;
  settings.seed = 22;
  settings.first_round = 5;
  settings.rounds = 1;
  const SoakResults one = run_soak(settings);
  const SoakResults other = run_soak(settings);
  EXPECT_EQ(one.traffic_time, other.traffic_time);
  EXPECT_EQ(one.counts.operations, other.counts.operations);
  EXPECT_EQ(one.counts.bytes, other.counts.bytes);
  EXPECT_EQ(one.counts.faults.received, other.counts.faults.received);
  EXPECT_GT(one.counts.faults.received, 0U);
}

TEST(Properties, the_command_of_a_round__names_it) {
  EXPECT_EQ(replay_command({.seed = 9}, 1234), "mltcp soak --datapath sim --seed 9 --round 1234");
}

}  // namespace
}  // namespace mltcp::experiment
