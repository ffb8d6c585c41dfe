// Pictures of a result file as SVG, for pages that can't hold a report: who used the link under the first policy and
// under the last, and the slow-down of iterations under each. Made without a browser, and the same to the byte for the
// same results; legible on light and on dark pages, as it has a background of its own that follows the colour scheme.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/experiment/results/results.h"

namespace mltcp::experiment {

/// The charts that render_picture() knows, the default first.
inline constexpr std::array<std::string_view, 2> kPictures{"usage", "iterations"};

struct PictureOptions {
  std::string chart = "usage";  ///< of kPictures
  /// Those shown, in this order. Empty: of "usage" the first and the last, of "iterations" all.
  std::vector<std::string> policies;
};

/// "usage": a panel a policy, all of one scale: some iterations from the middle of the run on, as bands of rate by job;
/// where nobody recorded the link, as bars by the jobs' own clocks. "iterations": slow-down by iteration, a line a
/// policy. Throws InputError "cause; cure" for an unknown chart or policy and for results that lack what is to be
/// drawn.
std::string render_picture(const Results& results, const PictureOptions& options);

}  // namespace mltcp::experiment
