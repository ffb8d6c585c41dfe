// HTML report: fills the page template (report/page.html) with text, tables and data.
//
// How the picture is cut: every run is shown in two windows of the same width, its first iterations and its last
// ones, so that all panels share one time scale. The last window ends when the first job finishes, because from
// then on the others are alone and no policy has anything to do.
#include "mltcp/experiment/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "mltcp/experiment/internal/html.h"

namespace mltcp::embedded {
extern const std::string_view page_html;
extern const std::string_view report_css;
extern const std::string_view report_js;
extern const std::string_view uplot_css;
extern const std::string_view uplot_js;
}  // namespace mltcp::embedded

namespace mltcp::experiment {

namespace {

constexpr std::int64_t kWindowIterations = 4;  // of the slowest job; enough to see a rhythm, few enough to see bursts
constexpr std::int64_t kLeastBinsPerIteration = 10;  // below, bins blur the bursts
constexpr double kSame = 0.005;                      // policies this close to each other are called equal
constexpr std::size_t kColours = 8;                  // of the palette in report.css

// ---- text ----

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

// One unit for all times of the page, so that numbers can be compared by their looks.
struct TimeUnit {
  const char* name;
  double nanos;

  // `typical` is the smallest time that should read well, in about four digits.
  static TimeUnit for_time(Nanos typical) {
    if (typical.count >= 10'000'000'000) return {"s", 1e9};
    if (typical.count >= 1'000'000) return {"ms", 1e6};
    if (typical.count >= 1'000) return {"µs", 1e3};
    return {"ns", 1};
  }
  [[nodiscard]] std::string number(Nanos time) const {
    const double value = static_cast<double>(time.count) / nanos;
    return fmt::format("{:.{}f}", value, nanos < 10 || value >= 100 ? (value >= 1000 || nanos < 10 ? 0 : 1) : 2);
  }
  [[nodiscard]] std::string text(Nanos time) const {
    return time.count > 0 ? fmt::format("{} {}", number(time), name) : "–";
  }
};

// To three digits, because the exact value is in the result file.
std::string scaled(double value, std::array<const char*, 5> units) {
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  std::string number = fmt::format("{:.{}f}", value, unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2);
  if (number.find('.') != std::string::npos) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return fmt::format("{} {}", number, units[unit]);
}
std::string prose_time(Nanos time) { return scaled(static_cast<double>(time.count), {"ns", "µs", "ms", "s", "ks"}); }
std::string bytes_text(Bytes bytes) { return scaled(static_cast<double>(bytes), {"B", "kB", "MB", "GB", "TB"}); }
std::string rate_text(Rate rate) {
  return scaled(static_cast<double>(rate.bits_per_second), {"bps", "kbps", "Mbps", "Gbps", "Tbps"});
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), "\u2009");  // a thin space between thousands
  }
  return digits;
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.95) return fmt::format("{:.1f}%", std::max(percent, 0.1));
  return fmt::format("{:.0f}%", percent);
}

std::string slowdown_text(double slowdown) { return slowdown > 0 ? fmt::format("{:.2f}×", slowdown) : "–"; }

// ---- what the page says about the runs ----

struct View {
  const Results& results;
  std::vector<std::string> jobs;    // distinct names in order of appearance; the place in it gives the colour
  std::vector<std::string> labels;  // of each run: the policy, and what else tells it from the others
  std::vector<TimeSpan> spans;      // of each run, while all jobs are at work
  Nanos window;                     // width of the first and last window of every run; 0 = nothing to show
  TimeUnit unit{"ms", 1e6};

