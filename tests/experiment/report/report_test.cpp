// Tests of the HTML report and of its pictures: they load nothing, escape what users wrote, say the numbers, good or
// bad, and survive odd results; of other files' pages, and of comparing two.
// The results are made by a fluid model of two jobs on one link, fair and with the aggressiveness of MLTCP.
#include "mltcp/experiment/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../../message_of.h"
#include "mltcp/base/error.h"
#include "mltcp/experiment/report/report_comparison.h"
#include "mltcp/experiment/report/report_file.h"
#include "mltcp/experiment/report/report_picture.h"
#include "mltcp/experiment/report/schedule_report.h"
#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using PolicyRun = Run;  // inside a test, Run is a member of testing::Test

constexpr std::int64_t kBin = 2'000'000;
constexpr std::int64_t kCompute = 150'000'000;
constexpr Bytes kBurst = 13'750'000;  // 110 ms at 1 Gbps
constexpr std::uint64_t kRate = 1'000'000'000;

// Steps of one bin; a job that sends gets the link in proportion to its gain.
Run fluid_run(const std::string& policy, std::size_t iterations) {
  struct Sender {
    std::int64_t started = 0;
    std::int64_t sends_at = 0;
    double sent = 0;
  };
  Run run;
  run.policy = policy;
  run.cc = "reno";
  run.datapath = "sim";
  run.seed = 1;
  run.bottleneck.rate = Rate(kRate);
  run.bottleneck.usage.bin = Nanos(kBin);
  run.bottleneck.utilization = 0.81;
  run.bottleneck.ecn_marked_packets = 1'234'567;
  std::array<Sender, 2> senders{Sender{0, kCompute, 0}, Sender{6'000'000, 6'000'000 + kCompute, 0}};
  for (const char* name : {"vgg19-a", "vgg19-b"}) {
    JobResult job;
    job.name = name;
    job.isolated = Nanos(kCompute + 110'000'000);
    job.compute = Nanos(kCompute);
    job.bytes_per_iteration = kBurst;
    run.jobs.push_back(job);
  }
  const double capacity = static_cast<double>(kRate) / 8e9 * kBin;
  for (std::int64_t now = 0; run.jobs[0].iterations.size() < iterations || run.jobs[1].iterations.size() < iterations;
       now += kBin) {
    std::array<double, 2> gain{};
    for (std::size_t j = 0; j < 2; ++j) {
      const bool sends = now >= senders[j].sends_at && run.jobs[j].iterations.size() < iterations;
      if (sends) gain[j] = policy == "mltcp" ? 0.25 + 1.75 * senders[j].sent / static_cast<double>(kBurst) : 1.0;
    }
    for (std::size_t j = 0; j < 2; ++j) {
      const double bytes = gain[j] > 0 ? capacity * gain[j] / (gain[0] + gain[1]) : 0;
      run.bottleneck.usage.jobs[run.jobs[j].name].push_back(static_cast<Bytes>(bytes));
      senders[j].sent += bytes;
      if (senders[j].sent >= static_cast<double>(kBurst) - 1) {
        run.jobs[j].starts.emplace_back(senders[j].started);
        run.jobs[j].iterations.emplace_back(now + kBin - senders[j].started);
        senders[j] = {now + kBin, now + kBin + kCompute, 0};
      }
    }
    run.duration = Nanos(now + kBin);
  }
  summarize(run);
  return run;
}

Results two_jobs() {
  Results results;
  results.experiment = "two-vgg19";
  results.runs = {fluid_run("fair", 40), fluid_run("mltcp", 40)};
  return results;
}

const std::string& two_jobs_page() {
  static const std::string page = render_report(two_jobs());
  return page;
}

// What stands between the page's tags, without markup, so that a test can look for what a reader sees.
std::string visible(const std::string& page) {
  // By hand: the recursion of std::regex outgrows the stack on a style sheet, with a sanitizer for certain.
  std::string text;
  bool in_tag = false;
  bool in_style = false;
  for (std::size_t i = 0; i < page.size(); ++i) {
    if (page.compare(i, 7, "<script") == 0) break;
    if (page.compare(i, 6, "<style") == 0) in_style = true;
    if (page.compare(i, 8, "</style>") == 0) in_style = false;
    if (page[i] == '<') in_tag = true;
    if (!in_tag && !in_style) text += page[i];
    if (page[i] == '>') in_tag = false;
  }
  return text;
}

// Instead of a matcher, whose failure would print a page of 100 kB.
bool has(const std::string& page, const std::string& text) { return page.find(text) != std::string::npos; }

std::string data_of(const std::string& page) {
  const std::string open = "id=\"report-data\">";
  const auto from = page.find(open) + open.size();
  return page.substr(from, page.find("</script>", from) - from);
}

TEST(Report, page__loads_nothing) {
  const std::string& page = two_jobs_page();
  EXPECT_TRUE(has(page, "default-src 'none'"));
  for (const char* loader :
       {"<link rel=\"stylesheet\"", "<script src", "<img", "<iframe", "@import", "url(", "import("}) {
    EXPECT_FALSE(has(page, loader));
  }
  for (const char* quote : {"", "\"", "'"}) {
    for (const char* scheme : {"http:", "https:", "//"}) {
      EXPECT_FALSE(has(page, std::string("src=") + quote + scheme));
      EXPECT_FALSE(has(page, std::string("href=") + quote + scheme));
    }
  }
}

TEST(Report, page__is_filled_and_closed) {
  const std::string& page = two_jobs_page();
  EXPECT_EQ(page.find("<!DOCTYPE html>"), 0U);
  EXPECT_FALSE(has(page, "{{"));
  EXPECT_TRUE(has(page, "const mltcpCharts ="));
  EXPECT_EQ(page.substr(page.size() - 8), "</html>\n");
}

TEST(Report, page__same_results_same_bytes) { EXPECT_EQ(render_report(two_jobs()), two_jobs_page()); }

TEST(Report, tables__hold_the_numbers_without_javascript) {
  const Results results = two_jobs();
  const std::string text = visible(two_jobs_page());
  EXPECT_THAT(text, HasSubstr("two-vgg19"));
  EXPECT_THAT(text, HasSubstr("1 Gbps"));
  EXPECT_THAT(text, HasSubstr("13.8 MB"));
  EXPECT_THAT(text, HasSubstr("260.0"));
  EXPECT_THAT(text, HasSubstr("1\u202f234\u202f567"));
  EXPECT_THAT(text, HasSubstr("81%"));
  EXPECT_THAT(text, HasSubstr("never"));
  for (const PolicyRun& run : results.runs) {
    for (const JobResult& job : run.jobs) {
      for (const Nanos time : {job.mean, job.p50, job.p99, job.second_half_mean}) {
        EXPECT_THAT(text, HasSubstr(std::to_string(time.count / 1'000'000) + "."));
      }
    }
  }
  ASSERT_TRUE(results.runs[1].jobs[0].interleaved_from.has_value());
  EXPECT_THAT(text, HasSubstr("iteration " + std::to_string(*results.runs[1].jobs[0].interleaved_from)));
}

TEST(Report, captions__say_what_the_bins_show) {
  const Results results = two_jobs();
  const auto share = [](const PolicyRun& run) {
    const TimeSpan span = common_span(run);
    return overlap_share(run.bottleneck.usage, Nanos((span.from.count + span.to.count) / 2), span.to).value();
  };
  EXPECT_GT(share(results.runs[0]), 0.8);
  EXPECT_LT(share(results.runs[1]), 0.02);
  const std::string text = visible(two_jobs_page());
  const auto percent = std::to_string(static_cast<int>(share(results.runs[0]) * 100 + 0.5));
  EXPECT_THAT(text, HasSubstr(percent + "% of the link's busy time under fair"));
  EXPECT_THAT(text, HasSubstr("Its jobs interleave from iteration"));
  EXPECT_THAT(text, HasSubstr("; under fair they never interleave."));
}

