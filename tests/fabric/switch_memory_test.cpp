// Tests lab/fabric/switch_memory.cpp: the equations of dynamic thresholds, and the xoff and xon thresholds of PFC.
#include "mltcp/lab/fabric/switch_memory.h"

#include <vector>

#include "../message_of.h"

namespace mltcp::fabric::switch_memory_test {
namespace {

constexpr std::uint32_t kNone = SwitchMemory::kNoIngress;

/// Offers packets of 1000 B to all queues in turn until no queue accepts one. Returns the length of each queue in
/// bytes.
std::vector<Bytes> fill(SwitchMemory& memory, std::size_t queues) {
  std::vector<Bytes> lengths(queues);
  for (bool any = true; any;) {
    any = false;
    for (Bytes& length : lengths) {
      if (!memory.admits(length, 1000, kNone, 0)) continue;
      memory.take(1000, kNone, 0);
      length += 1000;
      any = true;
    }
  }
  return lengths;
}

// Choudhury and Hahne: if S queues share a memory of B bytes and are all at their threshold, each holds alpha B / (1 +
// S alpha), and B / (1 + S alpha) is free.
TEST(SwitchMemory, admits__busy_queues_settle_at_the_published_share) {
  for (const double alpha : {0.5, 1.0, 2.0, 8.0}) {
    for (const std::size_t queues : {1U, 2U, 5U, 20U}) {
      SwitchMemory memory({.bytes = 10'000'000, .alpha = alpha, .pfc = {}});
      const double share = 10e6 / (1 + static_cast<double>(queues) * alpha);
      for (const Bytes length : fill(memory, queues))
        EXPECT_NEAR(static_cast<double>(length), alpha * share, 1000 * (1 + alpha)) << alpha << " " << queues;
      EXPECT_NEAR(static_cast<double>(10'000'000 - memory.used()), share, 1000.0 * (1 + alpha) * 20)
          << alpha << " " << queues;
    }
  }
}

TEST(SwitchMemory, threshold__follows_what_is_free) {
  SwitchMemory memory({.bytes = 100'000, .alpha = 0.5, .pfc = {}});
  EXPECT_EQ(memory.threshold(), 50'000U);
  memory.take(40'000, kNone, 0);
  EXPECT_EQ(memory.threshold(), 30'000U);
  EXPECT_TRUE(memory.admits(29'000, 1000, kNone, 0));
  EXPECT_FALSE(memory.admits(29'001, 1000, kNone, 0));
  memory.release(20'000, kNone, 0);
  EXPECT_EQ(memory.threshold(), 40'000U);
  EXPECT_EQ(memory.used(), 20'000U);
  EXPECT_EQ(memory.max_used(), 40'000U);
}

TEST(SwitchMemory, admits__never_more_than_there_is) {
  SwitchMemory memory({.bytes = 10'000, .alpha = 1000, .pfc = {}});
  EXPECT_EQ(fill(memory, 3), (std::vector<Bytes>{4000, 3000, 3000}));
  EXPECT_EQ(memory.used(), 10'000U);
}

SwitchMemoryConfig lossless() {
  SwitchMemoryConfig config;
  config.bytes = 100'000;
  config.pfc = {.enabled = true, .xoff_bytes = 10'000, .xon_bytes = 6'000};
  return config;
}

TEST(SwitchMemory, pauses__above_xoff_and_until_xon_for_each_ingress_and_class) {
  SwitchMemory memory(lossless());
  const std::uint32_t a = memory.add_ingress(5'000);
  const std::uint32_t b = memory.add_ingress(5'000);
  memory.take(10'000, a, 3);
  memory.take(10'000, a, 4);
  memory.take(10'000, b, 3);
  EXPECT_FALSE(memory.has_pauses());  // 10,000 bytes equal xoff, and do not exceed it
  memory.take(1, b, 3);
  ASSERT_TRUE(memory.has_pauses());
  const auto pause = memory.take_pause();
  EXPECT_EQ(pause.ingress, b);
  EXPECT_EQ(pause.priority, 3U);
  EXPECT_TRUE(pause.on);
  memory.take(1000, b, 3);
  EXPECT_FALSE(memory.has_pauses());  // each pause is reported only once
  memory.release(5'000, b, 3);
  EXPECT_FALSE(memory.has_pauses());  // 6001 bytes are still above xon
  memory.release(1, b, 3);
  ASSERT_TRUE(memory.has_pauses());
  EXPECT_FALSE(memory.take_pause().on);
  memory.release(6'000, b, 3);
  EXPECT_FALSE(memory.has_pauses());
}

TEST(SwitchMemory, admits__up_to_the_headroom_of_each_ingress_and_class) {
  SwitchMemory memory(lossless());
  const std::uint32_t a = memory.add_ingress(5'000);
  const std::uint32_t b = memory.add_ingress(1'000);
  memory.take(14'000, a, 0);
  EXPECT_TRUE(memory.admits(1'000'000, 1000, a, 0));  // with PFC, queues have no bound
  EXPECT_FALSE(memory.admits(0, 1001, a, 0));
  EXPECT_TRUE(memory.admits(0, 1001, a, 1));
  EXPECT_TRUE(memory.admits(0, 11'000, b, 0));
  EXPECT_FALSE(memory.admits(0, 11'001, b, 0));
  memory.take(80'000, kNone, 0);
  EXPECT_FALSE(memory.admits(0, 6'001, b, 0));  // the packet would exceed the whole memory
}

TEST(SwitchMemory, constructor__refuses_what_is_out_of_range) {
  const auto refused = [](auto change) -> std::string {
    SwitchMemoryConfig config = lossless();
    change(config);
    return refusal_of([&] { SwitchMemory memory(config); });
  };
  EXPECT_EQ(refused([](auto&) {}), "no error");
  EXPECT_THAT(refused([](auto& c) { c.bytes = 0; }), HasSubstr("0 B"));
  EXPECT_THAT(refused([](auto& c) { c.alpha = 0; }), HasSubstr("alpha"));
  EXPECT_THAT(refused([](auto& c) { c.alpha = 1001; }), HasSubstr("alpha"));
  EXPECT_THAT(refused([](auto& c) { c.pfc.xoff_bytes = 0; }), HasSubstr("xoff"));
  EXPECT_THAT(refused([](auto& c) { c.pfc.xon_bytes = 10'000; }), HasSubstr("not below its xoff"));
}

}  // namespace
}  // namespace mltcp::fabric::switch_memory_test
