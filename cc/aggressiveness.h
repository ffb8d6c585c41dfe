// The aggressiveness function F of MLTCP (arXiv 2402.09589, section 3; HotNets'24, doi 10.1145/3696348.3696878). F is
// the gain of a job's increase step. F depends on the fraction of the iteration's bytes that the job has sent.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mltcp::cc {

/// The function F(x), where x is bytes_ratio, in [0, 1]. The default is F1 of the papers.
class Aggressiveness {
 public:
  struct Point {
    double x = 0;
    double gain = 1;
  };
  static constexpr std::size_t kMaxPoints = 16;

  Aggressiveness() = default;
  /// A linear function: F(x) = slope x + intercept.
  Aggressiveness(double slope, double intercept) : a_(intercept), b_(slope) {}
  /// Returns one of the papers' six functions, "F1" to "F6". Throws InputError that lists them for any other name. F1
  /// to F4 increase. F5 and F6 decrease, which makes jobs collide instead of interleave.
  static Aggressiveness named(std::string_view name);
  /// Returns a piecewise linear function through 2 to `kMaxPoints` points, whose x increase from 0 to 1. Throws
  /// InputError for any other points.
  static Aggressiveness table(std::span<const Point> points);

  [[nodiscard]] double operator()(double x) const {
    switch (form_) {
      case Form::polynomial:
        return a_ + x * (b_ + x * c_);
      case Form::reciprocal:
        return 1 / (a_ + x * b_);
      case Form::table:
        break;
    }
    return interpolate(x);
  }

  /// The minimum of F over [0, 1].
  [[nodiscard]] double least() const;

  /// text() returns an exact text form, such as "polynomial 0.25 1.75 0", to send to another process. from_text() reads
  /// this form, and throws InputError for invalid text or if validate() throws.
  [[nodiscard]] std::string text() const;
  static Aggressiveness from_text(std::string_view text);
  /// Parses user input: a name as in named(), or a text form as in from_text(). Throws like these.
  static Aggressiveness read(std::string_view text) {
    return text.find(' ') == std::string_view::npos ? named(text) : from_text(text);
  }

  /// Throws InputError unless F is finite and above 0 everywhere in [0, 1].
  void validate() const;

 private:
  enum class Form : std::uint8_t { polynomial, reciprocal, table };
  [[nodiscard]] double interpolate(double x) const;
  /// The x of the parabola's extremum if that is between 0 and 1; otherwise 0.
  [[nodiscard]] double vertex() const;

  Form form_ = Form::polynomial;
  std::uint8_t count_ = 0;
  double a_ = 0.25;
  double b_ = 1.75;
  double c_ = 0;
  std::array<Point, kMaxPoints> points_{};
  std::array<double, kMaxPoints> slopes_{};  ///< slope of the segment from each point to the next
};

}  // namespace mltcp::cc
