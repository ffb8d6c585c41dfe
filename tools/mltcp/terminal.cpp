// Prints text for people (see terminal.h).
#include "terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "mltcp/base/text.h"

namespace mltcp::tools {
namespace {

// Returns the width of a text on the screen: the number of its UTF-8 code points without colour codes. The program
// prints no wide characters.
std::size_t width(const std::string& text) {
  std::size_t columns = 0;
  bool colour = false;
  for (const char c : text) {
    if (c == '\033') colour = true;
    if (!colour && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++columns;
    if (c == 'm') colour = false;
  }
  return columns;
}

}  // namespace

bool takes_colours(std::FILE* file) {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return (refused == nullptr || *refused == '\0') && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb" && isatty(fileno(file)) != 0;
}

std::string painted(std::string_view text, Colour colour, std::FILE* file) {
  if (!takes_colours(file)) return std::string(text);
  const char* const code = colour == Colour::green ? "32" : colour == Colour::yellow ? "33" : "1;31";
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

void print_error(std::string_view message) {
  std::fputs(fmt::format("{} {}\n", painted("mltcp:", Colour::red, stderr), one_line(message)).c_str(), stderr);
}

void print_warning(std::string_view message) {
  std::fputs(fmt::format("mltcp: {} {}\n", painted("warning:", Colour::yellow, stderr), one_line(message)).c_str(),
             stderr);
}

void print_warnings(const std::vector<std::string>& messages) {
  for (const std::string& message : messages) print_warning(message);
}

Table::Table(std::vector<std::string> header, std::size_t left) : left_(left) { rows_.push_back(std::move(header)); }

void Table::add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
void Table::gap() { rows_.emplace_back(); }

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string all;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - width(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (i < left_ ? row[i] + pad : pad + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + "\n";
  }
  return all;
}

void Redrawn::show(const std::string& text) {
  clear();
  // Switch off line wrap, so that a line that is too long stays one line.
  fmt::print(stderr, "\033[?7l{}\033[?7h", text);
  std::fflush(stderr);
  lines_ = std::ranges::count(text, '\n');
}

void Redrawn::clear() {
  if (lines_ > 0) fmt::print(stderr, "\033[{}A\033[J", lines_);
  std::fflush(stderr);
  lines_ = 0;
}

ProgressBar::ProgressBar()
    : terminal_(isatty(STDERR_FILENO) != 0), begun_(std::chrono::steady_clock::now()), last_(begun_) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::show(double fraction, const std::string& what) {
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  constexpr std::size_t cells = 30;
  const auto full = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * cells);
  std::string bar(full, '#');
  bar.resize(cells, '.');
  const double seconds = std::chrono::duration<double>(now - begun_).count();
  std::string left;
  if (fraction > 0.02 && seconds > 1) left = fmt::format(", {:.0f} s left", seconds * (1 - fraction) / fraction);
  fmt::print(stderr, "\r\033[K[{}] {:3.0f}%  {}{}", bar, fraction * 100, what, left);
  std::fflush(stderr);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace mltcp::tools
