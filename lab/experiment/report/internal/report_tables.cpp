// The tables of the page of results (see report_tables.h).
#include "mltcp/lab/experiment/report/internal/report_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "mltcp/lab/experiment/report/internal/html.h"

namespace mltcp::experiment {
namespace {

constexpr std::size_t kMaxWorstJobs = 5;     // maximum number of jobs in worst_table(), per policy
constexpr std::size_t kMaxListedLinks = 10;  // maximum number of links that the page lists without a script
constexpr std::size_t kMaxLinks = 2000;      // maximum number of links from which the reader can choose
constexpr std::size_t kMaxListedRanks = 2000;

std::string with_unit(const TimeUnit& unit, std::string_view column, Nanos value) {
  return cell(column, value.count > 0
                          ? unit.number(value) + fmt::format("<span class=\"unit on-card\"> {}</span>", unit.name)
                          : "–");
}

std::string titled(const char* column, const TimeUnit& unit) {
  return fmt::format("{} <span class=\"unit\">{}</span>", column, unit.name);
}

double second_half_slowdown(const JobResult& job) {
  if (job.isolated.count <= 0) return 0;
  return static_cast<double>(job.second_half_mean.count) / static_cast<double>(job.isolated.count);
}

double mean_slowdown(const JobResult& job) {
  if (job.isolated.count <= 0) return 0;
  return static_cast<double>(job.mean.count) / static_cast<double>(job.isolated.count);
}

std::string from_text(const Run& run, const JobResult& job) {
  if (run.jobs.size() < 2 || job.unaware) return "–";
  if (job.interleaved_from) return fmt::format("iteration {}", *job.interleaved_from);
  for (const JobResult& other : run.jobs)
    if (other.isolated.count <= 0) return "–";
  return job.interleaved_from_5pct ? fmt::format("never (5%: {})", *job.interleaved_from_5pct) : "never";
}

std::string policy_cell(const std::string& label, std::size_t rows) {
  return fmt::format("<th scope=\"rowgroup\" rowspan=\"{}\"><span class=\"name\">{}</span></th>", rows, escaped(label));
}

// Returns the names of all links, ordered by their maximum use under any policy, most used first.
std::vector<std::string> links_by_use(const View& view) {
  std::map<std::string, double> max;
  std::vector<std::string> names;
  for (const Run& run : view.results.runs)
    for (const LinkResult& link : run.links) {
      const auto [known, is_new] = max.try_emplace(link.name, link.utilization);
      if (is_new) names.push_back(link.name);
      known->second = std::max(known->second, link.utilization);
    }
  std::ranges::stable_sort(names, [&](const std::string& a, const std::string& b) { return max.at(a) > max.at(b); });
  return names;
}

}  // namespace

std::string job_cell(const View& view, const std::string& name) {
  if (view.many()) return fmt::format("<span class=\"name\">{}</span>", escaped(name));
  return fmt::format("<span class=\"name\"><i class=\"swatch c{}\"></i>{}</span>", view.job_id(name), escaped(name));
}

std::string iterations_table(const View& view) {
  std::string rows;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    rows += "</tbody><tbody>";
    if (run.jobs.empty())
      rows += fmt::format("<tr><th scope=\"row\">{}</th><td colspan=\"9\">no jobs</td></tr>", escaped(view.labels[r]));
    for (std::size_t j = 0; j < run.jobs.size(); ++j) {
      const JobResult& job = run.jobs[j];
      rows += fmt::format("<tr{}>", j == 0 ? " class=\"first\"" : "");
      if (j == 0) rows += policy_cell(view.labels[r], run.jobs.size());
      rows += fmt::format("<th scope=\"row\">{}</th>", job_cell(view, job.name));
      rows += with_unit(view.unit, "Alone", job.isolated) + with_unit(view.unit, "Mean", job.mean) +
              with_unit(view.unit, "Median", job.p50) + with_unit(view.unit, "p99", job.p99);
      rows += cell("Slow-down", fmt::format("<b>{}</b>", slowdown_text(job.slowdown)));
      rows += with_unit(view.unit, "Mean, 2nd half", job.second_half_mean);
      rows += cell("Slow-down, 2nd half", slowdown_text(second_half_slowdown(job)));
      rows += cell("Interleaved from", from_text(run, job)) + "</tr>\n";
    }
  }
  return table("Iteration times",
               {"Policy", "Job", titled("Alone", view.unit), titled("Mean", view.unit), titled("Median", view.unit),
                titled("p99", view.unit), "Slow-down", titled("Mean, 2nd half", view.unit), "Slow-down, 2nd half",
                "Interleaved from"},
               rows, "cards grouped");
}