  explicit View(const Results& all) : results(all) {
    std::vector<std::string> ccs;
    std::vector<std::string> datapaths;
    std::vector<std::string> seeds;
    Nanos slowest;
    Nanos shortest_isolated = Nanos::never();
    Nanos shortest_span = Nanos::never();
    for (const Run& run : results.runs) {
      add_once(ccs, run.cc);
      add_once(datapaths, run.datapath);
      add_once(seeds, std::to_string(run.seed));
      spans.push_back(common_span(run));
      if (spans.back().to > spans.back().from) {
        shortest_span = std::min(shortest_span, spans.back().to - spans.back().from);
      }
      for (const JobResult& job : run.jobs) {
        add_once(jobs, job.name);
        slowest = std::max(slowest, job.p50);
        const Nanos alone = job.isolated.count > 0 ? job.isolated : job.p50;
        if (alone.count > 0) shortest_isolated = std::min(shortest_isolated, alone);
      }
    }
    for (const Run& run : results.runs) {
      std::string label = run.policy;
      if (ccs.size() > 1) label += " · " + run.cc;
      if (datapaths.size() > 1) label += " · " + run.datapath;
      if (seeds.size() > 1) label += " · seed " + std::to_string(run.seed);
      labels.push_back(label);
    }
    if (!shortest_span.is_never()) window = std::min(slowest * kWindowIterations, shortest_span / 2);
    if (!shortest_isolated.is_never()) unit = TimeUnit::for_time(shortest_isolated);
  }

  [[nodiscard]] bool has_picture(std::size_t run) const {
    return window.count > 0 && spans[run].to > spans[run].from && results.runs[run].bottleneck.usage.bin.count > 0;
  }
  [[nodiscard]] bool has_any_picture() const {
    for (std::size_t r = 0; r < results.runs.size(); ++r) {
      if (has_picture(r)) return true;
    }
    return false;
  }
  [[nodiscard]] TimeSpan first_window(std::size_t run) const { return {spans[run].from, spans[run].from + window}; }
  [[nodiscard]] TimeSpan last_window(std::size_t run) const { return {spans[run].to - window, spans[run].to}; }
  [[nodiscard]] TimeSpan second_half(std::size_t run) const {
    return {spans[run].from + (spans[run].to - spans[run].from) / 2, spans[run].to};
  }
  [[nodiscard]] std::optional<double> overlap(std::size_t run, TimeSpan span) const {
    return overlap_share(results.runs[run].bottleneck.usage, span.from, span.to);
  }
  [[nodiscard]] std::size_t job_id(const std::string& name) const {
    return static_cast<std::size_t>(std::find(jobs.begin(), jobs.end(), name) - jobs.begin());
  }
};

double second_half_slowdown(const JobResult& job) {
  if (job.isolated.count <= 0) return 0;
  return static_cast<double>(job.second_half_mean.count) / static_cast<double>(job.isolated.count);
}

// Of the job that fares worst; 0 when unknown.
double worst_second_half(const Run& run) {
  double worst = 0;
  for (const JobResult& job : run.jobs)
    if (!job.unaware) worst = std::max(worst, second_half_slowdown(job));
  return worst;
}

bool interleaves(const Run& run) {
  const auto comes_apart = [](const auto& job) { return job.unaware || job.interleaved_from.has_value(); };
  const auto unaware = [](const auto& job) { return job.unaware; };
  return run.jobs.size() > 1 && std::all_of(run.jobs.begin(), run.jobs.end(), comes_apart) &&
         !std::all_of(run.jobs.begin(), run.jobs.end(), unaware);
}

bool alone_known(const Run& run) {
  return std::all_of(run.jobs.begin(), run.jobs.end(), [](const auto& job) { return job.isolated.count > 0; });
}

std::string swatch(std::size_t job) { return fmt::format("<i class=\"swatch c{}\"></i>", job % kColours); }

std::string job_cell(const View& view, const std::string& name) {
  return fmt::format("<span class=\"name\">{}{}</span>", swatch(view.job_id(name)), escaped(name));
}

std::string fact(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, value);
}

