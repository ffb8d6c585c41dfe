// Pictures of a result file as SVG, for pages that cannot embed a report. A picture shows the use of the link under the
// first and last policy, or the slow-down of iterations under each policy. Equal results give identical bytes. A
// picture includes a background that follows the reader's colour scheme, so that it is legible on light and dark pages.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/results/results.h"

namespace mltcp::experiment {

/// The names of the charts. The first is the default.
inline constexpr std::array<std::string_view, 2> kPictures{"usage", "iterations"};

struct PictureOptions {
  std::string chart = "usage";  ///< one of kPictures
  /// Policies to show, in this order. If empty, "usage" shows the first and the last policy, and "iterations" shows
  /// all.
  std::vector<std::string> policies;
};

/// Renders a chart. Chart "usage" has one panel per policy, all with the same scale. A panel shows some iterations from
/// the middle of the run, as areas of rate by job, or as bars from the jobs' own clocks if the link was not recorded.
/// Chart "iterations" shows the slow-down by iteration, with one line per policy. Throws InputError "cause; remedy" if
/// the chart or a policy is unknown, or if the results lack the data.
std::string render_picture(const Results& results, const PictureOptions& options);

}  // namespace mltcp::experiment
