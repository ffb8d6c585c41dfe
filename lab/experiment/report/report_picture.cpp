// Draws the pictures of a result file (see report_picture.h).
#include "mltcp/lab/experiment/report/report_picture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/report/internal/report_charts.h"
#include "mltcp/lab/experiment/report/internal/report_view.h"
#include "mltcp/lab/experiment/report/internal/svg.h"

namespace mltcp::experiment {
namespace {

constexpr int kWidth = 960;
constexpr double kLeft = 64;  // left edge of the plots; the numbers of the axes are left of it
constexpr double kRight = 936;
constexpr double kMargin = 24;  // left and right margin of texts
constexpr double kPlot = 150;   // height of a panel's plot
constexpr double kAbove = 34;   // space above a plot, for the panel's title
constexpr double kBelow = 58;   // space below a plot, for the strip of collisions and the axis
constexpr double kSmall = 13;   // font size of most texts
constexpr double kLegendRow = 22;
constexpr std::size_t kColumns = 430;
constexpr std::int64_t kIterations = 5;  // number of the slowest job's iterations that a panel shows

// Class names are short: b is background, i ink, s soft, l line. Bands and lines have j, c or p with a number. The
// colours are those of report.css.
constexpr std::string_view kStyle =
    R"(text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.b{fill:#ffffff}.i{fill:#1c1f24}.s{fill:#5b626d}.l{stroke:#dde0e5;fill:none}.a{stroke:#5b626d;fill:none}
.cap{stroke:#1c1f24;fill:none;stroke-dasharray:5 4}.h{font-size:20px;font-weight:600}.t{font-size:15px;font-weight:600}.n{font-size:11px}
.x{fill:#c2185b}.line{fill:none;stroke-width:2;stroke-linejoin:round}.shade{fill-opacity:.15}
.j0{fill:#0072b2}.j1{fill:#e69f00}.j2{fill:#009e73}.j3{fill:#cc79a7}.j4{fill:#d55e00}.j5{fill:#56b4e9}.j6{fill:#b8a900}.j7{fill:#8a8f98}
.c0{fill:#9ecae1}.c1{fill:#f5b841}.c2{fill:#e06c0f}.c3{fill:#8c2d04}
.p0{fill:#77808c}.p1{fill:#d81b60}.p2{fill:#009988}.p3{fill:#7a5cc9}.p4{fill:#ee7733}.p5{fill:#33bbee}.p6{fill:#997700}.p7{fill:#0077bb}
.q0{stroke:#77808c}.q1{stroke:#d81b60}.q2{stroke:#009988}.q3{stroke:#7a5cc9}.q4{stroke:#ee7733}.q5{stroke:#33bbee}.q6{stroke:#997700}.q7{stroke:#0077bb}
@media (prefers-color-scheme:dark){
.b{fill:#14161a}.i{fill:#e8eaee}.s{fill:#a2a9b4}.l{stroke:#343943}.a{stroke:#a2a9b4}.cap{stroke:#e8eaee}.x{fill:#ff6fa3}
.j0{fill:#3d9fe0}.j1{fill:#f2b134}.j2{fill:#1fc196}.j3{fill:#e09ac2}.j4{fill:#f07f3c}.j5{fill:#8fd0f7}.j6{fill:#f0e442}.j7{fill:#9aa0aa}
.c0{fill:#2a5f8a}.c1{fill:#b8651b}.c2{fill:#f2a43a}.c3{fill:#ffeeb0}
.p0{fill:#a3abb6}.p1{fill:#ff6fa3}.p2{fill:#2fc7b5}.p3{fill:#b39dff}.p4{fill:#ff9a5c}.p5{fill:#6fd3ff}.p6{fill:#d6b24a}.p7{fill:#4aa8ee}
.q0{stroke:#a3abb6}.q1{stroke:#ff6fa3}.q2{stroke:#2fc7b5}.q3{stroke:#b39dff}.q4{stroke:#ff9a5c}.q5{stroke:#6fd3ff}.q6{stroke:#d6b24a}.q7{stroke:#4aa8ee}
}
)";

// Returns the class for a colour of the pages: "job-3" becomes "j3".
std::string class_of_colour(const std::string& colour, char line = '\0') {
  const char kind = colour.starts_with("line") ? (line != '\0' ? line : 'p') : colour.front();
  return fmt::format("{}{}", kind, colour.substr(colour.find('-') + 1));
}

struct Entry {
  std::string classes;
  std::string name;
};

// Draws swatches and names in rows, unless `svg` is null. Returns the height of the legend.
double legend(Svg* svg, const std::vector<Entry>& entries, double top) {
  double x = kMargin;
  double y = top;
  for (const Entry& entry : entries) {
    const std::string name = shortened(entry.name, 40);
    const double wide = text_width(name, kSmall) + 42;
    if (x > kMargin && x + wide > kWidth - kMargin) {
      x = kMargin;
      y += kLegendRow;
    }
    if (svg != nullptr) {
      svg->rectangle(entry.classes, x, y, 12, 12);
      svg->text("s", x + 19, y + 11, "start", name);
    }
    x += wide;
  }
  return y + kLegendRow - top;
}

std::vector<std::size_t> chosen_runs(const View& view, const std::vector<std::string>& policies, bool ends_only) {
  const auto& runs = view.results.runs;
  std::vector<std::size_t> chosen;
  if (policies.empty()) {
    for (std::size_t r = 0; r < runs.size(); ++r)
      if (!ends_only || r == 0 || r + 1 == runs.size()) chosen.push_back(r);
    return chosen;
  }
  for (const std::string& policy : policies) {
    std::size_t at = runs.size();
    std::vector<std::string> known;
    for (std::size_t r = runs.size(); r-- > 0;) {
      if (runs[r].policy == policy || view.labels[r] == policy) at = r;
      known.insert(known.begin(), in_quotes(view.labels[r]));
    }
    if (at == runs.size())
      throw InputError(one_line(fmt::format("--policy: the results have no policy {}; choose one of {}",
                                            in_quotes(policy), fmt::join(known, ", "))));
    chosen.push_back(at);
  }
  return chosen;
}

// ---- Use of the link ----

struct Panel {
  std::size_t run = 0;
  TimeSpan span;
};

// Returns one window of each run, all of equal width. A window begins in the middle of its run. The first collisions,
// which every policy has, are then over. Near the end of a run, jobs may have interleaved even under fair sharing.
std::vector<Panel> panels_of(const View& view, const std::vector<std::size_t>& chosen) {
  Nanos slowest;
  Nanos width = Nanos::never();
  for (const std::size_t r : chosen) {
    for (const JobResult* job : judged_jobs(view.results.runs[r])) slowest = std::max(slowest, job->p50);
    width = std::min(width, (view.spans[r].to - view.spans[r].from) / 2);
  }
  width = std::min(width, slowest * kIterations);
  std::vector<Panel> panels;
  for (const std::size_t r : chosen) {
    const Nanos middle = view.spans[r].from + (view.spans[r].to - view.spans[r].from) / 2;
    panels.push_back({r, {middle, middle + width}});
  }
  return panels;
}

// What a panel shows: a word, and a text with the numbers.
struct Finding {
  std::string word;
  std::string text;
};

Finding finding(const View& view, const Panel& panel) {
  Finding result;
  std::vector<std::string> parts;
  const Run& run = view.results.runs[panel.run];
  if (const auto shared = view.overlap(panel.run, panel.span); shared && view.summaries[panel.run].several) {
    constexpr double many = 0.25;
    constexpr double few = 0.05;
    result.word = *shared >= many ? "bursts collide" : *shared <= few ? "bursts interleave" : "some bursts collide";
    parts.push_back(fmt::format("several jobs send at once for {} of the busy time", percent_text(*shared)));
    if (const auto at_once = view.jobs_at_once(panel.run, panel.span))
      parts.push_back(fmt::format("{} on average", jobs_text(*at_once)));
  } else if (view.blurred(panel.run)) {
    parts.emplace_back("recorded too coarsely to show overlap");
  }
  if (const auto slowdown = view.summaries[panel.run].slowdown)
    parts.push_back(fmt::format("mean slow-down of the whole run {}", slowdown_text(slowdown)));
  if (!run.bottleneck.name.empty()) parts.push_back(shortened(run.bottleneck.name, 30));
  result.text = fmt::format("{}", fmt::join(parts, " · "));
  return result;
}

void time_axis(Svg& svg, const View& view, TimeSpan span, double bottom) {
  Nanos longest;
  for (const TimeSpan& of : view.spans) longest = std::max(longest, of.to);
  const TimeUnit unit = longest.count >= 2'000'000'000 ? TimeUnit{"s", 1e9}
                        : longest.count >= 2'000'000   ? TimeUnit{"ms", 1e6}
                                                       : TimeUnit{"µs", 1e3};
  const double from = static_cast<double>(span.from.count) / unit.nanos;
  const double to = static_cast<double>(span.to.count) / unit.nanos;
  std::string marks = fmt::format("M{} {}H{}", place(kLeft), place(bottom), place(kRight));
  for (const auto& [value, text] : round_ticks(from, to, 8)) {
    const double x = kLeft + (value - from) / (to - from) * (kRight - kLeft);
    marks += fmt::format("M{} {}v4", place(x), place(bottom));
    svg.text("s", x, bottom + 18, "middle", text);
  }
  svg.path("a", marks);
  svg.text("s", (kLeft + kRight) / 2, bottom + 36, "middle", fmt::format("time, {}", unit.name));
}

void draw_usage(Svg& svg, const View& view, const Panel& panel, double top) {
  const Bands bands = cut(bands_of(view, panel.run), panel.span, kColumns);
  const double max = top_rate(view, panel.run);
  const RateUnit unit = RateUnit::for_rate(max);
  const double bottom = top + kPlot;
  const double highest = max * 1.05;
  const auto y_of = [&](double rate) { return bottom - std::min(rate, highest) / highest * kPlot; };
  const auto x_of = [&](std::int64_t time) {
    const double share = static_cast<double>(time - panel.span.from.count) /
                         static_cast<double>((panel.span.to - panel.span.from).count);
    return kLeft + std::clamp(share, 0.0, 1.0) * (kRight - kLeft);
  };
  std::string grid;
  for (const auto& [value, text] : round_ticks(0, max / unit.bits_per_second, 3)) {
    const double y = y_of(value * unit.bits_per_second);
    grid += fmt::format("M{} {}H{}", place(kLeft), place(y), place(kRight));
    svg.text("s", kLeft - 8, y + 4.5, "end", text);
  }
  svg.path("l", grid);
  svg.text_upwards("s", 20, top + kPlot / 2, unit.name);
  // Draws the tallest stack first and lower stacks over it, so that each band's own share stays visible.
  const std::size_t columns = bands.bands.empty() ? 0 : bands.bands.front().bytes.size();
  std::vector<std::vector<double>> sums;
  for (const Band& band : bands.bands) {
    std::vector<double> sum(columns);
    for (std::size_t c = 0; c < columns; ++c)
      sum[c] = static_cast<double>(band.bytes[c]) * 8e9 / static_cast<double>(bands.bin.count) +
               (sums.empty() ? 0 : sums.back()[c]);
    sums.push_back(std::move(sum));
  }
  const auto start = [&](std::size_t c) {
    return place(x_of(bands.from.count + static_cast<std::int64_t>(c) * bands.bin.count));
  };
  for (std::size_t k = bands.bands.size(); k-- > 0;) {
    std::string d = fmt::format("M{} {}", start(0), place(bottom));
    std::string before = place(bottom);
    for (std::size_t c = 0; c < columns; ++c) {
      std::string y = place(y_of(sums[k][c]));
      if (y == before) continue;
      d += fmt::format("H{}V{}", start(c), y);
      before = std::move(y);
    }
    d += fmt::format("H{}V{}Z", start(columns), place(bottom));
    svg.path(class_of_colour(bands.bands[k].colour), d);
  }
  if (!view.results.runs[panel.run].bottleneck.rate.is_zero())
    svg.path("cap", fmt::format("M{} {}H{}", place(kLeft), place(y_of(max)), place(kRight)));
  if (!bands.by_count) {
    const Usage& usage = view.results.runs[panel.run].bottleneck.usage;
    std::string strip;
    for (const TimeSpan span :
         view.blurred(panel.run) ? std::vector<TimeSpan>() : overlap_spans(usage, panel.span.from, panel.span.to)) {
      const double x = x_of(span.from.count);
      const double end = x_of(std::min(span.to, panel.span.to).count);
      strip += fmt::format("M{} {}h{}v6H{}z", place(x), place(bottom + 4), place(std::max(0.5, end - x)), place(x));
    }
    if (!strip.empty()) svg.path("x", strip);
  }
  time_axis(svg, view, panel.span, bottom + (bands.by_count ? 0 : 14));
}

void draw_lanes(Svg& svg, const View& view, const Panel& panel, double top) {
  const Run& run = view.results.runs[panel.run];
  const double each = kPlot / static_cast<double>(run.jobs.size());
  constexpr double legible = 14;
  for (std::size_t j = 0; j < run.jobs.size(); ++j) {
    const double y = top + static_cast<double>(j) * each;
    std::string d;
    for (const TimeSpan bar : communications(run.jobs[j], panel.span)) {
      const auto x_of = [&](Nanos time) {
        return kLeft + static_cast<double>((time - panel.span.from).count) /
                           static_cast<double>((panel.span.to - panel.span.from).count) * (kRight - kLeft);
      };
      d += fmt::format("M{0} {1}H{2}V{3}H{0}z", place(x_of(bar.from)), place(y + 0.1 * each), place(x_of(bar.to)),
                       place(y + 0.9 * each));
    }
    const std::size_t colour = view.many() ? 0 : view.job_id(run.jobs[j].name);
    if (!d.empty()) svg.path(fmt::format("j{}", colour), d);
    if (each >= legible) svg.text("s n", kLeft - 6, y + each / 2 + 4, "end", shortened(run.jobs[j].name, 9));
  }
  time_axis(svg, view, panel.span, top + kPlot + 2);
}

std::string usage_picture(const View& view, const std::vector<std::string>& policies) {
  const auto panels = panels_of(view, chosen_runs(view, policies, true));
  bool recorded = false;
  bool strips = false;
  bool by_clocks = false;
  std::vector<Entry> entries;
  for (const Panel& panel : panels) {
    if (!view.has_usage(panel.run) && !view.has_lanes(panel.run))
      throw InputError(fmt::format(
          "the results lack the use of the link under {}; run the experiment again, and give its --json FILE",
          in_quotes(view.labels[panel.run])));
    by_clocks = by_clocks || view.has_lanes(panel.run);
    if (!view.has_usage(panel.run)) continue;
    strips = strips || !view.many();
    if (view.many() && !recorded)
      for (const Band& band : bands_of(view, panel.run).bands)
        entries.push_back({class_of_colour(band.colour), band.name});
    recorded = true;
  }
  if (!view.many())
    for (std::size_t j = 0; j < view.jobs.size(); ++j) entries.push_back({fmt::format("j{}", j), view.jobs[j]});
  if (strips) entries.push_back({"x", "two or more jobs send at once"});
  constexpr double head = 64;
  const double top = head + legend(nullptr, entries, 0);
  constexpr double each = kAbove + kPlot + kBelow;
  const int height = static_cast<int>(top + each * static_cast<double>(panels.size()) + 2);
  const std::string name = view.results.experiment.empty() ? "Unnamed experiment" : view.results.experiment;
  const std::string title = fmt::format("{}: use of the link over time", name);
  Svg svg(kWidth, height, title, kStyle);
  svg.rectangle("b", 0, 0, kWidth, height);
  svg.text("i h", kMargin, 32, "start", shortened(title, 80));
  const Run& first = view.results.runs[panels.front().run];
  std::string facts = plural(view.jobs.size(), "job");
  if (!first.bottleneck.rate.is_zero()) facts += fmt::format(" · {}", rate_text(first.bottleneck.rate));
  facts += fmt::format(" · {} · datapath {} · {} from the middle of each run", first.cc, first.datapath,
                       prose_time(panels.front().span.to - panels.front().span.from));
  if (by_clocks) facts += " · bars by the jobs' own clocks: iteration without computing";
  svg.text("s", kMargin, 54, "start", shortened(facts, 140));
  legend(&svg, entries, head + 2);
  for (std::size_t p = 0; p < panels.size(); ++p) {
    const double y = top + static_cast<double>(p) * each;
    const Finding found = finding(view, panels[p]);
    std::string label = shortened(view.labels[panels[p].run], 30);
    if (!found.word.empty()) label = fmt::format("{}: {}", label, found.word);
    svg.text("i t", kMargin, y + 20, "start", label);
    svg.text("s", kMargin + text_width(label, 15.5) + 16, y + 20, "start", found.text);
    if (view.has_usage(panels[p].run)) {
      draw_usage(svg, view, panels[p], y + kAbove);
    } else {
      draw_lanes(svg, view, panels[p], y + kAbove);
    }
  }
  return svg.file();
}

// ---- Slow-downs ----

std::string iterations_picture(const View& view, const std::vector<std::string>& policies) {
  PolicyLines all = policy_lines(view, kColumns);
  if (!policies.empty()) {
    std::vector<PolicyLine> kept;
    for (const std::size_t r : chosen_runs(view, policies, false))
      for (const PolicyLine& line : all.lines)
        if (line.name == view.labels[r]) kept.push_back(line);
    all.lines = std::move(kept);
  }
  if (all.lines.empty())
    throw InputError(
        "the results have no slow-downs by iteration, like records of sweeps without --full; give a file that `mltcp "
        "run --json FILE` wrote");
  double min = 1;
  double max = 1;
  std::vector<Entry> entries;
  for (const PolicyLine& line : all.lines) {
    min = std::min(min, *std::ranges::min_element(line.least));
    max = std::max(max, *std::ranges::max_element(line.most));
    std::string name = line.name;
    for (std::size_t r = 0; r < view.labels.size(); ++r)
      if (view.labels[r] == line.name) name += fmt::format(": {}", interleaved_text(view.summaries[r]));
    entries.push_back({class_of_colour(line.colour), name});
  }
  const double margin = std::max(0.06 * (max - min), 0.01);
  const double from = std::max(0.0, min - margin);
  const double to = max + margin;
  constexpr double head = 64;
  constexpr double plot = 260;
  const double top = head + legend(nullptr, entries, 0) + 10;
  const double bottom = top + plot;
  const int height = static_cast<int>(bottom + 48);
  const std::string name = view.results.experiment.empty() ? "Unnamed experiment" : view.results.experiment;
  const std::string title = fmt::format("{}: how much slower than alone", name);
  Svg svg(kWidth, height, title, kStyle);
  svg.rectangle("b", 0, 0, kWidth, height);
  svg.text("i h", kMargin, 32, "start", shortened(title, 80));
  svg.text("s", kMargin, 54, "start",
           "mean over the jobs of each policy, shaded from the least to the most slowed down");
  legend(&svg, entries, head + 2);
  const auto y_of = [&](double value) { return bottom - (value - from) / (to - from) * plot; };
  const double last = std::max<double>(1, static_cast<double>(all.iterations) - 1);
  const auto x_of = [&](std::size_t column) {
    const double iteration = (static_cast<double>(column) + 0.5) * static_cast<double>(all.group) - 0.5;
    return kLeft + std::min(1.0, iteration / last) * (kRight - kLeft);
  };
  std::string grid;
  for (const auto& [value, text] : round_ticks(from, to, 6)) {
    grid += fmt::format("M{} {}H{}", place(kLeft), place(y_of(value)), place(kRight));
    svg.text("s", kLeft - 8, y_of(value) + 4.5, "end", text + "×");
  }
  svg.path("l", grid);
  svg.text_upwards("s", 18, (top + bottom) / 2, "slow-down");
  svg.path("cap", fmt::format("M{} {}H{}", place(kLeft), place(y_of(1)), place(kRight)));
  for (const PolicyLine& line : all.lines) {
    std::string shade;
    for (std::size_t i = 0; i < line.most.size(); ++i)
      shade += fmt::format("{}{} {}", i == 0 ? "M" : "L", place(x_of(i)), place(y_of(line.most[i])));
    for (std::size_t i = line.least.size(); i-- > 0;)
      shade += fmt::format("L{} {}", place(x_of(i)), place(y_of(line.least[i])));
    svg.path(class_of_colour(line.colour) + " shade", shade + "Z");
  }
  for (const PolicyLine& line : all.lines) {
    std::string d;
    for (std::size_t i = 0; i < line.mean.size(); ++i)
      d += fmt::format("{}{} {}", i == 0 ? "M" : "L", place(x_of(i)), place(y_of(line.mean[i])));
    svg.path(class_of_colour(line.colour, 'q') + " line", d);
  }
  std::string marks = fmt::format("M{} {}H{}", place(kLeft), place(bottom), place(kRight));
  for (const auto& [value, text] : round_ticks(0, last, 10, true)) {
    const double x = kLeft + value / last * (kRight - kLeft);
    marks += fmt::format("M{} {}v4", place(x), place(bottom));
    svg.text("s", x, bottom + 18, "middle", text);
  }
  svg.path("a", marks);
  svg.text("s", (kLeft + kRight) / 2, bottom + 37, "middle", "iteration");
  return svg.file();
}

}  // namespace

std::string render_picture(const Results& results, const PictureOptions& options) {
  if (results.runs.empty()) throw InputError("the results have no runs; give the file of a complete run");
  const View view(results);
  if (options.chart == "usage") return usage_picture(view, options.policies);
  if (options.chart == "iterations") return iterations_picture(view, options.policies);
  throw InputError(one_line(
      fmt::format("--chart: {} is not known; choose one of {}", in_quotes(options.chart), fmt::join(kPictures, ", "))));
}

}  // namespace mltcp::experiment