namespace {

/// A column of the table of runs: the text of its cells, and whether the results have data for this column.
struct RunColumn {
  std::string title;
  std::function<std::string(std::size_t run)> text;
  bool shown = true;
  std::string label = {};  ///< label of the column's cells on narrow screens; the title if empty
};

/// Returns a list such as "a 1 ms, b 2 ms" of the run's jobs for which `text` is not empty. Returns `none` if there are
/// no such jobs, and only their number if there are more than `max`.
std::string of_jobs(const Run& run, const std::function<std::string(const JobResult&)>& text, const std::string& none,
                    std::size_t max) {
  std::vector<std::string> texts;
  for (const JobResult& job : run.jobs)
    if (const std::string own = text(job); !own.empty()) texts.push_back(fmt::format("{} {}", escaped(job.name), own));
  if (texts.size() > max) texts = {fmt::format("of {} jobs", texts.size())};
  return texts.empty() ? none : listed(texts);
}

template <typename Value>
std::uint64_t sum_over(const std::vector<JobResult>& jobs, Value value) {
  std::uint64_t sum = 0;
  for (const JobResult& job : jobs) sum += value(job);
  return sum;
}

std::vector<RunColumn> columns_of_runs(const View& view) {
  constexpr std::size_t max_shifts = 8;  // maximum number of jobs named in a cell
  const std::vector<Run>& runs = view.results.runs;
  const auto any_run = [&](auto&& has) { return std::ranges::any_of(runs, has); };
  const auto any_job = [&](auto&& has) {
    return any_run([&](const Run& run) { return std::ranges::any_of(run.jobs, has); });
  };
  const auto of_link = [&runs](std::function<std::string(const Run&)> text) {
    return [&runs, text = std::move(text)](std::size_t r) {
      return runs[r].links_unknown ? std::string("–") : text(runs[r]);
    };
  };
  const auto share = [](const std::optional<double>& value) { return value ? percent_text(*value) : std::string("–"); };
  return {
      {"Link used", of_link([](const Run& run) {
         const std::string used = percent_text(run.bottleneck.utilization);
         return run.bottleneck.rate.is_zero() ? used : fmt::format("{} of {}", used, rate_text(run.bottleneck.rate));
       })},
      {"Bursts overlap", [&view, share](std::size_t r) { return share(view.overlap(r, view.spans[r])); }},
      {"Overlap, 2nd half", [&view, share](std::size_t r) { return share(view.overlap(r, view.second_half(r))); }},
      {"ECN marks", of_link([](const Run& run) { return count_text(run.bottleneck.ecn_marked_packets); })},
      {"Drops", of_link([](const Run& run) {
         std::uint64_t dropped = 0;  // sum over all links
         for (const auto& link : run.links) dropped += link.dropped_packets;
         const std::uint64_t here = run.bottleneck.dropped_packets;
         return count_text(here) + (dropped > here ? fmt::format(", {} on all links", count_text(dropped)) : "");
       })},
      {"Retransmitted",
       [&runs](std::size_t r) {
         return count_text(sum_over(runs[r].jobs, [](const JobResult& job) { return job.retransmitted_packets; }));
       }},
      {"Longest queue", of_link([](const Run& run) { return bytes_text(run.bottleneck.max_queue_bytes); })},
      {"Jobs at once, 2nd half",
       [&view](std::size_t r) {
         const auto at_once = view.jobs_at_once(r, view.second_half(r));
         return at_once ? jobs_text(*at_once) : "–";
       },
       any_run([](const Run& run) { return run.jobs.size() >= kFewestCounted; })},
      {"Time shifts",
       [&view, &runs](std::size_t r) {
         const auto shift = [&](const JobResult& job) {
           return job.time_shift.count > 0 ? view.unit.text(job.time_shift) : std::string();
         };
         return of_jobs(runs[r], shift, "none", max_shifts);
       },
       any_job([](const JobResult& job) { return job.time_shift.count > 0; })},
      {"Damaged / checked messages",
       [&runs](std::size_t r) {
         const auto damaged = sum_over(runs[r].jobs, [](const JobResult& job) { return job.checksum_errors; });
         const auto checked = sum_over(runs[r].jobs, [](const JobResult& job) { return job.verified_messages; });
         return fmt::format("{} / {}", count_text(damaged), count_text(checked));
       },
       any_job([](const JobResult& job) { return job.verified_messages + job.checksum_errors > 0; })},
      {"Machine stalls: longest, all",
       [&view, &runs](std::size_t r) {
         const auto& stalls = runs[r].stalls;
         return stalls ? fmt::format("{}, {}", view.unit.text(stalls->longest), view.unit.text(stalls->total)) : "–";
       },
       any_run([](const Run& run) { return run.stalls.has_value(); }), "Machine stalls"},
      {"Busiest shared link",
       [&runs](std::size_t r) { return runs[r].bottleneck.name.empty() ? "–" : escaped(runs[r].bottleneck.name); },
       any_run([](const Run& run) { return !run.bottleneck.name.empty(); })},
      {"Bus bandwidth",
       [&runs](std::size_t r) {
         const auto bandwidth = [](const JobResult& job) {
           return job.bus_bandwidth.is_zero() ? std::string() : to_text(job.bus_bandwidth);
         };
         return of_jobs(runs[r], bandwidth, "–", runs[r].jobs.size());
       },
       any_job([](const JobResult& job) { return !job.bus_bandwidth.is_zero(); })},
  };
}

}  // namespace