std::string facts(const View& view) {
  std::vector<std::string> ccs;
  std::vector<std::string> datapaths;
  std::vector<std::string> seeds;
  std::vector<std::string> rates;
  std::size_t fewest = SIZE_MAX;
  std::size_t most = 0;
  for (const Run& run : view.results.runs) {
    add_once(ccs, escaped(run.cc));
    add_once(datapaths, escaped(run.datapath));
    add_once(seeds, std::to_string(run.seed));
    if (!run.bottleneck.rate.is_zero()) add_once(rates, rate_text(run.bottleneck.rate));
    for (const JobResult& job : run.jobs) {
      fewest = std::min(fewest, job.iterations.size());
      most = std::max(most, job.iterations.size());
    }
  }
  std::string out;
  if (!rates.empty()) out += fact("Bottleneck", listed(rates));
  out += fact("Congestion control", listed(ccs));
  out += fact("Datapath", listed(datapaths));
  out += fact("Seed", listed(seeds));
  if (most > 0) {
    out += fact("Iterations", fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most));
  }
  return out;
}

// One cell of a table. On narrow screens a row becomes a card and the cell shows its column's name by itself.
std::string cell(std::string_view column, const std::string& value) {
  return fmt::format("<td data-label=\"{}\"><span>{}</span></td>", column, value);
}

std::string job_table(const View& view) {
  std::string rows;
  for (const std::string& name : view.jobs) {
    const JobResult* job = nullptr;
    for (const Run& run : view.results.runs) {
      for (const JobResult& candidate : run.jobs) {
        if (job == nullptr && candidate.name == name) job = &candidate;
      }
    }
    const bool known = job->compute.count > 0 && job->isolated > job->compute;
    const double up =
        known ? 1 - static_cast<double>(job->compute.count) / static_cast<double>(job->isolated.count) : 0;
    rows += fmt::format("<tr><th scope=\"row\">{}</th>{}{}{}{}</tr>\n", job_cell(view, name),
                        cell("Computes", view.unit.text(job->compute)),
                        cell("Sends", job->bytes_per_iteration > 0 ? bytes_text(job->bytes_per_iteration) : "–"),
                        cell("Iteration when alone", view.unit.text(job->isolated)),
                        cell("Of that on the link", known ? percent_text(up) : "–"));
  }
  return fmt::format(
      "<table class=\"cards\"><caption>The jobs, per iteration</caption><thead><tr><th scope=\"col\">Job</th>"
      "<th scope=\"col\">Computes</th><th scope=\"col\">Sends</th><th scope=\"col\">Iteration when alone</th>"
      "<th scope=\"col\">Of that on the link</th></tr></thead>\n<tbody>{}</tbody></table>",
      rows);
}

// "interleaved after 1.54 s (iterations 5 to 6)". The time is one for all jobs, the iteration may differ.
std::string interleaved_text(const Run& run) {
  if (run.jobs.size() < 2) return "nothing to interleave with";
  if (!alone_known(run)) return "time alone unknown";
  if (!interleaves(run)) return "never interleaved";
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
  Nanos since = Nanos::never();
  for (const JobResult& job : run.jobs) {
    if (job.unaware) continue;
    const std::uint64_t from = *job.interleaved_from;
    least = std::min(least, from);
    most = std::max(most, from);
    if (from < job.starts.size()) since = std::min(since, job.starts[from]);
  }
  if (most == 0) return "interleaved from the start";
  const std::string iterations =
      least == most ? fmt::format("iteration {}", most) : fmt::format("iterations {} to {}", least, most);
  if (since.is_never()) return fmt::format("interleaved from {} on", iterations);
  return fmt::format("interleaved after {} ({})", prose_time(since), iterations);
}

// One tile a policy: the number that sums it up.
std::string tiles(const View& view) {
  std::string out;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    const double worst = worst_second_half(run);
    const auto shared = view.overlap(r, view.second_half(r));
    out += fmt::format("<li class=\"tile{}\"><h3>{}</h3><p class=\"big\">{}</p>", interleaves(run) ? " good" : "",
                       escaped(view.labels[r]), slowdown_text(worst));
    out += fmt::format("<p>{}", interleaved_text(run));
    if (shared) out += fmt::format("; bursts overlap {} of busy time", percent_text(*shared));
    out += "</p></li>\n";
  }
  return out;
}

