// Tests streams of arriving jobs.
#include "mltcp/lab/workload/arrivals.h"

#include <string>

#include "../message_of.h"

namespace mltcp::workload {
namespace {

using namespace literals;

std::vector<TypeChoices> mix_of_two() {
  TypeChoices a;
  a.weight = 3;
  a.workers = {2, 4, 8};
  a.min_iterations = 100;
  a.max_iterations = 1000;
  TypeChoices b;
  b.batches = {16, 32};
  b.min_iterations = b.max_iterations = 50;
  return {a, b};
}

// Gaps are exponential, so their mean and their standard deviation equal the given gap, to within 1/sqrt(n). The
// numbers of arrivals in equal windows have a variance equal to their mean.
TEST(Arrivals, draw_arrivals__is_a_poisson_process) {
  constexpr std::uint32_t count = 40'000;
  const auto arrivals = draw_arrivals(mix_of_two(), count, 0, 100_us, 7);
  ASSERT_EQ(arrivals.size(), count);
  double sum = 0;
  double squares = 0;
  Nanos before;
  for (const Arrival& arrival : arrivals) {
    ASSERT_GE(arrival.at, before);
    const double gap = static_cast<double>((arrival.at - before).count) / 100'000;
    sum += gap;
    squares += gap * gap;
    before = arrival.at;
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 1, 0.02);
  EXPECT_NEAR(squares / count - mean * mean, 1, 0.05);
  std::vector<double> windows(2000);  // each window has 20 arrivals on average
  for (const Arrival& arrival : arrivals) {
    const auto window = static_cast<std::size_t>(arrival.at.count / (2_ms).count);
    if (window < windows.size()) ++windows[window];
  }
  windows.resize(1900);  // the last windows may be after the last arrival
  double total = 0;
  for (const double n : windows) total += n;
  const double per_window = total / static_cast<double>(windows.size());
  double variance = 0;
  for (const double n : windows) variance += (n - per_window) * (n - per_window) / static_cast<double>(windows.size());
  EXPECT_NEAR(variance / per_window, 1, 0.1);
}

TEST(Arrivals, draw_arrivals__types_workers_and_iterations_as_the_mix_says) {
  const auto mix = mix_of_two();
  constexpr std::uint32_t count = 20'000;
  const auto arrivals = draw_arrivals(mix, count, 0, 1_ms, 3);
  double first = 0;
  double four = 0;
  double iterations = 0;
  double below_geometric_mean = 0;
  double sixteen = 0;
  for (const Arrival& arrival : arrivals) {
    if (arrival.type == 1) {
      EXPECT_EQ(arrival.workers, 2U);
      EXPECT_EQ(arrival.iterations, 50U);
      EXPECT_TRUE(arrival.batch == 16 || arrival.batch == 32);
      sixteen += arrival.batch == 16;
      continue;
    }
    ++first;
    four += arrival.workers == 4;
    EXPECT_GE(arrival.iterations, 100U);
    EXPECT_LE(arrival.iterations, 1000U);
    iterations += arrival.iterations;
    below_geometric_mean += arrival.iterations < 316;
  }
  EXPECT_NEAR(first / count, 0.75, 0.01);
  EXPECT_NEAR(four / first, 1.0 / 3, 0.015);
  EXPECT_NEAR(sixteen / (count - first), 0.5, 0.025);
  EXPECT_NEAR(below_geometric_mean / first, 0.5, 0.015);
  EXPECT_NEAR(iterations / first / mix[0].mean_iterations(), 1, 0.02);
}

TEST(Arrivals, draw_arrivals__follows_from_the_seed) {
  const auto mix = mix_of_two();
  EXPECT_EQ(draw_arrivals(mix, 50, 0, 1_ms, 1), draw_arrivals(mix, 50, 0, 1_ms, 1));
  EXPECT_NE(draw_arrivals(mix, 50, 0, 1_ms, 1), draw_arrivals(mix, 50, 0, 1_ms, 2));
  // With the same seed, the jobs do not depend on the rate or on the number of jobs at the start.
  auto slow = draw_arrivals(mix, 50, 10, 2_ms, 1);
  const auto fast = draw_arrivals(mix, 50, 0, 1_ms, 1);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    EXPECT_EQ(slow[i].at == Nanos(), i < 10);
    slow[i].at = fast[i].at;
  }
  EXPECT_EQ(slow, fast);
}

TEST(Arrivals, parse_arrivals__reads_columns_in_any_order) {
  const ArrivalFile file = parse_arrivals(
      "# two jobs\n"
      "job, arrival, iterations, workers, batch\r\n"
      "VGG16, 1.5 s, 500, 8, 128   # late\n"
      "\n"
      "traces/a b.txt,0 ms,20,2,\n"
      "VGG16,1.5 s,7,3,",
      "a.csv");
  EXPECT_EQ(file.jobs, (std::vector<std::string>{"VGG16", "traces/a b.txt"}));
  ASSERT_EQ(file.rows.size(), 3U);
  EXPECT_EQ(file.rows[0].arrival, (Arrival{Nanos(), 1, 2, 0, 20}));
  EXPECT_EQ(file.rows[1].arrival, (Arrival{Nanos(1'500'000'000), 0, 8, 128, 500}));
  EXPECT_EQ(file.rows[1].line, 3U);
  EXPECT_EQ(file.rows[2].arrival, (Arrival{Nanos(1'500'000'000), 0, 3, 0, 7}));
}

TEST(Arrivals, parse_arrivals__takes_what_spreadsheets_write) {
  const ArrivalFile file = parse_arrivals(
      "\xef\xbb\xbf"
      "arrival,job,workers,iterations\r\n0 s,VGG16,8,500\r\n",
      "a.csv");
  EXPECT_EQ(file.jobs, std::vector<std::string>{"VGG16"});
}

// A search through all names for each line would take minutes.
TEST(Arrivals, parse_arrivals__many_names_cost_little) {
  constexpr std::size_t lines = 300'000;
  std::string text = "arrival,job,workers,iterations\n";
  for (std::size_t i = 0; i < lines; ++i) text += "0 s,j" + std::to_string(i) + ",2,1\n";
  EXPECT_EQ(parse_arrivals(text, "a.csv").jobs.size(), lines);
}

TEST(Arrivals, parse_arrivals__refuses_with_file_line_and_column) {
  const auto refusal = [](std::string_view text) -> std::string {
    return refusal_of([&] { return parse_arrivals(text, "a.csv"); });
  };
  const std::string head = "arrival,job,workers,iterations\n";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "a.csv:1: columns: the file is empty"},
      {"arrival,job,workers", "a.csv:1: columns: \"iterations\" is missing"},
      {"arrival,job,gpus,iterations", "a.csv:1: columns: \"gpus\" is not known"},
      {"arrival,job,job,workers,iterations", "a.csv:1: columns: \"job\" appears twice"},
      {head, "a.csv:1: arrival: no job arrives"},
      {head + "0 s,a,2", "a.csv:2: columns: the line has 3 fields"},
      {head + "1,a,2,5", "a.csv:2: arrival: \"1\" is a time without its unit; write one of the units ns, us"},
      {head + "0,a,2,5", "a.csv:2: arrival: \"0\" is a time without its unit; "},
      {head + "1.5e0,a,2,5", "a.csv:2: arrival: \"1.5e0\" is a time without its unit; "},
      {head + ",a,2,5", "a.csv:2: arrival: \"\" is not a duration: "},
      {"arrival_s,job,workers,iterations",
       "a.csv:1: columns: \"arrival_s\" is not known; the columns are arrival (times"},
      {head + "300 y,a,2,5", "a.csv:2: arrival: "},
      {head + "9999999 min,a,2,5", "a.csv:2: arrival: "},
      {head + "0 s,,2,5", "a.csv:2: job: the name is empty"},
      {head + "\n0 s,a,1,5", "a.csv:3: workers: \"1\" is not a whole number from 2"},
      {head + "0 s,a,2,0", "a.csv:2: iterations: "},
      {head + "0 s,a,2,1.5", "a.csv:2: iterations: "},
      {head + "0 s,a,2,99999999999", "a.csv:2: iterations: "},
      {"arrival,job,workers,iterations,batch\n0 s,a,2,5,-1", "a.csv:2: batch: "},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = refusal(text);
    EXPECT_EQ(message.substr(0, expected.size()), expected) << message;
    EXPECT_NE(message.find(';'), std::string::npos) << message;
    EXPECT_EQ(message.find("a.csv", 1), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace mltcp::workload
