// Tests report pages of sweep, cluster and schedule files.
#include <nlohmann/json.hpp>

#include "../written.h"
#include "mltcp/lab/experiment/report/schedule_report.h"
#include "results_of_runs.h"

namespace mltcp::experiment {
namespace {

using namespace testing_results;

// ---- Files of other commands ----

std::string refusal(const std::string& text) {
  return message_of<InputError>([&] { parse_report_file(text, "r.json"); });
}

TEST(ReportFile, other_schemas_and_versions__are_refused_with_a_cure) {
  EXPECT_EQ(refusal(R"({"schema": "mltcp.results/2"})"),
            "r.json: schema is \"mltcp.results/2\", a version that this mltcp does not read (it reads "
            "\"mltcp.results/1\"); use the mltcp that wrote the file, or write the file again");
  EXPECT_THAT(refusal(R"({"x": {"schema": "mltcp.results/1"}, "schema": "mltcp.plan/1\n"})"),
              HasSubstr("schema is \"mltcp.plan/1?\", for which there is no report; give a --json file of"));
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
  const ReportFile file = parse_report_file(written(two_jobs()), "r.json");
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
  EXPECT_THAT(
      text, HasSubstr("mltcp, compared with fair: better at 2 of 5 points (by up to 15% of the time), worse at 1 of 5 "
                      "points (by up to 15% of the time) and no difference at 2 of 5 points; at 1 of these there are "
                      "too few seeds to be sure"));
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
  EXPECT_THAT(visible(page), HasAll("These are the first 1000 of 5000 points", "better at 5000 of 5000 points"));
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
      text,
      HasAll("Compared with locality, locality+mltcp is worse on average and in the tail. The mean slow-down of an "
             "iteration is 1.50× instead of 1.20×, 25% more time",
             "Compared with locality, ideal is better on average and in the tail.", "ended before random with seed 3"));
  EXPECT_EQ(count_of(text, "VGG 6"), 3U);
  EXPECT_EQ(count_of(text, "VGG 2"), 3U);
  EXPECT_EQ(count_of(text, "VGG 1"), 0U);
  EXPECT_TRUE(has(data_of(page), "\"name\":\"distribution\""));
  auto bad = nlohmann::json::parse(to_json(results));
  nlohmann::json& percentiles = bad["runs"][0]["slowdown_percentiles"];
  percentiles.erase(0);
  EXPECT_THAT(refusal(bad.dump()), HasSubstr("runs[0].slowdown_percentiles is not a list of 101 numbers"));
  bad["runs"][0].erase("slowdown_percentiles");
  EXPECT_THAT(refusal(bad.dump()), HasSubstr("runs[0].slowdown_percentiles is missing"));
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
  EXPECT_TRUE(has(
      page,
      "<li>Compared with <b>locality</b>, <b>locality+schedule</b> is <b class=\"better\">better</b> on average, but "
      "<b class=\"worse\">worse</b> in the tail. "));
  EXPECT_THAT(visible(page), HasSubstr("its 99th percentile (p99) is 1.61× instead of 1.40×, 15% more time"));
  EXPECT_TRUE(has(page,
                  "<div class=\"measure better\"><p>mean slow-down</p><p class=\"big\">1.02×</p><p "
                  "class=\"change\">▲ 15% less time</p></div><div class=\"measure worse\"><p>p99 slow-down</p><p "
                  "class=\"big\">1.61×</p><p class=\"change\">▼ 15% more time</p></div>"));
  EXPECT_THAT(visible(render_cluster(cluster_of(1.3, 1.2))), HasSubstr("is worse on average, but better in the tail."));
  EXPECT_THAT(visible(render_cluster(cluster_of(1.2, 1.2))),
              HasSubstr("is no different on average, but better in the tail. The mean slow-down of an iteration is "
                        "1.20×, compared with 1.20×; its 99th"));
}

// Returns each text in `text` that lies between `open` and `close`, for example the column titles of a table.
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
  // The labels that a narrow screen shows beside the values are the same as the column titles.
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
  // On a narrow screen, each row labels its values.
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
    ScheduleResult::ScheduledJob job;
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
