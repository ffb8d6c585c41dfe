// The charts of recorded series on the page of results: one panel each for the link's queue, congestion windows, gains,
// progress and round-trip times, over the time of a run. Rows are joined to what a page can hold; joined rows keep
// their least and most values. Not installed.
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

  /// `series` may be null; both must outlive this object.
  SeriesCharts(const View& view, const SeriesFile* series);

  /// Whether there are series of any run.
  [[nodiscard]] bool any() const;
  /// Whether the run has this panel: datapath flow has neither queues nor windows.
  [[nodiscard]] bool has(std::size_t run, std::size_t panel) const;
  /// A chart of kind "series" for charts.js.
  [[nodiscard]] nlohmann::json chart(std::size_t run, std::size_t panel) const;
  /// Whether there are series of connections, from which follows what each job has sent over time.
  [[nodiscard]] bool has_sent(std::size_t run) const {
    return runs_[run] != nullptr && !runs_[run]->connections.empty() && runs_[run]->times.size() > 1;
  }
  /// What jobs have sent, as a chart of kind "bands", for a run whose link was not recorded.
  [[nodiscard]] nlohmann::json sent(std::size_t run, std::string_view name) const;
  /// Number of rows that a drawn point joins, maximum over the runs.
  [[nodiscard]] std::size_t max_joined() const;

 private:
  struct Values {
    std::vector<double> least;
    std::vector<double> most;
  };
  [[nodiscard]] std::size_t group(const RunSeries& run) const;
  [[nodiscard]] std::size_t link_of(std::size_t run) const;
  [[nodiscard]] double most_of(std::size_t panel) const;
  [[nodiscard]] static Values joined(const Values& rows, std::size_t group);
  [[nodiscard]] Values rows_of_job(const RunSeries& run, const std::string& job, std::size_t panel) const;

  const View& view_;
  std::vector<const RunSeries*> runs_;  ///< by run of the results; null: none
  std::size_t points_ = 0;              ///< maximum of a line
};

}  // namespace mltcp::experiment
