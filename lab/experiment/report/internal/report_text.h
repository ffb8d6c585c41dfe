// Texts and table cells common to the report's pages and pictures. Not installed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/base/json/provenance.h"
#include "mltcp/base/units.h"

namespace mltcp::experiment {

/// A common unit for all times of a page, so that numbers are comparable.
struct TimeUnit {
  const char* name;
  double nanos;

  /// `typical`: the smallest time that should be readable, in about four digits.
  static TimeUnit for_time(Nanos typical);
  [[nodiscard]] std::string number(Nanos time) const;
  /// "260.0 ms"; a dash for 0.
  [[nodiscard]] std::string text(Nanos time) const;
};

/// Three digits, as exact values are in the result file: "1.54 s", "13.8 MB", "1 Gbps".
std::string prose_time(Nanos time);
std::string bytes_text(Bytes bytes);
std::string rate_text(Rate rate);
/// With narrow non-breaking spaces between thousands.
std::string count_text(std::uint64_t count);
std::string percent_text(double share);
/// A mean number of jobs: "1.6", "12".
std::string jobs_text(double jobs);
/// "1.23×"; a dash if unknown.
std::string slowdown_text(double slowdown);
std::string slowdown_text(const std::optional<double>& slowdown);

/// The largest unit in which `rate` is one or more: its name and bits per second.
struct RateUnit {
  const char* name;
  double bits_per_second;
  static RateUnit for_rate(double bits_per_second);
};

void add_once(std::vector<std::string>& list, const std::string& text);

/// An entry of the list of facts at a page's head. Returns HTML.
std::string fact(std::string_view name, const std::string& value);
/// One cell of a table. On narrow screens a row becomes a card and the cell shows its column's name by itself.
std::string cell(std::string_view column, const std::string& value);
/// A table whose rows become cards on narrow screens, in a box that scrolls by itself; `columns` are the header's.
std::string table(std::string_view caption, const std::vector<std::string>& columns, const std::string& rows,
                  std::string_view classes = "cards");

/// Program and versions that produced the results, for the foot of a page; empty if unknown.
std::string provenance_text(const std::optional<Provenance>& provenance);

/// Result of comparing two times: `now` relative to `before`.
enum class Change { unknown, better, same, worse };
/// Slow-downs that differ by less are considered the same.
inline constexpr double kSameSlowdown = 0.01;
Change change_of(std::optional<double> before, std::optional<double> now);
/// "better", "same", "worse" or "unknown": as a class of the style sheet.
std::string_view class_of(Change change);
/// "<b>better</b>", "<b>no different</b>" or "<b>worse</b>", all with the same emphasis. Requires a known change. This
/// and the functions below return HTML.
std::string verdict(Change change);
/// Verdict in two respects, such as "on average" and "in the tail": "better on average, but worse in the tail". Omits
/// an unknown one; empty if both are unknown.
std::string verdicts(Change first, std::string_view in_first, Change second, std::string_view in_second);
/// "1.29× instead of 1.23×, 5.3% more time", or "1.23×, compared with 1.23×". Both slow-downs must be known.
std::string slowdown_beside(double before, double now);
/// One number of a tile, with its own colour: description, number, and comparison; `beside` may be empty.
std::string measure(Change change, std::string_view what, const std::string& number, const std::string& beside);
/// "16% less time". Both times must be known and differ.
std::string change_text(double before, double now);

}  // namespace mltcp::experiment
