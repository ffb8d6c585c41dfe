// Tests of the HTML report: it loads nothing, escapes what users wrote, says the numbers and survives odd results.
// The results are made by a fluid model of two jobs on one link, fair and with the aggressiveness of MLTCP.
#include "mltcp/experiment/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

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
  EXPECT_THAT(text, HasSubstr("1\u2009234\u2009567"));
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

}  // namespace
}  // namespace mltcp::experiment
