// Tests the result file: statistics, the definitions of interleaving and overlap, and reading and writing JSON.
#include "mltcp/lab/experiment/results/results.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include "../../message_of.h"
#include "../../same_fields.h"
#include "../../temporary_folder.h"
#include "../written.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/lab/experiment/results/results_fields.h"

namespace mltcp::experiment {
namespace {

using ::testing::Each;

using PolicyRun = Run;  // inside a test, `Run` names a member of testing::Test

constexpr Nanos kAlone(100'000);

std::vector<Nanos> nanos(std::initializer_list<std::int64_t> counts) {
  std::vector<Nanos> times;
  for (const auto count : counts) times.emplace_back(count);
  return times;
}

// Returns a job with consecutive iterations, the first at `start`. Iteration i takes `percent[i]` % of `isolated`.
JobResult job_of(const std::string& name, const std::vector<int>& percent, Nanos isolated = kAlone, Nanos start = {}) {
  JobResult job;
  job.name = name;
  job.isolated = isolated;
  for (const int p : percent) {
    job.starts.push_back(start);
    job.iterations.emplace_back(isolated.count * p / 100);
    start += job.iterations.back();
  }
  return job;
}

std::vector<int> repeated(std::size_t count, int value) {
  std::vector<int> list;
  list.resize(count, value);
  return list;
}

Results full_results() {
  Results results;
  results.experiment = "two \"quoted\" vgg19\nand a line";
  Run run;
  run.policy = "mltcp";
  run.cc = "reno";
  run.datapath = "ring";
  run.seed = std::numeric_limits<std::uint64_t>::max();
  run.duration = Nanos(123'456'789'012);
  run.jobs = {job_of("vgg19-a", {140, 120, 101, 100, 100, 100, 100}),
              job_of("ü</b>", {140, 119, 100, 100, 100, 100, 100}, kAlone, Nanos(7))};
  summarize(run);
  run.jobs[0].time_shift = Nanos(5);
  run.jobs[0].bytes = 9'000'000'000'000;
  run.jobs[0].retransmitted_packets = 3;
  run.jobs[0].verified_messages = 4;
  run.jobs[0].checksum_errors = 1;
  run.jobs[0].compute = Nanos(60'000);
  run.jobs[0].bytes_per_iteration = 13'500'000;
  run.jobs[0].iteration_compute = nanos({60'001, 60'000, 59'999, 60'000, 60'000, 60'000, 60'000});
  run.bottleneck.name = "leaf 0 -> spine 1";
  run.links = {{"leaf 0 -> spine 1", Rate(100), 0.25, 3, 2, 1, 9}, {"leaf 1 -> spine 1", Rate(200), 0.5, 0, 0, 0, 0}};
  run.bottleneck.utilization = 0.1;
  run.bottleneck.ecn_marked_packets = 11;
  run.bottleneck.dropped_packets = 12;
  run.bottleneck.max_queue_bytes = 13;
  run.bottleneck.lost_packets = 14;
  run.bottleneck.duplicated_packets = 15;
  run.bottleneck.corrupted_packets = 16;
  run.bottleneck.reordered_packets = 17;
  run.bottleneck.rate = Rate(1'000'000'000);
  run.bottleneck.usage.bin = Nanos(1'000'000);
  run.bottleneck.usage.jobs = {{"vgg19-a", {1, 2, 3}}, {"ü</b>", {}}};
  run.stalls = Stalls{Nanos(1), Nanos(2)};
  run.hosts = {{3, 1, 2, 3, 4, 5, 6, 7, 8}, {4, 0, 0, 0, 0, 0, 0, 0, 0}};
  run.link_outages = {{3, "af_xdp:eth0", Nanos(5), Nanos(6)}, {4, "3b:00.0", Nanos(), Nanos(7)}};
  run.clock = TimeSpan{Nanos(1'000'000), Nanos(9'000'000)};
  run.schedule = ScheduleSummary{
      3, -0.5, 0.25, false, 0.02, 1, 2, {{"a", Nanos(110), Nanos(60), Nanos(7), 0.01}}, {"b", "c"}, {"for b", "for c"},
      5, true};
  run.jobs[0].gate_waited = Nanos(77);
  run.jobs[0].gate_corrections = 4;
  run.jobs[0].plan_dropped = "misfit";
  run.jobs[0].communication = Nanos(88);
  run.jobs[0].algorithm_bandwidth = Rate(900);
  run.jobs[0].bus_bandwidth = Rate(1200);
  run.jobs[0].ranks = {{0, {}, Nanos(1), Nanos(2), Nanos(3), Nanos(4)}, {1, 7, Nanos(5), Nanos(6), Nanos(7), {}}};
  results.runs.push_back(run);
  run.policy = "fair";
  run.stalls.reset();
  run.hosts.clear();
  run.link_outages.clear();
  run.clock.reset();
  run.schedule.reset();
  run.jobs.clear();
  run.bottleneck = {};
  run.links.clear();
  results.runs.push_back(run);
  return results;
}

// A result file that contains only the fields of the first version, as DESIGN shows it.
constexpr std::string_view kFirstVersion = R"({"schema": "mltcp.results/1", "experiment": "two-vgg19",
 "runs": [{"policy": "mltcp", "cc": "reno", "datapath": "sim", "seed": 1,
   "jobs": [{"name": "vgg19-a", "isolated_ns": 260,
             "start_ns": [0, 400, 700, 960, 1220, 1480, 1740], "iteration_ns": [400, 300, 260, 260, 260, 260, 260],
             "mean_ns": 320, "p50_ns": 300, "p99_ns": 400, "time_shift_ns": 0, "bytes": 1, "retransmitted_packets": 0}],
   "bottleneck": {"utilization": 0.8, "ecn_marked_packets": 0, "dropped_packets": 0, "max_queue_bytes": 0}}]})";

std::string changed(std::string_view from, std::string_view to) {
  std::string text(kFirstVersion);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string problem_of(const std::string& text) {
  return refusal_of([&] { return parse_json(text, "r.json"); });
}

// ---- Statistics ----

TEST(IterationStats, none__all_zero) {
  const IterationStats stats = iteration_stats({});
  EXPECT_EQ(stats.mean, Nanos(0));
  EXPECT_EQ(stats.p50, Nanos(0));
  EXPECT_EQ(stats.p99, Nanos(0));
  EXPECT_EQ(stats.second_half_mean, Nanos(0));
}

TEST(IterationStats, one__is_everything) {
  const IterationStats stats = iteration_stats(nanos({7}));
  EXPECT_EQ(stats.mean, Nanos(7));
  EXPECT_EQ(stats.p50, Nanos(7));
  EXPECT_EQ(stats.p99, Nanos(7));
  EXPECT_EQ(stats.second_half_mean, Nanos(7));
}

TEST(IterationStats, percentiles__nearest_rank_of_unsorted_times) {
  const IterationStats stats = iteration_stats(nanos({40, 10, 30, 20}));
  EXPECT_EQ(stats.p50, Nanos(20));
  EXPECT_EQ(stats.p99, Nanos(40));
  std::vector<Nanos> hundred;
  for (int i = 100; i >= 1; --i) hundred.emplace_back(i);
  EXPECT_EQ(iteration_stats(hundred).p50, Nanos(50));
  EXPECT_EQ(iteration_stats(hundred).p99, Nanos(99));
}

TEST(IterationStats, mean__rounds_and_halves_by_position) {
  const IterationStats stats = iteration_stats(nanos({100, 1, 2}));
  EXPECT_EQ(stats.mean, Nanos(34));             // 34.33
  EXPECT_EQ(stats.second_half_mean, Nanos(2));  // the mean of {1, 2} is 1.5, rounded up
}

TEST(Summarize, fills__every_derived_field) {
  PolicyRun run;
  run.jobs = {job_of("a", {150, 150, 150, 150, 150, 100, 100, 100, 100, 100})};
  summarize(run);
  const JobResult& job = run.jobs[0];
  EXPECT_EQ(job.mean, Nanos(125'000));
  EXPECT_DOUBLE_EQ(job.slowdown, 1.25);
  EXPECT_EQ(job.second_half_mean, kAlone);
  EXPECT_EQ(job.interleaved_from, 5U);
}

TEST(Summarize, within_5_percent__is_told_apart_from_within_2) {
  PolicyRun run;
  // From the fourth iteration on, iterations take 3% longer than in isolation, so they are never within 2%.
  run.jobs = {job_of("a", {150, 150, 106, 103, 103, 103, 103, 103, 103})};
  summarize(run);
  EXPECT_EQ(run.jobs[0].interleaved_from, std::nullopt);
  EXPECT_EQ(run.jobs[0].interleaved_from_5pct, 3U);
}

TEST(Summarize, unknown_isolated__no_slowdown) {
  PolicyRun run;
  run.jobs = {job_of("a", {100})};
  run.jobs[0].isolated = Nanos(0);
  summarize(run);
  EXPECT_EQ(run.jobs[0].slowdown, 0);
  EXPECT_EQ(run.jobs[0].interleaved_from, std::nullopt);
}

TEST(Disturbed, two_percent_of_the_run__in_real_time_only) {
  PolicyRun run;
  run.duration = Nanos(1'000'000);
  EXPECT_FALSE(disturbed(run));
  run.stalls = Stalls{Nanos(10), Nanos(19'000)};
  EXPECT_FALSE(disturbed(run));
  run.stalls = Stalls{Nanos(10), Nanos(21'000)};
  EXPECT_TRUE(disturbed(run));
}

// ---- interleaved_from ----

TEST(InterleavedFrom, never_slow__from_the_start) {
  const std::vector<JobResult> jobs = {job_of("a", {100, 102, 99}), job_of("b", {101, 100, 100})};
  EXPECT_THAT(interleaved_from(jobs), ElementsAre(0U, 0U));
}

TEST(InterleavedFrom, slow_at_the_end__never_for_all) {
  const std::vector<JobResult> jobs = {job_of("a", {100, 100, 100}), job_of("b", {100, 100, 103})};
  EXPECT_THAT(interleaved_from(jobs), Each(std::nullopt));
}

TEST(InterleavedFrom, other_job_slow__waits_for_it) {
  // Job a is fast from its iteration 1 on, which starts 1.4 isolated times after the start. The slow iteration 1 of job
  // b ends only 2.7 isolated times after the start.
  const std::vector<JobResult> jobs = {job_of("a", {140, 100, 100, 100, 100, 100, 100, 100}),
                                       job_of("b", {140, 130, 100, 100, 100, 100, 100})};
  EXPECT_THAT(interleaved_from(jobs), ElementsAre(3U, 2U));
}

TEST(InterleavedFrom, different_periods__compared_in_time) {
  // The slow iteration of the long job ends at 600,000 ns. By then, the short job has started six iterations of 100,000
  // ns.
  const std::vector<JobResult> jobs = {job_of("short", repeated(20, 100)),
                                       job_of("long", {150, 100, 100, 100, 100, 100}, Nanos(400'000))};
  EXPECT_THAT(interleaved_from(jobs), ElementsAre(6U, 1U));
}

TEST(InterleavedFrom, one_job_has_finished__no_credit_for_being_alone) {
  // Job b becomes fast only after job a has finished.
  const std::vector<JobResult> jobs = {job_of("a", {140, 140}), job_of("b", {140, 140, 100, 100, 100, 100, 100})};
  EXPECT_THAT(interleaved_from(jobs), Each(std::nullopt));
}

TEST(InterleavedFrom, lucky_end__is_not_enough) {
  const std::vector<JobResult> lucky = {job_of("a", {140, 140, 140, 140, 140, 100, 100, 100, 100})};
  EXPECT_THAT(interleaved_from(lucky), Each(std::nullopt));
  const std::vector<JobResult> lasting = {job_of("a", {140, 140, 140, 140, 140, 100, 100, 100, 100, 100})};
  EXPECT_THAT(interleaved_from(lasting), ElementsAre(5U));
}

TEST(InterleavedFrom, jitter__is_not_the_networks_doing) {
  std::vector<JobResult> jobs{job_of("a", {110, 100, 105, 100, 100, 100, 95, 100})};
  jobs[0].compute = kAlone / 2;
  EXPECT_THAT(interleaved_from(jobs), ElementsAre(3U));
  for (const int percent : {50, 50, 55, 50, 50, 50, 45, 50})
    jobs[0].iteration_compute.push_back(kAlone * percent / 100);
  EXPECT_THAT(interleaved_from(jobs), ElementsAre(1U)) << "only the first took longer than it computed longer";
}

TEST(InterleavedFrom, unaware_job__is_not_waited_for) {
  std::vector<JobResult> jobs = {job_of("a", {150, 100, 100, 100, 100, 100, 100}), job_of("legacy", {150, 150, 150})};
  EXPECT_THAT(interleaved_from(jobs), Each(std::nullopt));
  jobs[1].unaware = true;
  EXPECT_THAT(interleaved_from(jobs), ElementsAre(std::optional<std::uint64_t>(1U), std::nullopt));
}

TEST(InterleavedFrom, nothing_to_judge__null) {
  EXPECT_THAT(interleaved_from({}), ElementsAre());
  const std::vector<JobResult> jobs = {job_of("a", {100}), job_of("b", {})};
  EXPECT_THAT(interleaved_from(jobs), Each(std::nullopt));
}

TEST(InterleavedFrom, outlier__real_time_only) {
  std::vector<int> percent = repeated(60, 100);
  percent[0] = percent[1] = 140;
  percent[40] = 180;
  const std::vector<JobResult> jobs = {job_of("a", percent)};
  EXPECT_THAT(interleaved_from(jobs), ElementsAre(41U));
  EXPECT_THAT(interleaved_from(jobs, InterleaveRule::real_time()), ElementsAre(2U));
}

TEST(InterleavedFrom, real_time__convergence_is_not_put_down_to_noise) {
  // Three of 100 iterations are slow. This is less than 5%, but they are consecutive, so the jobs were still colliding.
  std::vector<int> percent = repeated(100, 100);
  percent[10] = percent[11] = percent[12] = 120;
  const std::vector<JobResult> jobs = {job_of("a", percent)};
  EXPECT_THAT(interleaved_from(jobs, InterleaveRule::real_time()), ElementsAre(13U));
}

TEST(InterleavedFrom, real_time__too_many_outliers) {
  std::vector<int> percent = repeated(100, 100);
  // 10% of slow iterations are too many. The limit is met only after the last slow iteration.
  for (std::size_t i = 1; i < 100; i += 10) percent[i] = 120;
  const std::vector<JobResult> jobs = {job_of("a", percent)};
  EXPECT_THAT(interleaved_from(jobs, InterleaveRule::real_time()), ElementsAre(92U));
}

TEST(InterleavedFrom, real_time__always_slow_is_never) {
  const std::vector<JobResult> jobs = {job_of("a", repeated(50, 140)), job_of("b", repeated(50, 140))};
  EXPECT_THAT(interleaved_from(jobs, InterleaveRule::real_time()), Each(std::nullopt));
}

// ---- Overlap ----

TEST(OverlapShare, bins__shared_over_busy) {
  Usage usage;
  usage.bin = Nanos(10);
  usage.jobs = {{"a", {100, 100, 100, 0, 0, 0}}, {"b", {0, 0, 100, 100}}};
  EXPECT_DOUBLE_EQ(overlap_share(usage, Nanos(0), Nanos(60)).value(), 0.25);
  EXPECT_DOUBLE_EQ(overlap_share(usage, Nanos(0), Nanos(20)).value(), 0.0);
  EXPECT_DOUBLE_EQ(overlap_share(usage, Nanos(20), Nanos(30)).value(), 1.0);
  // The bin from 10 to 20 begins before 15 and is not counted.
  EXPECT_DOUBLE_EQ(overlap_share(usage, Nanos(15), Nanos::never()).value(), 0.5);
}

TEST(OverlapShare, stray_packets__are_no_burst) {
  Usage usage;
  usage.bin = Nanos(10);
  usage.jobs = {{"a", {1000, 1000, 1000}}, {"b", {49, 50, 1000}}};
  EXPECT_DOUBLE_EQ(overlap_share(usage, Nanos(0), Nanos(30)).value(), 2.0 / 3);
}

TEST(MeanUsers, busy_bins__count_all_jobs_that_use_them) {
  Usage usage;
  usage.bin = Nanos(10);
  usage.jobs = {{"a", {100, 100, 100, 0, 0, 0}}, {"b", {0, 0, 100, 100}}, {"c", {4, 0, 100}}};
  // Idle bins and stray packets do not count.
  EXPECT_DOUBLE_EQ(mean_users(usage, Nanos(0), Nanos(60)).value(), 6.0 / 4);
  EXPECT_DOUBLE_EQ(mean_users(usage, Nanos(20), Nanos(30)).value(), 3);
  // The overlap share does not distinguish two jobs from three; the mean number of users does.
  EXPECT_DOUBLE_EQ(overlap_share(usage, Nanos(20), Nanos(30)).value(), 1);
  EXPECT_EQ(mean_users(usage, Nanos(40), Nanos(60)), std::nullopt);
  EXPECT_EQ(mean_users({}, Nanos(0), Nanos(60)), std::nullopt);
}

TEST(OverlapSpans, bins_that_follow_each_other__are_one_span) {
  Usage usage;
  usage.bin = Nanos(10);
  usage.jobs = {{"a", {100, 100, 100, 0, 100, 100}}, {"b", {0, 100, 100, 100, 100, 0}}};
  const auto spans = overlap_spans(usage, Nanos(0), Nanos::never());
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].from, Nanos(10));
  EXPECT_EQ(spans[0].to, Nanos(30));
  EXPECT_EQ(spans[1].from, Nanos(40));
  EXPECT_EQ(spans[1].to, Nanos(50));
  EXPECT_EQ(overlap_spans(usage, Nanos(20), Nanos(50))[0].from, Nanos(20));
  EXPECT_TRUE(overlap_spans(usage, Nanos(0), Nanos(10)).empty());
}

TEST(OverlapShare, nothing__empty) {
  Usage usage;
  EXPECT_EQ(overlap_share(usage, Nanos(0), Nanos(60)), std::nullopt);
  usage.bin = Nanos(10);
  usage.jobs = {{"a", {0, 5}}, {"b", {}}};
  EXPECT_EQ(overlap_share(usage, Nanos(0), Nanos(10)), std::nullopt);
  EXPECT_EQ(overlap_share(usage, Nanos(20), Nanos(90)), std::nullopt);
  EXPECT_EQ(overlap_share(usage, Nanos(20), Nanos(10)), std::nullopt);
}

TEST(CommonSpan, jobs__until_the_first_is_done) {
  PolicyRun run;
  run.jobs = {job_of("a", {100, 100}, kAlone, Nanos(50'000)), job_of("b", {100, 100, 100}, kAlone, Nanos(20'000))};
  const TimeSpan span = common_span(run);
  EXPECT_EQ(span.from, Nanos(20'000));
  EXPECT_EQ(span.to, Nanos(250'000));
  run.jobs.push_back(job_of("c", {}));
  EXPECT_EQ(common_span(run).from, common_span(run).to);
}

// ---- JSON ----

TEST(Json, round_trip__keeps_everything) {
  const Results results = full_results();
  const std::string text = written(results);
  const Results back = parse_json(text, "r.json");
  EXPECT_EQ(written(back), text);
  expect_same_fields(back, results);
}

// Readers of result files, and tools that compare the files as text, rely on the order of the fields.
TEST(Json, fields__keep_their_order_and_are_left_out_where_they_say_nothing) {
  const auto keys = [](const Results& results) {
    const std::string text = written(results);
    std::string all;
    const std::regex key("\"([a-z0-9_]+)\": ");
    for (std::sregex_iterator at(text.begin(), text.end(), key), end; at != end; ++at) all += at->str(1) + " ";
    return all;
  };
  Results results = full_results();
  results.runs.pop_back();
  results.runs[0].jobs.pop_back();
  results.runs[0].jobs[0].ranks.erase(results.runs[0].jobs[0].ranks.begin());
  results.runs[0].links.pop_back();
  results.runs[0].hosts.pop_back();
  results.runs[0].link_outages.pop_back();
  results.runs[0].bottleneck.contended = Nanos(3);
  results.runs[0].clock_uncertainty = Nanos(4);
  results.unfinished = {"fair"};
  results.provenance.emplace();
  EXPECT_EQ(keys(results),
            "schema experiment runs policy cc datapath seed duration_ns jobs name isolated_ns start_ns "
            "iteration_ns mean_ns p50_ns p99_ns second_half_mean_ns second_half_p99_ns slowdown interleaved_from "
            "interleaved_from_5pct time_shift_ns bytes retransmitted_packets verified_messages checksum_errors "
            "compute_ns bytes_per_iteration iteration_compute_ns gate_waited_ns gate_corrections plan_dropped "
            "communication_ns algorithm_bandwidth_bps bus_bandwidth_bps ranks rank host mean_ns p50_ns p99_ns "
            "bottleneck name utilization ecn_marked_packets dropped_packets max_queue_bytes lost_packets "
            "duplicated_packets corrupted_packets reordered_packets contended_ns contended_bytes rate_bps usage "
            "bin_ns jobs links name rate_bps utilization ecn_marked_packets dropped_packets max_queue_bytes "
            "pauses schedule links score upper_bound optimal stretch replanned repaired unplanned_jobs slots job "
            "period_ns offset_ns time_shift_ns stretch without_slots reasons cut_off stalls longest_ns total_ns "
            "clock_uncertainty_ns hosts host missed_packets port_errors handover_full_packets rejected_packets "
            "unsent_packets black_holes size_probes_sent size_probes_lost link_outages host port start_ns duration_ns "
            "begun_ns ended_ns unfinished_policies "
            "provenance version date command files machine cpus ");
  results = {};
  results.runs.emplace_back().jobs.emplace_back();
  EXPECT_EQ(keys(results),
            "schema experiment runs policy cc datapath seed duration_ns jobs name isolated_ns start_ns "
            "iteration_ns mean_ns p50_ns p99_ns second_half_mean_ns second_half_p99_ns slowdown interleaved_from "
            "interleaved_from_5pct time_shift_ns bytes retransmitted_packets verified_messages checksum_errors "
            "compute_ns bytes_per_iteration bottleneck utilization ecn_marked_packets dropped_packets "
            "max_queue_bytes rate_bps usage bin_ns jobs ");
}

TEST(Json, lists_of_numbers__on_one_line) {
  EXPECT_THAT(written(full_results()),
              HasSubstr("\n          \"start_ns\": [0,140000,260000,361000,461000,561000,661000],\n"));
}

TEST(Json, no_runs__round_trip) {
  Results results;
  results.experiment = "empty";
  EXPECT_TRUE(parse_json(written(results), "r.json").runs.empty());
}

TEST(Json, text_that_is_not_utf8__still_written) {
  Results results;
  results.experiment = "\xff";
  EXPECT_EQ(parse_json(written(results), "r.json").experiment, "\xEF\xBF\xBD");
}

TEST(Json, first_version__absent_fields_are_derived) {
  const Results results = parse_json(kFirstVersion, "r.json");
  const JobResult& job = results.runs[0].jobs[0];
  EXPECT_DOUBLE_EQ(job.slowdown, 320.0 / 260);
  EXPECT_EQ(job.second_half_mean, Nanos(260));
  EXPECT_EQ(job.interleaved_from, 2U);
  EXPECT_EQ(job.compute, Nanos(0));
  EXPECT_TRUE(results.runs[0].bottleneck.rate.is_zero());
}

TEST(Json, times_beyond_a_double__round_trip) {
  Results results = full_results();
  results.runs[0].duration = Nanos((std::int64_t{1} << 53) + 1);
  results.runs[0].jobs[0].starts.back() = kMaxTime;
  const Results back = parse_json(written(results), "r.json");
  EXPECT_EQ(back.runs[0].duration, results.runs[0].duration);
  EXPECT_EQ(back.runs[0].jobs[0].starts.back(), kMaxTime);
}

TEST(Json, unknown_fields__skipped) {
  EXPECT_EQ(problem_of(changed("\"seed\": 1,", "\"seed\": 1, \"later\": {\"x\": [1]},")), "no error");
}

TEST(Json, bad_files__one_line_with_place_and_cure) {
  struct Case {
    std::string text;
    const char* expected;
  };
  const std::vector<Case> cases = {
      {"", "not JSON"},
      {"{\n\"schema\": }", "not JSON, line 2, column 11"},
      {std::string(20'000'000, '['), "nests more than 64 levels deep"},
      {std::string(33'000'000, ','), "has more than 32000000 values"},
      {"[]", "it is not an object"},
      {"{}", "schema is missing"},
      {"{\"schema\": 1}", "schema is not a text"},
      {"{\"schema\": \"mltcp.schedule/1\\n\"}", R"(schema is "mltcp.schedule/1\n" and not "mltcp.results/1")"},
      {changed("\"seed\": 1,", ""), "runs[0].seed is missing"},
      {changed("\"seed\": 1,", "\"seed\": -1,"), "runs[0].seed is not a whole number"},
      {changed("\"runs\": [", "\"runs\": 5, \"x\": ["), "runs is not a list"},
      {changed("\"mean_ns\": 320,", ""), "runs[0].jobs[0].mean_ns is missing"},
      {changed("\"mean_ns\": 320,", "\"mean_ns\": 320.5,"), "runs[0].jobs[0].mean_ns is not a time"},
      {changed("[400, 300, 260, 260, 260, 260, 260]", "[400, 300, -1, 260, 260, 260, 260]"),
       "runs[0].jobs[0].iteration_ns[2] is not a time"},
      {changed("[400, 300, 260, 260, 260, 260, 260]", "[400, 300, 18446744073709551615, 260, 260, 260, 260]"),
       "iteration_ns[2] is not a time"},
      {changed("\"mean_ns\": 320,", "\"mean_ns\": 1152921504606846977,"), "mean_ns is not a time"},
      {changed("[400, 300, 260, 260, 260, 260, 260]", "[400, 300]"), "start_ns and iteration_ns differ in length"},
      {changed("[0, 400,", "[400, 0,"), "runs[0].jobs[0].start_ns is not ascending"},
      {changed("\"mean_ns\": 320,", "\"mean_ns\": 320, \"ranks\": [{\"rank\": 4294967296}],"),
       "runs[0].jobs[0].ranks[0].rank is not a whole number from 0 to 4294967295"},
      {changed("0.8", "\"high\""), "runs[0].bottleneck.utilization is not a number"},
      {changed("0.8", "1.01"), "runs[0].bottleneck.utilization is not a number from 0 to 1"},
      {changed("0.8", "1e308"), "runs[0].bottleneck.utilization is not a number from 0 to 1"},
      {changed("0.8", "-0.1"), "runs[0].bottleneck.utilization is not a number from 0 to 1"},
      {changed("\"mean_ns\": 320,", "\"mean_ns\": 320, \"slowdown\": 1e300,"),
       "jobs[0].slowdown is not a number from 0"},
      {changed("\"mean_ns\": 320,", "\"mean_ns\": 320, \"slowdown\": 1e999,"), "not JSON, number overflow"},
      {changed("\"mean_ns\": 320,", "\"mean_ns\": 320, \"interleaved_from\": 7,"),
       "jobs[0].interleaved_from is not one of the 7 iterations"},
      {changed("0.8", "0.8, \"usage\": {\"bin_ns\": 1, \"jobs\": {\"a\\n\\u001b[31m\": [true]}}"),
       "usage.jobs.a??[31m[0] is not a whole number"},
      {changed("0.8", "0.8, \"usage\": {\"bin_ns\": 1, \"jobs\": {\"a\": [true]}}"),
       "runs[0].bottleneck.usage.jobs.a[0] is not a whole number"},
  };
  for (const auto& c : cases) {
    const std::string problem = problem_of(c.text);
    EXPECT_THAT(problem, HasAll("r.json: ", c.expected, "mltcp run --json FILE"));
    EXPECT_THAT(problem, Not(HasSubstr("\n")));
    EXPECT_THAT(problem, Not(HasSubstr("json.exception")));
  }
}

TEST(ReadJson, file__read_back) {
  const TemporaryFolder folder;
  const auto path = folder / "mltcp_results_test.results.json";
  {
    std::ofstream file(path);
    write_json(full_results(), file);
  }
  EXPECT_EQ(written(read_json(path)), written(full_results()));
}

TEST(ReadJson, what_is_no_file__says_so) {
  const auto problem = [](const std::filesystem::path& path) { return refusal_of([&] { return read_json(path); }); };
  const std::string cure = "; give the path of a file that `mltcp run --json FILE` wrote";
  EXPECT_EQ(problem("no-such.json"), "no-such.json: there is no such file" + cure);
  EXPECT_EQ(problem("."), ".: this is a directory" + cure);
  EXPECT_EQ(problem("/dev/zero"), "/dev/zero: this is a device or socket, not a file" + cure);
}

}  // namespace
}  // namespace mltcp::experiment
