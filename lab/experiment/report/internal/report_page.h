// The frame common to all pages with charts. This header is not installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mltcp/base/json/provenance.h"
#include "mltcp/lab/experiment/report/internal/report_charts.h"

namespace mltcp::experiment {

/// Returns a complete page. `kicker` is the text above the title. `body` and `footer` are HTML. `script` is added to
/// charts.js. `title` is escaped by this function.
std::string page_of(std::string_view kicker, const std::string& title, const std::string& body,
                    const std::string& footer, const std::optional<Provenance>& provenance, const ChartList& charts,
                    std::string_view script);

/// Returns the glossary of a page of results, such as "Slow-down: ...".
std::string words_of_results();

}  // namespace mltcp::experiment
