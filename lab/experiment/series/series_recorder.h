// Records the series of one run in bounded memory. At time next() of its clock, the backend fills in the state of all
// connections and links.
//
// When all rows are in use, the recorder removes every other row, and doubles the time between rows from then on. For
// least and most values, it takes at most eight samples per row. So the cost of a long run is bounded, too.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/series/series.h"

namespace mltcp::experiment {

struct SeriesOptions {
  Nanos interval;  ///< initial time between samples; 0 to let the runner choose it
  /// Maximum number of rows of all connections and links together. Each connection or link has at least kFewestRows
  /// rows.
  std::size_t max_rows = 100'000;
  /// True if the user did not choose the interval. With n connections and links, the interval is then multiplied by n /
  /// kFewEntities (rounded up), since a sample reads all of them.
  bool is_usual_interval = false;
};

class SeriesRecorder {
 public:
  static constexpr std::size_t kFewestRows = 256;
  static constexpr std::size_t kFewEntities = 64;
  /// Maximum number of connections and links together. This many need about 300 MB.
  static constexpr std::size_t kMaxEntities = 8192;
  static constexpr std::uint32_t kMaxSamplesOfARow = 8;

  /// `options.interval` must be above 0.
  explicit SeriesRecorder(const SeriesOptions& options) : options_(options) {}

  /// Allocates all memory. `epoch` is time 0 of the run and of the first row, on the backend's clock. Throws InputError
  /// if there are more than kMaxEntities connections and links.
  void begin(Nanos epoch, std::vector<SeriesConnection> connections, std::vector<SeriesLink> links);
  /// Returns when the next sample is due, on the backend's clock; never() before begin().
  [[nodiscard]] Nanos next() const { return next_; }

  struct States {
    std::span<ConnectionState> connections;
    std::span<LinkState> links;
  };
  /// Returns the states that the backend fills in before sample() and finish(). Values that the backend does not fill
  /// in remain unchanged. The recorder computes the bounds (_least_, _most_), but a backend that knows the longest
  /// queue since the previous sample may set this bound.
  [[nodiscard]] States states() { return {connections_, links_}; }
  /// Records states() as the states at time next(). Allocates nothing.
  void sample();
  /// Records states() as the states at `now`, the run's end.
  void finish(Nanos now);

  /// Uses a series that another process has recorded, instead of begin(), sample() and finish().
  void adopt(RunSeries recorded);
  [[nodiscard]] const SeriesOptions& options() const { return options_; }

  /// Returns the recorded series, without links that carried nothing. The caller fills in the names of the run.
  [[nodiscard]] RunSeries take();

 private:
  void widen_bounds();
  void store(Nanos at);
  void thin();

  SeriesOptions options_;
  Nanos epoch_;
  Nanos next_ = Nanos::never();
  Nanos interval_;
  std::size_t max_rows_ = 0;  ///< maximum number of rows; odd, so that keeping every other row keeps the last one
  std::uint32_t samples_of_row_ = 1;  ///< samples per row
  std::uint32_t samples_ = 0;         ///< number of samples since the last row
  // States of the latest sample.
  std::vector<ConnectionState> connections_;
  std::vector<LinkState> links_;
  /// Bounds over the samples since the last row.
  struct Bounds {
    double least = std::numeric_limits<double>::infinity();
    double most = 0;
    Nanos rtt;
  };
  std::vector<Bounds> bounds_;
  std::vector<Bytes> longest_queues_;
  RunSeries series_;
};

}  // namespace mltcp::experiment
