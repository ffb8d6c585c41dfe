// The frame common to all pages with charts (see report_page.h).
#include "mltcp/lab/experiment/report/internal/report_page.h"

#include <array>

#include "mltcp/lab/experiment/report/internal/html.h"

namespace mltcp::embedded {
extern const std::string_view page_html;
extern const std::string_view report_css;
extern const std::string_view charts_js;
}  // namespace mltcp::embedded

namespace mltcp::experiment {

std::string page_of(std::string_view kicker, const std::string& title, const std::string& body,
                    const std::string& footer, const std::optional<Provenance>& provenance, const ChartList& charts,
                    std::string_view script) {
  const std::string name = title.empty() ? "Unnamed experiment" : escaped(title);
  const std::string foot = provenance_text(provenance) + footer;
  const std::string data = charts.data();
  return filled(embedded::page_html, std::array<Part, 8>{{{"kicker", kicker},
                                                          {"title", name},
                                                          {"body", body},
                                                          {"footer", foot},
                                                          {"data", data},
                                                          {"report_css", embedded::report_css},
                                                          {"charts_js", embedded::charts_js},
                                                          {"script", script}}});
}

std::string words_of_results() {
  return "<p>\nSlow-down: mean iteration ÷ an iteration of the same job alone on the same network; 1.00× is as fast as "
         "alone. A policy's slow-down is the mean over its jobs, without the jobs that no policy applies to. "
         "Differences below 1%, or of up to 2 iterations between two results, are shown as none. Interleaved from: the "
         "iteration (counted from 0) from which on no iteration of any job takes more than 2% longer than alone, five "
         "or more of each; within 5% is the same with 5%. On real-time datapaths, single outliers caused by the "
         "machine are ignored. A job sends in a bin of the recorded use when it moves at least 5% of what it moves in "
         "its fullest bin; bursts overlap in the bins where two or more jobs send, as a share of the bins where any "
         "does. Jobs at once: the number of jobs that send in a bin, as the mean over the bins in which any job sends. "
         "Second half: the later half of a job's iterations, or of the time until the first job is done.\n</p>";
}

}  // namespace mltcp::experiment
