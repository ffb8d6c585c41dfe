// The charts of recorded series on the page of results. The link's queue, congestion windows, gains, progress and
// round-trip times have one panel each, over the time of a run. If a run has more rows than a page can show, successive
// rows are joined. A joined row contains the minimum and maximum of these rows. This header is not installed.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/report/internal/report_view.h"
#include "mltcp/lab/experiment/series/series_file.h"

namespace mltcp::experiment {

class SeriesCharts {
 public:
  struct Panel {
    std::string_view name;
    std::string_view caption;  ///< HTML
  };
  static constexpr std::array<Panel, 5> kPanels{{
      {"queue",
       "<b>Queue</b> before the link; ticks above it: packets "
       "<i class=\"swatch\" style=\"background:var(--line-4)\"></i>marked, "
       "<i class=\"swatch\" style=\"background:var(--line-1)\"></i>dropped"},
      {"cwnd", "<b>Congestion window</b> of each job, all of its connections together"},
      {"gain", "<b>Gain</b> of each job's increase step"},
      {"ratio", "<b>bytes_ratio</b>: how much of its iteration's bytes each job has sent"},
      {"rtt", "<b>Round trip</b>, smoothed: the longest of each job's connections"},
  }};

  /// `series` may be null. `view` and `series` must outlive this object.
  SeriesCharts(const View& view, const SeriesFile* series);

  /// Returns whether any run has series.
  [[nodiscard]] bool any() const;
  /// Returns whether the run has data for this panel. Datapath flow has neither queues nor windows.
  [[nodiscard]] bool has(std::size_t run, std::size_t panel) const;
  /// Returns a chart of kind "series" for charts.js.
  [[nodiscard]] nlohmann::json chart(std::size_t run, std::size_t panel) const;
  /// Returns whether the run has series of connections, which show what each job has sent over time.
  [[nodiscard]] bool has_sent(std::size_t run) const {
    return runs_[run] != nullptr && !runs_[run]->connections.empty() && runs_[run]->times.size() > 1;
  }
  /// Returns a chart of kind "bands" that shows how much each job has sent, for a run whose link was not recorded.
  [[nodiscard]] nlohmann::json sent(std::size_t run, std::string_view name) const;
  /// Returns the number of rows that one drawn point joins, for the run with the most rows.
  [[nodiscard]] std::size_t max_joined() const;

 private:
  struct Values {
    std::vector<double> least;
    std::vector<double> most;
  };
  [[nodiscard]] std::size_t group(const RunSeries& run) const;
  [[nodiscard]] std::size_t link_of(std::size_t run) const;
  [[nodiscard]] double max_of(std::size_t panel) const;
  [[nodiscard]] static Values joined(const Values& rows, std::size_t group);
  [[nodiscard]] Values rows_of_job(const RunSeries& run, const std::string& job, std::size_t panel) const;

  const View& view_;
  std::vector<const RunSeries*> runs_;  ///< series of each run of the results; null if a run has none
  std::size_t points_ = 0;              ///< maximum number of points of a line
};

}  // namespace mltcp::experiment
