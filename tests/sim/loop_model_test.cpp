// Tests the model of loops of hosts and switches: when they process packets, and that nothing changes without the
// model.
#include "mltcp/lab/sim/loop_model.h"

#include <set>

#include "../matchers.h"
#include "endpoints.h"
#include "mltcp/lab/sim/dumbbell.h"

namespace mltcp::sim {
namespace {

using namespace mltcp::literals;

TEST(Lateness, draw__has_its_least_and_its_mean) {
  Lateness lateness({.nap = 50_us, .late_min = 40_us, .late_mean = 100_us, .stall_every = {}, .stall_mean = {}},
                    Random(1));
  Nanos sum;
  Nanos min = 1_s;
  Nanos max;
  constexpr int draws = 20'000;
  for (int i = 0; i < draws; ++i) {
    const Nanos late = lateness.draw(50_us);
    sum += late;
    min = std::min(min, late);
    max = std::max(max, late);
  }
  EXPECT_GE(min, 40_us);
  EXPECT_LT(min, 41_us);
  EXPECT_NEAR((sum / draws).millis(), 0.1, 0.002);
  EXPECT_GT(max, 400_us) << "exponential: 60 us fall short of 400 us in all of so many draws never";
}

TEST(Lateness, draw__stalls_as_often_and_as_long_as_asked_for) {
  Lateness lateness({.nap = 50_us, .late_min = {}, .late_mean = {}, .stall_every = 10_ms, .stall_mean = 2_ms},
                    Random(1));
  int stalls = 0;
  Nanos sum;
  constexpr int draws = 200'000;  // 200,000 sleeps of 50 us take 10 s
  for (int i = 0; i < draws; ++i) {
    const Nanos late = lateness.draw(50_us);
    stalls += late.count > 0 ? 1 : 0;
    sum += late;
  }
  EXPECT_NEAR(stalls, 1000, 100);
  EXPECT_NEAR((sum / stalls).millis(), 2, 0.2);
}

/// Each link has a rate of 1 Gbps and a delay of 1 us. Hosts and switch sleep for 50 us and wake 10 us late.
struct Modelled {
  static fabric::MachineModel machines(bool hosts, bool switches) {
    const fabric::LoopModel loop{
        .nap = 50_us, .late_min = 10_us, .late_mean = 10_us, .stall_every = {}, .stall_mean = {}};
    fabric::MachineModel model;
    if (hosts) model.host = loop;
    if (switches) model.network_switch = loop;
    return model;
  }
  Modelled(bool hosts, bool switches)
      : net(config(), {.virtual_payload = true, .machines = machines(hosts, switches)}) {}
  static fabric::DumbbellConfig config() {
    fabric::DumbbellConfig config;
    config.pairs = 2;
    config.bottleneck.rate = config.access_rate = Rate(1'000'000'000);
    config.bottleneck.delay = config.access_delay = 1_us;
    config.reverse = config.bottleneck;
    return config;
  }
  Dumbbell net;
};

TEST(LoopModel, idle_host__wakes_late_for_a_packet_and_then_naps) {
  Modelled modelled(true, false);
  Dumbbell& net = modelled.net;
  Recorder receiver(net.right(0));
  net.attach(net.right(0), receiver);
  net.run_until(1_ms);
  receiver.polls.clear();
  // 1250 bytes on the wire take 10 + 1 us on each of two links.
  const auto send = [&] { send_one(net.left(0), net.right(0).address(), bytes_of(1208)); };
  send();
  net.run_until(2_ms);
  ASSERT_FALSE(receiver.seen.empty());
  EXPECT_EQ(receiver.seen[0].at, 1_ms + 22_us + 10_us);
  receiver.seen.clear();
  // Three packets arrive 10 us apart. The first packet wakes the host. The second packet arrives when the host polls,
  // and the third packet when the host sleeps again.
  for (int i = 0; i < 3; ++i) send();
  net.run_until(3_ms);
  ASSERT_EQ(receiver.seen.size(), 3U);
  EXPECT_EQ(receiver.seen[0].at, 2_ms + 32_us);
  EXPECT_EQ(receiver.seen[1].at, 2_ms + 32_us) << "came at 32 us";
  EXPECT_EQ(receiver.seen[2].at, 2_ms + 32_us + 6_us + 60_us) << "came at 42 us, when it slept";
}

TEST(LoopModel, deadline__is_met_late_and_a_nap_is_no_longer_than_it_takes) {
  Modelled modelled(true, false);
  Dumbbell& net = modelled.net;
  Recorder sleeper(net.left(0), [](Nanos now) { return now < 1_ms ? 1_ms : now < 2_ms ? 2_ms : Nanos::never(); });
  net.attach(net.left(0), sleeper);
  net.run_until(5_ms);
  EXPECT_THAT(sleeper.polls, ElementsAre(0_ns, 1_ms + 10_us, 2_ms + 10_us));
}

TEST(LoopModel, hosts_on_the_right__are_looked_after_together) {
  Modelled modelled(true, false);
  Dumbbell& net = modelled.net;
  Recorder first(net.right(0));
  Recorder second(net.right(1));
  net.attach(net.right(0), first);
  net.attach(net.right(1), second);
  net.run_until(1_ms);
  first.polls.clear();
  second.polls.clear();
  send_one(net.left(0), net.right(1).address(), bytes_of(1208));
  net.run_until(1_ms + 40_us);
  EXPECT_THAT(first.polls, ElementsAre(1_ms + 32_us));
  EXPECT_THAT(second.polls, ElementsAre(1_ms + 32_us));
}

TEST(LoopModel, switch_that_naps__passes_packets_on_when_it_looks) {
  Modelled modelled(false, true);
  Dumbbell& net = modelled.net;
  Recorder receiver(net.right(0));
  net.attach(net.right(0), receiver);
  for (int i = 0; i < 200; ++i) {
    // 625 bytes on the wire take 5 us
    send_one(net.left(static_cast<std::uint32_t>(i % 2)), net.right(0).address(), bytes_of(583));
    net.run_until(Nanos(17'000) * (i + 1));
  }
  net.run_until(10_ms);
  ASSERT_EQ(receiver.seen.size(), 200U) << "nothing is lost";
  std::set<Nanos> times;
  for (const Seen& packet : receiver.seen) times.insert(packet.at);
  Nanos latest;
  for (const Nanos time : times) {
    EXPECT_GE(time - latest, 60_us) << "a look is a nap behind the one before";
    latest = time;
  }
  EXPECT_GE(times.size(), 50U);
  EXPECT_LE(latest, 3'400_us + 200_us);
}

TEST(LoopModel, switch_that_naps__takes_frames_to_have_come_evenly) {
  Modelled modelled(false, true);
  Dumbbell& net = modelled.net;
  Recorder receiver(net.right(0));
  net.attach(net.right(0), receiver);
  net.run_until(61_us);  // this is after the switch's first poll and before the second one at 120 us
  for (int i = 0; i < 3; ++i)
    for (std::uint32_t pair = 0; pair < 2; ++pair) send_one(net.left(pair), net.right(0).address(), bytes_of(1208));
  net.run_until(1_ms);
  ASSERT_EQ(receiver.seen.size(), 6U);
  // Two packets arrive at 80 us, two at 100 us and two at 120 us. The queue sends one packet in 10 us.
  EXPECT_EQ(net.bottleneck().counters().max_queue_bytes, 2500U);
}

TEST(LoopModel, switch_that_naps__keeps_its_links_rate) {
  Modelled modelled(false, true);
  Dumbbell& net = modelled.net;
  Recorder receiver(net.right(0));
  net.attach(net.right(0), receiver);
  // Each host sends at the bottleneck's rate, so the bottleneck is busy for the transmission time of all packets.
  for (int i = 0; i < 100; ++i) {
    for (std::uint32_t pair = 0; pair < 2; ++pair) send_one(net.left(pair), net.right(0).address(), bytes_of(1208));
    net.run_until(Nanos(10'000) * (i + 1));
  }
  net.run_until(10_ms);
  ASSERT_EQ(receiver.seen.size(), 200U);
  EXPECT_EQ(net.bottleneck().counters().dropped_packets, 0U);
  EXPECT_NEAR(net.bottleneck().free_at().millis(), 2.0, 0.12) << "200 packets of 10 us, and a look before the first";
}

}  // namespace
}  // namespace mltcp::sim
