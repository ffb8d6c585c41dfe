// Tests pictures of results: they are well-formed, do not vary between calls, and show the right numbers.
#include "results_of_runs.h"

namespace mltcp::experiment {
namespace {

using namespace testing_results;

// ---- Pictures ----

// Returns the first syntax error in a document of tags, quoted attributes and text, or "" if the document is
// well-formed.
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
  // The panels of both policies must have the same distance between the ticks of the time axis.
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
  EXPECT_TRUE(has(picture, "recorded too coarsely to show overlap"));
  for (const char* verdict : {"bursts collide", "bursts interleave", "of the busy time", "class=\"x\" d="})
    EXPECT_FALSE(has(picture, verdict)) << verdict;
  const std::string page = render_report(results);
  EXPECT_TRUE(has(page, "their overlap is unknown"));
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
            "--chart: \"pie\" is not known; choose one of usage, iterations");
  EXPECT_EQ(message_of<InputError>([] {
              render_picture(two_jobs(), {"usage", {"swift"}});
            }),
            "--policy: the results have no policy \"swift\"; choose one of \"fair\", \"mltcp\"");
  EXPECT_THAT(message_of<InputError>([] { render_picture({}, {}); }), HasSubstr("have no runs; "));
  Results bare = on_hosts();
  for (PolicyRun& run : bare.runs)
    for (JobResult& job : run.jobs) job.compute = Nanos(0);
  EXPECT_THAT(message_of<InputError>([&] { render_picture(bare, {}); }), HasSubstr("lack the use of the link"));
}

}  // namespace
}  // namespace mltcp::experiment
