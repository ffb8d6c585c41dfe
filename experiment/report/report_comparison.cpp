// The page that compares two result files (see report_comparison.h).
#include "mltcp/experiment/report/report_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/experiment/report/internal/html.h"
#include "mltcp/experiment/report/internal/report_charts.h"
#include "mltcp/experiment/report/internal/report_page.h"
#include "mltcp/experiment/report/internal/report_view.h"

namespace mltcp::experiment {
namespace {

constexpr std::size_t kMostDrawn = 100;  // rows of the chart

// A job of a policy that both files have.
struct Pair {
  std::string name;
  double a = 0;
  double b = 0;
};
struct Policy {
  std::string label;
  RunSummary a;
  RunSummary b;
  std::vector<Pair> jobs;
  double mean_a = 0;  // over the jobs that both have, like the next
  double mean_b = 0;
};

double slowdown_of(const JobResult& job) {
  if (job.isolated.count <= 0 || job.mean.count <= 0) return 0;
  return static_cast<double>(job.mean.count) / static_cast<double>(job.isolated.count);
}

// The run of `b` for each of `a`: of the same policy, the most alike of those not taken yet.
std::vector<std::pair<std::size_t, std::size_t>> matched(const Results& a, const Results& b) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < a.runs.size(); ++i) {
    int most = -1;
    std::size_t best = 0;
    for (std::size_t k = 0; k < b.runs.size(); ++k) {
      if (b.runs[k].policy != a.runs[i].policy || taken.contains(k)) continue;
      const int alike = 4 * (a.runs[i].cc == b.runs[k].cc ? 1 : 0) +
                        2 * (a.runs[i].datapath == b.runs[k].datapath ? 1 : 0) +
                        (a.runs[i].seed == b.runs[k].seed ? 1 : 0);
      if (alike > most) {
        most = alike;
        best = k;
      }
    }
    if (most < 0) continue;
    taken.insert(best);
    pairs.emplace_back(i, best);
  }
  return pairs;
}

std::string known(const std::vector<std::string>& names) {
  constexpr std::size_t most = 6;
  std::vector<std::string> quoted;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) quoted.push_back(in_quotes(names[i]));
  if (names.size() > most) quoted.push_back(fmt::format("{} more", names.size() - most));
  return quoted.empty() ? "none" : listed(quoted);
}

std::vector<std::string> policies_of(const Results& results) {
  std::vector<std::string> names;
  for (const Run& run : results.runs) add_once(names, run.policy);
  return names;
}

std::vector<Policy> compared(const View& a, const View& b, const NamedResults& first, const NamedResults& second) {
  constexpr std::string_view cure = "give two files of the same experiment";
  const auto pairs = matched(a.results, b.results);
  if (pairs.empty())
    throw InputError(one_line(fmt::format("{} and {} have no policy in common ({}; {}); {}", first.name, second.name,
                                          known(policies_of(a.results)), known(policies_of(b.results)), cure)));
  std::vector<Policy> policies;
  bool common = false;
  for (const auto& [i, k] : pairs) {
    Policy policy{a.labels[i], a.summaries[i], b.summaries[k], {}, 0, 0};
    for (const JobResult* job : judged_jobs(a.results.runs[i]))
      for (const JobResult* other : judged_jobs(b.results.runs[k])) {
        if (job->name != other->name) continue;
        common = true;
        if (slowdown_of(*job) > 0 && slowdown_of(*other) > 0)
          policy.jobs.push_back({job->name, slowdown_of(*job), slowdown_of(*other)});
      }
    for (const Pair& job : policy.jobs) {
      policy.mean_a += job.a / static_cast<double>(policy.jobs.size());
      policy.mean_b += job.b / static_cast<double>(policy.jobs.size());
    }
    if (!policy.jobs.empty()) policies.push_back(std::move(policy));
  }
  if (!common)
    throw InputError(one_line(fmt::format("{} and {} have no job in common ({}; {}); {}", first.name, second.name,
                                          known(a.jobs), known(b.jobs), cure)));
  if (policies.empty())
    throw InputError(
        one_line(fmt::format("{} and {} have no job whose slow-down both know; {}, and let them measure "
                             "the jobs alone",
                             first.name, second.name, cure)));
  return policies;
}

// "▼ 1.082 worse"; `before` is A.
std::string ratio_text(double before, double now) {
  const Change change = change_of(before, now);
  const std::string ratio = fmt::format("{:.3f}", now / before);
  if (change == Change::same) return ratio + " <span class=\"unit\">no difference</span>";
  return fmt::format("<b class=\"{}\">{} {}</b> <span class=\"unit\">{}</span>", class_of(change),
                     change == Change::better ? "▲" : "▼", ratio, class_of(change));
}