// The finding in one or two sentences.
std::string lead(const View& view) {
  const auto& runs = view.results.runs;
  if (runs.empty()) return "<p class=\"lead\">This result file holds no runs.</p>";
  std::vector<std::string> slow;
  std::vector<std::string> good;
  std::optional<std::size_t> fair;
  double best = 0;  // worst job's slowdown in the second half, in the run where that is least
  for (std::size_t r = 0; r < runs.size(); ++r) {
    (interleaves(runs[r]) ? good : slow).push_back("<b>" + escaped(view.labels[r]) + "</b>");
    if (!fair && runs[r].policy == "fair") fair = r;
    const double slowdown = worst_second_half(runs[r]);
    if (slowdown > 0 && (best <= 0 || slowdown < best)) best = slowdown;
  }
  std::string out = "<p class=\"lead\">";
  std::vector<std::string> held_up;
  for (std::size_t r = 0; r < runs.size(); ++r)
    if (disturbed(runs[r]))
      held_up.push_back(fmt::format("<b>{}</b> for {}", escaped(view.labels[r]),
                                    percent_text(runs[r].stalls->total.seconds() / runs[r].duration.seconds())));
  if (!held_up.empty())
    out += fmt::format(
        "<b>The machine was busy</b> and held up {} of the time: what follows says little about the "
        "network, and a run on a quiet machine may show something else. ",
        listed(held_up));
  const bool comparable = view.jobs.size() > 1 && std::all_of(runs.begin(), runs.end(), alone_known);
  if (comparable && !good.empty()) {
    out += fmt::format("Under {} the jobs' bursts interleave and every job ends up within 2% of running alone. ",
                       listed(good));
    if (!slow.empty()) out += fmt::format("Under {} they never settle into that. ", listed(slow));
  } else if (comparable) {
    out += fmt::format("Under {} the jobs' bursts never interleave so well that every job runs within 2% of alone. ",
                       listed(slow));
  }
  if (fair && best > 0 && worst_second_half(runs[*fair]) >= best * (1 + kSame)) {
    std::vector<std::string> bests;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const double slowdown = worst_second_half(runs[r]);
      if (slowdown > 0 && slowdown <= best * (1 + kSame)) bests.push_back("<b>" + escaped(view.labels[r]) + "</b>");
    }
    out += fmt::format("In the second half of the run the slowest job is {:.2f}× as fast under {} as under <b>{}</b>.",
                       worst_second_half(runs[*fair]) / best, listed(bests), escaped(view.labels[*fair]));
  }
  return out + "</p>";
}

std::string summary_table(const View& view) {
  const std::string unit = fmt::format(" <span class=\"unit\">{}</span>", view.unit.name);
  std::string out =
      "<table class=\"cards numbers\"><caption>Iteration times</caption><thead><tr><th scope=\"col\">Policy</th>"
      "<th scope=\"col\">Job</th>";
  for (const char* column : {"Alone", "Mean", "Median", "p99"}) {
    out += fmt::format("<th scope=\"col\">{}{}</th>", column, unit);
  }
  out += fmt::format(
      "<th scope=\"col\">Slowdown</th><th scope=\"col\">Mean, 2nd half{}</th><th scope=\"col\">Slowdown, 2nd half</th>"
      "<th scope=\"col\">Interleaved from</th></tr></thead>\n",
      unit);
  const auto time = [&](const char* column, Nanos value) {
    return cell(column, value.count > 0 ? view.unit.number(value) +
                                              fmt::format("<span class=\"unit on-card\"> {}</span>", view.unit.name)
                                        : "–");
  };
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    out += "<tbody>";
    if (run.jobs.empty()) {
      out += fmt::format("<tr><th scope=\"row\">{}</th><td colspan=\"9\">no jobs</td></tr>", escaped(view.labels[r]));
    }
    for (std::size_t j = 0; j < run.jobs.size(); ++j) {
      const JobResult& job = run.jobs[j];
      out += fmt::format("<tr{}>", j == 0 ? " class=\"first\"" : "");
      if (j == 0) {
        out += fmt::format("<th scope=\"rowgroup\" rowspan=\"{}\"><span class=\"name\">{}</span></th>", run.jobs.size(),
                           escaped(view.labels[r]));
      }
      out += fmt::format("<th scope=\"row\">{}</th>", job_cell(view, job.name));
      out += time("Alone", job.isolated) + time("Mean", job.mean) + time("Median", job.p50) + time("p99", job.p99);
      out += cell("Slowdown", slowdown_text(job.slowdown)) + time("Mean, 2nd half", job.second_half_mean);
      out += cell("Slowdown, 2nd half", fmt::format("<b>{}</b>", slowdown_text(second_half_slowdown(job))));
      out += cell("Interleaved from", run.jobs.size() < 2 || job.unaware ? "–"
                                      : job.interleaved_from ? fmt::format("iteration {}", *job.interleaved_from)
                                      : alone_known(run)     ? "never"
                                                             : "–");
      out += "</tr>\n";
    }
    out += "</tbody>\n";
  }
  return out + "</table>";
}

