// Tests recording in bounded memory: which values remain when the recorder leaves out rows.
#include "mltcp/lab/experiment/series/series_recorder.h"

#include <algorithm>

#include "../../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::experiment::series_recorder_test {
namespace {

using namespace literals;

constexpr Nanos kEpoch = 7_ms;
constexpr Nanos kInterval = 10_us;

/// Records a run whose connection sends one byte per microsecond. The window and the queue peak in sample `peak`.
RunSeries recorded(std::size_t samples, std::size_t max_rows, std::size_t peak, Nanos end) {
  SeriesRecorder recorder({kInterval, max_rows});
  EXPECT_TRUE(recorder.next().is_never());
  recorder.begin(kEpoch, {{"a", 0, 0, 0}}, {{"idle", Rate(1)}, {"bottleneck", Rate(1'000'000'000)}});
  const auto fill = [&](Nanos at, bool peaks) {
    const SeriesRecorder::States states = recorder.states();
    states.connections[0].cwnd_bytes = peaks ? 900 : 100;
    states.connections[0].rtt = peaks ? 9_us : 1_us;
    states.connections[0].sent_bytes = static_cast<Bytes>((at - kEpoch).count / 1000);
    states.links[1].queue_bytes = peaks ? 90 : 10;
    states.links[1].sent_bytes = 2 * states.connections[0].sent_bytes;
  };
  std::size_t taken = 0;
  while (recorder.next() - kEpoch <= kInterval * static_cast<std::int64_t>(samples)) {
    fill(recorder.next(), recorder.next() == kEpoch + kInterval * static_cast<std::int64_t>(peak));
    recorder.sample();
    ++taken;
  }
  EXPECT_LE(taken, samples + 1);
  fill(kEpoch + end, false);
  recorder.finish(kEpoch + end);
  EXPECT_TRUE(recorder.next().is_never());
  return recorder.take();
}

// A sample reads all connections, so its cost grows with their number. With more connections, the usual interval is
// therefore longer.
TEST(SeriesRecorder, usual_interval__is_longer_with_many_connections) {
  const auto second_sample = [](std::size_t connections, bool is_usual) {
    SeriesRecorder recorder({kInterval, 10'000, is_usual});
    recorder.begin(kEpoch, std::vector<SeriesConnection>(connections), {{"bottleneck", Rate(1'000'000'000)}});
    recorder.sample();
    return recorder.next() - kEpoch;
  };
  EXPECT_EQ(second_sample(63, true), kInterval);
  EXPECT_EQ(second_sample(64, true), kInterval * 2);
  EXPECT_EQ(second_sample(240, true), kInterval * 4);
  EXPECT_EQ(second_sample(240, false), kInterval);
}

TEST(SeriesRecorder, rows__of_a_short_run_are_its_samples_and_its_end) {
  const RunSeries series = recorded(5, 10'000, 3, 52_us);
  EXPECT_THAT(series.times, ElementsAre(0_us, 10_us, 20_us, 30_us, 40_us, 50_us, 52_us));
  EXPECT_EQ(series.interval, kInterval);
  EXPECT_EQ(series.sampled_every, kInterval);
  EXPECT_EQ(series.connection(3, 0).cwnd_bytes, 900);
  EXPECT_EQ(series.connection(3, 0).cwnd_least_bytes, 900);
  EXPECT_EQ(series.connection(4, 0).cwnd_most_bytes, 100);
  EXPECT_EQ(series.connection(6, 0).sent_bytes, 52U);
  EXPECT_DOUBLE_EQ(rate_in_row(series.connection_states, 1, 0, series.times, 0), 0);
  EXPECT_DOUBLE_EQ(rate_in_row(series.connection_states, 1, 0, series.times, 1), 8e6);  // one byte per microsecond
}

TEST(SeriesRecorder, links__without_traffic_are_left_out) {
  const RunSeries series = recorded(5, 10'000, 3, 52_us);
  ASSERT_EQ(series.links.size(), 1U);
  EXPECT_EQ(series.links[0].name, "bottleneck");
  EXPECT_EQ(series.link(6, 0).sent_bytes, 104U);
  EXPECT_EQ(series.link(3, 0).queue_most_bytes, 90U);
}

TEST(SeriesRecorder, end__in_the_moment_of_a_sample_is_one_row) {
  const RunSeries series = recorded(5, 10'000, 5, 50_us);
  EXPECT_EQ(series.times.size(), 6U);
  EXPECT_EQ(series.times.back(), 50_us);
  EXPECT_EQ(series.connection(5, 0).cwnd_bytes, 100);       // the window at the end of the run
  EXPECT_EQ(series.connection(5, 0).cwnd_most_bytes, 900);  // the peak of the sample at this time
}

// A peak is never lost, whatever the length of the run and the position of the peak.
TEST(SeriesRecorder, rows__of_long_runs_are_bounded_evenly_spaced_and_keep_peaks) {
  constexpr std::size_t entities = 3;
  for (const std::size_t samples : {255U, 256U, 257U, 258U, 513U, 2'000U, 10'007U, 100'000U}) {
    for (const std::size_t peak : {std::size_t{1}, samples / 3, samples / 2 + 1, samples - 1}) {
      SCOPED_TRACE(testing::Message() << samples << " samples, peak at " << peak);
      const RunSeries series = recorded(samples, SeriesRecorder::kFewestRows * entities, peak,
                                        kInterval * static_cast<std::int64_t>(samples) + 1_us);
      ASSERT_LE(series.times.size(), SeriesRecorder::kFewestRows + 2);
      ASSERT_GE(series.times.size(), SeriesRecorder::kFewestRows / 2);
      EXPECT_EQ(series.times.front(), 0_us);
      for (std::size_t row = 1; row + 1 < series.times.size(); ++row)
        ASSERT_EQ(series.times[row] - series.times[row - 1], series.interval) << row;
      EXPECT_LE(series.interval, series.sampled_every * SeriesRecorder::kMaxSamplesOfARow);
      for (std::size_t row = 0; row < series.times.size(); ++row)
        ASSERT_EQ(series.connection(row, 0).sent_bytes, static_cast<Bytes>(series.times[row].count / 1000));
      // If the recorder has lengthened the interval between samples, it has skipped samples and may have missed the
      // peak.
      if (series.sampled_every > kInterval) continue;
      double max = 0;
      Bytes longest = 0;
      Nanos slowest;
      for (std::size_t row = 0; row < series.times.size(); ++row) {
        max = std::max(max, series.connection(row, 0).cwnd_most_bytes);
        longest = std::max(longest, series.link(row, 0).queue_most_bytes);
        slowest = std::max(slowest, series.connection(row, 0).rtt_max);
      }
      EXPECT_EQ(max, 900);
      EXPECT_EQ(longest, 90U);
      EXPECT_EQ(slowest, 9_us);
    }
  }
}

TEST(SeriesRecorder, entities__have_a_bound_that_is_told_in_a_line) {
  SeriesRecorder recorder({1_us, 1});
  const std::vector<SeriesConnection> many(SeriesRecorder::kMaxEntities);
  EXPECT_EQ(message_of<InputError>([&] {
              recorder.begin(0_us, many, {{"bottleneck", Rate(1)}});
            }),
            "series of 8192 connections and 1 links: at most 8192 in total can be recorded; leave --series out, or "
            "give fewer ranks, flows or hosts");
  EXPECT_TRUE(recorder.next().is_never());
}

TEST(SeriesRecorder, samples__of_a_long_run_become_rarer) {
  SeriesRecorder recorder({1_us, 1});
  recorder.begin(0_us, {{"a", 0, 0, 0}}, {});
  std::size_t samples = 0;
  for (; recorder.next() < 1'000_ms; ++samples) recorder.sample();
  // The run lasts a million intervals. The recorder takes at most eight samples per row. Each time that it leaves out
  // rows, it may take as many samples again.
  EXPECT_LT(samples, SeriesRecorder::kFewestRows * SeriesRecorder::kMaxSamplesOfARow * 8);
}

}  // namespace
}  // namespace mltcp::experiment::series_recorder_test