std::string transport_table(const View& view) {
  std::vector<RunColumn> columns = columns_of_runs(view);
  std::erase_if(columns, [](const RunColumn& column) { return !column.shown; });
  std::vector<std::string> titles = {"Policy"};
  for (const RunColumn& column : columns) titles.push_back(column.title);
  std::string rows;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    rows += fmt::format("<tr class=\"first\"><th scope=\"row\"><span class=\"name\">{}</span></th>",
                        escaped(view.labels[r]));
    for (const RunColumn& column : columns)
      rows += cell(column.label.empty() ? column.title : column.label, column.text(r));
    rows += "</tr>\n";
  }
  return table("The link and the transport", titles, rows, "cards");
}

std::string jobs_table(const View& view) {
  std::map<std::string, const JobResult*> first;
  for (const Run& run : view.results.runs)
    for (const JobResult& job : run.jobs) first.try_emplace(job.name, &job);
  std::string rows;
  for (const std::string& name : view.jobs) {
    const JobResult* job = first.at(name);
    const bool known = job->compute.count > 0 && job->isolated > job->compute;
    const double up =
        known ? 1 - static_cast<double>(job->compute.count) / static_cast<double>(job->isolated.count) : 0;
    rows += fmt::format("<tr class=\"first\"><th scope=\"row\">{}{}</th>{}{}{}{}</tr>\n", job_cell(view, name),
                        job->unaware ? " <span class=\"unit\">(unaware: no policy applies to it)</span>" : "",
                        cell("Computes", view.unit.text(job->compute)),
                        cell("Sends", job->bytes_per_iteration > 0 ? bytes_text(job->bytes_per_iteration) : "–"),
                        cell("Iteration when alone", view.unit.text(job->isolated)),
                        cell("Of that on the link", known ? percent_text(up) : "–"));
  }
  return table("The jobs, per iteration", {"Job", "Computes", "Sends", "Iteration when alone", "Of that on the link"},
               rows);
}

std::string worst_table(const View& view) {
  std::string rows;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    if (!view.summaries[r].slowdown) continue;
    const Run& run = view.results.runs[r];
    auto jobs = judged_jobs(run);
    std::ranges::stable_sort(jobs, [](const auto* a, const auto* b) { return mean_slowdown(*a) > mean_slowdown(*b); });
    jobs.resize(std::min(jobs.size(), kMaxWorstJobs));
    rows += "</tbody><tbody>";
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      rows += fmt::format("<tr{}>", j == 0 ? " class=\"first\"" : "");
      if (j == 0) rows += policy_cell(view.labels[r], jobs.size());
      rows += fmt::format("<th scope=\"row\">{}</th>", job_cell(view, jobs[j]->name)) +
              cell("Slow-down", fmt::format("<b>{}</b>", slowdown_text(mean_slowdown(*jobs[j])))) +
              cell("Slow-down, 2nd half", slowdown_text(second_half_slowdown(*jobs[j]))) +
              cell("Interleaved from", from_text(run, *jobs[j])) + "</tr>\n";
    }
  }
  return rows.empty()
             ? ""
             : table("The jobs slowed down most under each policy",
                     {"Policy", "Job", "Slow-down", "Slow-down, 2nd half", "Interleaved from"}, rows, "cards grouped");
}

