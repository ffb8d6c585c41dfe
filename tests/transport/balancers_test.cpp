// The choices of each balancer (transport/balancers.h).
#include "mltcp/transport/balancers.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

namespace mltcp {
namespace {

/// A balancer with 16 path values.
struct Balanced {
  explicit Balanced(std::string_view name) : values(16), balancer(find_balancer(name).make(16, 7)) {}
  std::uint8_t next(bool begins_burst = false) { return balancer->next(values, begins_burst); }
  void ack(std::uint8_t path, bool is_marked = false) { balancer->on_acked(values, path, is_marked); }

  std::vector<PathValue> values;
  std::unique_ptr<Balancer> balancer;
};

TEST(Balancers, spray__uses_each_value_once_a_round) {
  Balanced spray("spray");
  for (int start = 0; start < 15; ++start) spray.next();
  std::map<int, int> used;
  for (int i = 0; i < 16 * 100; ++i) ++used[spray.next()];
  ASSERT_EQ(used.size(), 16U);
  for (const auto& [path, count] : used) EXPECT_NEAR(count, 100, 2) << path;
}

TEST(Balancers, seeds__give_different_orders) {
  const auto first = find_balancer("spray").make(16, 1);
  const auto second = find_balancer("spray").make(16, 2);
  std::vector<PathValue> values(16);
  int same = 0;
  for (int i = 0; i < 64; ++i) same += first->next(values, false) == second->next(values, false) ? 1 : 0;
  EXPECT_LT(same, 32);
}

TEST(Balancers, reps__recycles_values_without_marks_oldest_first) {
  Balanced reps("reps");
  reps.ack(3);
  reps.ack(9, true);
  reps.ack(5);
  EXPECT_EQ(reps.next(), 3);
  EXPECT_EQ(reps.next(), 5);
  for (std::uint8_t path = 0; path < 10; ++path) reps.ack(path);  // two more than fit
  for (std::uint8_t path = 2; path < 10; ++path) EXPECT_EQ(reps.next(), path);
}

TEST(Balancers, reps__uses_only_known_values_after_a_loss) {
  Balanced reps("reps");
  for (std::uint8_t path = 1; path <= 3; ++path) reps.ack(path);
  for (int i = 0; i < 3; ++i) reps.next();
  reps.balancer->on_lost(reps.values, 7);
  std::set<int> used;
  for (int i = 0; i < 60; ++i) used.insert(reps.next());
  EXPECT_EQ(used, (std::set<int>{1, 2, 3}));
  used.clear();
  for (int i = 0; i < 60; ++i) used.insert(reps.next());
  EXPECT_EQ(used.size(), 16U) << "then it explores again";
}

TEST(Balancers, bitmap__leaves_out_marked_values_for_a_turn_and_lost_ones_for_longer) {
  Balanced bitmap("bitmap");
  bitmap.ack(4, true);
  bitmap.balancer->on_lost(bitmap.values, 6);
  std::map<int, int> used;
  for (int i = 0; i < 14 + 15 * 3; ++i) ++used[bitmap.next()];
  EXPECT_LE(used[6], 1);
  EXPECT_GE(used[4], 2);
  EXPECT_GE(used[0], 3);
}

TEST(Balancers, bitmap__has_a_value_if_all_are_marked) {
  Balanced bitmap("bitmap");
  for (int round = 0; round < 40; ++round)
    for (std::uint8_t path = 0; path < 16; ++path) bitmap.ack(path, true);
  std::set<int> used;
  for (int i = 0; i < 320; ++i) used.insert(bitmap.next());
  EXPECT_EQ(used.size(), 16U);
}

TEST(Balancers, flowlet__moves_only_between_bursts_and_only_from_a_congested_path) {
  Balanced flowlet("flowlet");
  const std::uint8_t path = flowlet.next(true);
  flowlet.ack(path);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(flowlet.next(i == 3), path);
  for (int i = 0; i < 5; ++i) flowlet.ack(path, true);
  EXPECT_EQ(flowlet.next(), path) << "within the burst";
  EXPECT_NE(flowlet.next(true), path);
}

}  // namespace
}  // namespace mltcp