std::string link_table(const View& view) {
  bool shifts = false;
  bool verified = false;
  bool stalls = false;
  bool named = false;
  bool bandwidths = false;
  for (const Run& run : view.results.runs) {
    stalls |= run.stalls.has_value();
    named |= !run.bottleneck.name.empty();
    for (const JobResult& job : run.jobs) {
      shifts |= job.time_shift.count > 0;
      verified |= job.verified_messages + job.checksum_errors > 0;
      bandwidths |= !job.bus_bandwidth.is_zero();
    }
  }
  std::vector<const char*> columns = {"Policy",    "Link used", "Bursts overlap", "Overlap, 2nd half",
                                      "ECN marks", "Drops",     "Retransmitted",  "Longest queue"};
  if (shifts) columns.push_back("Time shifts");
  if (verified) columns.push_back("Damaged / checked messages");
  if (stalls) columns.push_back("Machine stalls: longest, all");
  if (named) columns.push_back("Busiest shared link");
  if (bandwidths) columns.push_back("Bus bandwidth");
  std::string out = "<table class=\"cards numbers\"><caption>The link and the transport</caption><thead><tr>";
  for (const char* column : columns) out += fmt::format("<th scope=\"col\">{}</th>", column);
  out += "</tr></thead>\n<tbody>";
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    const auto all = view.overlap(r, view.spans[r]);
    const auto later = view.overlap(r, view.second_half(r));
    std::uint64_t retransmitted = 0;
    std::uint64_t checked = 0;
    std::uint64_t damaged = 0;
    std::vector<std::string> shift_texts;
    std::vector<std::string> bandwidth_texts;
    std::uint64_t dropped = 0;  // on all links
    for (const auto& link : run.links) dropped += link.dropped_packets;
    for (const JobResult& job : run.jobs) {
      retransmitted += job.retransmitted_packets;
      checked += job.verified_messages;
      damaged += job.checksum_errors;
      if (job.time_shift.count > 0) {
        shift_texts.push_back(fmt::format("{} {}", escaped(job.name), view.unit.text(job.time_shift)));
      }
      if (!job.bus_bandwidth.is_zero()) {
        bandwidth_texts.push_back(fmt::format("{} {}", escaped(job.name), to_text(job.bus_bandwidth)));
      }
    }
    out += fmt::format("<tr class=\"first\"><th scope=\"row\"><span class=\"name\">{}</span></th>",
                       escaped(view.labels[r]));
    const auto of_link = [&](const std::string& text) { return run.links_unknown ? std::string("–") : text; };
    out += cell(columns[1], of_link(percent_text(run.bottleneck.utilization)));
    out += cell(columns[2], all ? percent_text(*all) : "–") + cell(columns[3], later ? percent_text(*later) : "–");
    out += cell(columns[4], of_link(count_text(run.bottleneck.ecn_marked_packets)));
    const std::string elsewhere =
        dropped > run.bottleneck.dropped_packets ? fmt::format(", {} on all links", count_text(dropped)) : "";
    out += cell(columns[5], of_link(count_text(run.bottleneck.dropped_packets) + elsewhere)) +
           cell(columns[6], count_text(retransmitted));
    out += cell(columns[7], of_link(bytes_text(run.bottleneck.max_queue_bytes)));
    if (shifts) out += cell("Time shifts", shift_texts.empty() ? "none" : listed(shift_texts));
    if (verified) {
      out += cell("Damaged / checked messages", fmt::format("{} / {}", count_text(damaged), count_text(checked)));
    }
    if (stalls) {
      out += cell("Machine stalls", run.stalls ? fmt::format("{}, {}", view.unit.text(run.stalls->longest),
                                                             view.unit.text(run.stalls->total))
                                               : "–");
    }
    if (named) out += cell("Busiest shared link", run.bottleneck.name.empty() ? "–" : escaped(run.bottleneck.name));
    if (bandwidths) out += cell("Bus bandwidth", bandwidth_texts.empty() ? "–" : listed(bandwidth_texts));
    out += "</tr>\n";
  }
  return out + "</tbody></table>";
}