TEST(Report, hostile_names__stay_text) {
  const std::string evil = "</script><b onload=\"x\">&'{{data}}<!--";
  Results results = two_jobs();
  results.experiment = evil;
  for (PolicyRun& run : results.runs) {
    run.policy += evil;
    run.cc = evil + "cc";
    run.datapath = evil + "datapath";
    run.jobs[0].name = evil;
    run.bottleneck.usage.jobs[evil] = run.bottleneck.usage.jobs["vgg19-a"];
  }
  const std::string page = render_report(results);
  EXPECT_FALSE(has(page, "<b onload"));
  EXPECT_FALSE(has(page, "onload=\"x\""));
  EXPECT_TRUE(has(page, "&lt;/script&gt;&lt;b onload=&quot;x&quot;&gt;&amp;&#39;{{data}}&lt;!--"));
  const std::string data = data_of(page);
  EXPECT_FALSE(has(data, "<"));
  EXPECT_TRUE(has(data, "\\u003c/script>\\u003cb onload"));
  EXPECT_EQ(data.back(), '}');
}

TEST(Report, no_runs__says_so) {
  Results results;
  results.experiment = "nothing";
  const std::string text = visible(render_report(results));
  EXPECT_THAT(text, HasSubstr("holds no runs"));
}

TEST(Report, empty_runs__have_tables_and_no_charts) {
  Results results;
  results.runs.resize(2);
  results.runs[1].jobs.resize(1);
  results.runs[1].jobs[0].name = "idle";
  const std::string page = render_report(results);
  EXPECT_TRUE(has(page, "Unnamed experiment"));
  EXPECT_TRUE(has(page, "no jobs"));
  EXPECT_TRUE(has(page, "idle"));
  EXPECT_FALSE(has(page, "<div class=\"chart\""));
}

TEST(Report, no_usage__keeps_the_lines_over_iterations) {
  Results results = two_jobs();
  for (PolicyRun& run : results.runs) run.bottleneck.usage = {};
  const std::string page = render_report(results);
  EXPECT_TRUE(has(page, "<section id=\"iterations\""));
  EXPECT_FALSE(has(data_of(page), "\"kind\":\"bands\""));
}

TEST(Report, topology__names_the_link_that_is_drawn) {
  Results results = two_jobs();
  results.runs[1].bottleneck.name = "leaf 0 -> spine <1>";
  EXPECT_THAT(render_report(results), HasSubstr("leaf 0 -&gt; spine &lt;1&gt;"));
  EXPECT_THAT(visible(two_jobs_page()), Not(HasSubstr("Busiest shared link")));
}

TEST(Report, links_and_collectives__have_their_drops_and_bandwidths) {
  Results results = two_jobs();
  EXPECT_THAT(render_report(results), Not(HasSubstr("on all links")));
  EXPECT_THAT(render_report(results), Not(HasSubstr("Bus bandwidth")));
  auto& run = results.runs[0];
  run.bottleneck.dropped_packets = 5;
  run.links.resize(2);
  run.links[0].dropped_packets = 5;
  run.links[1].dropped_packets = 6;
  run.jobs[0].bus_bandwidth = Rate(87'000'000);
  const std::string page = render_report(results);
  EXPECT_THAT(page, HasSubstr("5, 11 on all links"));
  EXPECT_THAT(page, HasSubstr("87 Mbps"));
}

TEST(Report, same_policy_twice__told_apart) {
  Results results = two_jobs();
  results.runs[1].policy = "fair";
  results.runs[1].cc = "dctcp";
  const std::string text = visible(render_report(results));
  EXPECT_THAT(text, HasSubstr("fair · reno"));
  EXPECT_THAT(text, HasSubstr("fair · dctcp"));
}

TEST(Report, real_time_run__shows_stalls) {
  Results results = two_jobs();
  results.runs[1].stalls = Stalls{Nanos(3'000'000), Nanos(12'000'000)};
  EXPECT_THAT(visible(render_report(results)), HasSubstr("3.00 ms, 12.00 ms"));
  EXPECT_THAT(visible(two_jobs_page()), Not(HasSubstr("stalls")));
}

