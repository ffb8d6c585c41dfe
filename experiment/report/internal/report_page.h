// The frame that all pages of charts have in common. Not installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mltcp/experiment/report/internal/report_charts.h"
#include "mltcp/experiment/results/provenance.h"

namespace mltcp::experiment {

/// A whole page: `kicker` stands above the title, `body` and `footer` are HTML, `script` is what the page adds to
/// charts.js. The title is escaped here.
std::string page_of(std::string_view kicker, const std::string& title, const std::string& body,
                    const std::string& footer, const std::optional<Provenance>& provenance, const ChartList& charts,
                    std::string_view script);

/// "Slow-down: ..." and the rest of what the words of a page of results mean.
std::string words_of_results();

}  // namespace mltcp::experiment
