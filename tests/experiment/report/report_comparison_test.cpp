// Tests pages that compare two result files.
#include "results_of_runs.h"

namespace mltcp::experiment {
namespace {

using namespace testing_results;

// ---- Comparing ----

std::string compared(const Results& a, const Results& b) { return render_comparison({"a.json", &a}, {"b.json", &b}); }

TEST(Comparison, tells_each_policy_and_job) {
  Results slower = two_jobs();
  for (JobResult& job : slower.runs[0].jobs) job.mean = Nanos(job.mean.count * 11 / 10);
  const std::string page = compared(two_jobs(), slower);
  EXPECT_THAT(visible(page),
              HasAll("fair: compared with A, B is worse on average, but no different in interleaving. The mean",
                     "10% more time", "mltcp: compared with A, B is no different on average and in interleaving."));
  EXPECT_EQ(count_of(page, "▼ 1.100"), 3U);  // once for the policy, and once for each of its two jobs
  EXPECT_THAT(visible(compared(slower, two_jobs())), HasSubstr("fair: compared with A, B is better on average"));
  EXPECT_THAT(visible(page), Not(HasSubstr("differs")));
}

TEST(Comparison, tells_what_is_not_compared_and_what_differs) {
  Results other = two_jobs();
  other.runs[1].policy = "static";
  for (PolicyRun& run : other.runs) run.cc = "cubic";
  const std::string text = visible(compared(two_jobs(), other));
  EXPECT_THAT(text, HasSubstr("mltcp only in A and static only in B"));
  EXPECT_EQ(count_of(text, "differs"), 2U);  // the row of the policies, and the row of the congestion control
}

// Returns results in which the jobs under mltcp interleave from iteration `from` on. The mean durations do not change.
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
                  "<b>mltcp</b>: compared with A, B is <b class=\"same\">no different</b> on average, but <b "
                  "class=\"worse\">worse</b> in interleaving."));
  EXPECT_THAT(visible(later),
              HasSubstr("Its jobs interleave from iteration 49 on; those of A interleave from iteration 7 on."));
  EXPECT_TRUE(has(later,
                  "<div class=\"measure worse\"><p>interleaved from</p><p class=\"big\">iteration 49</p><p "
                  "class=\"change\">▼ later than A: iteration 7</p>"));
  EXPECT_TRUE(has(later, "<div class=\"measure same\"><p>mean slow-down</p><p class=\"big\">"));
  const std::string sooner = compared(interleaved_at(49), interleaved_at(7));
  EXPECT_THAT(visible(sooner),
              HasAll("mltcp: compared with A, B is no different on average, but better in interleaving.",
                     "▲ sooner than A: iteration 49"));
}

TEST(Comparison, interleaving__what_counts_as_sooner) {
  const auto says = [](const Results& a, const Results& b, const char* verdict) {
    EXPECT_THAT(visible(compared(a, b)),
                HasSubstr(std::string("mltcp: compared with A, B is no different on average") + verdict));
  };
  says(interleaved_at(7), interleaved_at(9), " and in interleaving.");
  says(interleaved_at(7), interleaved_at(10), ", but worse in interleaving.");
  says(interleaved_at(7), interleaved_at({}), ", but worse in interleaving.");
  says(interleaved_at({}), interleaved_at(49), ", but better in interleaving.");
  says(interleaved_at({}, 12), interleaved_at({}, 30), ", but worse in interleaving.");
  says(interleaved_at({}), interleaved_at({}, 30), ", but better in interleaving.");
  says(interleaved_at({}), interleaved_at({}), " and in interleaving.");
  Results alone = two_jobs();
  for (PolicyRun& run : alone.runs) run.jobs.resize(1);
  EXPECT_THAT(visible(compared(alone, alone)), HasSubstr("B is no different on average. The mean"));
}

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
  EXPECT_TRUE(row("Marking (ECN)", "none: full buffers drop packets", "kmin 60 kB, kmax 60 kB, pmax 1", true));
  EXPECT_TRUE(row("Bottleneck", "1 Gbps", "1 Gbps, 2 Gbps", true));
  EXPECT_TRUE(row("bottleneck.buffer", "75 kB", "90 kB", true));
  EXPECT_TRUE(row("job b: start", "not set", "3 ms", true));
  EXPECT_TRUE(row("job b: cc", "not set", "dctcp", true));
  EXPECT_FALSE(has(page, "job a<b>"));
  // The page lists equal settings in one line, and shows all settings before the verdict.
  EXPECT_THAT(visible(page),
              HasAll("The same in both: Datapath sim · Seed 1 · Iterations 40 · Program 0.1.0 (aaaaaaaaaaaa)",
                     " other settings of the experiment."));
  EXPECT_LT(page.find("Settings of A and B"), page.find("compared with A, B is"));
  EXPECT_THAT(visible(page), Not(HasSubstr("A and B are the same")));
}

TEST(Comparison, settings_that_are_unknown_are_called_so) {
  const std::string page = visible(compared(two_jobs(), made_of(kExperiment)));
  EXPECT_THAT(page, HasSubstr("Other differences of settings are unknown: A does not contain the experiment"));
  EXPECT_THAT(page, HasSubstr("on; its settings are unknown"));  // because the result counts marked packets
  Results damaged = made_of("[[job]");
  EXPECT_THAT(visible(compared(damaged, damaged)), HasSubstr("the files do not contain the experiment"));
}

TEST(Comparison, of_one_and_the_same_result_says_so) {
  const Results once = made_of(kExperiment);
  EXPECT_THAT(visible(compared(once, once)), HasSubstr("A and B are the same result, from one run of the program"));
  EXPECT_THAT(visible(compared(once, made_of(kExperiment, "2026-02-01T00:00:00Z"))),
              HasSubstr("A and B measured the same, to the nanosecond"));
  EXPECT_THAT(visible(compared(two_jobs(), two_jobs())), HasSubstr("A and B measured the same, to the nanosecond"));
  Results shorter = once;
  shorter.runs.pop_back();
  EXPECT_THAT(visible(compared(once, shorter)), HasSubstr("A and B are from one run of the program; one"));
  Results other = made_of(kExperiment, "2026-02-01T00:00:00Z");
  other.runs[0].jobs[0].iterations.back() += Nanos(1);
  for (const char* words : {"A and B are the same", "measured the same", "from one run"})
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
              HasSubstr("no job with a slow-down in both"));
}

}  // namespace
}  // namespace mltcp::experiment
