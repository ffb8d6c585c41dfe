// Tests lab/fabric/priority_link.cpp: one class behaves as Link does, strict order of classes, buffers, pauses, and
// conservation of packets.
#include "mltcp/lab/fabric/priority_link.h"

#include <vector>

#include "../matchers.h"
#include "mltcp/base/error.h"

namespace mltcp::fabric::priority_link_test {
namespace {

using namespace mltcp::literals;

constexpr std::uint32_t kNone = SwitchMemory::kNoIngress;

/// Returns a link of 1 Gbps, which sends one byte in 8 ns.
LinkConfig gigabit() {
  LinkConfig config;
  config.rate = Rate(1'000'000'000);
  config.delay = 10_us;
  return config;
}

struct Arrival {
  Link::Handle packet = 0;
  Nanos at;
  bool operator==(const Arrival&) const = default;
};

/// Processes the events of a link in order, as a network does.
struct Driver {
  explicit Driver(const LinkConfig& config, std::uint32_t classes = 8, SwitchMemory* memory = nullptr)
      : link(config, classes, memory) {}

  PriorityLink::Admission offer(Link::Handle packet, std::uint32_t bytes, std::uint32_t priority, Nanos now,
                                bool ecn = false, std::uint32_t ingress = kNone) {
    run(now);
    const auto admission = link.offer(packet, bytes, ecn, priority, ingress, now);
    start(now);
    return admission;
  }
  void start(Nanos now) {
    while (const auto one = link.start(now)) {
      if (one->admission.duplicate) link.offer_copy(one->packet);
    }
  }
  void run(Nanos until) {
    while (link.next_event() <= until && !link.next_event().is_never()) {
      const Nanos now = link.next_event();
      while (const auto delivery = link.pop(now)) arrivals.push_back({delivery->packet, now});
      start(now);
    }
  }
  std::vector<Link::Handle> order() {
    run(Nanos::never());
    std::vector<Link::Handle> packets;
    for (const Arrival& arrival : arrivals) packets.push_back(arrival.packet);
    return packets;
  }

  PriorityLink link;
  std::vector<Arrival> arrivals;
};

/// Sends the same packets of many sizes through a Link and a PriorityLink, and compares the results.
void compare_with_link(Rate rate, Bytes buffer) {
  LinkConfig config = gigabit();
  config.rate = rate;
  config.buffer_bytes = buffer;
  config.ecn = {buffer != 0, 10'000, 30'000, 0.5};
  config.seed = 5;
  Link plain(config);
  Driver rich(config, 1);
  std::vector<Arrival> expected;
  Random random(3);
  Nanos now;
  std::uint64_t marks = 0;
  for (Link::Handle packet = 1; packet <= 20'000; ++packet) {
    const auto bytes = static_cast<std::uint32_t>(64 + random.below(9'000));
    while (plain.next_delivery() <= now) {
      const auto delivery = plain.pop(now);
      expected.push_back({delivery->packet, delivery->at});
    }
    const auto a = plain.offer(packet, bytes, true, now);
    const auto b = rich.offer(packet, bytes, static_cast<std::uint32_t>(random.below(8)), now, true);
    ASSERT_EQ(a.admitted, b.admitted) << packet;
    ASSERT_EQ(a.mark, b.mark) << packet;
    marks += a.mark ? 1 : 0;
    now += Nanos(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rate.time_for(9'000).count))));
  }
  while (const auto delivery = plain.pop(1_s)) expected.push_back({delivery->packet, delivery->at});
  rich.run(1_s);
  EXPECT_EQ(rich.arrivals, expected);
  if (buffer != 0) {
    EXPECT_GT(marks, 1000U);
    EXPECT_GT(plain.counters().dropped_packets, 500U);
    EXPECT_EQ(rich.link.counters().max_queue_bytes, plain.counters().max_queue_bytes);
  }
  EXPECT_EQ(rich.link.counters().dropped_packets, plain.counters().dropped_packets);
  EXPECT_EQ(rich.link.counters().sent_bytes, plain.counters().sent_bytes);
}

TEST(PriorityLink, one_class__is_a_link_to_the_nanosecond) {
  compare_with_link(Rate(1'000'000'000), 40'000);
  // At the following rates, a packet may leave in the middle of a nanosecond. Its buffer space is then free from the
  // start of this nanosecond. The comparison therefore sets no buffer limit, and covers only times.
  compare_with_link(Rate(7'300'000'000), 0);
  compare_with_link(Rate(800'000'000'001), 0);
}

TEST(PriorityLink, start__highest_class_first_without_interrupting) {
  Driver driver(gigabit());
  driver.offer(1, 1000, 0, 0_ns);  // is in transmission until 8 us
  driver.offer(2, 1000, 3, 1_us);
  driver.offer(3, 1000, 1, 2_us);
  driver.offer(4, 1000, 7, 3_us);
  driver.offer(5, 1000, 3, 4_us);
  driver.offer(6, 1000, 7, 17_us);  // arrives while packet 2 is in transmission
  EXPECT_THAT(driver.order(), ElementsAre(1, 4, 2, 6, 5, 3));
  EXPECT_THAT(driver.arrivals[1], (Arrival{4, 26_us}));
}

TEST(PriorityLink, class_of__last_class_takes_all_above) {
  Driver driver(gigabit(), 2);
  driver.offer(1, 1000, 0, 0_ns);
  driver.offer(2, 1000, 0, 0_ns);
  driver.offer(3, 1000, 1, 0_ns);
  driver.offer(4, 1000, 7, 0_ns);
  EXPECT_THAT(driver.order(), ElementsAre(1, 3, 4, 2));
}

TEST(PriorityLink, offer__each_class_has_a_buffer_of_its_own) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 3000;
  config.ecn = {true, 1000, 1000, 1};
  Driver driver(config);
  for (Link::Handle i = 0; i < 5; ++i) driver.offer(i, 1000, 0, 0_ns, true);
  EXPECT_EQ(driver.link.counters().dropped_packets, 2U);
  EXPECT_EQ(driver.link.counters().marked_packets, 1U);
  EXPECT_TRUE(driver.offer(9, 1000, 1, 0_ns, true).admitted);
  EXPECT_FALSE(driver.offer(10, 1000, 0, 7'999_ns).admitted);
  EXPECT_TRUE(driver.offer(11, 1000, 0, 8_us).admitted);
  EXPECT_EQ(driver.link.queue_bytes(0), 3000U);
  EXPECT_EQ(driver.link.queue_bytes(1), 1000U);
}

TEST(PriorityLink, memory__is_shared_by_links_until_the_last_bit_has_left) {
  SwitchMemory memory({.bytes = 10'000, .alpha = 1, .pfc = {}});
  Driver a(gigabit(), 1, &memory);
  Driver b(gigabit(), 1, &memory);
  for (Link::Handle i = 0; i < 10; ++i) a.offer(i, 1000, 0, 0_ns);
  EXPECT_EQ(memory.used(), 5000U);
  for (Link::Handle i = 0; i < 10; ++i) b.offer(i, 1000, 0, 0_ns);
  EXPECT_EQ(memory.used(), 8000U);  // `b` uses 3000 bytes, because its fourth packet finds only 2000 bytes free
  a.run(7'999_ns);
  EXPECT_EQ(memory.used(), 8000U);
  a.run(8_us);
  EXPECT_EQ(memory.used(), 7000U);
  a.run(1_ms);
  b.run(1_ms);
  EXPECT_EQ(memory.used(), 0U);
}

TEST(PriorityLink, pause__stops_a_class_after_the_packet_being_sent) {
  Driver driver(gigabit());
  for (Link::Handle i = 1; i <= 3; ++i) driver.offer(i, 1000, 2, 0_ns);
  driver.offer(4, 1000, 0, 0_ns);
  driver.link.pause(2, true, 9_us);
  driver.link.pause(2, false, 30_us);
  driver.run(1_ms);
  // The link finishes packet 2, which is in transmission when the pause begins. Class 0 continues, and packet 3 waits
  // until 30 us.
  EXPECT_THAT(driver.arrivals, ElementsAre(Arrival{1, 18_us}, Arrival{2, 26_us}, Arrival{4, 34_us}, Arrival{3, 48_us}));
  EXPECT_EQ(driver.link.counters().pauses, 1U);
  EXPECT_FALSE(driver.link.paused(2));
}

TEST(PriorityLink, longest_queue__is_told_anew_after_each_question) {
  Driver driver(gigabit());
  for (Link::Handle i = 0; i < 3; ++i) driver.offer(i, 1000, 0, 0_us);
  EXPECT_EQ(driver.link.take_longest_queue(), 3000U);
  EXPECT_EQ(driver.link.take_longest_queue(), 3000U) << "they are still there";
  driver.run(1_ms);
  EXPECT_EQ(driver.link.take_longest_queue(), 3000U) << "they were there";
  EXPECT_EQ(driver.link.take_longest_queue(), 0U);
  driver.offer(3, 1000, 0, 2_ms);
  driver.run(3_ms);
  EXPECT_EQ(driver.link.take_longest_queue(), 1000U);
  EXPECT_EQ(driver.link.counters().max_queue_bytes, 3000U);
}

TEST(PriorityLink, faults__happen_behind_the_queue) {
  LinkConfig config = gigabit();
  config.buffer_bytes = 0;
  config.faults = {.loss = 0.1, .duplication = 0.1, .corruption = 0.1, .reordering = 0.1, .reorder_delay = 20_us};
  Driver driver(config);
  for (Link::Handle i = 0; i < 10'000; ++i) driver.offer(i, 1000, i % 8, Nanos(static_cast<std::int64_t>(i) * 100));
  driver.run(Nanos::never());
  const LinkCounters& counters = driver.link.counters();
  EXPECT_EQ(counters.sent_packets, 10'000U);
  EXPECT_EQ(driver.arrivals.size(), counters.sent_packets + counters.duplicated_packets - counters.lost_packets);
  for (const std::uint64_t count :
       {counters.lost_packets, counters.duplicated_packets, counters.corrupted_packets, counters.reordered_packets})
    EXPECT_NEAR(static_cast<double>(count), 1000, 200);
}

TEST(PriorityLink, constructor__refuses_what_is_out_of_range) {
  EXPECT_THROW(PriorityLink(gigabit(), 0, nullptr), InputError);
  EXPECT_THROW(PriorityLink(gigabit(), 9, nullptr), InputError);
  LinkConfig config = gigabit();
  config.ecn = {true, 2, 1, 1};
  EXPECT_THROW(PriorityLink(config, 1, nullptr), InputError);
}

}  // namespace
}  // namespace mltcp::fabric::priority_link_test