std::string legend(const View& view, const std::vector<std::size_t>& jobs) {
  std::string out = "<ul class=\"legend\">";
  for (const std::size_t j : jobs) out += fmt::format("<li>{}{}</li>", swatch(j), escaped(view.jobs[j]));
  return out + "</ul>";
}

std::string legend(const View& view) {
  std::vector<std::size_t> jobs(view.jobs.size());
  std::iota(jobs.begin(), jobs.end(), std::size_t{0});
  return legend(view, jobs);
}

std::string panel(std::string_view kind, std::size_t run, std::string_view caption, const std::string& label) {
  return fmt::format(
      "<figure><figcaption>{}</figcaption><div class=\"chart\" data-kind=\"{}\" data-run=\"{}\" role=\"img\" "
      "aria-label=\"{}\"></div></figure>\n",
      caption, kind, run, label);
}

std::string overlap_caption(std::string_view window, std::optional<double> shared) {
  if (!shared) return fmt::format("{}: <b>the link is idle</b>", window);
  return fmt::format("{}: <b>bursts overlap {}</b> of the busy time", window, percent_text(*shared));
}

// "Who used the link when".
std::string link_section(const View& view) {
  if (!view.has_any_picture()) return "";
  std::vector<std::string> shares;
  bool coarse = false;
  std::string rows;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    rows += fmt::format("<h3>{}</h3>", escaped(view.labels[r]));
    if (!view.has_picture(r)) {
      rows += "<p>The use of the link was not recorded in this run.</p>\n";
      continue;
    }
    for (const JobResult& job : run.jobs) {
      coarse |= run.bottleneck.usage.bin > job.p50 / kLeastBinsPerIteration;
    }
    const auto later = view.overlap(r, view.second_half(r));
    if (later)
      shares.push_back(fmt::format("{}{} under <b>{}</b>", percent_text(*later),
                                   shares.empty() ? " of the link's busy time" : "", escaped(view.labels[r])));
    const std::string name = escaped(view.labels[r]);
    rows += "<div class=\"pair\">";
    rows += panel("first", r, overlap_caption("First iterations", view.overlap(r, view.first_window(r))),
                  "Use of the link by job in the first iterations under " + name);
    rows += panel("last", r, overlap_caption("Last iterations", view.overlap(r, view.last_window(r))),
                  "Use of the link by job in the last iterations under " + name);
    rows += "</div>\n";
  }
  std::string out = "<section id=\"link\"><h2>Who used the link when</h2>\n<p>";
  if (!shares.empty() && view.jobs.size() > 1) {
    out += fmt::format("In the second half of the run, two or more jobs send at once for {}. ", listed(shares));
  }
  out += fmt::format(
      "Each colour is a job. Where colours lie on top of each other the jobs share the link and slow each other down; "
      "where they stand side by side each has it to itself. Each panel shows {} of the run.",
      prose_time(view.window));
  if (coarse) {
    out +=
        " <em>The use of the link was recorded in bins that are long compared with an iteration, so bursts look "
        "blurred and overlaps come out too high.</em>";
  }
  return out + "</p>\n" + legend(view) + rows + "</section>\n";
}

