// A picture as SVG 1.1, for files that stand alone. Places are in pixels from the upper left corner. Not installed.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mltcp::experiment {

/// A place or length, to a tenth of a pixel and without zeros that say nothing: "12.5", "12".
std::string place(double value);

/// A picture that is drawn from back to front. Texts are escaped here, whatever they hold; classes and attributes are
/// taken as they are.
class Svg {
 public:
  /// `style` is the text of its style sheet; `title` is told to those who can't see it.
  Svg(int width, int height, std::string_view title, std::string_view style);

  void path(std::string_view classes, std::string_view d);
  void rectangle(std::string_view classes, double x, double y, double width, double height);
  /// `anchor`: start, middle or end.
  void text(std::string_view classes, double x, double y, std::string_view anchor, std::string_view text);
  /// Upwards, around its middle.
  void text_upwards(std::string_view classes, double x, double y, std::string_view text);

  /// The file. The same drawing gives the same bytes.
  [[nodiscard]] std::string file() const;

 private:
  std::string body_;
};

/// Round numbers within [from, to], about `count` of them, each with its text.
std::vector<std::pair<double, std::string>> round_ticks(double from, double to, int count, bool whole = false);

/// At most `most` characters, the last of them "…" where some are left out.
std::string shortened(std::string_view text, std::size_t most);
/// About how wide the text is in a sans-serif font of that size.
double text_width(std::string_view text, double size);

}  // namespace mltcp::experiment