std::string ranks_table(const View& view) {
  std::string rows;
  std::size_t all = 0;
  bool hosts = false;
  bool communication = false;
  for (const Run& run : view.results.runs)
    for (const JobResult& job : run.jobs)
      for (const RankTimes& rank : job.ranks) {
        ++all;
        hosts |= rank.host.has_value();
        communication |= rank.communication.count > 0;
      }
  if (all == 0) return "";
  std::size_t listed_ranks = 0;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r)
    for (const JobResult& job : view.results.runs[r].jobs)
      for (const RankTimes& rank : job.ranks) {
        if (++listed_ranks > kMaxListedRanks) continue;
        const bool first = &rank == &job.ranks.front();
        rows += fmt::format("<tr{}><th scope=\"row\"><span class=\"name\">{}</span></th><th scope=\"row\">{}</th>",
                            first ? " class=\"first\"" : "", escaped(view.labels[r]), job_cell(view, job.name));
        rows += cell("Rank", std::to_string(rank.rank));
        if (hosts) rows += cell("Host", rank.host ? std::to_string(*rank.host) : "–");
        rows += with_unit(view.unit, "Mean", rank.mean) + with_unit(view.unit, "Median", rank.p50) +
                with_unit(view.unit, "p99", rank.p99);
        if (communication) rows += with_unit(view.unit, "Communicates", rank.communication);
        rows += "</tr>\n";
      }
  std::vector<std::string> columns{"Policy", "Job", "Rank"};
  if (hosts) columns.emplace_back("Host");
  for (const char* column : {"Mean", "Median", "p99"}) columns.push_back(titled(column, view.unit));
  if (communication) columns.push_back(titled("Communicates", view.unit));
  std::string out =
      fmt::format("<details id=\"ranks\"{}><summary>Ranks: iteration times of each rank, by its own clock</summary>\n",
                  all <= 16 ? " open" : "");
  out += table("Ranks", columns, rows, "cards grouped");
  if (all > kMaxListedRanks)
    out += fmt::format("<p>These are the first {}; all {} are in the result file.</p>\n", kMaxListedRanks, all);
  return out + "</details>\n";
}

std::string links_table(const View& view) {
  const auto names = links_by_use(view);
  if (names.empty()) return "";
  std::string rows;
  for (std::size_t n = 0; n < std::min(names.size(), kMaxListedLinks); ++n) {
    std::string cells;
    Rate rate;
    for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
      const auto& links = view.results.runs[r].links;
      const auto link = std::ranges::find_if(links, [&](const auto& of) { return of.name == names[n]; });
      if (link != links.end()) rate = link->rate;
      cells += cell(escaped(view.labels[r]),
                    link == links.end() || link->rate.is_zero() ? "–" : percent_text(link->utilization));
    }
    rows += fmt::format("<tr class=\"first\"><th scope=\"row\">{}</th>{}{}</tr>\n", escaped(names[n]),
                        cell("Rate", rate.is_zero() ? "none" : rate_text(rate)), cells);
  }
  std::vector<std::string> columns{"Link", "Rate"};
  for (const std::string& label : view.labels) columns.push_back(fmt::format("Used, {}", escaped(label)));
  return table(names.size() > kMaxListedLinks
                   ? fmt::format("The {} links used most, of {}", kMaxListedLinks, names.size())
                   : "The links, those used most first",
               columns, rows);
}

nlohmann::json links_data(const View& view) {
  using Json = nlohmann::json;
  auto names = links_by_use(view);
  names.resize(std::min(names.size(), kMaxLinks));
  std::map<std::string, std::size_t> place;
  Json links = Json::array();
  for (std::size_t n = 0; n < names.size(); ++n) {
    place[names[n]] = n;
    links.push_back({{"name", names[n]}, {"rate", 0}, {"runs", Json::array()}});
    for (std::size_t r = 0; r < view.results.runs.size(); ++r) links.back()["runs"].push_back(nullptr);
  }
  Json recorded = Json::array();
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    recorded.push_back(view.has_usage(r) ? run.bottleneck.name : std::string());
    for (const LinkResult& link : run.links) {
      const auto at = place.find(link.name);
      if (at == place.end()) continue;
      links[at->second]["rate"] = link.rate.bits_per_second;
      links[at->second]["runs"][r] = {link.utilization,     link.ecn_marked_packets,
                                      link.dropped_packets, link.max_queue_bytes,
                                      link.pauses,          link.contended.count};
    }
  }
  return {{"labels", view.labels}, {"recorded", std::move(recorded)}, {"links", std::move(links)}};
}

}  // namespace mltcp::experiment