std::string lead(const std::vector<Policy>& policies) {
  std::string out;
  for (const Policy& policy : policies) {
    const std::string name = fmt::format("<b>{}</b>", escaped(policy.label));
    const Change change = change_of(policy.mean_a, policy.mean_b);
    if (change == Change::same) {
      out += fmt::format(
          "<li>Under {} there is <b class=\"same\">no difference</b>: the mean slow-down is {} in A and {} "
          "in B.</li>",
          name, slowdown_text(policy.mean_a), slowdown_text(policy.mean_b));
      continue;
    }
    out += fmt::format(
        "<li>Under {} B is <b class=\"{}\">{}</b> than A: the mean slow-down is {} instead of {}, {:.3f} times "
        "that.</li>",
        name, class_of(change), class_of(change), slowdown_text(policy.mean_b), slowdown_text(policy.mean_a),
        policy.mean_b / policy.mean_a);
  }
  return "<ul class=\"lead\">" + out + "</ul>\n";
}

// In what the files differ, beside what they measured.
std::string differences(const Results& a, const Results& b) {
  const auto words = [](const Results& results, auto&& word) {
    std::vector<std::string> list;
    for (const Run& run : results.runs) add_once(list, word(run));
    return fmt::format("{}", fmt::join(list, ", "));
  };
  std::string rows;
  const auto row = [&](const char* name, const std::string& of_a, const std::string& of_b) {
    rows += fmt::format("<tr class=\"first\"><th scope=\"row\">{}</th>{}{}{}</tr>\n", name, cell("A", escaped(of_a)),
                        cell("B", escaped(of_b)), cell("", of_a == of_b ? "" : "<b>differs</b>"));
  };
  row("Experiment", a.experiment, b.experiment);
  const auto by = [&](const char* name, auto&& word) { row(name, words(a, word), words(b, word)); };
  by("Congestion control", [](const Run& run) { return run.cc; });
  by("Datapath", [](const Run& run) { return run.datapath; });
  by("Seed", [](const Run& run) { return std::to_string(run.seed); });
  by("Iterations", [](const Run& run) {
    std::size_t most = 0;
    for (const JobResult& job : run.jobs) most = std::max(most, job.iterations.size());
    return std::to_string(most);
  });
  by("Bottleneck", [](const Run& run) {
    return run.bottleneck.rate.is_zero() ? std::string("unknown") : rate_text(run.bottleneck.rate);
  });
  const auto experiment_hash = [](const Results& results) {
    return results.provenance && !results.provenance->files.empty()
               ? results.provenance->files.front().sha256.substr(0, 12)
               : std::string("unknown");
  };
  row("Experiment file, SHA-256", experiment_hash(a), experiment_hash(b));
  return table("What was run", {"", "A", "B", ""}, rows);
}

std::string policy_table(const std::vector<Policy>& policies) {
  std::string rows;
  const auto from = [](const RunSummary& summary) {
    if (summary.interleaved) return fmt::format("iteration {}", *summary.interleaved);
    if (!summary.several) return std::string("–");
    return summary.interleaved_5pct ? fmt::format("never (5%: {})", *summary.interleaved_5pct) : std::string("never");
  };
  for (const Policy& policy : policies)
    rows += fmt::format("<tr class=\"first\"><th scope=\"row\"><span class=\"name\">{}</span></th>",
                        escaped(policy.label)) +
            cell("Slow-down, A", slowdown_text(policy.mean_a)) + cell("Slow-down, B", slowdown_text(policy.mean_b)) +
            cell("B by A", ratio_text(policy.mean_a, policy.mean_b)) + cell("Interleaved from, A", from(policy.a)) +
            cell("Interleaved from, B", from(policy.b)) + "</tr>\n";
  return table("By policy: mean slow-down of the jobs that both have",
               {"Policy", "Slow-down, A", "Slow-down, B", "B by A", "Interleaved from, A", "Interleaved from, B"},
               rows);
}

std::string job_table(const std::vector<Policy>& policies) {
  std::string rows;
  for (const Policy& policy : policies) {
    rows += "</tbody><tbody>";
    for (std::size_t j = 0; j < policy.jobs.size(); ++j) {
      const Pair& job = policy.jobs[j];
      rows += fmt::format("<tr{}>", j == 0 ? " class=\"first\"" : "");
      if (j == 0)
        rows += fmt::format("<th scope=\"rowgroup\" rowspan=\"{}\"><span class=\"name\">{}</span></th>",
                            policy.jobs.size(), escaped(policy.label));
      rows += fmt::format("<th scope=\"row\"><span class=\"name\">{}</span></th>", escaped(job.name)) +
              cell("Slow-down, A", slowdown_text(job.a)) + cell("Slow-down, B", slowdown_text(job.b)) +
              cell("B by A", ratio_text(job.a, job.b)) + "</tr>\n";
    }
  }
  return table("By policy and job", {"Policy", "Job", "Slow-down, A", "Slow-down, B", "B by A"}, rows, "cards grouped");
}

