// Records the series of one run in bounded memory. The backend asks for next(), and at that time of its clock fills in
// the state of all connections and links.
//
// When all rows are in use, every other one is left out and rows are from then on twice as far apart; samples are still
// taken eight times a row at most, for the least and most values. So the cost of a long run is bounded, too.
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
  /// Bound of the rows of all connections and links together; each has kFewestRows at least.
  std::size_t max_rows = 100'000;
  /// Nobody has asked for that interval: where there are more than kFewEntities connections and links together, it is
  /// as many times longer, as a sample reads them all.
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

  /// Time 0 of the run, and that of the first row, is `epoch` of the backend's clock. Allocates all memory. Throws
  /// InputError beyond kMaxEntities.
  void begin(Nanos epoch, std::vector<SeriesConnection> connections, std::vector<SeriesLink> links);
  /// When the next sample is due, on the backend's clock; never() before begin().
  [[nodiscard]] Nanos next() const { return next_; }

  struct States {
    std::span<ConnectionState> connections;
    std::span<LinkState> links;
  };
  /// To be filled in before sample() and finish(); what isn't keeps its value. Bounds (_least_, _most_) are found here,
  /// except that who knows the longest queue since the sample before may tell it.
  [[nodiscard]] States states() { return {connections_, links_}; }
  /// states() are those at next(). Allocates nothing.
  void sample();
  /// states() are those at `now`, the run's end.
  void finish(Nanos now);

  /// Instead of all these, what others have recorded.
  void adopt(RunSeries recorded);
  [[nodiscard]] const SeriesOptions& options() const { return options_; }

  /// What was recorded, without links that carried nothing. What a run is called is the caller's to fill in.
  [[nodiscard]] RunSeries take();

 private:
  void widen_bounds();
  void store(Nanos at);
  void thin();

  SeriesOptions options_;
  Nanos epoch_;
  Nanos next_ = Nanos::never();
  Nanos interval_;
  std::size_t max_rows_ = 0;          ///< odd: of 0, 1, 2, ... every other one is kept, the last one too
  std::uint32_t samples_of_row_ = 1;  ///< how many make a row
  std::uint32_t samples_ = 0;         ///< since the last row
  // The latest sample.
  std::vector<ConnectionState> connections_;
  std::vector<LinkState> links_;
  /// Of the samples since the last row.
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
