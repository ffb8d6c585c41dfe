// Tests the HTML report and its pictures: they load nothing, escape text of users, state all numbers, good or bad, and
// handle unusual results. A fluid model makes the results: two jobs share one link, under fair sharing and with the
// aggressiveness of MLTCP.
#include "mltcp/lab/experiment/report/report.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "../../message_of.h"
#include "mltcp/lab/experiment/report/report_comparison.h"
#include "mltcp/lab/experiment/report/report_file.h"
#include "mltcp/lab/experiment/report/report_picture.h"
#include "mltcp/lab/experiment/results/results.h"
#include "results_of_runs.h"

namespace mltcp::experiment {
namespace {

using namespace testing_results;

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
  EXPECT_THAT(text, HasAll("two-vgg19", "1 Gbps", "13.8 MB", "260.0", "1\u202f234\u202f567", "81%", "never"));
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
  EXPECT_THAT(text, HasAll(percent + "% of the link's busy time under fair", "Its jobs interleave from iteration",
                           "; under fair they never interleave."));
}

TEST(Report, hostile_names__stay_text) {
  // The name includes Unicode characters that reorder or hide text.
  const std::string evil = "</script><b onload=\"x\">&'{{data}}<!--\\u202E\u202E\u200B";
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
  EXPECT_TRUE(has(page, "&lt;/script&gt;&lt;b onload=&quot;x&quot;&gt;&amp;&#39;{{data}}&lt;!--\\u202E??"));
  const std::string data = data_of(page);
  EXPECT_FALSE(has(data, "<"));
  EXPECT_TRUE(has(data, "\\u003c/script>\\u003cb onload"));
  EXPECT_TRUE(has(data, "\\u003c!--\\\\u202E??"));
  EXPECT_EQ(data.back(), '}');
}

TEST(Report, no_runs__says_so) {
  Results results;
  results.experiment = "nothing";
  const std::string text = visible(render_report(results));
  EXPECT_THAT(text, HasSubstr("has no runs"));
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
  EXPECT_THAT(page, HasAll("5, 11 on all links", "87 Mbps"));
}

TEST(Report, same_policy_twice__told_apart) {
  Results results = two_jobs();
  results.runs[1].policy = "fair";
  results.runs[1].cc = "dctcp";
  const std::string text = visible(render_report(results));
  EXPECT_THAT(text, HasAll("fair · reno", "fair · dctcp"));
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

// ---- The summary ----

TEST(Report, lead__worse_is_told_as_loudly_as_better) {
  const std::string better = render_report(two_policies(0.9));
  const std::string worse = render_report(two_policies(1.1));
  EXPECT_THAT(visible(better),
              HasAll("mltcp is better than fair: the mean slow-down is", "▲ better than fair: 10% less time"));
  EXPECT_THAT(visible(worse),
              HasAll("mltcp is worse than fair: the mean slow-down is", "▼ worse than fair: 10% more time"));
  EXPECT_TRUE(has(better, "<li class=\"tile better\">"));
  EXPECT_TRUE(has(worse, "<li class=\"tile worse\">"));
  // Praise and blame stand at the same position of the page.
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
    EXPECT_THAT(text, HasAll("mltcp makes no difference to fair", "= no difference from fair"));
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
  EXPECT_THAT(text, HasAll("Its jobs never interleave, but come within 5% from iteration 12 on",
                           "never interleaved; within 5% from iteration 12 on"));
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

// ---- Many jobs ----

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

// Returns results of `jobs` jobs. In each bin, `fair` jobs send under policy fair, and `mltcp` jobs under policy mltcp.
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
  EXPECT_THAT(
      text, HasAll("100% of the link's busy time under fair and 100% under mltcp",
                   "In the second half, 3.0 of them send at once on average, and 20 under fair.",
                   "This share is the same whether two jobs overlap or all 32, but n overlapping jobs get only 1/n",
                   "the average number of jobs at once is: 20 under fair and 3.0 under mltcp",
                   "3.0 jobs send at once on average in the 2nd half",
                   "Last iterations: 20 jobs send at once on average, bursts overlap 100%", "Jobs at once, 2nd half"));
  EXPECT_THAT(render_picture(results, {}),
              HasSubstr("several jobs send at once for 100% of the busy time · 3.0 on average"));
}

TEST(Report, how_many_send_at_once__is_not_told_of_two_jobs_or_of_a_coarse_record) {
  for (const char* words :
       {"jobs send at once on average", "Jobs at once, 2nd half", "the average number of jobs at once"})
    EXPECT_THAT(visible(two_jobs_page()), Not(HasSubstr(words)));
  Results coarse = with_senders(9, 9, 3);
  for (PolicyRun& run : coarse.runs) run.bottleneck.usage.bin = Nanos(run.jobs[0].p50.count / 49);
  const std::string text = visible(render_report(coarse));
  EXPECT_THAT(text, Not(HasSubstr("at once on average")));
  EXPECT_THAT(text, Not(HasSubstr("the average number of jobs at once")));
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

// ---- Hosts, links, ranks ----

TEST(Report, hosts__show_when_jobs_communicate_by_their_own_clocks) {
  const Results results = on_hosts();
  const std::string page = render_report(results);
  EXPECT_THAT(visible(page), HasAll("by the jobs' own clocks", "The link itself was not recorded"));
  EXPECT_EQ(count_of(data_of(page), "\"kind\":\"lanes\""), 4U);
  EXPECT_FALSE(has(data_of(page), "\"kind\":\"bands\""));
  // The bar of the first iteration begins when the job has finished computing, and ends when the iteration ends.
  const JobResult& job = results.runs[0].jobs[0];
  EXPECT_TRUE(has(data_of(page), "\"name\":\"vgg19-a\",\"v\":[" + std::to_string(job.starts[0].count + kCompute) + "," +
                                     std::to_string(job.starts[0].count + job.iterations[0].count) + ","));
  // The clocks of the jobs also show that the jobs keep colliding under fair and stop colliding under mltcp.
  EXPECT_THAT(visible(page), HasAll("two or more jobs communicate at once for 9",
                                    "Last iterations: bursts overlap 0% of the busy time"));
}

TEST(Report, hosts__tell_how_many_jobs_communicate_at_once_by_their_clocks) {
  Results results = many_jobs(4);
  for (PolicyRun& run : results.runs) {
    run.links_unknown = true;
    run.bottleneck = {};
  }
  const std::string text = visible(render_report(results));  // the four jobs start and send at the same times
  EXPECT_THAT(text, HasAll("In the second half, 4.0 of them communicate at once on average, and 4.0 under fair.",
                           "Last iterations: 4.0 jobs communicate at once on average, bursts overlap 100%"));
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
  EXPECT_THAT(visible(page), HasAll("by the jobs' own clocks", "4\u202f321", "50% of 1 Gbps"));
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
  EXPECT_THAT(visible(page), HasAll("The use of this link over time was not recorded", "25 Gbps", "90%"));
  // The link with the highest utilization is listed first.
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

}  // namespace
}  // namespace mltcp::experiment
