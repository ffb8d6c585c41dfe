// The frame common to all pages with charts. Not installed.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "mltcp/base/json/provenance.h"
#include "mltcp/lab/experiment/report/internal/report_charts.h"

namespace mltcp::experiment {

/// A complete page. `kicker` is above the title; `body` and `footer` are HTML; `script` is added to charts.js. The
/// title is escaped here.
std::string page_of(std::string_view kicker, const std::string& title, const std::string& body,
                    const std::string& footer, const std::optional<Provenance>& provenance, const ChartList& charts,
                    std::string_view script);

/// The glossary of a page of results: "Slow-down: ...".
std::string words_of_results();

}  // namespace mltcp::experiment
