// Writes SVG (see svg.h).
#include "mltcp/lab/experiment/report/internal/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/report/internal/html.h"

namespace mltcp::experiment {
namespace {

constexpr double kMeanCharacter = 0.56;  // mean width of a character, as a share of the font size

// Escapes text. Also replaces U+FFFE and U+FFFF, which one_line() may leave and XML 1.0 forbids (section 2.2).
std::string xml(std::string_view text) {
  std::string line = one_line(text);
  for (std::size_t at = 0; (at = line.find("\xef\xbf", at)) != std::string::npos; ++at)
    if (line.compare(at + 2, 1, "\xbe") == 0 || line.compare(at + 2, 1, "\xbf") == 0) line.replace(at, 3, 1, '?');
  return escaped(line);
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

}  // namespace

std::string place(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

Svg::Svg(int width, int height, std::string_view title, std::string_view style)
    : body_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
                        "{1}\" role=\"img\">\n<title>{2}</title>\n<style>\n{3}</style>\n",
                        width, height, xml(title), style)) {}

void Svg::path(std::string_view classes, std::string_view d) {
  body_ += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", classes, d);
}

void Svg::rectangle(std::string_view classes, double x, double y, double width, double height) {
  body_ += fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", classes, place(x),
                       place(y), place(width), place(height));
}

void Svg::text(std::string_view classes, double x, double y, std::string_view anchor, std::string_view text) {
  body_ += fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n", classes, place(x),
                       place(y), anchor, xml(text));
}

void Svg::text_upwards(std::string_view classes, double x, double y, std::string_view text) {
  body_ += fmt::format(
      "<text class=\"{0}\" x=\"{1}\" y=\"{2}\" text-anchor=\"middle\" transform=\"rotate(-90 {1} {2})\">{3}</text>\n",
      classes, place(x), place(y), xml(text));
}

std::string Svg::file() const { return body_ + "</svg>\n"; }

std::vector<std::pair<double, std::string>> round_ticks(double from, double to, int count, bool whole) {
  std::vector<std::pair<double, std::string>> ticks;
  if (!(to > from)) return ticks;
  const double rough = (to - from) / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  constexpr std::array<double, 4> round{1, 2, 5, 10};
  double step =
      power * *std::find_if(round.begin(), round.end() - 1, [&](double n) { return n * power >= rough * 0.999; });
  if (whole) step = std::max(1.0, std::round(step));
  const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  // Counts steps, since adding 1 to a number beyond 2^53 does not change it.
  const double first = std::ceil(from / step - 1e-9);
  for (int i = 0; i <= 10 * std::max(count, 1); ++i) {
    const double at = (first + i) * step;
    if (at > to + step * 1e-9) break;
    ticks.emplace_back(at, fmt::format("{:.{}f}", at + 0.0, digits));
  }
  return ticks;
}

std::string shortened(std::string_view text, std::size_t max) {
  if (characters(text) <= max) return std::string(text);
  std::size_t end = 0;
  for (std::size_t kept = 0; end < text.size(); ++end)
    if (!continues(text[end]) && kept++ == max - 1) break;
  return std::string(text.substr(0, end)) + "…";
}

double text_width(std::string_view text, double size) {
  return kMeanCharacter * size * static_cast<double>(characters(text));
}

}  // namespace mltcp::experiment