std::string explorer_section(const View& view) {
  if (!view.has_any_picture()) return "";
  std::string buttons;
  bool chosen = false;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    if (!view.has_picture(r)) continue;
    // The run to open with: one where the reader sees the jobs find their places.
    const bool shown = !chosen && view.results.runs[r].policy == "mltcp";
    chosen |= shown;
    buttons += fmt::format("<button type=\"button\" data-run=\"{}\" aria-pressed=\"{}\">{}</button>", r, shown,
                           escaped(view.labels[r]));
  }
  return fmt::format(
      "<section id=\"whole\" class=\"needs-js\"><h2>The whole run</h2>\n<p>Drag over a stretch to look closer; "
      "double-click to see all of it again. Zoomed out, each column is the average over the bins it covers.</p>\n{}"
      "<div class=\"bar\"><span class=\"group\" id=\"pick\">{}</span><span class=\"group\" id=\"move\">"
      "<button type=\"button\" data-move=\"left\" aria-label=\"Earlier\">←</button>"
      "<button type=\"button\" data-move=\"right\" aria-label=\"Later\">→</button>"
      "<button type=\"button\" data-move=\"in\" aria-label=\"Zoom in\">+</button>"
      "<button type=\"button\" data-move=\"out\" aria-label=\"Zoom out\">−</button>"
      "<button type=\"button\" data-move=\"all\">All</button></span></div>\n"
      "<div class=\"chart\" id=\"explorer\" role=\"img\" aria-label=\"Use of the link by job over the whole "
      "run\"></div>"
      "</section>\n",
      legend(view), buttons);
}

std::string iterations_section(const View& view) {
  std::string panels;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    if (std::all_of(run.jobs.begin(), run.jobs.end(), [](const auto& job) { return job.iterations.empty(); })) continue;
    panels += panel("iterations", r, fmt::format("<b>{}</b>: {}", escaped(view.labels[r]), interleaved_text(run)),
                    "Iteration times by job under " + escaped(view.labels[r]));
  }
  if (panels.empty()) return "";
  return fmt::format(
      "<section id=\"iterations\" class=\"needs-js\"><h2>How long each iteration took</h2>\n<p>One line a job. The "
      "dashed "
      "line is the job alone on the same network: the best there is. A dotted vertical line marks the iteration from "
      "which on all jobs stay within 2% of it.</p>\n{}<div class=\"pair\">{}</div></section>\n",
      legend(view), panels);
}

// The largest group of jobs whose isolated times are within 2% of its first one's: their offset means something.
std::vector<std::size_t> same_period(const Run& run) {
  std::vector<std::size_t> best;
  for (std::size_t a = 0; a < run.jobs.size(); ++a) {
    std::vector<std::size_t> group;
    for (std::size_t b = a; b < run.jobs.size(); ++b) {
      const auto difference = std::abs(run.jobs[a].isolated.count - run.jobs[b].isolated.count);
      if (run.jobs[a].isolated.count > 0 && !run.jobs[b].starts.empty() && !run.jobs[a].starts.empty() &&
          difference <= run.jobs[a].isolated.count / 50) {
        group.push_back(b);
      }
    }
    if (group.size() > 1 && group.size() > best.size()) best = group;
  }
  return best;
}

