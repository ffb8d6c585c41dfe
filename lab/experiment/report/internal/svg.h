// Stand-alone pictures as SVG 1.1. Coordinates are in pixels from the upper left corner. This header is not installed.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mltcp::experiment {

/// Returns a coordinate or length as text, to a tenth of a pixel and without trailing zeros: "12.5", "12".
std::string place(double value);

/// A picture drawn from back to front. Texts are escaped; classes and attributes are not.
class Svg {
 public:
  /// `style` is the picture's style sheet. `title` is for screen readers.
  Svg(int width, int height, std::string_view title, std::string_view style);

  void path(std::string_view classes, std::string_view d);
  void rectangle(std::string_view classes, double x, double y, double width, double height);
  /// `anchor` is "start", "middle" or "end".
  void text(std::string_view classes, double x, double y, std::string_view anchor, std::string_view text);
  /// Draws a text that is rotated by 90 degrees and centred at the point.
  void text_upwards(std::string_view classes, double x, double y, std::string_view text);

  /// Returns the SVG file. Equal drawings give identical bytes.
  [[nodiscard]] std::string file() const;

 private:
  std::string body_;
};

/// Returns about `count` round numbers within [from, to], each with its text. If `whole`, all are whole numbers.
std::vector<std::pair<double, std::string>> round_ticks(double from, double to, int count, bool whole = false);

/// Returns the text, shortened to at most `max` characters. A shortened text ends with "…".
std::string shortened(std::string_view text, std::size_t max);
/// Returns the estimated width of the text in a sans-serif font, in pixels. `size` is the font size in pixels.
double text_width(std::string_view text, double size);

}  // namespace mltcp::experiment
