// Text for people: tables, and what appears on a terminal only: colours and a progress bar.
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

/// Whether `file` is a terminal whose user has nothing against colours: TERM is set and not "dumb", and NO_COLOR
/// (no-color.org) is not set, or empty.
bool takes_colours(std::FILE* file);
/// The text in that colour (ECMA-48, "SGR") where `file` takes it, otherwise as it is.
std::string painted(std::string_view text, Colour colour, std::FILE* file);

/// "mltcp: MESSAGE" and "mltcp: warning: MESSAGE", one line each whatever the message holds, on standard error; whether
/// that can be written is no matter.
void print_error(std::string_view message);
void print_warning(std::string_view message);
void print_warnings(const std::vector<std::string>& messages);

/// Columns of text, the first left-aligned and the rest right-aligned, as wide as their widest cell.
class Table {
 public:
  /// `left`: how many of the first columns are left-aligned.
  Table(std::vector<std::string> header, std::size_t left);
  void add(std::vector<std::string> row);
  /// A blank line.
  void gap();
  [[nodiscard]] std::string text() const;

 private:
  std::size_t left_;
  std::vector<std::vector<std::string>> rows_;
};

/// Text on standard error, a terminal, that takes the place of what it was before.
class Redrawn {
 public:
  /// Lines that end with a newline.
  void show(const std::string& text);
  /// What is drawn goes.
  void clear();

 private:
  std::ptrdiff_t lines_ = 0;
};

/// A bar on standard error. Silent unless that is a terminal.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `fraction` from 0 to 1. Draws at most ten times a second.
  void show(double fraction, const std::string& what);
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace mltcp::tools