std::string offset_section(const View& view) {
  std::string panels;
  std::vector<std::string> references;
  std::vector<std::size_t> shown;
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    const auto group = same_period(run);
    if (group.empty()) continue;
    for (const std::size_t j : group) {
      const std::size_t id = view.job_id(run.jobs[j].name);
      if (std::find(shown.begin(), shown.end(), id) == shown.end()) shown.push_back(id);
    }
    add_once(references, "<b>" + escaped(run.jobs[group.front()].name) + "</b>");
    panels += panel("offset", r, fmt::format("<b>{}</b>", escaped(view.labels[r])),
                    "Offset between the jobs over iterations under " + escaped(view.labels[r]));
  }
  if (panels.empty()) return "";
  return fmt::format(
      "<section id=\"offset\" class=\"needs-js\"><h2>How far apart the jobs start</h2>\n<p>The time between a start of "
      "{} "
      "and the nearest start of another job of the same period, as a share of an iteration: 0 when both start "
      "together, "
      "0.5 when they are as far apart as can be. A line that levels off has found its place.</p>\n{}"
      "<div class=\"pair\">{}</div></section>\n",
      listed(references), legend(view, shown), panels);
}

nlohmann::json chart_data(const View& view) {
  nlohmann::json data;
  data["jobs"] = view.jobs;
  data["window_ns"] = view.window.count;
  data["runs"] = nlohmann::json::array();
  for (std::size_t r = 0; r < view.results.runs.size(); ++r) {
    const Run& run = view.results.runs[r];
    nlohmann::json usage = nlohmann::json::array();
    for (const auto& [name, bins] : run.bottleneck.usage.jobs) {
      const std::size_t id = view.job_id(name);
      if (id < view.jobs.size()) usage.push_back({{"job", id}, {"bytes", bins}});
    }
    nlohmann::json jobs = nlohmann::json::array();
    for (const JobResult& job : run.jobs) {
      nlohmann::json starts = nlohmann::json::array();
      nlohmann::json times = nlohmann::json::array();
      for (const Nanos start : job.starts) starts.push_back(start.count);
      for (const Nanos time : job.iterations) times.push_back(time.count);
      jobs.push_back({{"job", view.job_id(job.name)},
                      {"isolated_ns", job.isolated.count},
                      {"start_ns", starts},
                      {"iteration_ns", times}});
      if (job.interleaved_from) jobs.back()["interleaved_from"] = *job.interleaved_from;
    }
    data["runs"].push_back({{"label", view.labels[r]},
                            {"rate_bps", run.bottleneck.rate.bits_per_second},
                            {"from_ns", view.spans[r].from.count},
                            {"to_ns", view.spans[r].to.count},
                            {"bin_ns", run.bottleneck.usage.bin.count},
                            {"usage", usage},
                            {"jobs", jobs},
                            {"same_period", same_period(run)}});
  }
  return data;
}

}  // namespace

std::string render_report(const Results& results) {
  const View view(results);
  const std::string title = results.experiment.empty() ? "Unnamed experiment" : escaped(results.experiment);
  std::string body = lead(view);
  if (!results.runs.empty()) {
    body += "<dl class=\"facts\">" + facts(view) + "</dl>\n";
    body +=
        "<p class=\"tiles-note\">Slowdown of the worst job in the second half of the run (1.00× is as fast as "
        "alone):</p>\n<ul class=\"tiles\">" +
        tiles(view) + "</ul>\n";
    body += link_section(view);
    body += "<section id=\"numbers\"><h2>In numbers</h2>\n<div class=\"wide\">" + summary_table(view) +
            "</div>\n<div class=\"wide\">" + link_table(view) + "</div>\n";
    if (!view.jobs.empty()) body += "<div class=\"wide\">" + job_table(view) + "</div>\n";
    body += "</section>\n" + explorer_section(view) + iterations_section(view) + offset_section(view);
  }
  const std::string data = script_safe(chart_data(view));
  return filled(embedded::page_html, std::array<Part, 7>{{{"title", title},
                                                          {"body", body},
                                                          {"data", data},
                                                          {"report_css", embedded::report_css},
                                                          {"report_js", embedded::report_js},
                                                          {"uplot_css", embedded::uplot_css},
                                                          {"uplot_js", embedded::uplot_js}}});
}

}  // namespace mltcp::experiment
