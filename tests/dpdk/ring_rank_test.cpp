// Tests ranks in real time over DPDK rings, with the driver that virtual time also uses. Every byte is verified.
#include <gtest/gtest.h>

#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "ring_fixture.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

TEST(RingRank, ring__of_four_ranks_in_real_time) {
  std::string reason;
  const dpdk::Eal* eal = dpdk::shared_eal(reason);
  if (eal == nullptr) GTEST_SKIP() << reason;
  realtime::RingDumbbell network(*eal, dpdk::gigabit(2));
  JobSpec settings;
  settings.job.name = "a";
  workload::Pattern& pattern = settings.job.pattern.emplace();
  pattern.ranks = 4;
  pattern.size = 1'000'000;
  pattern.compute = 2_ms;
  settings.job.phases.resize(1);
  settings.job.phases[0].compute = pattern.compute;
  settings.job.rate = Rate(1'000'000'000);
  settings.iterations = 8;
  settings.real_payload = true;

  const std::array<dpdk::RingHost*, 4> hosts{&network.left(0), &network.right(0), &network.left(1), &network.right(1)};
  std::vector<Address> addresses;
  for (const dpdk::RingHost* host : hosts) addresses.push_back(host->address());
  std::vector<std::unique_ptr<RankDriver>> ranks;
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ranks.push_back(std::make_unique<RankDriver>(*hosts[rank], settings, rank, addresses,
                                                 RankDriver::make_payload(settings), network.now()));
    network.attach(*hosts[rank], *ranks.back());
  }
  const auto all = [&](auto&& predicate) {
    return std::all_of(ranks.begin(), ranks.end(), [&](const auto& rank) { return predicate(*rank); });
  };
  ASSERT_TRUE(
      network.run(network.now() + 20_s, [&] { return all([](const RankDriver& r) { return r.connected(); }); }));
  const Nanos start = network.now();
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    ranks[rank]->start(start);
    network.wake(*hosts[rank]);
  }
  ASSERT_TRUE(network.run(start + 60_s, [&] { return all([](const RankDriver& r) { return r.done(); }); }));
  std::vector<RankResult> results;
  for (const auto& rank : ranks) results.push_back(rank->result());
  const JobResult result = merge_ranks(settings.job, results, start);
  EXPECT_EQ(result.iterations.size(), 8U);
  EXPECT_EQ(result.checksum_errors, 0U);
  EXPECT_GE(result.verified_messages, 8U * 4 * 6);
  // 1.5 MB take 12 ms at 1 Gbit/s, and computing takes 2 ms. A slow machine can only take longer.
  for (const Nanos time : result.iterations) EXPECT_GE(time, 14_ms);
}

}  // namespace
}  // namespace mltcp::experiment
