// Records the series of one run in bounded memory. The backend asks for next(), and at that time of its clock fills in
// the state of all connections and links.
//
// When all rows are in use, every other row is removed, and rows are twice as far apart from then on. For least and
// most values at most eight samples per row are taken, so the cost of a long run is bounded, too.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/series/series.h"

namespace mltcp::experiment {

struct SeriesOptions {
  Nanos interval;  ///< between samples at first; 0: chosen for the run
  /// Maximum number of rows of all connections and links together; each has at least kFewestRows.
  std::size_t max_rows = 100'000;
  /// The user did not choose the interval: for n connections and links together it is n / kFewEntities times as long
  /// (rounded up), since a sample reads them all.
  bool is_usual_interval = false;
};

class SeriesRecorder {
 public:
  static constexpr std::size_t kFewestRows = 256;
  static constexpr std::size_t kFewEntities = 64;
  static constexpr std::size_t kMaxEntities = 8192;  ///< connections and links together: some 300 MB
  static constexpr std::uint32_t kMaxSamplesOfARow = 8;

  /// `options.interval` is above 0.
  explicit SeriesRecorder(const SeriesOptions& options) : options_(options) {}

  /// `epoch` is time 0 of the run and of the first row, on the backend's clock. Allocates all memory. Throws InputError
  /// if there are more than kMaxEntities.
  void begin(Nanos epoch, std::vector<SeriesConnection> connections, std::vector<SeriesLink> links);
  /// When the next sample is due, on the backend's clock; never() before begin().
  [[nodiscard]] Nanos next() const { return next_; }

  struct States {
    std::span<ConnectionState> connections;
    std::span<LinkState> links;
  };
  /// Fill these in before sample() and finish(); other values remain. Bounds (_least_, _most_) are computed here, but a
  /// backend that knows the longest queue since the previous sample may set it.
  [[nodiscard]] States states() { return {connections_, links_}; }
  /// Takes states() as those at next(). Allocates nothing.
  void sample();
  /// Takes states() as those at `now`, the run's end.
  void finish(Nanos now);

  /// Takes a series that others have recorded, instead of all of the above.
  void adopt(RunSeries recorded);
  [[nodiscard]] const SeriesOptions& options() const { return options_; }

  /// The recorded series, without links that carried nothing. The caller fills in the names of the run.
  [[nodiscard]] RunSeries take();

 private:
  void widen_bounds();
  void store(Nanos at);
  void thin();

  SeriesOptions options_;
  Nanos epoch_;
  Nanos next_ = Nanos::never();
  Nanos interval_;
  std::size_t max_rows_ = 0;          ///< odd, so that keeping every other row keeps the last one
  std::uint32_t samples_of_row_ = 1;  ///< samples per row
  std::uint32_t samples_ = 0;         ///< since the last row
  // The latest sample.
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