std::string chart(const std::vector<Policy>& policies, ChartList& charts) {
  using Json = nlohmann::json;
  Json rows = Json::array();
  Json a{{"name", "A"}, {"colour", "line-0"}, {"v", Json::array()}};
  Json b{{"name", "B"}, {"colour", "line-1"}, {"v", Json::array()}};
  double least = 1;
  double most = 1;
  for (const Policy& policy : policies)
    for (const Pair& job : policy.jobs) {
      if (rows.size() == kMostDrawn) break;
      rows.push_back(fmt::format("{} · {}", policy.label, job.name));
      a["v"].push_back(job.a);
      b["v"].push_back(job.b);
      least = std::min({least, job.a, job.b});
      most = std::max({most, job.a, job.b});
    }
  const double room = std::max(0.08 * (most - least), 0.01);
  const int height = static_cast<int>(rows.size()) * 22 + 46;
  const Json spec{
      {"kind", "dots"},
      {"name", "comparison"},
      {"x", {{"label", "slow-down"}, {"from", std::max(0.0, least - room)}, {"to", most + room}, {"suffix", "×"}}},
      {"rows", std::move(rows)},
      {"series", Json::array({std::move(a), std::move(b)})},
      {"rules", Json::array({{{"x", 1}, {"colour", "ink"}, {"dash", "5 4"}}})}};
  return "<section id=\"jobs\" class=\"needs-js\"><h2>How much slower than alone</h2>\n<p>A row is a job under a "
         "policy; the "
         "dashed line is as fast as alone, and the further left, the better.</p>\n<ul class=\"legend\"><li><i "
         "class=\"swatch\" style=\"background:var(--line-0)\"></i>A</li><li><i class=\"swatch\" "
         "style=\"background:var(--line-1)\"></i>B</li></ul>\n" +
         charts.add(spec, "Mean slow-down", "Mean slow-down of each job in both files", height) + "</section>\n";
}

std::string unfinished(const char* name, const Results& results) {
  if (results.unfinished.empty()) return "";
  std::vector<std::string> names;
  for (const std::string& policy : results.unfinished) names.push_back(escaped(policy));
  return fmt::format("<p class=\"alarm\"><b>Unfinished.</b> {} was ended before {} had been run.</p>\n", name,
                     listed(names));
}

}  // namespace

std::string render_comparison(const NamedResults& a, const NamedResults& b) {
  const View first(*a.results);
  const View second(*b.results);
  const auto policies = compared(first, second, a, b);
  const std::string title = a.results->experiment == b.results->experiment
                                ? fmt::format("{}: two results", a.results->experiment)
                                : fmt::format("{} and {}", a.results->experiment, b.results->experiment);
  ChartList charts(a.results->experiment);
  std::string body = unfinished("A", *a.results) + unfinished("B", *b.results) + lead(policies);
  body += "<dl class=\"facts\">" + fact("A", escaped(a.name)) + fact("B", escaped(b.name)) + "</dl>\n";
  std::vector<std::string> only;
  for (const std::string& policy : policies_of(*a.results))
    if (std::none_of(b.results->runs.begin(), b.results->runs.end(),
                     [&](const Run& run) { return run.policy == policy; }))
      only.push_back(fmt::format("<b>{}</b> in A alone", escaped(policy)));
  for (const std::string& policy : policies_of(*b.results))
    if (std::none_of(a.results->runs.begin(), a.results->runs.end(),
                     [&](const Run& run) { return run.policy == policy; }))
      only.push_back(fmt::format("<b>{}</b> in B alone", escaped(policy)));
  if (!only.empty()) body += fmt::format("<p>Not compared: {}.</p>\n", listed(only));
  body += chart(policies, charts) + "<section id=\"numbers\"><h2>In numbers</h2>\n" + policy_table(policies) +
          job_table(policies) + differences(*a.results, *b.results) + "</section>\n";
  const std::string footer =
      (b.results->provenance ? "<p>B:</p>\n" + provenance_text(b.results->provenance) : "") + words_of_results();
  return page_of("MLTCP comparison", title, body, footer, a.results->provenance, charts, "");
}

}  // namespace mltcp::experiment
