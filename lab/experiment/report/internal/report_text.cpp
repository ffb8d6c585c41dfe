// Formats texts and table cells of the report (see report_text.h).
#include "mltcp/lab/experiment/report/internal/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mltcp/base/text_parts.h"
#include "mltcp/lab/experiment/report/internal/html.h"

namespace mltcp::experiment {
namespace {

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

constexpr std::array<const char*, 5> kRateUnits{"bps", "kbps", "Mbps", "Gbps", "Tbps"};

}  // namespace

TimeUnit TimeUnit::for_time(Nanos typical) {
  if (typical.count >= 10'000'000'000) return {"s", 1e9};
  if (typical.count >= 1'000'000) return {"ms", 1e6};
  if (typical.count >= 1'000) return {"µs", 1e3};
  return {"ns", 1};
}

std::string TimeUnit::number(Nanos time) const {
  const double value = static_cast<double>(time.count) / nanos;
  return fmt::format("{:.{}f}", value, nanos < 10 || value >= 100 ? (value >= 1000 || nanos < 10 ? 0 : 1) : 2);
}

std::string TimeUnit::text(Nanos time) const { return time.count > 0 ? fmt::format("{} {}", number(time), name) : "–"; }

std::string prose_time(Nanos time) { return scaled(static_cast<double>(time.count), {"ns", "µs", "ms", "s", "ks"}); }
std::string bytes_text(Bytes bytes) { return scaled(static_cast<double>(bytes), {"B", "kB", "MB", "GB", "TB"}); }
std::string rate_text(Rate rate) { return scaled(static_cast<double>(rate.bits_per_second), kRateUnits); }

RateUnit RateUnit::for_rate(double bits_per_second) {
  std::size_t unit = 0;
  double scale = 1;
  while (bits_per_second >= 999.5 * scale && unit + 1 < kRateUnits.size()) {
    scale *= 1000;
    ++unit;
  }
  return {kRateUnits[unit], scale};
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), "\u202f");
  return digits;
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.95) return fmt::format("{:.1f}%", std::max(percent, 0.1));
  return fmt::format("{:.0f}%", percent);
}

std::string jobs_text(double jobs) { return fmt::format("{:.{}f}", jobs, jobs < 9.95 ? 1 : 0); }

std::string slowdown_text(double slowdown) { return slowdown > 0 ? fmt::format("{:.2f}×", slowdown) : "–"; }
std::string slowdown_text(const std::optional<double>& slowdown) { return slowdown_text(slowdown.value_or(0)); }

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(text);
}

std::string fact(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, value);
}

std::string cell(std::string_view column, const std::string& value) {
  return fmt::format("<td data-label=\"{}\"><span>{}</span></td>", column, value);
}

std::string table(std::string_view caption, const std::vector<std::string>& columns, const std::string& rows,
                  std::string_view classes) {
  // Tables with more columns than this are set more closely, so that they fit on a page.
  constexpr std::size_t many = 10;
  std::string head;
  for (const std::string& column : columns) head += fmt::format("<th scope=\"col\">{}</th>", column);
  return fmt::format(
      "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table class=\"{1}{4}\"><caption>{0}"
      "</caption><thead><tr>{2}</tr></thead>\n<tbody>{3}</tbody></table></div>\n",
      caption, classes, head, rows, columns.size() > many ? " dense" : "");
}

std::string provenance_text(const std::optional<Provenance>& provenance) {
  if (!provenance) return "";
  const Provenance::Machine& machine = provenance->machine;
  std::string details;
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) details += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, escaped(value));
  };
  line("Commit", provenance->commit.empty() || !provenance->modified ? provenance->commit
                                                                     : provenance->commit + ", with changes");
  line("Build", provenance->build);
  line("Processor", machine.cpu);
  line("CPUs", machine.cpus > 0 ? std::to_string(machine.cpus) : "");
  line("Memory", machine.memory > 0 ? bytes_text(machine.memory) : "");
  line("System", machine.system);
  line("Kernel", machine.kernel);
  for (const Provenance::File& file : provenance->files)
    details += fmt::format("<div><dt>{}</dt><dd>{}, SHA-256 <code>{}</code></dd></div>", escaped(file.path),
                           bytes_text(file.bytes), escaped(file.sha256));
  return fmt::format(
      "<p class=\"made\">Made by <code>{}</code></p>\n<details><summary>The machine, and the files that were "
      "read</summary><dl class=\"made\">{}</dl></details>\n",
      escaped(to_text(*provenance)), details);
}

Change change_of(std::optional<double> before, std::optional<double> now) {
  if (!before || !now || *before <= 0 || *now <= 0) return Change::unknown;
  const double change = *now / *before - 1;
  if (std::abs(change) < kSameSlowdown) return Change::same;
  return change < 0 ? Change::better : Change::worse;
}

std::string_view class_of(Change change) {
  using enum Change;
  return word_of<Change>(change, {{unknown, "unknown"}, {better, "better"}, {same, "same"}, {worse, "worse"}});
}

std::string verdict(Change change) {
  return fmt::format("<b class=\"{}\">{}</b>", class_of(change),
                     change == Change::same ? std::string_view("no different") : class_of(change));
}

std::string verdicts(Change first, std::string_view in_first, Change second, std::string_view in_second) {
  const bool both = first != Change::unknown && second != Change::unknown;
  if (!both && first != Change::unknown) return fmt::format("{} {}", verdict(first), in_first);
  if (!both) return second == Change::unknown ? "" : fmt::format("{} {}", verdict(second), in_second);
  if (first == second) return fmt::format("{} {} and {}", verdict(first), in_first, in_second);
  return fmt::format("{} {}, but {} {}", verdict(first), in_first, verdict(second), in_second);
}

std::string slowdown_beside(double before, double now) {
  if (change_of(before, now) == Change::same)
    return fmt::format("{}, compared with {}", slowdown_text(now), slowdown_text(before));
  return fmt::format("{} instead of {}, {}", slowdown_text(now), slowdown_text(before), change_text(before, now));
}

std::string measure(Change change, std::string_view what, const std::string& number, const std::string& beside) {
  const std::string_view sign = change == Change::better  ? "▲ "
                                : change == Change::worse ? "▼ "
                                : change == Change::same  ? "= "
                                                          : "";
  return fmt::format("<div class=\"measure {}\"><p>{}</p><p class=\"big\">{}</p>{}</div>", class_of(change), what,
                     number, beside.empty() ? "" : fmt::format("<p class=\"change\">{}{}</p>", sign, beside));
}

std::string change_text(double before, double now) {
  const double change = now / before - 1;
  const double percent = 100 * std::abs(change);
  return fmt::format("{:.{}f}% {} time", percent, percent < 9.95 ? 1 : 0, change < 0 ? "less" : "more");
}

}  // namespace mltcp::experiment
