// Algorithms by name, and the controller that holds one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "mltcp/base/error.h"
#include "mltcp/cc/controller.h"
#include "mltcp/cc/reno.h"

namespace mltcp::cc {
namespace {

std::string message_of(std::string_view name) {
  try {
    find_algorithm(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

/// Writes down which event reached it.
struct Probe {
  static constexpr std::string_view name = "probe";
  static constexpr Capabilities capabilities{.needs_ecn = true, .needs_timer = true, .rate_based = true};
  double events = 0;

  void start(const PathInfo& path, Output& out) { out.cwnd_bytes = path.max_packet_bytes; }
  void on_ack(const AckSample&, Output& out) { out.cwnd_bytes = ++events + 100; }
  void on_congestion(const CongestionEvent&, Output& out) { out.cwnd_bytes = ++events + 200; }
  void on_timeout(Nanos, Output& out) { out.cwnd_bytes = ++events + 300; }
  void on_spurious_congestion(Nanos, Output& out) { out.cwnd_bytes = ++events + 400; }
  void on_timer(Nanos, Output& out) { out.cwnd_bytes = ++events + 500; }
  void on_idle_restart(Nanos, Output& out) { out.cwnd_bytes = ++events + 600; }
};

TEST(Registry, find__every_listed_algorithm_by_its_name) {
  std::set<std::string_view> names;
  for (const AlgorithmTable* table : algorithms()) {
    EXPECT_EQ(&find_algorithm(table->name), table);
    EXPECT_TRUE(names.insert(table->name).second) << table->name << " is there twice";
  }
  EXPECT_TRUE(names.contains("reno"));
}

TEST(Registry, find__an_unknown_name_lists_the_names) {
  for (const std::string name : {"vegas", "", "Reno", "reno "}) {
    const std::string message = message_of(name);
    EXPECT_THAT(message, testing::HasSubstr(testing::PrintToString(name)));
    for (const AlgorithmTable* table : algorithms()) EXPECT_THAT(message, testing::HasSubstr(std::string(table->name)));
  }
}

TEST(Controller, events__reach_the_algorithm_and_its_state_lasts) {
  const AlgorithmTable& table = table_of<Probe>();
  EXPECT_EQ(table.name, "probe");
  EXPECT_TRUE(table.capabilities.needs_ecn && table.capabilities.needs_timer && table.capabilities.rate_based);
  Controller controller(table, {.max_packet_bytes = 77, .max_rate = {}});
  EXPECT_EQ(&controller.algorithm(), &table);
  EXPECT_EQ(controller.output().cwnd_bytes, 77);
  controller.on_ack({});
  EXPECT_EQ(controller.output().cwnd_bytes, 101);
  controller.on_congestion({});
  EXPECT_EQ(controller.output().cwnd_bytes, 202);
  controller.on_timeout(Nanos(1));
  EXPECT_EQ(controller.output().cwnd_bytes, 303);
  controller.on_spurious_congestion(Nanos(1));
  EXPECT_EQ(controller.output().cwnd_bytes, 404);
  controller.on_timer(Nanos(1));
  EXPECT_EQ(controller.output().cwnd_bytes, 505);
  controller.on_idle_restart(Nanos(1));
  EXPECT_EQ(controller.output().cwnd_bytes, 606);
}

TEST(Controller, instances__do_not_share_state) {
  Controller a(table_of<Reno>(), {.max_packet_bytes = 1000, .max_rate = {}});
  const Controller b(table_of<Reno>(), {.max_packet_bytes = 1000, .max_rate = {}});
  a.on_congestion({});
  EXPECT_EQ(a.output().cwnd_bytes, 5000);
  EXPECT_EQ(b.output().cwnd_bytes, 10'000);
}

}  // namespace
}  // namespace mltcp::cc
