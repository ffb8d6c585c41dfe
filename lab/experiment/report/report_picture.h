// Pictures of a result file as SVG, for pages that cannot embed a report: use of the link under the first and last
// policy, and the slow-down of iterations under each. Equal results give identical bytes. The background is included
// and follows the colour scheme, so that the picture is legible on light and dark pages.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

/// The names of the charts, the default first.
inline constexpr std::array<std::string_view, 2> kPictures{"usage", "iterations"};

struct PictureOptions {
  std::string chart = "usage";  ///< one of kPictures
  /// Policies to show, in this order. Empty: for "usage" the first and the last, for "iterations" all.
  std::vector<std::string> policies;
};

/// "usage": one panel per policy, on a common scale: some iterations from the middle of the run, as areas of rate by
/// job; if the link was not recorded, as bars from the jobs' own clocks. "iterations": slow-down by iteration, one line
/// per policy. Throws InputError "cause; cure" for an unknown chart or policy, and if the results lack the data for it.
std::string render_picture(const Results& results, const PictureOptions& options);

}  // namespace mltcp::experiment
