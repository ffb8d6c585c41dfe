// Tests files of series: a file reads back as written, each table column has one type, and a bad file gives a one-line
// error.
#include "mltcp/lab/experiment/series/series_file.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "../../message_of.h"
#include "mltcp/base/error.h"

namespace mltcp::experiment::series_file_test {
namespace {

using namespace literals;
using PolicyRun = Run;  // inside a test, `Run` names a member of testing::Test

/// Returns the states of two connections and a link at three times. No two cells contain the same number.
SeriesFile sample(bool packets = true) {
  RunSeries run;
  run.policy = "mltcp+schedule";
  run.cc = "reno";
  run.datapath = packets ? "sim" : "flow";
  run.seed = 7;
  run.duration = 20_us;
  run.interval = 10_us;
  run.sampled_every = 5_us;
  run.packets = packets;
  run.times = {0_us, 10_us, 15_us};
  run.connections = {{"a \"1\", b", 0, 0, 0}, {"ring", 1, 2, 3}};
  run.links = {{"leaf 0 -> spine 1", Rate(1'000'000'000)}};
  for (std::uint32_t row = 0; row < 3; ++row) {
    for (std::uint32_t c = 0; c < 2; ++c) {
      ConnectionState state;
      const double n = 100 * row + 10 * c;
      state.gain = 0.25 + row;
      state.bytes_ratio = 2e-5 * row;  // the file writes this number with an exponent
      state.iteration = static_cast<std::int64_t>(row) - 1;
      state.sent_bytes = 1250 * row * (c + 1);
      if (packets) {
        state.cwnd_bytes = n + 1.5;
        state.cwnd_least_bytes = n + 0.5;
        state.cwnd_most_bytes = n + 2;
        state.in_flight_bytes = 3 * row;
        state.pacing = Rate(4 + row);
        state.rtt = Nanos(5 + row);
        state.rtt_max = Nanos(6 + row);
        state.retransmitted_packets = 7 * row;
        state.lost_packets = 8 * row;
        state.marked_packets = 9 * row;
      }
      run.connection_states.push_back(state);
    }
    LinkState link;
    link.sent_bytes = 2500 * row;
    if (packets) link = {10 + row, 20 + row, 2500 * row, 30 * row, 40 * row, 50 * row, 60 * row};
    run.link_states.push_back(link);
  }
  return {"an \"experiment\"", {run, run}, std::nullopt};
}

TEST(SeriesFile, json__is_read_as_it_was_written) {
  for (const bool packets : {true, false}) {
    const SeriesFile series = sample(packets);
    const SeriesFile read = parse_series(series_json(series), "s.json");
    EXPECT_EQ(read.experiment, series.experiment);
    EXPECT_EQ(read.runs, series.runs);
    EXPECT_EQ(series_json(read), series_json(series));
  }
}

TEST(SeriesFile, json__has_no_columns_of_packets_at_flow_level) {
  const std::string text = series_json(sample(false));
  EXPECT_THAT(text, HasSubstr("\"bytes_ratio\""));
  for (const char* column : {"cwnd_bytes", "rtt_ns", "queue_bytes", "dropped_packets"})
    EXPECT_THAT(text, Not(HasSubstr(column)));
}

TEST(SeriesFile, json__that_is_not_right_is_told_in_a_line) {
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string text = series_json(sample());
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const std::string message = message_of<InputError>([&] { parse_series(text, "s.json"); });
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_THAT(message, StartsWith("s.json: "));
    return message;
  };
  EXPECT_THAT(refusal("mltcp.series/1", "mltcp.series/2"), HasSubstr("schema is not \"mltcp.series/1\""));
  EXPECT_THAT(refusal("\"time_ns\": [0,10000,15000]", "\"time_ns\": [0,10000,10000]"),
              HasSubstr("runs[0].time_ns is not ascending"));
  EXPECT_THAT(refusal("\"time_ns\": [0,10000,15000]", "\"time_ns\": [0,10000]"), HasSubstr("has 3 values for 2 times"));
  EXPECT_THAT(refusal("\"gain\": [0.25,", "\"gain\": [null,"), HasSubstr("runs[0].connections[0].gain"));
  EXPECT_THAT(refusal("\"rtt_ns\"", "\"rtt\""), HasSubstr("rtt_ns is missing"));
  EXPECT_THAT(refusal("\"connections\": [", "\"connections\": [{}, "),
              HasSubstr("connections[0].sent_bytes is missing"));
  EXPECT_THAT(refusal("\"links\": [", "\"links\": [{\"sent_bytes\": []}, "), HasSubstr("has 0 values for 3 times"));
  EXPECT_THAT(refusal("\"runs\": [", "\"runs\": [1,"), HasSubstr("is not an object"));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(SeriesFile, csv__has_a_row_for_each_connection_and_time) {
  const auto lines = lines_of(connections_csv(sample()));
  ASSERT_EQ(lines.size(), 1 + 2 * 3 * 2U);
  EXPECT_EQ(lines[0],
            "policy,seed,time_ns,job,worker,peer,flow,rate_bps,cwnd_bytes,cwnd_least_bytes,cwnd_most_bytes,"
            "in_flight_bytes,pacing_bps,rtt_ns,rtt_most_ns,gain,bytes_ratio,iteration,sent_bytes,"
            "retransmitted_packets,lost_packets,marked_packets");
  EXPECT_EQ(lines[1], "mltcp+schedule,7,0,\"a \"\"1\"\", b\",0,0,0,0,1.5,0.5,2.0,0,4,5,6,0.25,0.0,-1,0,0,0,0");
  // The rate of 2 Gbps is 2500 bytes in 10 us.
  EXPECT_EQ(lines[4], "mltcp+schedule,7,10000,ring,1,2,3,2000000000,111.5,110.5,112.0,3,5,6,7,1.25,2e-05,0,2500,7,8,9");
  EXPECT_EQ(lines[1], lines[7]);  // line 7 is the first line of the second run
}

TEST(SeriesFile, csv__has_no_formula_for_a_spreadsheet) {
  SeriesFile series = sample();
  series.runs[0].policy = "=1+1";
  series.runs[0].connections[0].job = "@x";
  EXPECT_THAT(lines_of(connections_csv(series))[1], StartsWith("'=1+1,7,0,'@x,0,0,0,0,"));
}

TEST(SeriesFile, csv__of_flows_has_empty_cells_for_what_is_not_known) {
  EXPECT_EQ(lines_of(connections_csv(sample(false)))[4],
            "mltcp+schedule,7,10000,ring,1,2,3,2000000000,,,,,,,,1.25,2e-05,0,2500,,,");
  const auto links = lines_of(links_csv(sample(false)));
  EXPECT_EQ(links[0],
            "policy,seed,time_ns,link,capacity_bps,rate_bps,queue_bytes,queue_most_bytes,sent_bytes,sent_packets,"
            "marked_packets,dropped_packets,pauses");
  EXPECT_EQ(links[2], "mltcp+schedule,7,10000,leaf 0 -> spine 1,1000000000,2000000000,,,2500,,,,");
}

TEST(SeriesFile, trace__has_iterations_as_slices_and_states_as_counters) {
  Results results;
  PolicyRun run;
  run.jobs.resize(1);
  run.jobs[0].name = "ring";
  run.jobs[0].isolated = 4_us;
  run.jobs[0].starts = {1_us, 7001_ns};
  run.jobs[0].iterations = {6001_ns, 8_us};
  results.runs = {run, run};
  const auto trace = nlohmann::json::parse(series_trace(sample(), results));
  std::size_t slices = 0;
  std::map<std::string, std::vector<double>> counters;  // values of the first run only
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "X") {
      ++slices;
      if (event["name"] == "iteration 1") {
        EXPECT_DOUBLE_EQ(event["ts"].get<double>(), 7.001);
      }
    }
    if (event["ph"] == "C" && event["pid"] == 1)
      counters[event["name"]].push_back(event["args"].begin().value().get<double>());
  }
  EXPECT_EQ(slices, 4U);
  EXPECT_THAT(counters["ring cwnd_bytes"], ElementsAre(11.5, 111.5, 211.5));
  EXPECT_THAT(counters["leaf 0 -> spine 1 queue_bytes"], ElementsAre(10, 11, 12));
  // Each event shows the rate from its time until the next event. The last event ends the track with rate 0.
  EXPECT_THAT(counters["ring rate_bps"], ElementsAre(2e9, 4e9, 0));
  EXPECT_TRUE(counters.contains("a \"1\", b gain"));
}

TEST(SeriesFile, belongs__to_the_run_that_it_is_of) {
  const SeriesFile series = sample();
  PolicyRun run;
  run.policy = "mltcp+schedule";
  run.cc = "reno";
  run.datapath = "sim";
  run.seed = 7;
  run.duration = 20_us;
  run.jobs.resize(2);
  run.jobs[0].name = "ring";
  run.jobs[1].name = "a \"1\", b";
  EXPECT_TRUE(belongs(series.runs[0], run));
  run.duration = 21_us;
  EXPECT_FALSE(belongs(series.runs[0], run));
  run.duration = 20_us;
  run.jobs[0].name = "other";
  EXPECT_FALSE(belongs(series.runs[0], run));
}

}  // namespace
}  // namespace mltcp::experiment::series_file_test
