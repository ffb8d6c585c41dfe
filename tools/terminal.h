// Text for people: tables, and a progress bar that appears on a terminal only.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace mltcp::tools {

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
