// Words and cells that the report's pages and pictures have in common. Not installed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/experiment/results/provenance.h"

namespace mltcp::experiment {

/// One unit for all times of a page, so that numbers can be compared by their looks.
struct TimeUnit {
  const char* name;
  double nanos;

  /// `typical` is the smallest time that should read well, in about four digits.
  static TimeUnit for_time(Nanos typical);
  [[nodiscard]] std::string number(Nanos time) const;
  /// "260.0 ms"; a dash for 0.
  [[nodiscard]] std::string text(Nanos time) const;
};

/// To three digits, because the exact value is in the result file: "1.54 s", "13.8 MB", "1 Gbps".
std::string prose_time(Nanos time);
std::string bytes_text(Bytes bytes);
std::string rate_text(Rate rate);
/// With a narrow space between thousands, at which no line breaks.
std::string count_text(std::uint64_t count);
std::string percent_text(double share);
/// A mean number of jobs: "1.6", "12".
std::string jobs_text(double jobs);
/// "1.23×"; a dash for what is unknown.
std::string slowdown_text(double slowdown);
std::string slowdown_text(const std::optional<double>& slowdown);

/// The largest unit of which `rate` is one or more: its name and bits per second.
struct RateUnit {
  const char* name;
  double bits_per_second;
  static RateUnit for_rate(double bits_per_second);
};

void add_once(std::vector<std::string>& list, const std::string& text);

/// An entry of the list of facts at a page's head. HTML, as the next.
std::string fact(std::string_view name, const std::string& value);
/// One cell of a table. On narrow screens a row becomes a card and the cell shows its column's name by itself.
std::string cell(std::string_view column, const std::string& value);
/// A table whose rows become cards on narrow screens, in a box that scrolls by itself; `columns` are the header's.
std::string table(std::string_view caption, const std::vector<std::string>& columns, const std::string& rows,
                  std::string_view classes = "cards");

/// What made the results, and with what, for the foot of a page; empty where it is unknown.
std::string provenance_text(const std::optional<Provenance>& provenance);

/// How two times compare: `now` by `before`.
enum class Change { unknown, better, same, worse };
/// Below it two slow-downs are called the same.
inline constexpr double kSameSlowdown = 0.01;
Change change_of(std::optional<double> before, std::optional<double> now);
/// "better", "same", "worse" or "unknown": as a class of the style sheet.
std::string_view class_of(Change change);
/// "<b>better</b>", "<b>no different</b>" or "<b>worse</b>", of one and the same loudness. HTML, like the next ones; of
/// a known change.
std::string verdict(Change change);
/// How it went in two respects, "in the mean" and "in the tail": "better in the mean, but worse in the tail". Says
/// nothing of an unknown one; empty where both are.
std::string verdicts(Change first, std::string_view in_first, Change second, std::string_view in_second);
/// "1.29× instead of 1.23×, 5.3% more time", or "1.23×, beside 1.23×"; of two known slow-downs.
std::string slowdown_beside(double before, double now);
/// One of the numbers of a tile, each coloured by itself: what it is, the number, and how it compares; `beside` may be
/// empty.
std::string measure(Change change, std::string_view what, const std::string& number, const std::string& beside);
/// "16% less time"; of two known times that are not the same.
std::string change_text(double before, double now);

}  // namespace mltcp::experiment
