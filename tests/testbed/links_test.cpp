// Tests how a testbed adds its links to the results of an experiment.
#include "mltcp/lab/testbed/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::testbed {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// Returns a switch with two ports. The link of the first port has no rate, and the link of the second port has 8 kbps.
TestbedLayout layout() {
  TestbedLayout made;
  made.hosts = {0, 1};
  auto& one = made.switches.emplace_back();
  one.name = "switch 0";
  one.ports.resize(2);
  one.ports[0].link = "switch 0 -> host 0";
  one.ports[0].config.output.rate = Rate();
  one.ports[1].link = "bottleneck";
  one.ports[1].config.output.rate = Rate(8'000);
  return made;
}

Json counted(std::size_t number) {
  const Json silent = {{"sent_frames", {0, 0, 0, 0}},     {"sent_bytes", {0, 0, 0, 0}},
                       {"dropped_frames", {0, 0, 0, 0}},  {"marked_frames", {0, 0, 0, 0}},
                       {"max_queue_bytes", {0, 0, 0, 0}}, {"queue_bytes", {0, 0, 0, 0}}};
  const Json busy = {
      {"sent_frames", {1, 3, 8, 9}},   {"sent_bytes", {100, 300, 1300, 1900}},    {"dropped_frames", {0, 1, 3, 7}},
      {"marked_frames", {0, 0, 2, 2}}, {"max_queue_bytes", {900, 200, 500, 800}}, {"queue_bytes", {0, 100, 400, 0}}};
  return {{"number", number},
          {"series",
           {{"time_ns", {0, 1'000'000'000, 2'000'000'000, 3'000'000'000}}, {"ports", Json::array({silent, busy})}}}};
}

Json run(std::int64_t begun, std::int64_t ended) { return {{"begun_ns", begun}, {"ended_ns", ended}}; }

TEST(add_links, run__has_what_was_counted_from_the_entry_before_it_to_the_one_behind) {
  Json one = run(1'200'000'000, 1'900'000'000);
  add_links(one, layout(), Json::array({counted(0)}));
  ASSERT_EQ(one["links"].size(), 2U);
  EXPECT_EQ(one["links"][0]["name"], "switch 0 -> host 0");
  EXPECT_EQ(one["links"][0]["utilization"], 0);
  const Json& link = one["links"][1];
  EXPECT_EQ(link["rate_bps"], 8'000);
  EXPECT_EQ(link["sent_packets"], 5);
  EXPECT_EQ(link["sent_bytes"], 1000);
  EXPECT_EQ(link["dropped_packets"], 2);
  EXPECT_EQ(link["ecn_marked_packets"], 2);
  EXPECT_EQ(link["max_queue_bytes"], 500);
  EXPECT_EQ(link["utilization"], 1.0);  // 1000 bytes take 1 s, the time between two entries; the run takes 0.7 s
}

TEST(add_links, series__have_the_links_that_carried_something_from_the_run_s_begin_on) {
  experiment::RunSeries series;
  series.times = {Nanos(0), Nanos(500'000'000), Nanos(900'000'000), Nanos(2'000'000'000)};
  add_links(series, run(1'200'000'000, 2'500'000'000), layout(), Json::array({counted(0)}));
  ASSERT_EQ(series.links.size(), 1U);
  EXPECT_EQ(series.links[0].name, "bottleneck");
  EXPECT_EQ(series.links[0].rate, Rate(8'000));
  // The entry at 2 s is 0.8 s after the start of the run. The entry at 3 s is after the end of the run, and counts as
  // an entry at this end, 1.3 s after the start. Totals start from the last entry before the run.
  EXPECT_EQ(series.link(1, 0).sent_bytes, 0U);
  EXPECT_EQ(series.link(2, 0).sent_bytes, 1000U);
  EXPECT_EQ(series.link(2, 0).queue_bytes, 400U);
  EXPECT_EQ(series.link(2, 0).queue_most_bytes, 500U);
  EXPECT_EQ(series.link(3, 0).sent_bytes, 1600U);
  EXPECT_EQ(series.link(3, 0).dropped_packets, 6U);
  EXPECT_EQ(series.times.back(), Nanos(2'000'000'000));
}

TEST(add_links, run__longer_than_the_series_has_all_of_it) {
  Json one = run(0, 10'000'000'000);
  add_links(one, layout(), Json::array({counted(0)}));
  EXPECT_EQ(one["links"][1]["sent_bytes"], 1800);
  EXPECT_DOUBLE_EQ(one["links"][1]["utilization"].get<double>(), 0.18);
}

TEST(add_links, bottleneck__is_the_link_with_a_rate_that_was_used_most) {
  Json one = run(1'000'000'000, 3'000'000'000);
  add_links(one, layout(), Json::array({counted(0)}));
  EXPECT_EQ(one["bottleneck"]["sent_bytes"], 1600);
  EXPECT_FALSE(one["bottleneck"].contains("name")) << "it is the only one";

  TestbedLayout two = layout();
  two.switches.push_back(two.switches[0]);
  two.switches[1].ports[1].link = "slower";
  two.switches[1].ports[1].config.output.rate = Rate(4'000);
  Json other = run(0, 3'000'000'000);
  add_links(other, two, Json::array({counted(0), counted(1)}));
  EXPECT_EQ(other["links"].size(), 4U);
  EXPECT_EQ(other["bottleneck"]["name"], "slower");
}

TEST(add_links, counters_that_can_not_be__are_refused_by_switch) {
  const auto refusal = [](const std::function<void(Json&)>& damage) {
    Json switches = Json::array({counted(0)});
    damage(switches[0]);
    Json one = run(1'200'000'000, 1'900'000'000);
    return message_of<RunError>([&] { add_links(one, layout(), switches); });
  };
  EXPECT_EQ(refusal([](Json& /*one*/) {}), "no error");
  const auto port = [](Json& one) -> Json& { return one["series"]["ports"][1]; };
  const std::vector<std::pair<std::function<void(Json&)>, const char*>> damages{
      {[&](Json& one) { port(one).erase("sent_bytes"); }, "sent_bytes"},
      {[&](Json& one) {
         port(one)["sent_bytes"] = {100, 300};
       },
       "2"},
      {[&](Json& one) { port(one)["sent_bytes"] = 7; }, "number"},
      {[&](Json& one) { port(one)["sent_bytes"][2] = 299; }, "\"sent_bytes\" decreases from 300 to 299"},
      {[&](Json& one) { port(one)["marked_frames"][1] = -1; }, "\"marked_frames\" is -1"},
      {[&](Json& one) { port(one)["max_queue_bytes"][2] = "long"; }, "\"max_queue_bytes\" is \"long\""},
      {[&](Json& one) { one["series"]["ports"].erase(1); }, "1"},
      {[&](Json& one) { one["series"]["time_ns"][0] = "never"; }, "number"},
      {[&](Json& one) { one.erase("series"); }, "series"}};
  for (const auto& [damage, why] : damages)
    EXPECT_THAT(refusal(damage), AllOf(StartsWith("the counters of switch 0 are invalid ("), HasSubstr(why),
                                       HasSubstr("; read its output")));
  for (const Json& number : {Json(1), Json()})
    EXPECT_NE(refusal([&](Json& one) { one["number"] = number; }), "no error");
}

TEST(add_links, no_time_or_no_switch__no_links) {
  Json one = run(5, 5);
  add_links(one, layout(), Json::array({counted(0)}));
  EXPECT_EQ(one["links"], Json::array());
  EXPECT_FALSE(one.contains("bottleneck"));
  Json other = run(0, 1'000'000'000);
  add_links(other, layout(), Json::array());
  EXPECT_EQ(other["links"], Json::array());
}

}  // namespace
}  // namespace mltcp::testbed
