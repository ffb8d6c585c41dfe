// The page that compares two result files (see report_comparison.h).
#include "mltcp/lab/experiment/report/report_comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/report/internal/experiment_settings.h"
#include "mltcp/lab/experiment/report/internal/html.h"
#include "mltcp/lab/experiment/report/internal/report_charts.h"
#include "mltcp/lab/experiment/report/internal/report_page.h"
#include "mltcp/lab/experiment/report/internal/report_view.h"

namespace mltcp::experiment {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDrawnRows = 100;  // maximum number of rows of the chart
constexpr std::size_t kMaxSettings = 25;    // maximum number of shown settings in which the experiments differ

// A job that both files have under the same policy, with its slow-downs in A and B.
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
  double mean_a = 0;  // mean slow-down of the common jobs in A
  double mean_b = 0;
  std::vector<const JobResult*> jobs_a;  // in the order of `jobs`
  std::vector<const JobResult*> jobs_b;
};

double slowdown_of(const JobResult& job) {
  if (job.isolated.count <= 0 || job.mean.count <= 0) return 0;
  return static_cast<double>(job.mean.count) / static_cast<double>(job.isolated.count);
}

// Pairs each run of `a` with the most similar run of `b` that has the same policy and is not yet paired.
std::vector<std::pair<std::size_t, std::size_t>> matched(const Results& a, const Results& b) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < a.runs.size(); ++i) {
    int max = -1;
    std::size_t best = 0;
    for (std::size_t k = 0; k < b.runs.size(); ++k) {
      if (b.runs[k].policy != a.runs[i].policy || taken.contains(k)) continue;
      const int alike = 4 * (a.runs[i].cc == b.runs[k].cc ? 1 : 0) +
                        2 * (a.runs[i].datapath == b.runs[k].datapath ? 1 : 0) +
                        (a.runs[i].seed == b.runs[k].seed ? 1 : 0);
      if (alike > max) {
        max = alike;
        best = k;
      }
    }
    if (max < 0) continue;
    taken.insert(best);
    pairs.emplace_back(i, best);
  }
  return pairs;
}

