// Tests that ranks allocate no memory after a warm-up. Counts the calls of operator new during a job with losses and
// verified bytes.
#include <gtest/gtest.h>

#include <vector>

#include "../../lossy_io.h"
#include "mltcp/lab/experiment/engine/rank_driver.h"
#include "mltcp/lab/sim/switched_network.h"

namespace mltcp::experiment {
namespace {

using namespace literals;

class Counted final : public Pollable {
 public:
  explicit Counted(Pollable& inner) : inner_(inner) {}
  Nanos poll(Nanos now) override {
    counting = armed;
    const Nanos next = inner_.poll(now);
    counting = false;
    return next;
  }
  static inline bool armed = false;

 private:
  Pollable& inner_;
};

TEST(RankDriver, allocation__none_after_warm_up) {
  constexpr std::uint32_t ranks = 4;
  fabric::SwitchedNetworkConfig config;
  config.topology = std::make_shared<const Topology>(Topology::single_switch(ranks, Rate(10'000'000'000), 1_us));
  sim::SwitchedNetwork network(config);
  JobSpec settings;
  settings.job.name = "a";
  workload::Pattern& pattern = settings.job.pattern.emplace();
  pattern.kind = workload::Pattern::Kind::training;
  pattern.ranks = ranks;
  pattern.training.pipeline = 2;
  pattern.training.micro_batches = 3;
  pattern.training.activations = 600'000;
  pattern.size = 2'000'000;
  pattern.compute = 1_ms;
  settings.job.phases.emplace_back().compute = 1_ms;
  settings.job.jitter = 100_us;
  settings.job.rate = Rate(10'000'000'000);
  settings.iterations = 200;
  settings.augmentation = cc::Augmentation::mltcp({});

  std::vector<sim::Host*> hosts;
  std::vector<Address> addresses;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    hosts.push_back(&network.add_port(rank, 4793));
    addresses.push_back(hosts.back()->address());
  }
  const auto payload = RankDriver::make_payload(settings);
  std::vector<std::unique_ptr<LossyIo>> ios;
  std::vector<std::unique_ptr<RankDriver>> drivers;
  std::vector<std::unique_ptr<Counted>> counted;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    ios.push_back(std::make_unique<LossyIo>(*hosts[rank], rank + 1));
    drivers.push_back(std::make_unique<RankDriver>(*ios[rank], settings, rank, addresses, payload, network.now()));
    counted.push_back(std::make_unique<Counted>(*drivers[rank]));
    network.attach(*hosts[rank], *counted[rank]);
  }
  const auto all = [&](auto&& predicate) {
    return std::all_of(drivers.begin(), drivers.end(), [&](const auto& driver) { return predicate(*driver); });
  };
  ASSERT_TRUE(network.run(10_s, [&] { return all([](const RankDriver& d) { return d.connected(); }); }));
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    drivers[rank]->start(network.now());
    network.wake(*hosts[rank]);
  }
  // The warm-up has more losses than the measured part, so that no structure of the transport grows afterwards.
  for (const auto& io : ios) io->loss = 0.02;
  ASSERT_TRUE(network.run(100_s, [&] { return all([](const RankDriver& d) { return d.recorded() >= 100; }); }));
  for (const auto& io : ios) io->loss = 0.002;
  Counted::armed = true;
  ASSERT_TRUE(network.run(200_s, [&] { return all([](const RankDriver& d) { return d.done(); }); }));
  Counted::armed = false;
  EXPECT_EQ(allocations, 0U);
  for (const auto& driver : drivers) {
    EXPECT_GT(driver->result().verified_messages, 0U);
    EXPECT_EQ(driver->result().checksum_errors, 0U);
    EXPECT_GT(driver->result().retransmitted_packets, 0U);
  }
}

}  // namespace
}  // namespace mltcp::experiment
