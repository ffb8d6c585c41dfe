// Implements the papers' functions, tables, and set-up checks (see aggressiveness.h).
#include "mltcp/cc/aggressiveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"

namespace mltcp::cc {

Aggressiveness Aggressiveness::named(std::string_view name) {
  const auto quadratic = [](double a, double b, double c) {
    Aggressiveness f(b, a);
    f.c_ = c;
    return f;
  };
  if (name == "F1") return {1.75, 0.25};
  if (name == "F2") return quadratic(0.25, 0, 1.75);
  if (name == "F3") {
    Aggressiveness f(-3.5, 4);
    f.form_ = Form::reciprocal;
    return f;
  }
  if (name == "F4") return quadratic(0.25, 3.5, -1.75);
  if (name == "F5") return {-1.75, 2};
  if (name == "F6") return quadratic(2, 0, -1.75);
  throw InputError(
      fmt::format("there is no aggressiveness function \"{}\"; there are F1, F2, F3, F4, F5 and F6", name));
}

Aggressiveness Aggressiveness::table(std::span<const Point> points) {
  if (points.size() < 2 || points.size() > kMaxPoints)
    throw InputError(fmt::format("an aggressiveness table has {} points; give 2 to {}", points.size(), kMaxPoints));
  if (points.front().x != 0 || points.back().x != 1)
    throw InputError(fmt::format("an aggressiveness table goes from x = {} to {}; begin at 0 and end at 1",
                                 points.front().x, points.back().x));
  for (std::size_t i = 1; i < points.size(); ++i)
    if (!(points[i].x > points[i - 1].x))
      throw InputError(fmt::format("x = {} follows x = {} in an aggressiveness table; let x rise from point to point",
                                   points[i].x, points[i - 1].x));
  Aggressiveness f;
  f.form_ = Form::table;
  f.count_ = static_cast<std::uint8_t>(points.size());
  std::copy(points.begin(), points.end(), f.points_.begin());
  for (std::size_t i = 0; i + 1 < points.size(); ++i)
    f.slopes_[i] = (points[i + 1].gain - points[i].gain) / (points[i + 1].x - points[i].x);
  return f;
}

std::string Aggressiveness::text() const {
  if (form_ == Form::polynomial) return fmt::format("polynomial {} {} {}", a_, b_, c_);
  if (form_ == Form::reciprocal) return fmt::format("reciprocal {} {}", a_, b_);
  std::string text = "table";
  for (std::size_t i = 0; i < count_; ++i) text += fmt::format(" {} {}", points_[i].x, points_[i].gain);
  return text;
}

Aggressiveness Aggressiveness::from_text(std::string_view text) {
  const auto space = std::min(text.find(' '), text.size());
  std::vector<double> numbers;
  std::size_t at = space;
  while (at < text.size() && text[at] == ' ' && numbers.size() <= 2 * kMaxPoints) {
    double number = 0;
    const auto [end, problem] = std::from_chars(text.data() + at + 1, text.data() + text.size(), number);
    if (problem != std::errc()) break;
    numbers.push_back(number);
    at = static_cast<std::size_t>(end - text.data());
  }
  // `form` is empty if the text after the first space is not a list of numbers.
  const std::string_view form = at == text.size() ? text.substr(0, space) : std::string_view();
  Aggressiveness f;
  if (form == "polynomial" && numbers.size() == 3) {
    f = Aggressiveness(numbers[1], numbers[0]);
    f.c_ = numbers[2];
  } else if (form == "reciprocal" && numbers.size() == 2) {
    f = Aggressiveness(numbers[1], numbers[0]);
    f.form_ = Form::reciprocal;
  } else if (form == "table" && numbers.size() % 2 == 0) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < numbers.size(); i += 2) points.push_back({numbers[i], numbers[i + 1]});
    f = table(points);
  } else {
    throw InputError(fmt::format(
        "{} is no aggressiveness function; write F1 to F6, or in quotes \"polynomial A B C\" for A + B x + "
        "C x^2, \"reciprocal A B\" for 1 / (A + B x), or \"table 0 0.25 1 2\", x and gain in turn from x = 0 "
        "to 1",
        in_quotes(text)));
  }
  f.validate();
  return f;
}

double Aggressiveness::interpolate(double x) const {
  std::size_t left = 0;
  while (left + 2 < count_ && points_[left + 1].x < x) ++left;
  return points_[left].gain + slopes_[left] * (x - points_[left].x);
}

void Aggressiveness::validate() const {
  const Aggressiveness& f = *this;
  const auto fail = [](double x, double gain) {
    throw InputError(
        fmt::format("the aggressiveness F({}) is {}, which is not finite and above 0; give a function that is for "
                    "every x from 0 to 1, such as F1, 1.75 x + 0.25",
                    x, gain));
  };
  const auto check = [&](double x) {
    if (!std::isfinite(f(x)) || !(f(x) > 0)) fail(x, f(x));
  };
  if (form_ == Form::table) {
    for (std::size_t i = 0; i < count_; ++i)
      if (!std::isfinite(points_[i].gain) || !(points_[i].gain > 0)) fail(points_[i].x, points_[i].gain);
    return;
  }
  check(0);
  check(1);
  check(vertex());
}

// A parabola may have its minimum between x = 0 and x = 1.
double Aggressiveness::vertex() const {
  const double x = form_ == Form::polynomial && c_ != 0 ? -b_ / (2 * c_) : 0;
  return x > 0 && x < 1 ? x : 0;
}

double Aggressiveness::least() const {
  const Aggressiveness& f = *this;
  double min = std::min({f(0), f(1), f(vertex())});
  for (std::size_t i = 0; i < count_; ++i) min = std::min(min, points_[i].gain);
  return min;
}

}  // namespace mltcp::cc