std::string known(const std::vector<std::string>& names) {
  constexpr std::size_t max = 6;
  std::vector<std::string> quoted;
  for (std::size_t i = 0; i < std::min(names.size(), max); ++i) quoted.push_back(in_quotes(names[i]));
  if (names.size() > max) quoted.push_back(fmt::format("{} more", names.size() - max));
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
    Policy policy{a.labels[i], a.summaries[i], b.summaries[k], {}, 0, 0, {}, {}};
    for (const JobResult* job : judged_jobs(a.results.runs[i]))
      for (const JobResult* other : judged_jobs(b.results.runs[k])) {
        if (job->name != other->name) continue;
        common = true;
        if (slowdown_of(*job) > 0 && slowdown_of(*other) > 0) {
          policy.jobs.push_back({job->name, slowdown_of(*job), slowdown_of(*other)});
          policy.jobs_a.push_back(job);
          policy.jobs_b.push_back(other);
        }
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
    throw InputError(one_line(
        fmt::format("{} and {} have no job with a slow-down in both; {}, and let both runs measure the jobs alone",
                    first.name, second.name, cure)));
  return policies;
}

// Returns a ratio as text, such as "▼ 1.082 worse". `before` is the value of file A, `now` the value of file B.
std::string ratio_text(double before, double now) {
  const Change change = change_of(before, now);
  const std::string ratio = fmt::format("{:.3f}", now / before);
  if (change == Change::same) return ratio + " <span class=\"unit\">no difference</span>";
  return fmt::format("<b class=\"{}\">{} {}</b> <span class=\"unit\">{}</span>", class_of(change),
                     change == Change::better ? "▲" : "▼", ratio, class_of(change));
}

// Returns sentences on mean slow-down and interleaving under each policy, with equal emphasis for better and worse.
std::string lead(const std::vector<Policy>& policies) {
  std::string out;
  for (const Policy& policy : policies) {
    const Change mean = change_of(policy.mean_a, policy.mean_b);
    const Change sooner = interleaving_change(policy.a, policy.b);
    out += fmt::format("<li><b>{}</b>: compared with A, B is {}. The mean slow-down is {}.", escaped(policy.label),
                       verdicts(mean, "on average", sooner, "in interleaving"),
                       slowdown_beside(policy.mean_a, policy.mean_b));
    if (sooner != Change::unknown)
      out += fmt::format(" Its jobs {}; those of A {}.", interleaving(policy.b), interleaving(policy.a));
    out += "</li>";
  }
  return "<ul class=\"lead\">" + out + "</ul>\n";
}

// Returns a text that says from when on jobs interleave, such as "iteration 7", "never (5%: 12)" or "never"; a dash if
// unknown.
std::string from_text(const RunSummary& summary) {
  if (!summary.several || !summary.slowdown) return "–";
  if (summary.interleaved) return fmt::format("iteration {}", *summary.interleaved);
  return summary.interleaved_5pct ? fmt::format("never (5%: {})", *summary.interleaved_5pct) : "never";
}

std::string tiles(const std::vector<Policy>& policies) {
  const auto beside = [](Change change, std::string_view better, std::string_view worse, const std::string& of_a) {
    return fmt::format("{} A: {}",
                       change == Change::better  ? better
                       : change == Change::worse ? worse
                                                 : "no different from",
                       of_a);
  };
  std::string out;
  for (const Policy& policy : policies) {
    const Change mean = change_of(policy.mean_a, policy.mean_b);
    const Change sooner = interleaving_change(policy.a, policy.b);
    out += fmt::format("<li class=\"tile several\"><h3>{}</h3>", escaped(policy.label));
    out += measure(mean, "mean slow-down", slowdown_text(policy.mean_b),
                   beside(mean, "better than", "worse than", slowdown_text(policy.mean_a)));
    if (sooner != Change::unknown)
      out += measure(sooner, "interleaved from", from_text(policy.b),
                     beside(sooner, "sooner than", "later than", from_text(policy.a)));
    out += "</li>\n";
  }
  return "<p class=\"tiles-note\">The results of B, compared with A:</p>\n<ul class=\"tiles\">" + out + "</ul>\n";
}

// ---- Origin of A and B ----

struct Trait {
  std::string name;
  std::string a;
  std::string b;
};

std::string words_of(const Results& results, const std::function<std::string(const Run&)>& word) {
  std::vector<std::string> words;
  for (const Run& run : results.runs) add_once(words, word(run));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string marking_words(const Results& results, const std::optional<std::vector<Setting>>& settings) {
  const bool on_hosts = std::ranges::any_of(results.runs, [](const Run& run) { return run.datapath == "hosts"; });
  if (on_hosts) return "as the network was set up";
  if (settings) return marking_of(*settings);
  const bool marked =
      std::ranges::any_of(results.runs, [](const Run& run) { return run.bottleneck.ecn_marked_packets > 0; });
  return marked ? "on; its settings are unknown" : "unknown";
}

// Returns the traits that are always shown.
std::vector<Trait> main_traits(const NamedResults& a, const NamedResults& b) {
  std::vector<Trait> traits{{"File", a.name, b.name}};
  const auto add = [&](const char* name, auto&& words) {
    traits.push_back({name, words(*a.results), words(*b.results)});
  };
  add("Experiment", [](const Results& of) { return of.experiment; });
  add("Policies", [](const Results& of) { return words_of(of, [](const Run& run) { return run.policy; }); });
  add("Congestion control", [](const Results& of) { return words_of(of, [](const Run& run) { return run.cc; }); });
  add("Marking (ECN)", [](const Results& of) { return marking_words(of, settings_of(of.provenance)); });
  return traits;
}

// Returns the traits that are shown only if they differ.
std::vector<Trait> other_traits(const Results& a, const Results& b) {
  std::vector<Trait> traits;
  const auto add = [&](const char* name, auto&& words) { traits.push_back({name, words(a), words(b)}); };
  add("Datapath", [](const Results& of) { return words_of(of, [](const Run& run) { return run.datapath; }); });
  add("Seed", [](const Results& of) { return words_of(of, [](const Run& run) { return std::to_string(run.seed); }); });
  add("Iterations", [](const Results& of) {
    return words_of(of, [](const Run& run) {
      std::size_t max = 0;
      for (const JobResult& job : run.jobs) max = std::max(max, job.iterations.size());
      return std::to_string(max);
    });
  });
  add("Bottleneck", [](const Results& of) {
    return words_of(of, [](const Run& run) {
      return run.bottleneck.rate.is_zero() ? std::string("unknown") : rate_text(run.bottleneck.rate);
    });
  });
  if (!a.provenance || !b.provenance) return traits;
  add("Program", [](const Results& of) {
    return fmt::format("{}{}{}", of.provenance->version,
                       of.provenance->commit.empty() ? "" : " (" + of.provenance->commit.substr(0, 12) + ")",
                       of.provenance->modified ? ", with changes" : "");
  });
  const auto virtual_time = [](const Run& run) { return run.datapath == "sim" || run.datapath == "flow"; };
  // In virtual time, results do not depend on the machine.
  if (!std::ranges::all_of(a.runs, virtual_time) || !std::ranges::all_of(b.runs, virtual_time))
    add("Machine", [](const Results& of) {
      const Provenance::Machine& machine = of.provenance->machine;
      return fmt::format("{}, {} CPUs, {}", machine.cpu, machine.cpus, machine.kernel);
    });
  add("Experiment file, SHA-256", [](const Results& of) {
    return of.provenance->files.empty() ? std::string("unknown") : of.provenance->files.front().sha256.substr(0, 12);
  });
  add("Other files that were read", [](const Results& of) {
    std::vector<std::string> files;
    for (std::size_t n = 1; n < of.provenance->files.size(); ++n)
      files.push_back(
          fmt::format("{} ({})", of.provenance->files[n].path, of.provenance->files[n].sha256.substr(0, 12)));
    return files.empty() ? std::string("none") : fmt::format("{}", fmt::join(files, ", "));
  });
  return traits;
}

// Returns whether another row of the table shows this key. Most values in these rows are from the runs, because options
// of the command may override the file. ECN marking has its own row.
bool is_shown_elsewhere(const std::string& key) {
  constexpr std::array<std::string_view, 8> keys{"name",       "cc",   "datapath",       "policies",
                                                 "iterations", "seed", "bottleneck.ecn", "topology.ecn"};
  return std::ranges::find(keys, key) != keys.end();
}

// Returns the settings in which the experiments differ, and the number of settings that are equal.
std::pair<std::vector<Trait>, std::size_t> setting_traits(const std::vector<Setting>& a,
                                                          const std::vector<Setting>& b) {
  const auto value = [](const std::vector<Setting>& settings, const std::string& key) {
    const std::string* found = find_setting(settings, key);
    return found == nullptr ? std::string("not set") : *found;
  };
  std::set<std::string> keys;
  for (const auto* settings : {&a, &b})
    for (const Setting& setting : *settings)
      if (!is_shown_elsewhere(setting.key)) keys.insert(setting.key);
  std::vector<Trait> traits;
  for (const std::string& key : keys)
    if (Trait trait{key, value(a, key), value(b, key)}; trait.a != trait.b) traits.push_back(std::move(trait));
  const std::size_t same = keys.size() - traits.size();
  return {std::move(traits), same};
}

// Returns a table of the origin of both files and of all differences, and a line with the settings that are equal.
std::string identity(const NamedResults& a, const NamedResults& b) {
  std::vector<Trait> traits = main_traits(a, b);
  std::vector<std::string> same;
  for (Trait& trait : other_traits(*a.results, *b.results)) {
    if (trait.a != trait.b) {
      traits.push_back(std::move(trait));
    } else if (trait.a != "none" && trait.a != "unknown" && !trait.a.empty()) {
      same.push_back(fmt::format("{} <b>{}</b>", trait.name, escaped(trait.a)));
    }
  }
  std::string notes;
  const auto settings_a = settings_of(a.results->provenance);
  const auto settings_b = settings_of(b.results->provenance);
  if (settings_a && settings_b) {
    auto [differing, others] = setting_traits(*settings_a, *settings_b);
    if (differing.size() > kMaxSettings)
      notes += fmt::format("<p>{} more settings of the experiment differ.</p>\n", differing.size() - kMaxSettings);
    differing.resize(std::min(differing.size(), kMaxSettings));
    std::move(differing.begin(), differing.end(), std::back_inserter(traits));
    if (others > 0) same.push_back(plural(others, "other setting") + " of the experiment");
  } else {
    notes += fmt::format(
        "<p>Other differences of settings are unknown: {} not contain the experiment, like older files, records of "
        "sweeps and experiments above 64 kB.</p>\n",
        !settings_a && !settings_b ? "the files do"
        : !settings_a              ? "A does"
                                   : "B does");
  }
  std::string rows;
  for (const Trait& trait : traits) {
    const bool differs = trait.a != trait.b;
    const auto text = [&](const std::string& value) {
      const std::string shown = escaped(value.empty() ? "unnamed" : value);
      return differs ? fmt::format("<b>{}</b>", shown) : shown;
    };
    rows += fmt::format("<tr class=\"first\"><th scope=\"row\">{}</th>{}{}{}</tr>\n", escaped(trait.name),
                        cell("A", text(trait.a)), cell("B", text(trait.b)),
                        cell("", differs && trait.name != "File" ? "<b>differs</b>" : ""));
  }
  return table("Settings of A and B", {"", "A", "B", ""}, rows, "cards words") + notes +
         (same.empty() ? "" : fmt::format("<p>The same in both: {}.</p>\n", fmt::join(same, " · ")));
}

// ---- Equal files ----

bool same_measurements(const Results& a, const Results& b) {
  const auto same_job = [](const JobResult& x, const JobResult& y) {
    return x.name == y.name && x.isolated == y.isolated && x.mean == y.mean && x.p99 == y.p99 && x.starts == y.starts &&
           x.iterations == y.iterations && x.retransmitted_packets == y.retransmitted_packets;
  };
  return std::ranges::equal(a.runs, b.runs, [&](const Run& x, const Run& y) {
    return x.policy == y.policy && x.cc == y.cc && x.datapath == y.datapath && x.duration == y.duration &&
           x.bottleneck.ecn_marked_packets == y.bottleneck.ecn_marked_packets &&
           x.bottleneck.dropped_packets == y.bottleneck.dropped_packets && std::ranges::equal(x.jobs, y.jobs, same_job);
  });
}

std::string sameness(const Results& a, const Results& b) {
  const bool one_run = a.provenance && b.provenance && *a.provenance == *b.provenance;
  const bool same = same_measurements(a, b);
  std::string text;
  if (one_run && same)
    text =
        "<b>A and B are the same result</b>, from one run of the program, so there is nothing to compare. Replace one "
        "of them by the result of another run.";
  else if (one_run)
    text = "<b>A and B are from one run of the program</b>; one of them has more of it.";
  else if (same)
    text =
        "<b>A and B measured the same, to the nanosecond</b>: their differences changed nothing. In virtual time, an "
        "experiment gives the same result in every run.";
  return text.empty() ? "" : fmt::format("<p class=\"note\">{}</p>\n", text);
}

std::string policy_table(const std::vector<Policy>& policies) {
  std::string rows;
  for (const Policy& policy : policies)
    rows += fmt::format("<tr class=\"first\"><th scope=\"row\"><span class=\"name\">{}</span></th>",
                        escaped(policy.label)) +
            cell("Slow-down, A", slowdown_text(policy.mean_a)) + cell("Slow-down, B", slowdown_text(policy.mean_b)) +
            cell("B by A", ratio_text(policy.mean_a, policy.mean_b)) +
            cell("Interleaved from, A", from_text(policy.a)) + cell("Interleaved from, B", from_text(policy.b)) +
            "</tr>\n";
  return table("By policy: mean slow-down of the jobs that are in both",
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
  Json rows = Json::array();
  Json a{{"name", "A"}, {"colour", "line-0"}, {"v", Json::array()}};
  Json b{{"name", "B"}, {"colour", "line-1"}, {"v", Json::array()}};
  AxisRange range;
  range.add(1);
  for (const Policy& policy : policies)
    for (const Pair& job : policy.jobs) {
      if (rows.size() == kMaxDrawnRows) break;
      rows.push_back(fmt::format("{} · {}", policy.label, job.name));
      a["v"].push_back(job.a);
      b["v"].push_back(job.b);
      range.add(job.a);
      range.add(job.b);
    }
  const int height = static_cast<int>(rows.size()) * 22 + 46;
  const Json spec = slowdown_dots("comparison", range, rows, Json::array({std::move(a), std::move(b)}));
  return "<section id=\"jobs\" class=\"needs-js\"><h2>How much slower than alone</h2>\n<p>A row is a job under a "
         "policy; the "
         "dashed line is as fast as alone, and the further left, the better.</p>\n<ul class=\"legend\"><li><i "
         "class=\"swatch\" style=\"background:var(--line-0)\"></i>A</li><li><i class=\"swatch\" "
         "style=\"background:var(--line-1)\"></i>B</li></ul>\n" +
         charts.add(spec, "Mean slow-down", "Mean slow-down of each job in both files", height) + "</section>\n";
}

// Returns the slow-downs of A and B by iteration and their distributions, for each policy.
std::string iterations_section(const std::vector<Policy>& policies, ChartList& charts) {
  constexpr std::size_t kMaxPoints = 1000;
  constexpr int height = 240;
  AxisRange range;
  range.add(1);
  for (const Policy& policy : policies)
    for (const auto* jobs : {&policy.jobs_a, &policy.jobs_b})
      for (const double value : sorted_slowdowns(*jobs)) range.add(value);
  const auto axis = [&](const char* label) { return range.axis(label, "×", 0.04, 0.01); };
  std::string panels;
  for (const Policy& policy : policies) {
    const auto a = sorted_slowdowns(policy.jobs_a);
    const auto b = sorted_slowdowns(policy.jobs_b);
    if (a.empty() || b.empty()) continue;  // records of sweeps contain no single iterations
    const std::size_t length = std::max(max_iterations(policy.jobs_a), max_iterations(policy.jobs_b));
    const std::size_t group = (length + kMaxPoints - 1) / kMaxPoints;
    const Json lines =
        slowdown_lines("compared-iterations-" + policy.label, length, group, axis("slow-down"),
                       Json::array({line_of(slowdown_line(policy.jobs_a, group), "A", line_colour(0), ""),
                                    line_of(slowdown_line(policy.jobs_b, group), "B", line_colour(1), "")}));
    const Json distribution =
        distribution_lines("compared-distribution-" + policy.label, axis("slow-down of an iteration"),
                           Json::array({distribution_line(0, "A", a), distribution_line(1, "B", b)}));
    const std::string name = escaped(policy.label);
    panels += charts.add(lines, fmt::format("<b>{}</b>: slow-down by iteration", name),
                         "Slow-down by iteration in both files under " + name, height) +
              charts.add(distribution, fmt::format("<b>{}</b>: all iterations", name),
                         "Distribution of slow-downs in both files under " + name, height);
  }
  if (panels.empty()) return "";
  return "<section id=\"compared\" class=\"needs-js\"><h2>Iteration by iteration</h2>\n<p>On the left the mean over "
         "the jobs, shaded from the least to the most slowed down; on the right, or below, the share of all iterations "
         "whose slow-down is at most the value on the axis.</p>\n<ul class=\"legend\"><li><i class=\"swatch\" "
         "style=\"background:var(--line-0)\"></i>A</li><li><i class=\"swatch\" "
         "style=\"background:var(--line-1)\"></i>B</li></ul>\n<div class=\"pair\">" +
         panels + "</div></section>\n";
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
  std::string body = unfinished("A", *a.results) + unfinished("B", *b.results) + sameness(*a.results, *b.results) +
                     identity(a, b) + lead(policies) + tiles(policies);
  std::vector<std::string> only;
  for (const std::string& policy : policies_of(*a.results))
    if (std::ranges::none_of(b.results->runs, [&](const Run& run) { return run.policy == policy; }))
      only.push_back(fmt::format("<b>{}</b> only in A", escaped(policy)));
  for (const std::string& policy : policies_of(*b.results))
    if (std::ranges::none_of(a.results->runs, [&](const Run& run) { return run.policy == policy; }))
      only.push_back(fmt::format("<b>{}</b> only in B", escaped(policy)));
  if (!only.empty()) body += fmt::format("<p>Not compared: {}.</p>\n", listed(only));
  body += chart(policies, charts) + iterations_section(policies, charts) +
          "<section id=\"numbers\"><h2>In numbers</h2>\n" + policy_table(policies) + job_table(policies) +
          "</section>\n";
  const std::string footer =
      (b.results->provenance ? "<p>B:</p>\n" + provenance_text(b.results->provenance) : "") + words_of_results();
  return page_of("MLTCP comparison", title, body, footer, a.results->provenance, charts, "");
}

}  // namespace mltcp::experiment
