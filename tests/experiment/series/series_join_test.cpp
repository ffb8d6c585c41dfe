// Tests joining the series that several hosts recorded of the same run.
#include "mltcp/lab/experiment/series/series_join.h"

#include <string>
#include <vector>

#include "../../matchers.h"
#include "mltcp/lab/experiment/series/series_recorder.h"

namespace mltcp::experiment::series_join_test {
namespace {

using namespace literals;

/// Returns the series of one connection. Each of `rows` contains a time and the bytes sent by then. At each time, the
/// window equals the bytes sent.
RunSeries sent(const std::string& job, Nanos interval, const std::vector<std::pair<Nanos, Bytes>>& rows) {
  RunSeries series;
  series.interval = series.sampled_every = interval;
  series.connections = {{job, 0, 1, 0}};
  for (const auto& [time, bytes] : rows) {
    series.times.push_back(time);
    ConnectionState& state = series.connection_states.emplace_back();
    state.sent_bytes = bytes;
    state.cwnd_bytes = state.cwnd_least_bytes = state.cwnd_most_bytes = static_cast<double>(bytes);
  }
  return series;
}

std::vector<Bytes> bytes_of(const RunSeries& series, std::size_t connection) {
  std::vector<Bytes> bytes;
  for (std::size_t row = 0; row < series.times.size(); ++row)
    bytes.push_back(series.connection(row, connection).sent_bytes);
  return bytes;
}

TEST(joined, parts_with_the_same_rows__have_them_side_by_side) {
  const RunSeries both = joined({sent("a", 1_ms, {{0_ms, 0}, {1_ms, 5}, {2_ms, 9}}),  //
                                 sent("b", 1_ms, {{0_ms, 1}, {1_ms, 2}, {2_ms, 3}})});
  EXPECT_THAT(both.times, ElementsAre(0_ms, 1_ms, 2_ms));
  ASSERT_EQ(both.connections.size(), 2U);
  EXPECT_EQ(both.connections[1].job, "b");
  EXPECT_THAT(bytes_of(both, 0), ElementsAre(0, 5, 9));
  EXPECT_THAT(bytes_of(both, 1), ElementsAre(1, 2, 3));
}

TEST(joined, narrower_rows__are_left_out_and_keep_their_bounds) {
  const RunSeries both = joined({sent("a", 1_ms, {{0_ms, 1}, {1_ms, 7}, {2_ms, 4}, {3_ms, 5}, {4_ms, 6}}),
                                 sent("b", 2_ms, {{0_ms, 0}, {2_ms, 2}, {4_ms, 4}})});
  EXPECT_THAT(both.times, ElementsAre(0_ms, 2_ms, 4_ms));
  EXPECT_EQ(both.interval, 2_ms);
  EXPECT_EQ(both.connections[0].job, "a") << "in the order of the parts";
  EXPECT_THAT(bytes_of(both, 0), ElementsAre(1, 4, 6));
  EXPECT_EQ(both.connection(1, 0).cwnd_most_bytes, 7);
  EXPECT_EQ(both.connection(1, 0).cwnd_least_bytes, 4);
  EXPECT_EQ(both.connection(2, 0).cwnd_most_bytes, 6);
}

TEST(joined, row_without_a_new_one_of_a_part__repeats_its_state_and_not_its_bounds) {
  RunSeries wide = sent("a", 2_ms, {{0_ms, 1}, {2_ms, 4}});
  wide.connection_states[1].cwnd_least_bytes = 2;
  wide.connection_states[1].cwnd_most_bytes = 9;
  wide.connection_states[1].rtt = 3_us;
  wide.connection_states[1].rtt_max = 8_us;
  RunSeries whole = sent("b", 1_ms, {{0_ms, 0}, {1_ms, 1}, {2_ms, 2}, {3_ms, 3}});
  wide.links = {{"x", Rate(8)}};
  wide.link_states = {{}, {.queue_bytes = 5, .queue_most_bytes = 70}};
  join(whole, wide);
  EXPECT_THAT(bytes_of(whole, 1), ElementsAre(1, 1, 4, 4));
  EXPECT_EQ(whole.connection(2, 1).cwnd_most_bytes, 9);
  EXPECT_EQ(whole.link(2, 0).queue_most_bytes, 70U);
  const ConnectionState& again = whole.connection(3, 1);
  EXPECT_EQ(again.cwnd_least_bytes, 4);
  EXPECT_EQ(again.cwnd_most_bytes, 4);
  EXPECT_EQ(again.rtt_max, 3_us);
  EXPECT_EQ(whole.link(3, 0).queue_most_bytes, 5U);
}

TEST(joined, part_that_is_shorter__keeps_its_last_state_and_the_end_is_the_latest) {
  const RunSeries both = joined({sent("a", 1_ms, {{0_ms, 0}, {1_ms, 5}, {1500_us, 6}}),
                                 sent("b", 1_ms, {{0_ms, 0}, {1_ms, 2}, {2_ms, 3}, {2300_us, 4}})});
  // The last row contains the last state of each series, even if another series provides the rows.
  EXPECT_EQ(both.times.back(), 2300_us);
  EXPECT_EQ(bytes_of(both, 0).back(), 6U);
  EXPECT_EQ(bytes_of(both, 1).back(), 4U);
}

TEST(joined, nothing__is_nothing) {
  EXPECT_TRUE(joined({}).times.empty());
  EXPECT_TRUE(joined({RunSeries(), RunSeries()}).connections.empty());
  EXPECT_EQ(joined({RunSeries(), sent("a", 1_ms, {{0_ms, 1}})}).connections.size(), 1U);
}

TEST(join, part_that_begins_later__is_at_zero_until_then) {
  RunSeries whole = sent("a", 1_ms, {{0_ms, 1}, {1_ms, 2}, {2_ms, 3}});
  RunSeries part;
  part.times = {1500_us, 1700_us};
  part.links = {{"x", Rate(8)}};
  part.link_states = {{.queue_bytes = 9, .queue_most_bytes = 9, .sent_bytes = 10}, {.sent_bytes = 20}};
  join(whole, part);
  ASSERT_EQ(whole.links.size(), 1U);
  EXPECT_EQ(whole.link(1, 0).sent_bytes, 0U);
  EXPECT_EQ(whole.link(2, 0).sent_bytes, 20U);
  EXPECT_EQ(whole.link(2, 0).queue_bytes, 0U);
  EXPECT_EQ(whole.link(2, 0).queue_most_bytes, 9U);
}

TEST(SeriesRecorder, what_others_have_recorded__is_taken_as_it_is_but_for_links_without_traffic) {
  RunSeries recorded = sent("a", 4_ms, {{0_ms, 0}, {4_ms, 5}});
  recorded.sampled_every = 1_ms;
  recorded.links = {{"idle", Rate(1)}, {"busy", Rate(1)}};
  recorded.link_states = {{}, {.sent_bytes = 1}, {}, {.sent_bytes = 2}};
  SeriesRecorder recorder({1_ms});
  recorder.adopt(recorded);
  const RunSeries taken = recorder.take();
  EXPECT_EQ(taken.interval, 4_ms);
  EXPECT_EQ(taken.sampled_every, 1_ms);
  ASSERT_EQ(taken.links.size(), 1U);
  EXPECT_EQ(taken.links[0].name, "busy");
  EXPECT_EQ(taken.link(1, 0).sent_bytes, 2U);
}

}  // namespace
}  // namespace mltcp::experiment::series_join_test
