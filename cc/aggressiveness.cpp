// The papers' functions, tables, and set-up checks (see aggressiveness.h).
#include "mltcp/cc/aggressiveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "mltcp/base/error.h"

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
  if (points.size() < 2 || points.size() > most_points)
    throw InputError(fmt::format("an aggressiveness table has {} points; give 2 to {}", points.size(), most_points));
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

double Aggressiveness::interpolate(double x) const {
  std::size_t left = 0;
  while (left + 2 < count_ && points_[left + 1].x < x) ++left;
  return points_[left].gain + slopes_[left] * (x - points_[left].x);
}

void Aggressiveness::validate() const {
  const Aggressiveness& f = *this;
  const auto fail = [](double x, double gain) {
    throw InputError(
        fmt::format("the aggressiveness F({}) is {}, and not finite and above 0 as for every x from 0 to 1; F1, "
                    "1.75 x + 0.25, is one that is",
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
  // A parabola may dip between the ends.
  const double vertex = form_ == Form::polynomial && c_ != 0 ? -b_ / (2 * c_) : 0;
  if (vertex > 0 && vertex < 1) check(vertex);
}

}  // namespace mltcp::cc
