// Text for people: tables, and a progress bar that appears on a terminal only.
#pragma once

#include <chrono>
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
