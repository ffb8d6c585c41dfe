// Text output: tables, and, on terminals only, colours and a progress bar.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::tools {

enum class Colour : std::uint8_t { green, yellow, red };

/// Whether `file` is a terminal on which colours are wanted: TERM is set and not "dumb", and NO_COLOR (no-color.org) is
/// unset or empty.
bool takes_colours(std::FILE* file);
/// The text in a colour (ECMA-48 SGR) if `file` supports it, otherwise unchanged.
std::string painted(std::string_view text, Colour colour, std::FILE* file);

/// Print "mltcp: MESSAGE" and "mltcp: warning: MESSAGE" to standard error, always as one line each. Write errors are
/// ignored.
void print_error(std::string_view message);
void print_warning(std::string_view message);
void print_warnings(const std::vector<std::string>& messages);

/// Columns of text, as wide as their widest cells.
class Table {
 public:
  /// `left`: number of leading columns that are left-aligned; the others are right-aligned.
  Table(std::vector<std::string> header, std::size_t left);
  void add(std::vector<std::string> row);
  /// A blank line.
  void gap();
  [[nodiscard]] std::string text() const;

 private:
  std::size_t left_;
  std::vector<std::vector<std::string>> rows_;
};

/// Text on a terminal (standard error) that replaces its previous version.
class Redrawn {
 public:
  /// `text` consists of lines that end with a newline.
  void show(const std::string& text);
  /// Erases the text.
  void clear();

 private:
  std::ptrdiff_t lines_ = 0;
};

/// A progress bar on standard error; silent unless that is a terminal.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `fraction`: 0 to 1. Redraws at most ten times a second.
  void show(double fraction, const std::string& what);
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace mltcp::tools
