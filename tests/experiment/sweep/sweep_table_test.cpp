// Tests the table of a sweep against numbers computed by hand.
#include "mltcp/lab/experiment/sweep/sweep_table.h"

#include <cmath>
#include <string>
#include <vector>
#include "../../matchers.h"
#include "mltcp/lab/experiment/results/table.h"

namespace mltcp::experiment {
namespace {

JobResult job(std::int64_t mean, std::int64_t half, std::int64_t p99, std::optional<std::uint64_t> from) {
  JobResult result;
  result.isolated = Nanos(100);
  result.mean = Nanos(mean);
  result.second_half_mean = Nanos(half);
  result.p99 = Nanos(p99);
  result.second_half_p99 = Nanos(half + 10);
  result.interleaved_from = from;
  result.retransmitted_packets = 5;
  return result;
}

Run run(const std::string& policy, std::vector<JobResult> jobs, double utilization, std::uint64_t dropped) {
  Run result;
  result.policy = policy;
  result.jobs = std::move(jobs);
  result.bottleneck.utilization = utilization;
  result.bottleneck.dropped_packets = dropped;
  result.bottleneck.max_queue_bytes = dropped * 100;
  return result;
}

// Returns the results of two seeds, each with two policies and two jobs.
std::vector<Results> two_seeds() {
  Results one;
  one.runs = {run("fair", {job(150, 140, 200, {}), job(130, 120, 160, 4)}, 0.6, 10),
              run("mltcp", {job(100, 100, 120, 3), job(104, 100, 160, 5)}, 0.8, 2)};
  Results two;
  two.runs = {run("fair", {job(120, 110, 180, {}), job(120, 110, 180, {})}, 0.7, 20),
              run("mltcp", {job(120, 101, 150, 8), job(100, 103, 120, 2)}, 0.9, 4)};
  return {one, two};
}

TEST(SweepTable, estimate__mean_and_student_interval) {
  EXPECT_FALSE(estimate_of(std::vector<double>{3}).ci95.has_value());
  const Estimate three = estimate_of(std::vector<double>{1, 2, 6});
  EXPECT_DOUBLE_EQ(three.mean, 3);
  EXPECT_NEAR(*three.ci95, 4.3027 * std::sqrt(7.0 / 3), 1e-9);  // the variance is (4 + 1 + 9) / 2 = 7
  // Tables of Student's t(0.975) give 2.0423 for 30 degrees of freedom, and 2.2010 for 11. From 11 on, the program
  // computes t by a series expansion.
  const auto with_unit_deviation = [](std::size_t count) {
    std::vector<double> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(i % 2 == 0 ? 1 : -1);
    double squares = 0;
    const Estimate estimate = estimate_of(values);
    for (const double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
    const auto n = static_cast<double>(count);
    return *estimate.ci95 / std::sqrt(squares / (n - 1) / n);
  };
  EXPECT_NEAR(with_unit_deviation(11), 2.2281, 1e-4);
  EXPECT_NEAR(with_unit_deviation(12), 2.2010, 1e-4);
  EXPECT_NEAR(with_unit_deviation(31), 2.0423, 1e-4);
  EXPECT_NEAR(with_unit_deviation(1001), 1.9623, 1e-4);
}

TEST(SweepTable, rows__by_hand) {
  const std::vector<Results> seeds = two_seeds();
  const std::vector<SweepRow> rows = rows_of(seeds);
  ASSERT_EQ(rows.size(), 2U);
  const SweepRow& fair = rows[0];
  EXPECT_EQ(fair.policy, "fair");
  EXPECT_EQ(fair.jobs, 2U);
  EXPECT_EQ(fair.seeds, 2U);
  EXPECT_DOUBLE_EQ(fair.slowdown.mean, (1.4 + 1.2) / 2);
  EXPECT_NEAR(*fair.slowdown.ci95, 12.7062 * 0.1, 1e-9);  // deviations of 0.1 with one degree of freedom
  EXPECT_DOUBLE_EQ(fair.second_half.mean, (1.3 + 1.1) / 2);
  EXPECT_DOUBLE_EQ(fair.second_half_worst_seed, 1.3);
  EXPECT_DOUBLE_EQ(fair.second_half_worst_job, 1.4);
  EXPECT_DOUBLE_EQ(fair.p99.mean, 1.8);
  EXPECT_EQ(fair.interleaved, 0U) << "a job that interleaves beside one that does not is no interleaving";
  EXPECT_FALSE(fair.interleaved_median.has_value());
  EXPECT_DOUBLE_EQ(fair.gain->mean, 1);
  EXPECT_DOUBLE_EQ(fair.utilization, 0.65);
  EXPECT_DOUBLE_EQ(fair.dropped_packets, 15);
  EXPECT_DOUBLE_EQ(fair.retransmitted_packets, 10);
  EXPECT_EQ(fair.max_queue_bytes, 2000U);

  const SweepRow& mltcp = rows[1];
  EXPECT_DOUBLE_EQ(mltcp.slowdown.mean, (1.02 + 1.1) / 2);
  EXPECT_DOUBLE_EQ(mltcp.second_half_worst_seed, 1.02);
  EXPECT_DOUBLE_EQ(mltcp.second_half_worst_job, 1.03);
  EXPECT_EQ(mltcp.interleaved, 2U);
  EXPECT_DOUBLE_EQ(*mltcp.interleaved_median, 6.5);  // the median of 5 and 8
  EXPECT_EQ(*mltcp.interleaved_worst, 8U);
  EXPECT_DOUBLE_EQ(mltcp.gain->mean, ((1.5 + 130.0 / 104) / 2 + (1.0 + 1.2) / 2) / 2);
  EXPECT_DOUBLE_EQ(mltcp.gain_p99->mean, ((200.0 / 120 + 1.0) / 2 + (1.2 + 1.5) / 2) / 2);
  EXPECT_FALSE(mltcp.same);
}

TEST(SweepTable, rows__leave_legacy_traffic_out) {
  std::vector<Results> seeds = two_seeds();
  const std::vector<SweepRow> alone = rows_of(seeds);
  for (Results& results : seeds)
    for (auto& one : results.runs) {
      one.jobs.push_back(job(900, 900, 900, std::nullopt));
      one.jobs.back().unaware = true;
    }
  const std::vector<SweepRow> beside = rows_of(seeds);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(beside[i].jobs, alone[i].jobs);
    EXPECT_EQ(beside[i].slowdown.mean, alone[i].slowdown.mean);
    EXPECT_EQ(beside[i].interleaved, alone[i].interleaved);
    EXPECT_EQ(beside[i].gain->mean, alone[i].gain->mean);
  }
}

TEST(SweepTable, rows__of_seeds_that_change_nothing_say_so) {
  const std::vector<Results> seeds(3, two_seeds()[0]);
  EXPECT_TRUE(rows_of(seeds)[0].same);
  EXPECT_FALSE(rows_of(std::span(seeds).first(1))[0].same);
}

struct Made {
  Sweep sweep;
  SweepTable table;
};
Made made() {
  Made result;
  result.sweep.name = "sweep";
  result.sweep.factors = {"cc", "bottleneck.buffer"};
  result.sweep.seeds = {1, 2};
  for (const char* buffer : {"75 kB", "1|2, \"3\""}) {
    SweepPoint point;
    point.values = {"reno", buffer};
    result.sweep.points.push_back(point);
    SweepTable::Point rows;
    rows.rows = rows_of(two_seeds());
    result.table.points.push_back(rows);
  }
  return result;
}

TEST(SweepTable, cells__leave_out_what_does_not_vary) {
  Made all = made();
  Cells cells = cells_of(all.sweep, all.table);
  EXPECT_THAT(cells.rows[0],
              ElementsAre("bottleneck.buffer", "policy", "slow-down", "2nd half", "worst seed", "p99", "interleaved",
                          "from", "at worst", "gain", "gain p99", "2nd gain", "2nd gain p99"));
  EXPECT_EQ(cells.left, 2U);
  ASSERT_EQ(cells.rows.size(), 5U);
  EXPECT_THAT(cells.rows[2],
              ElementsAre("75 kB", "mltcp", "1.060 ±0.508", "1.010 ±0.127", "1.020", "1.375 ±0.318", "2/2", "6.5", "8",
                          "1.238 ±1.747", "1.342 ±0.106", "1.189 ±1.407", "1.172 ±1.278"));
  // The table shows a column "seeds" if some seeds are missing.
  all.table.points[1].rows[0].seeds = 1;
  cells = cells_of(all.sweep, all.table);
  EXPECT_EQ(cells.rows[0][2], "seeds");
  EXPECT_EQ(cells.rows[3][2], "1");
}

TEST(SweepTable, texts__are_escaped) {
  const Made all = made();
  EXPECT_THAT(to_markdown(cells_of(all.sweep, all.table)),
              AllOf(StartsWith("| bottleneck.buffer | policy | slow-down |"), HasSubstr("\n|---|---|---:|"),
                    HasSubstr("| 1\\|2, \"3\" | fair |")));
  EXPECT_THAT(to_csv(all.sweep, all.table),
              AllOf(StartsWith("cc,bottleneck.buffer,policy,"), HasSubstr("\nreno,\"1|2, \"\"3\"\"\",fair,2,2,1.3,")));
  EXPECT_THAT(to_json(all.sweep, all.table), HasAll("\"schema\": \"mltcp.sweep/1\"", "\"worst_seed\": 1.3,"));
}

}  // namespace
}  // namespace mltcp::experiment