TEST(Report, real_time_run_on_a_busy_machine__says_so_first) {
  Results results = two_jobs();
  results.runs[1].duration = Nanos(1'000'000'000);
  results.runs[1].stalls = Stalls{Nanos(3'000'000), Nanos(120'000'000)};
  EXPECT_THAT(visible(render_report(results)), HasSubstr("The machine was busy and held up"));
  results.runs[1].stalls = Stalls{Nanos(3'000'000), Nanos(12'000'000)};
  EXPECT_THAT(visible(render_report(results)), Not(HasSubstr("The machine was busy")));
}

TEST(Report, one_job__has_nothing_to_interleave_with) {
  Results results = two_jobs();
  for (auto& run : results.runs) run.jobs.resize(1);
  const std::string page = visible(render_report(results));
  EXPECT_THAT(page, HasSubstr("nothing to interleave with"));
  EXPECT_THAT(page, Not(HasSubstr("interleaved from the start")));
}

// ---- what is said first ----

// The same times under another name.
Results two_policies(double mltcp_by_fair) {
  Results results = two_jobs();
  results.runs[1] = results.runs[0];
  results.runs[1].policy = "mltcp";
  for (JobResult& job : results.runs[1].jobs)
    job.mean = Nanos(static_cast<std::int64_t>(static_cast<double>(job.mean.count) * mltcp_by_fair));
  return results;
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Report, lead__worse_is_told_as_loudly_as_better) {
  const std::string better = render_report(two_policies(0.9));
  const std::string worse = render_report(two_policies(1.1));
  EXPECT_THAT(visible(better), HasSubstr("mltcp is better than fair: the mean slow-down is"));
  EXPECT_THAT(visible(better), HasSubstr("▲ better than fair: 10% less time"));
  EXPECT_THAT(visible(worse), HasSubstr("mltcp is worse than fair: the mean slow-down is"));
  EXPECT_THAT(visible(worse), HasSubstr("▼ worse than fair: 10% more time"));
  EXPECT_TRUE(has(better, "<li class=\"tile better\">"));
  EXPECT_TRUE(has(worse, "<li class=\"tile worse\">"));
  // Nothing else differs: neither stands elsewhere, or smaller.
  const auto place = [](const std::string& page) { return page.find(" than <b>fair</b>: the mean slow-down"); };
  EXPECT_NEAR(static_cast<double>(place(better)), static_cast<double>(place(worse)), 4);
  for (const char* praise : {"is better", "▲", "\"better\""})
    EXPECT_FALSE(has(worse.substr(0, worse.find("<script")), praise));
  for (const char* blame : {"is worse", "▼", "\"worse\""})
    EXPECT_FALSE(has(better.substr(0, better.find("<script")), blame));
}

TEST(Report, lead__below_one_percent_there_is_no_difference) {
  for (const double factor : {0.992, 1.0, 1.008}) {
    const std::string text = visible(render_report(two_policies(factor)));
    EXPECT_THAT(text, HasSubstr("mltcp makes no difference to fair"));
    EXPECT_THAT(text, HasSubstr("= no difference from fair"));
    EXPECT_THAT(text, Not(HasSubstr("better than")));
    EXPECT_THAT(text, Not(HasSubstr("worse than")));
  }
  EXPECT_THAT(visible(render_report(two_policies(1.012))), HasSubstr("mltcp is worse than fair"));
  EXPECT_THAT(visible(render_report(two_policies(0.988))), HasSubstr("mltcp is better than fair"));
}

TEST(Report, lead__unaware_jobs_are_not_counted) {
  Results results = two_policies(1.0);
  results.runs[0].jobs[1].unaware = results.runs[1].jobs[1].unaware = true;
  results.runs[1].jobs[1].mean = results.runs[1].jobs[1].mean * 3;
  EXPECT_THAT(visible(render_report(results)), HasSubstr("mltcp makes no difference to fair"));
}

TEST(Report, lead__within_5_percent_is_told_where_2_is_never_reached) {
  Results results = two_policies(1.0);
  for (JobResult& job : results.runs[1].jobs) job.interleaved_from_5pct = 12;
  const std::string text = visible(render_report(results));
  EXPECT_THAT(text, HasSubstr("Its jobs never interleave, but come within 5% from iteration 12 on"));
  EXPECT_THAT(text, HasSubstr("never interleaved; within 5% from iteration 12 on"));
}

TEST(Report, unfinished_policies__are_named_before_all_else) {
  Results results = two_jobs();
  results.unfinished = {"schedule", "mltcp+<b>"};
  const std::string page = render_report(results);
  EXPECT_THAT(visible(page), HasSubstr("Unfinished. The experiment was ended before schedule and mltcp+&lt;b&gt;"));
  EXPECT_LT(page.find("Unfinished."), page.find("the mean slow-down is"));
  EXPECT_THAT(visible(two_jobs_page()), Not(HasSubstr("Unfinished")));
}

TEST(Report, footer__tells_where_the_results_come_from) {
  Results results = two_jobs();
  results.provenance = Provenance{"0.1.0",
                                  "0123456789abcdef",
                                  false,
                                  "GNU 12",
                                  "2026-01-31T17:05:09Z",
                                  {"mltcp", "run", "e<1>.toml"},
                                  {{"e<1>.toml", std::string(64, 'f'), 120, {}}},
                                  {"Model 7", 4, 8'000'000'000, "Debian", "Linux 6.1"}};
  const std::string page = render_report(results);
  EXPECT_THAT(visible(page), HasSubstr("mltcp 0.1.0 (0123456789ab), 2026-01-31T17:05:09Z: mltcp run e&lt;1&gt;.toml"));
  for (const char* part : {"Model 7", "8 GB", "Linux 6.1", "GNU 12"}) EXPECT_THAT(visible(page), HasSubstr(part));
  EXPECT_TRUE(has(page, "SHA-256 <code>" + std::string(64, 'f')));
  EXPECT_FALSE(has(page, "e<1>"));
  EXPECT_FALSE(has(two_jobs_page(), "<details><summary>The machine"));
}

// ---- many jobs ----

// The first run's jobs again and again, each slower than the one before it by a thousandth.
Results many_jobs(std::size_t jobs) {
  Results results = two_jobs();
  for (PolicyRun& run : results.runs) {
    const JobResult model = run.jobs[0];
    const std::vector<Bytes> bins = run.bottleneck.usage.jobs.at("vgg19-a");
    run.jobs.clear();
    run.bottleneck.usage.jobs.clear();
    for (std::size_t j = 0; j < jobs; ++j) {
      run.jobs.push_back(model);
      run.jobs.back().name = "job-" + std::to_string(j);
      run.jobs.back().mean = Nanos(model.mean.count / 1000 * static_cast<std::int64_t>(1000 + j));
      run.bottleneck.usage.jobs[run.jobs.back().name] = bins;
    }
  }
  return results;
}

TEST(Report, nine_jobs__have_a_heat_map_and_no_colours_of_their_own) {
  const std::string eight = render_report(many_jobs(8));
  EXPECT_TRUE(has(data_of(eight), "\"colour\":\"job-7\""));
  EXPECT_TRUE(has(eight, "swatch c7"));
  EXPECT_FALSE(has(data_of(eight), "\"kind\":\"heat\""));
  const std::string nine = render_report(many_jobs(9));
  EXPECT_EQ(count_of(data_of(nine), "\"kind\":\"heat\""), 2U);
  EXPECT_FALSE(has(data_of(nine), "\"colour\":\"job-"));
  EXPECT_FALSE(has(nine.substr(nine.find("<body>")), "swatch c"));
  EXPECT_FALSE(has(nine.substr(nine.find("<body>"), nine.find("<script") - nine.find("<body>")), "--job-"));
  EXPECT_THAT(visible(nine), HasSubstr("5 or more at once"));
  EXPECT_TRUE(has(data_of(nine), "\"name\":\"distribution\""));
  EXPECT_THAT(visible(nine), HasSubstr("up to 1.02×"));
}

TEST(Report, many_jobs__the_five_worst_are_named) {
  const std::string text = visible(render_report(many_jobs(12)));
  const auto from = text.find("The jobs slowed down most under each policy");
  ASSERT_NE(from, std::string::npos);
  const std::string worst = text.substr(from, text.find("The whole run") - from);
  for (int job = 7; job < 12; ++job) EXPECT_EQ(count_of(worst, "job-" + std::to_string(job)), 2U) << job;
  EXPECT_LT(worst.find("job-11"), worst.find("job-10"));
  EXPECT_EQ(count_of(worst, "job-6"), 0U);
}

TEST(Report, use_of_the_link__is_coloured_by_how_many_send_at_once) {
  Results results = many_jobs(9);
  results.runs.resize(1);
  Usage& usage = results.runs[0].bottleneck.usage;
  for (auto& [name, bins] : usage.jobs) std::fill(bins.begin(), bins.end(), Bytes{0});
  const auto set = [&](std::size_t bin, std::size_t senders) {
    for (std::size_t j = 0; j < senders; ++j) usage.jobs["job-" + std::to_string(j)][bin] = 1000;
  };
  for (const std::size_t senders : {1U, 2U, 3U, 4U, 5U}) set(senders, senders);
  const std::string data = data_of(render_report(results));
  EXPECT_TRUE(has(data, "\"name\":\"one job sends\",\"v\":[0,1000,0,0,0,0,"));
  EXPECT_TRUE(has(data, "\"name\":\"2 jobs at once\",\"v\":[0,0,2000,0,0,0,"));
  EXPECT_TRUE(has(data, "\"name\":\"3 or 4 at once\",\"v\":[0,0,0,3000,4000,0,"));
  EXPECT_TRUE(has(data, "\"name\":\"5 or more at once\",\"v\":[0,0,0,0,0,5000,"));
}

// Of `jobs` jobs as many send in each bin of the record as `senders` says.
Results with_senders(std::size_t jobs, std::size_t fair, std::size_t mltcp) {
  Results results = many_jobs(jobs);
  for (PolicyRun& run : results.runs) {
    const std::size_t senders = run.policy == "fair" ? fair : mltcp;
    Usage& usage = run.bottleneck.usage;
    for (auto& [name, bins] : usage.jobs) std::fill(bins.begin(), bins.end(), Bytes{0});
    for (std::size_t j = 0; j < senders; ++j) {
      auto& bins = usage.jobs["job-" + std::to_string(j)];
      std::fill(bins.begin(), bins.end(), Bytes{1000});
    }
  }
  return results;
}

TEST(Report, many_jobs__tell_how_many_send_at_once_where_the_overlap_is_the_same) {
  const Results results = with_senders(32, 20, 3);
  const std::string text = visible(render_report(results));
  EXPECT_THAT(text, HasSubstr("100% of the link's busy time under fair and 100% under mltcp"));
  EXPECT_THAT(text, HasSubstr("In the second half, 3.0 of them send at once on average, and 20 under fair."));
  EXPECT_THAT(text, HasSubstr("That counts two jobs that meet like all 32; how slow they are depends on how many do"));
  EXPECT_THAT(text, HasSubstr("on average so many do at once: 20 under fair and 3.0 under mltcp"));
  EXPECT_THAT(text, HasSubstr("3.0 jobs send at once on average in the 2nd half"));
  EXPECT_THAT(text, HasSubstr("Last iterations: 20 jobs send at once on average, bursts overlap 100%"));
  EXPECT_THAT(text, HasSubstr("Jobs at once, 2nd half"));
  EXPECT_THAT(render_picture(results, {}),
              HasSubstr("several jobs send at once for 100% of the busy time · 3.0 on average"));
}

TEST(Report, how_many_send_at_once__is_not_told_of_two_jobs_or_of_a_coarse_record) {
  for (const char* words : {"jobs send at once on average", "Jobs at once, 2nd half", "on average so many do at once"})
    EXPECT_THAT(visible(two_jobs_page()), Not(HasSubstr(words)));
  Results coarse = with_senders(9, 9, 3);
  for (PolicyRun& run : coarse.runs) run.bottleneck.usage.bin = Nanos(run.jobs[0].p50.count / 49);
  const std::string text = visible(render_report(coarse));
  EXPECT_THAT(text, Not(HasSubstr("at once on average")));
  EXPECT_THAT(text, Not(HasSubstr("on average so many do at once")));
}

TEST(Report, long_runs__stay_far_below_10_megabytes) {
  Results results = many_jobs(32);
  for (PolicyRun& run : results.runs) {
    for (JobResult& job : run.jobs) {
      job.starts.clear();
      job.iterations.clear();
      for (std::int64_t i = 0; i < 10'000; ++i) {
        job.starts.emplace_back(i * 300'000'001);
        job.iterations.emplace_back(260'000'000 + i % 977 * 12'345);
      }
    }
    for (auto& [name, bins] : run.bottleneck.usage.jobs) {
      bins.resize(16'384);
      std::iota(bins.begin(), bins.end(), Bytes{1'000'000});
    }
    summarize(run);
  }
  EXPECT_LT(render_report(results).size(), 4'000'000U);
  for (PolicyRun& run : results.runs) run.jobs.resize(8);
  EXPECT_LT(render_report(results).size(), 8'000'000U);
}

TEST(Report, long_runs__joined_iterations_keep_their_mean_least_and_most) {
  Results results = two_jobs();
  results.runs.resize(1);
  JobResult& job = results.runs[0].jobs[0];
  results.runs[0].jobs.resize(1);
  job.isolated = Nanos(1000);
  job.starts.clear();
  job.iterations.clear();
  for (std::int64_t i = 0; i < 2000; ++i) {
    job.starts.emplace_back(i * 10'000);
    job.iterations.emplace_back(i % 2 == 0 ? 1000 : 3000);
  }
  summarize(results.runs[0]);
  const std::string data = data_of(render_report(results));
  EXPECT_TRUE(has(data, "\"group\":2"));
  EXPECT_TRUE(has(data, "\"hi\":[3.0,3.0,"));
  EXPECT_TRUE(has(data, "\"lo\":[1.0,1.0,"));
  EXPECT_TRUE(has(data, "\"v\":[2.0,2.0,"));
}

// ---- hosts, links, ranks ----

Results on_hosts() {
  Results results = two_jobs();
  for (PolicyRun& run : results.runs) {
    run.datapath = "hosts";
    run.links_unknown = true;
    run.bottleneck = {};
  }
  return results;
}

TEST(Report, hosts__show_when_jobs_communicate_by_their_own_clocks) {
  const Results results = on_hosts();
  const std::string page = render_report(results);
  EXPECT_THAT(visible(page), HasSubstr("by the jobs' own clocks"));
  EXPECT_THAT(visible(page), HasSubstr("Nobody has recorded the link itself"));
  EXPECT_EQ(count_of(data_of(page), "\"kind\":\"lanes\""), 4U);
  EXPECT_FALSE(has(data_of(page), "\"kind\":\"bands\""));
  // The first iteration's bar, from when it had computed until its end.
  const JobResult& job = results.runs[0].jobs[0];
  EXPECT_TRUE(has(data_of(page), "\"name\":\"vgg19-a\",\"v\":[" + std::to_string(job.starts[0].count + kCompute) + "," +
                                     std::to_string(job.starts[0].count + job.iterations[0].count) + ","));
  // Under fair they go on colliding, under mltcp not; by the clocks, too.
  EXPECT_THAT(visible(page), HasSubstr("two or more jobs communicate at once for 9"));
  EXPECT_THAT(visible(page), HasSubstr("Last iterations: bursts overlap 0% of the busy time"));
}

TEST(Report, hosts__tell_how_many_jobs_communicate_at_once_by_their_clocks) {
  Results results = many_jobs(4);
  for (PolicyRun& run : results.runs) {
    run.links_unknown = true;
    run.bottleneck = {};
  }
  const std::string text = visible(render_report(results));  // four jobs in step
  EXPECT_THAT(text, HasSubstr("In the second half, 4.0 of them communicate at once on average, and 4.0 under fair."));
  EXPECT_THAT(text, HasSubstr("Last iterations: 4.0 jobs communicate at once on average, bursts overlap 100%"));
}

TEST(Report, hosts__of_a_testbed_show_what_its_switch_counted_too) {
  Results results = on_hosts();
  for (PolicyRun& run : results.runs) {
    run.links_unknown = false;
    run.bottleneck.rate = Rate(kRate);
    run.bottleneck.dropped_packets = 4321;
    run.bottleneck.utilization = 0.5;
  }
  const std::string page = render_report(results);
  EXPECT_THAT(visible(page), HasSubstr("by the jobs' own clocks"));
  EXPECT_THAT(visible(page), HasSubstr("4\u202f321"));
  EXPECT_THAT(visible(page), HasSubstr("50% of 1 Gbps"));
}

TEST(Report, links__can_be_chosen_and_tell_their_rates) {
  Results results = two_jobs();
  for (PolicyRun& run : results.runs) {
    run.bottleneck.name = "leaf 0 -> spine <1>";
    run.links = {{"quiet", Rate(25'000'000'000), 0.1, 0, 0, 7},
                 {"leaf 0 -> spine <1>", Rate(kRate), 0.9, 5, 6, 70'000}};
  }
  const std::string page = render_report(results);
  EXPECT_TRUE(has(page, "<select id=\"link-picker\">"));
  EXPECT_THAT(visible(page), HasSubstr("Who used this link when was not recorded"));
  EXPECT_THAT(visible(page), HasSubstr("25 Gbps"));
  EXPECT_THAT(visible(page), HasSubstr("90%"));
  // The one used most is first.
  EXPECT_TRUE(
      has(data_of(page),
          "\"links\":[{\"name\":\"leaf 0 -> spine \\u003c1>\",\"rate\":1000000000,\"runs\":[[0.9,5,6,70000,0,0]"));
  EXPECT_FALSE(has(two_jobs_page(), "link-picker\">"));
}

TEST(Report, ranks__have_a_table) {
  Results results = two_jobs();
  results.runs[0].jobs[1].ranks = {{7, 3, Nanos(111'000'000), Nanos(112'000'000), Nanos(113'000'000), Nanos(0)}};
  const std::string text = visible(render_report(results));
  for (const char* part : {"Ranks", "Host", "111.0", "112.0", "113.0"}) EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(visible(two_jobs_page()), Not(HasSubstr("Ranks")));
}

TEST(Report, charts__have_labels_with_units_on_their_axes) {
  const std::string data = data_of(two_jobs_page());
  EXPECT_TRUE(has(data, "\"label\":\"iteration\""));
  EXPECT_TRUE(has(data, "\"label\":\"slow-down of an iteration\""));
  EXPECT_TRUE(has(data, "\"rate\":1000000000"));
}

// ---- pictures ----

// What is wrong with a document of tags, quoted attributes and text, if anything; empty if it is well-formed.
std::string malformed(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto fail = [&](const char* what) { return what + std::string(" at ") + text.substr(at, 40); };
    if (static_cast<unsigned char>(text[at]) < 0x20 && text[at] != '\n') return fail("control character");
    if (text[at] == '>') return fail("stray >");
    if (text[at] == '&' && text.compare(at, 5, "&amp;") != 0 && text.compare(at, 4, "&lt;") != 0 &&
        text.compare(at, 4, "&gt;") != 0 && text.compare(at, 6, "&quot;") != 0 && text.compare(at, 5, "&#39;") != 0)
      return fail("stray &");
    if (text[at] != '<') continue;
    const auto end = text.find('>', at);
    if (end == std::string::npos) return fail("tag without end");
    std::string tag = text.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos || std::count(tag.begin(), tag.end(), '"') % 2 != 0) return fail("bad tag");
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return fail("wrong end");
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end;
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

TEST(Malformed, notices) {
  EXPECT_EQ(malformed("<a b=\"c\"><d/>x &amp; y</a>\n"), "");
  for (const char* bad : {"<a>", "</a>", "<a><b></a></b>", "<a>&</a>", "<a b=\"c>x</a>", "<a>\x01</a>", "<a>></a>"})
    EXPECT_NE(malformed(bad), "") << bad;
}

TEST(Picture, usage__shows_before_and_after_and_is_well_formed) {
  const std::string picture = render_picture(two_jobs(), {});
  EXPECT_EQ(picture.find("<svg "), 0U);
  EXPECT_EQ(malformed(picture), "");
  EXPECT_LT(picture.size(), 60'000U);
  EXPECT_LT(picture.find(">fair: bursts collide<"), picture.find(">mltcp: bursts interleave<"));
  EXPECT_NE(picture.find(">mltcp: bursts interleave<"), std::string::npos);
  for (const char* part :
       {">Gbps<", ">time, s<", "prefers-color-scheme:dark", "vgg19-a", "two or more jobs send at once"})
    EXPECT_TRUE(has(picture, part)) << part;
  for (const char* loader : {"<script", "<image", "url(", "@import", "href"}) EXPECT_FALSE(has(picture, loader));
}

TEST(Picture, usage__both_panels_have_one_scale_of_time) {
  const std::string picture = render_picture(two_jobs(), {});
  // Ticks of both are as far apart from each other.
  std::vector<double> gaps;
  double before = 0;
  std::string line;
  std::istringstream lines(picture);
  while (std::getline(lines, line)) {
    if (line.find("text-anchor=\"middle\">") == std::string::npos || line.find("class=\"s\"") == std::string::npos ||
        line.find("time,") != std::string::npos || line.find("rotate") != std::string::npos)
      continue;
    const double x = std::stod(line.substr(line.find("x=\"") + 3));
    if (x > before && before > 0) gaps.push_back(x - before);
    before = x;
  }
  ASSERT_GE(gaps.size(), 4U);
  for (const double gap : gaps) EXPECT_NEAR(gap, gaps.front(), 0.3);
}

TEST(Picture, same_results_same_bytes) {
  EXPECT_EQ(render_picture(two_jobs(), {}), render_picture(two_jobs(), {}));
  EXPECT_EQ(render_picture(two_jobs(), {"iterations", {}}), render_picture(two_jobs(), {"iterations", {}}));
}

TEST(Picture, says_what_the_numbers_say_and_not_more) {
  Results results = two_jobs();
  std::swap(results.runs[0].policy, results.runs[1].policy);
  const std::string picture = render_picture(results, {});
  EXPECT_TRUE(has(picture, ">fair: bursts interleave<"));
  EXPECT_TRUE(has(picture, ">mltcp: bursts collide<"));
}

TEST(Picture, iterations__has_a_line_a_policy) {
  const std::string picture = render_picture(two_jobs(), {"iterations", {}});
  EXPECT_EQ(malformed(picture), "");
  for (const char* part : {">slow-down<", ">iteration<", "class=\"q0 line\"", "class=\"q1 line\"", ">1.2×<"})
    EXPECT_TRUE(has(picture, part)) << part;
  const std::string one = render_picture(two_jobs(), {"iterations", {"mltcp"}});
  EXPECT_FALSE(has(one, "class=\"q0 line\""));
  EXPECT_TRUE(has(one, "class=\"q1 line\""));
}

TEST(Picture, hostile_names__stay_text) {
  Results results = two_jobs();
  results.experiment = "</title><script>\x01&";
  for (PolicyRun& run : results.runs) {
    run.jobs[0].name = "<b>&\"'\xff";
    run.policy += "\"><x>";
  }
  for (const char* chart : {"usage", "iterations"}) {
    const std::string picture = render_picture(results, {chart, {}});
    EXPECT_EQ(malformed(picture), "");
    EXPECT_FALSE(has(picture, "<script"));
    EXPECT_FALSE(has(picture, "<x>"));
  }
}

TEST(Picture, coarse_record__says_nothing_of_overlaps) {
  Results results = two_jobs();
  for (PolicyRun& run : results.runs) run.bottleneck.usage.bin = Nanos(run.jobs[0].p50.count / 49);
  const std::string picture = render_picture(results, {});
  EXPECT_TRUE(has(picture, "recorded too coarsely to tell what overlaps"));
  for (const char* verdict : {"bursts collide", "bursts interleave", "of the busy time", "class=\"x\" d="})
    EXPECT_FALSE(has(picture, verdict)) << verdict;
  const std::string page = render_report(results);
  EXPECT_TRUE(has(page, "how much they overlap can't be told"));
  EXPECT_FALSE(has(page, "bursts overlap <"));
}

TEST(Picture, numbers_that_no_run_gives__end_too) {
  Results tiny_bins = two_jobs();
  for (PolicyRun& run : tiny_bins.runs) run.bottleneck.usage.bin = Nanos(1);
  EXPECT_EQ(malformed(render_picture(tiny_bins, {})), "");
  Results late = two_jobs();
  for (PolicyRun& run : late.runs)
    for (JobResult& job : run.jobs)
      for (std::size_t i = 0; i < job.iterations.size(); ++i) {
        job.starts[i] = Nanos((std::int64_t{1} << 58) + static_cast<std::int64_t>(i));
        job.iterations[i] = Nanos(1);
      }
  EXPECT_EQ(malformed(render_picture(late, {})), "");
  Results unknown = two_jobs();
  for (PolicyRun& run : unknown.runs) run.jobs[0].name = "a\xef\xbf\xbf\xef\xbf\xbez";
  const std::string picture = render_picture(unknown, {});
  EXPECT_TRUE(has(picture, ">a??z<"));
  EXPECT_FALSE(has(picture, "\xef\xbf"));
}

TEST(Picture, many_jobs_and_hosts__are_drawn_too) {
  const std::string many = render_picture(many_jobs(32), {});
  EXPECT_EQ(malformed(many), "");
  EXPECT_TRUE(has(many, "5 or more at once"));
  EXPECT_LT(many.size(), 60'000U);
  const std::string hosts = render_picture(on_hosts(), {});
  EXPECT_EQ(malformed(hosts), "");
  EXPECT_TRUE(has(hosts, "by the jobs&#39; own clocks"));
}

TEST(Picture, what_is_not_there__is_refused_with_a_cure) {
  EXPECT_EQ(message_of<InputError>([] {
              render_picture(two_jobs(), {"pie", {}});
            }),
            "--chart: \"pie\" is not known; choose of usage, iterations");
  EXPECT_EQ(message_of<InputError>([] {
              render_picture(two_jobs(), {"usage", {"swift"}});
            }),
            "--policy: the results have no policy \"swift\"; choose of \"fair\", \"mltcp\"");
  EXPECT_THAT(message_of<InputError>([] { render_picture({}, {}); }), HasSubstr("hold no runs; "));
  Results bare = on_hosts();
  for (PolicyRun& run : bare.runs)
    for (JobResult& job : run.jobs) job.compute = Nanos(0);
  EXPECT_THAT(message_of<InputError>([&] { render_picture(bare, {}); }),
              HasSubstr("don't tell who used the link when"));
}

// ---- comparing ----

std::string compared(const Results& a, const Results& b) { return render_comparison({"a.json", &a}, {"b.json", &b}); }

TEST(Comparison, tells_each_policy_and_job) {
  Results slower = two_jobs();
  for (JobResult& job : slower.runs[0].jobs) job.mean = Nanos(job.mean.count * 11 / 10);
  const std::string page = compared(two_jobs(), slower);
  EXPECT_THAT(visible(page),
              HasSubstr("fair: beside A, B is worse in the mean, but no different at interleaving. The mean"));
  EXPECT_THAT(visible(page), HasSubstr("10% more time"));
  EXPECT_THAT(visible(page), HasSubstr("mltcp: beside A, B is no different in the mean and at interleaving."));
  EXPECT_EQ(count_of(page, "▼ 1.100"), 3U);  // of the policy, and of its two jobs
  EXPECT_THAT(visible(compared(slower, two_jobs())), HasSubstr("fair: beside A, B is better in the mean"));
  EXPECT_THAT(visible(page), Not(HasSubstr("differs")));
}

TEST(Comparison, tells_what_is_not_compared_and_what_differs) {
  Results other = two_jobs();
  other.runs[1].policy = "static";
  for (PolicyRun& run : other.runs) run.cc = "cubic";
  const std::string text = visible(compared(two_jobs(), other));
  EXPECT_THAT(text, HasSubstr("mltcp in A alone and static in B alone"));
  EXPECT_EQ(count_of(text, "differs"), 2U);  // policies, and congestion control
}

// Interleaved from that iteration on, under mltcp; the means stay as they are.
Results interleaved_at(std::optional<std::uint64_t> from, std::optional<std::uint64_t> from_5pct = std::nullopt) {
  Results results = two_jobs();
  for (JobResult& job : results.runs[1].jobs) {
    job.interleaved_from = from;
    job.interleaved_from_5pct = from ? from : from_5pct;
  }
  return results;
}

TEST(Comparison, interleaving_is_told_as_loudly_as_the_mean) {
  const std::string later = compared(interleaved_at(7), interleaved_at(49));
  EXPECT_TRUE(has(later,
                  "<b>mltcp</b>: beside A, B is <b class=\"same\">no different</b> in the mean, but <b "
                  "class=\"worse\">worse</b> at interleaving."));
  EXPECT_THAT(visible(later),
              HasSubstr("Its jobs interleave from iteration 49 on; those of A interleave from iteration 7 on."));
  EXPECT_TRUE(has(later,
                  "<div class=\"measure worse\"><p>interleaved from</p><p class=\"big\">iteration 49</p><p "
                  "class=\"change\">▼ later than A: iteration 7</p>"));
  EXPECT_TRUE(has(later, "<div class=\"measure same\"><p>mean slow-down</p><p class=\"big\">"));
  const std::string sooner = compared(interleaved_at(49), interleaved_at(7));
  EXPECT_THAT(visible(sooner),
              HasSubstr("mltcp: beside A, B is no different in the mean, but better at interleaving."));
  EXPECT_THAT(visible(sooner), HasSubstr("▲ sooner than A: iteration 49"));
}

TEST(Comparison, interleaving__what_counts_as_sooner) {
  const auto says = [](const Results& a, const Results& b, const char* verdict) {
    EXPECT_THAT(visible(compared(a, b)),
                HasSubstr(std::string("mltcp: beside A, B is no different in the mean") + verdict));
  };
  says(interleaved_at(7), interleaved_at(9), " and at interleaving.");
  says(interleaved_at(7), interleaved_at(10), ", but worse at interleaving.");
  says(interleaved_at(7), interleaved_at({}), ", but worse at interleaving.");
  says(interleaved_at({}), interleaved_at(49), ", but better at interleaving.");
  says(interleaved_at({}, 12), interleaved_at({}, 30), ", but worse at interleaving.");
  says(interleaved_at({}), interleaved_at({}, 30), ", but better at interleaving.");
  says(interleaved_at({}), interleaved_at({}), " and at interleaving.");
  Results alone = two_jobs();
  for (PolicyRun& run : alone.runs) run.jobs.resize(1);
  EXPECT_THAT(visible(compared(alone, alone)), HasSubstr("B is no different in the mean. The mean"));
}

// As `mltcp run` would have written it, of this experiment.
Results made_of(const std::string& experiment, const std::string& date = "2026-01-31T17:05:09Z") {
  Results results = two_jobs();
  results.provenance =
      Provenance{"0.1.0", std::string(40, 'a'), false, "GNU 12", date, {"mltcp", "run", "e.toml"}, {}, {}};
  results.provenance->files = {{"e.toml", std::string(64, 'f'), experiment.size(), experiment}};
  return results;
}

constexpr const char* kExperiment = R"(name = "two"
cc = "reno"
seed = 1
[bottleneck]
rate = "1 Gbps"
buffer = "75 kB"
[[job]]
name = "a<b>"
compute = "150 ms"
[[job]]
name = "b"
flows = 2
)";

TEST(Comparison, tells_at_the_top_what_both_are_and_in_what_settings_they_differ) {
  std::string other = kExperiment;
  other.replace(other.find("75 kB"), 5, "90 kB");
  other.replace(other.find("[[job]]"), 0, "ecn = { kmin = \"60 kB\", pmax = 1.0 }\n");
  other.replace(other.find("\"b\"\n"), 0, "\"b\"\nstart = \"3 ms\"\nweight = 2\ncc = \"dctcp\" # ");
  Results b = made_of(other, "2026-02-01T00:00:00Z");
  for (PolicyRun& run : b.runs) run.cc = "dctcp";
  b.runs[1].bottleneck.rate = Rate(2'000'000'000);
  const std::string page = compared(made_of(kExperiment), b);
  const auto row = [&](const std::string& name, const std::string& of_a, const std::string& of_b, bool differs) {
    const auto shown = [&](const std::string& value) { return differs ? "<b>" + value + "</b>" : value; };
    const auto tag = [&](const std::string& column, const std::string& value) {
      return "<td data-label=\"" + column + "\"><span>" + shown(value) + "</span></td>";
    };
    return has(page, "<th scope=\"row\">" + name + "</th>" + tag("A", of_a) + tag("B", of_b));
  };
  EXPECT_TRUE(row("File", "a.json", "b.json", true));
  EXPECT_TRUE(row("Experiment", "two-vgg19", "two-vgg19", false));
  EXPECT_TRUE(row("Policies", "fair, mltcp", "fair, mltcp", false));
  EXPECT_TRUE(row("Congestion control", "reno", "dctcp", true));
  EXPECT_TRUE(row("Marking (ECN)", "none: full buffers drop", "kmin 60 kB, kmax 60 kB, pmax 1", true));
  EXPECT_TRUE(row("Bottleneck", "1 Gbps", "1 Gbps, 2 Gbps", true));
  EXPECT_TRUE(row("bottleneck.buffer", "75 kB", "90 kB", true));
  EXPECT_TRUE(row("job b: start", "not set", "3 ms", true));
  EXPECT_TRUE(row("job b: cc", "not set", "dctcp", true));
  EXPECT_FALSE(has(page, "job a<b>"));
  // What is alike stands in a line, and before all of it nothing is told of who is better.
  EXPECT_THAT(visible(page),
              HasSubstr("The same in both: Datapath sim · Seed 1 · Iterations 40 · Program 0.1.0 (aaaaaaaaaaaa)"));
  EXPECT_THAT(visible(page), HasSubstr(" other settings of the experiment."));
  EXPECT_LT(page.find("What A and B are"), page.find("beside A, B is"));
  EXPECT_THAT(visible(page), Not(HasSubstr("one and the same")));
}

TEST(Comparison, settings_that_are_unknown_are_called_so) {
  const std::string page = visible(compared(two_jobs(), made_of(kExperiment)));
  EXPECT_THAT(page, HasSubstr("Which other settings differ is unknown: A does not hold the experiment"));
  EXPECT_THAT(page, HasSubstr("on; its settings are unknown"));  // packets were marked
  Results damaged = made_of("[[job]");
  EXPECT_THAT(visible(compared(damaged, damaged)), HasSubstr("the files do not hold the experiment"));
}

TEST(Comparison, of_one_and_the_same_result_says_so) {
  const Results once = made_of(kExperiment);
  EXPECT_THAT(visible(compared(once, once)),
              HasSubstr("A and B are one and the same result, from one run of the program"));
  EXPECT_THAT(visible(compared(once, made_of(kExperiment, "2026-02-01T00:00:00Z"))),
              HasSubstr("A and B measured the same, to the nanosecond"));
  EXPECT_THAT(visible(compared(two_jobs(), two_jobs())), HasSubstr("A and B measured the same, to the nanosecond"));
  Results shorter = once;
  shorter.runs.pop_back();
  EXPECT_THAT(visible(compared(once, shorter)), HasSubstr("A and B are from one run of the program, of which one"));
  Results other = made_of(kExperiment, "2026-02-01T00:00:00Z");
  other.runs[0].jobs[0].iterations.back() += Nanos(1);
  for (const char* words : {"one and the same", "measured the same", "from one run"})
    EXPECT_THAT(visible(compared(once, other)), Not(HasSubstr(words)));
}

TEST(Comparison, what_has_nothing_in_common__is_refused_in_one_line) {
  Results other = two_jobs();
  for (PolicyRun& run : other.runs) run.policy += "x\n";
  EXPECT_EQ(message_of<InputError>([&] { compared(two_jobs(), other); }),
            "a.json and b.json have no policy in common (\"fair\" and \"mltcp\"; \"fairx?\" and \"mltcpx?\"); give two "
            "files of the same experiment");
  other = two_jobs();
  for (PolicyRun& run : other.runs)
    for (JobResult& job : run.jobs) job.name += "x";
  EXPECT_EQ(
      message_of<InputError>([&] { compared(two_jobs(), other); }),
      "a.json and b.json have no job in common (\"vgg19-a\" and \"vgg19-b\"; \"vgg19-ax\" and \"vgg19-bx\"); give "
      "two files of the same experiment");
  other = two_jobs();
  for (PolicyRun& run : other.runs)
    for (JobResult& job : run.jobs) job.isolated = Nanos(0);
  EXPECT_THAT(message_of<InputError>([&] { compared(two_jobs(), other); }),
              HasSubstr("no job whose slow-down both know"));
}

// ---- files of other commands ----

std::string refusal(const std::string& text) {
  return message_of<InputError>([&] { parse_report_file(text, "r.json"); });
}

TEST(ReportFile, other_schemas_and_versions__are_refused_with_a_cure) {
  EXPECT_EQ(refusal(R"({"schema": "mltcp.results/2"})"),
            "r.json: schema is \"mltcp.results/2\", a version that this mltcp doesn't know (it reads "
            "\"mltcp.results/1\"); use the mltcp that wrote it, or write it anew");
  EXPECT_THAT(refusal(R"({"x": {"schema": "mltcp.results/1"}, "schema": "mltcp.plan/1\n"})"),
              HasSubstr("schema is \"mltcp.plan/1?\", of which there is no report; give what --json of"));
  EXPECT_THAT(refusal("{}"), HasSubstr("r.json: schema is missing; give a file that"));
  EXPECT_THAT(refusal("<html>"), HasSubstr("r.json: not JSON, "));
  EXPECT_THAT(refusal(R"({"schema": "mltcp.sweep/1"})"),
              HasSubstr("r.json: name is missing; give a file that `mltcp sweep --json FILE` wrote"));
  EXPECT_THAT(refusal(R"({"schema": "mltcp.cluster/1", "name": 1})"), HasSubstr("r.json: name is not a text; "));
  EXPECT_THAT(refusal(R"({"schema": "mltcp.schedule/1", "experiment": "x"})"),
              HasSubstr("r.json: demand is missing; give a file that `mltcp schedule --json FILE` wrote"));
  EXPECT_THAT(refusal(R"({"schema": "mltcp.sweep/1", "x": )" + std::string(100, '[')), HasSubstr("nests more than"));
}

TEST(ReportFile, results__are_read) {
  std::ostringstream text;
  write_json(two_jobs(), text);
  const ReportFile file = parse_report_file(text.str(), "r.json");
  EXPECT_EQ(schema_of(file), "mltcp.results/1");
  EXPECT_THAT(visible(render_page(file)), HasSubstr("mltcp is better than fair"));
}

SweepRow sweep_row(const std::string& policy, double slowdown) {
  SweepRow row;
  row.policy = policy;
  row.jobs = 2;
  row.seeds = 3;
  row.slowdown = row.second_half = row.p99 = {slowdown, 0.001};
  row.interleaved = 2;
  row.interleaved_median = 7.5;
  row.interleaved_worst = 9;
  return row;
}

TEST(ReportFile, sweep__tells_at_how_many_points_a_policy_is_better_and_worse) {
  Sweep sweep;
  sweep.name = "buffers<1>";
  sweep.seeds = {1, 2, 3};
  sweep.factors = {"buffer"};
  SweepTable table;
  for (const double mltcp : {1.1, 1.2, 1.3, 1.305, 1.5}) {
    sweep.points.emplace_back();
    sweep.points.back().values = {std::to_string(mltcp) + " kB"};
    table.points.emplace_back();
    table.points.back().rows = {sweep_row("fair", 1.3), sweep_row("mltcp", mltcp)};
  }
  table.points[1].rows[1].slowdown.ci95 = 0.5;
  table.points[0].failures = {{2, "no <luck>"}};
  table.points[2].missing = 4;
  const ReportFile file = parse_report_file(to_json(sweep, table), "s.json");
  EXPECT_EQ(schema_of(file), "mltcp.sweep/1");
  const std::string page = render_page(file);
  const std::string text = visible(page);
  EXPECT_THAT(text, HasSubstr("mltcp, beside fair: better at 2 of 5 points (by up to 15% of the time), worse at 1 of 5 "
                              "points (by up to 15% of the time) and no difference at 2 of 5 points; at 1 of these the "
                              "seeds are too few to be sure"));
  for (const char* part : {"4 runs are without a record", "1 run failed", "no &lt;luck&gt;", "7.5", "2 of 3 seeds",
                           "▼ 15% more time", "buffers&lt;1&gt;"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_TRUE(has(data_of(page), "\"kind\":\"dots\""));
}

TEST(ReportFile, sweep__of_many_points_stays_below_10_megabytes) {
  Sweep sweep;
  sweep.factors = {"buffer"};
  SweepTable table;
  for (int point = 0; point < 5000; ++point) {
    sweep.points.emplace_back();
    sweep.points.back().values = {std::to_string(point) + " kB"};
    table.points.emplace_back();
    table.points.back().rows = {sweep_row("fair", 1.3), sweep_row("mltcp", 1.1)};
  }
  const std::string page = render_page(parse_report_file(to_json(sweep, table), "s.json"));
  EXPECT_LT(page.size(), 4'000'000U);
  EXPECT_THAT(visible(page), HasSubstr("These are the first 1000 of 5000 points"));
  EXPECT_THAT(visible(page), HasSubstr("better at 5000 of 5000 points"));
}

TEST(ReportFile, cluster__tells_each_scheme_beside_locality) {
  ClusterResults results;
  results.name = "racks";
  results.level = "flow";
  results.cc = "dctcp";
  results.hosts = 24;
  for (const auto& [scheme, slowdown] :
       {std::pair{"locality", 1.2F}, std::pair{"locality+mltcp", 1.5F}, std::pair{"ideal", 1.0F}}) {
    ClusterRun run;
    run.scheme = scheme;
    run.slowdowns.assign(10, slowdown);
    for (std::uint32_t number = 0; number < 7; ++number) {
      ClusterJobResult job;
      job.number = number;
      job.type = "VGG";
      job.iterations = 5;
      job.end = Nanos(1'000'000'000);
      job.isolated = Nanos(1'000'000);
      job.mean = Nanos(1'000'000 + number * 10'000);
      run.jobs.push_back(job);
    }
    results.runs.push_back(run);
  }
  results.unfinished = {{"random", 3}};
  const ReportFile file = parse_report_file(to_json(results), "c.json");
  EXPECT_EQ(schema_of(file), "mltcp.cluster/1");
  const std::string page = render_page(file);
  const std::string text = visible(page);
  EXPECT_THAT(
      text, HasSubstr("Beside locality, locality+mltcp is worse in the mean and in the tail. The mean slow-down of an "
                      "iteration is 1.50× instead of 1.20×, 25% more time"));
  EXPECT_THAT(text, HasSubstr("Beside locality, ideal is better in the mean and in the tail."));
  EXPECT_THAT(text, HasSubstr("ended before random with seed 3"));
  EXPECT_EQ(count_of(text, "VGG 6"), 3U);
  EXPECT_EQ(count_of(text, "VGG 2"), 3U);
  EXPECT_EQ(count_of(text, "VGG 1"), 0U);
  EXPECT_TRUE(has(data_of(page), "\"name\":\"distribution\""));
}

ClusterFile cluster_of(double slowdown_mean, double slowdown_p99) {
  ClusterFile cluster;
  cluster.name = "racks";
  cluster.level = "flow";
  for (const char* name : {"locality", "locality+schedule"}) {
    SchemeSummary scheme;
    scheme.scheme = name;
    scheme.completion_mean = 10;
    scheme.completion_p99 = 20;
    scheme.slowdown_mean = 1.2;
    scheme.slowdown_p99 = 1.4;
    cluster.schemes.push_back(scheme);
  }
  cluster.schemes[1].slowdown_mean = slowdown_mean;
  cluster.schemes[1].slowdown_p99 = slowdown_p99;
  return cluster;
}

TEST(ReportFile, cluster__a_worse_tail_is_told_as_loudly_as_a_better_mean) {
  const std::string page = render_cluster(cluster_of(1.02, 1.61));
  EXPECT_TRUE(
      has(page,
          "<li>Beside <b>locality</b>, <b>locality+schedule</b> is <b class=\"better\">better</b> in the mean, but "
          "<b class=\"worse\">worse</b> in the tail. "));
  EXPECT_THAT(visible(page), HasSubstr("its 99th percentile (p99) is 1.61× instead of 1.40×, 15% more time"));
  EXPECT_TRUE(has(page,
                  "<div class=\"measure better\"><p>mean slow-down</p><p class=\"big\">1.02×</p><p "
                  "class=\"change\">▲ 15% less time</p></div><div class=\"measure worse\"><p>p99 slow-down</p><p "
                  "class=\"big\">1.61×</p><p class=\"change\">▼ 15% more time</p></div>"));
  EXPECT_THAT(visible(render_cluster(cluster_of(1.3, 1.2))),
              HasSubstr("is worse in the mean, but better in the tail."));
  EXPECT_THAT(visible(render_cluster(cluster_of(1.2, 1.2))),
              HasSubstr("is no different in the mean, but better in the tail. The mean slow-down of an iteration is "
                        "1.20×, beside 1.20×; its 99th"));
}

// The texts of a table's header, or a card's labels.
std::vector<std::string> parts_between(const std::string& text, const std::string& open, const std::string& close) {
  std::vector<std::string> parts;
  for (auto at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    at += open.size();
    parts.push_back(text.substr(at, text.find(close, at) - at));
  }
  return parts;
}

TEST(ReportFile, cluster__no_two_columns_have_one_name) {
  const std::string page = render_cluster(cluster_of(1.02, 1.61));
  const auto from = page.find("<caption>The schemes");
  const std::string table = page.substr(from, page.find("</table>", from) - from);
  auto columns = parts_between(table, "<th scope=\"col\">", "</th>");
  ASSERT_EQ(columns.size(), 14U);
  for (const char* name : {"Job completion time, p99, s", "Iteration slow-down, p99, ×"})
    EXPECT_EQ(std::count(columns.begin(), columns.end(), name), 1) << name;
  // Cards say the same.
  const auto row = table.substr(table.find("<tr class"));
  auto labels = parts_between(row.substr(0, row.find("</tr>")), "data-label=\"", "\"");
  EXPECT_EQ(labels, std::vector<std::string>(columns.begin() + 1, columns.end()));
  std::sort(columns.begin(), columns.end());
  EXPECT_EQ(std::adjacent_find(columns.begin(), columns.end()), columns.end());
}

TEST(ReportFile, sweep__what_is_the_same_everywhere_stands_above_the_table) {
  Sweep sweep;
  sweep.name = "grid";
  sweep.seeds = {1};
  sweep.factors = {"case", "bottleneck.delay", "job[*].start_jitter"};
  SweepTable table;
  for (const char* delay : {"10 us", "50 us"}) {
    sweep.points.emplace_back();
    sweep.points.back().values = {"m<a>rks", delay, "20 ms"};
    sweep.points.back().overrides = {{"bottleneck.ecn.kmin", "\"30 kB\"", ""},
                                     {"bottleneck.delay", std::string("\"") + delay + "\"", ""}};
    table.points.emplace_back();
    table.points.back().rows = {sweep_row("mltcp", 1.1)};
  }
  Provenance provenance = made_of(kExperiment).provenance.value();
  *provenance.files[0].text += "# sets nothing";
  provenance.files[0].text->replace(provenance.files[0].text->find("rate ="), 0,
                                    "ecn = { kmin = \"10 kB\" }\ndelay = \"10 us\"\n");
  provenance.files.insert(provenance.files.begin(), {"sweep.toml", std::string(64, 'e'), 5, "experiment = \"e.toml\""});
  const std::string page = render_page(parse_report_file(to_json(sweep, table, provenance), "s.json"));
  EXPECT_THAT(visible(page),
              HasSubstr("The same everywhere: policy mltcp · case m&lt;a&gt;rks · job[*].start_jitter 20 ms "
                        "· bottleneck.buffer 75 kB · bottleneck.rate 1 Gbps · cc reno."));
  const auto from = page.find("<caption>Points and policies");
  const std::string head = page.substr(from, page.find("</thead>", from) - from);
  EXPECT_TRUE(has(head, "<th scope=\"col\">bottleneck.<wbr>delay</th><th scope=\"col\">Slow-down</th>"));
  for (const char* same : {">case<", "jitter", ">Policy<"}) EXPECT_FALSE(has(head, same)) << same;
  // On a narrow screen a row says what its values are of.
  EXPECT_TRUE(has(page, "<span class=\"unit on-card\">bottleneck.delay </span>50 us</th>"));
}

TEST(ReportFile, schedule__gives_the_page_that_the_command_makes) {
  ScheduleResult schedule;
  schedule.experiment = "circles";
  schedule.score = 0.9;
  schedule.lost = 0.25;
  schedule.optimal = false;
  schedule.enough_slack = 0.05;
  for (const char* name : {"fast", "slow"}) {
    ScheduleResult::Job job;
    job.name = name;
    job.period = Nanos(40'000'000);
    job.slot_period = Nanos(41'000'000);
    job.time_shift = Nanos(7'000'000);
    schedule.jobs.push_back(job);
  }
  schedule.jobs.push_back({"legacy", true, {}, {}, {}, {}, 0});
  ScheduleResult::Link link;
  link.name = "bottleneck";
  link.capacity = Rate(kRate);
  for (std::uint32_t job = 0; job < 2; ++job)
    link.uses.push_back({job, {Nanos(40'000'000), {{Nanos(1'000'000), Nanos(30'000'000), Rate(kRate)}}}, 3, 0.5});
  link.solution.perimeter = Nanos(120'000'000);
  link.solution.score = 0.9;
  link.solution.upper_bound = 0.95;
  link.solution.margin = Nanos(5'000);
  link.removals = {{1, 1, 1}, {0, 0.99, 1}};
  schedule.links = {link};
  schedule.components.resize(1);
  schedule.joint = {{2, {0, 1}, {0}}};
  schedule.warnings = {"beware"};
  const ReportFile file = parse_report_file(to_json(schedule), "s.json");
  EXPECT_EQ(schema_of(file), "mltcp.schedule/1");
  EXPECT_EQ(render_page(file), render_schedule(schedule));
}

}  // namespace
}  // namespace mltcp::experiment
