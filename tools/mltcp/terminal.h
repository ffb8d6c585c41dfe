// Prints tables, messages, and, only on terminals, colours and a progress bar.
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

/// Returns whether `file` is a terminal and the user wants colours: TERM is set and not "dumb", and NO_COLOR
/// (no-color.org) is unset or empty.
bool takes_colours(std::FILE* file);
/// Returns `text` in a colour (ECMA-48 SGR) if `file` supports colours, otherwise unchanged.
std::string painted(std::string_view text, Colour colour, std::FILE* file);

/// These functions print "mltcp: MESSAGE" or "mltcp: warning: MESSAGE" to standard error, each as one line. They ignore
/// write errors.
void print_error(std::string_view message);
void print_warning(std::string_view message);
void print_warnings(const std::vector<std::string>& messages);

/// A table of text. Each column is as wide as its widest cell.
class Table {
 public:
  /// `left` is the number of leading columns that are left-aligned. The other columns are right-aligned.
  Table(std::vector<std::string> header, std::size_t left);
  void add(std::vector<std::string> row);
  /// Adds a blank line.
  void gap();
  [[nodiscard]] std::string text() const;

 private:
  std::size_t left_;
  std::vector<std::vector<std::string>> rows_;
};

/// A text on the terminal of standard error. A new version replaces the previous one.
class Redrawn {
 public:
  /// Shows `text`, whose lines must end with a newline, in place of the previous text.
  void show(const std::string& text);
  /// Erases the text.
  void clear();

 private:
  std::ptrdiff_t lines_ = 0;
};

/// A progress bar on standard error. Prints nothing if standard error is not a terminal.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Shows a progress of `fraction`, from 0 to 1. Redraws at most ten times a second.
  void show(double fraction, const std::string& what);
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace mltcp::tools
