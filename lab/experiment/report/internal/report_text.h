// Texts and table cells common to the report's pages and pictures. This header is not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/base/units.h"

namespace mltcp::experiment {

/// The common unit of all times on a page, so that numbers are comparable.
struct TimeUnit {
  const char* name;
  double nanos;

  /// Returns the unit in which `typical` has about four digits. `typical` is the smallest time of the page that should
  /// be readable.
  static TimeUnit for_time(Nanos typical);
  [[nodiscard]] std::string number(Nanos time) const;
  /// Returns number and unit, such as "260.0 ms", or a dash for 0.
  [[nodiscard]] std::string text(Nanos time) const;
};

/// prose_time(), bytes_text() and rate_text() return a value with three digits and its unit, such as "1.54 s", "13.8
/// MB" or "1 Gbps". Exact values are in the result file.
std::string prose_time(Nanos time);
std::string bytes_text(Bytes bytes);
std::string rate_text(Rate rate);
/// Returns the number with narrow non-breaking spaces between thousands.
std::string count_text(std::uint64_t count);
std::string percent_text(double share);
/// Returns a mean number of jobs as text, such as "1.6" or "12".
std::string jobs_text(double jobs);
/// Returns a slow-down as text, such as "1.23×", or a dash if the slow-down is unknown.
std::string slowdown_text(double slowdown);
std::string slowdown_text(const std::optional<double>& slowdown);

/// A unit of rates: its name, and its size in bits per second. for_rate() returns the largest unit in which the value
/// of a rate is at least 1.
struct RateUnit {
  const char* name;
  double bits_per_second;
  static RateUnit for_rate(double bits_per_second);
};

void add_once(std::vector<std::string>& list, const std::string& text);

/// Returns an entry of the list of facts at a page's head, as HTML.
std::string fact(std::string_view name, const std::string& value);
/// Returns a table cell as HTML. On narrow screens, a row becomes a card and each cell shows the name of its column.
std::string cell(std::string_view column, const std::string& value);
/// Returns a table as HTML, in a box that scrolls separately from the page. `columns` are the names in the header. On
/// narrow screens, rows become cards.
std::string table(std::string_view caption, const std::vector<std::string>& columns, const std::string& rows,
                  std::string_view classes = "cards");

/// Returns program and versions that produced the results, for the foot of a page; empty if unknown.
std::string provenance_text(const std::optional<Provenance>& provenance);

/// Result of comparing two times: `now` relative to `before`.
enum class Change { unknown, better, same, worse };
/// Slow-downs count as the same if their relative difference is below this value.
inline constexpr double kSameSlowdown = 0.01;
Change change_of(std::optional<double> before, std::optional<double> now);
/// Returns the style sheet's class for a change: "better", "same", "worse" or "unknown".
std::string_view class_of(Change change);
/// Returns "<b>better</b>", "<b>no different</b>" or "<b>worse</b>", all with the same emphasis. The change must be
/// known. This function and those below return HTML.
std::string verdict(Change change);
/// Returns the verdict in two respects, such as "better on average, but worse in the tail". Omits a verdict that is
/// unknown. Empty if both are unknown.
std::string verdicts(Change first, std::string_view in_first, Change second, std::string_view in_second);
/// Returns a comparison such as "1.29× instead of 1.23×, 5.3% more time", or "1.23×, compared with 1.23×". Both
/// slow-downs must be known.
std::string slowdown_beside(double before, double now);
/// Returns a line of a tile, coloured by `change`: the description `what`, a number, and the comparison `beside`, which
/// may be empty.
std::string measure(Change change, std::string_view what, const std::string& number, const std::string& beside);
/// Returns a difference such as "16% less time". Both times must be known and differ.
std::string change_text(double before, double now);

}  // namespace mltcp::experiment
