// Records series (see series_recorder.h).
#include "mltcp/lab/experiment/series/series_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mltcp/base/error.h"
#include "mltcp/lab/experiment/series/internal/widen.h"

namespace mltcp::experiment {
namespace {

/// Keeps rows 0, 2, 4 and so on of the first `count` rows.
template <typename State>
void keep_every_other(std::vector<State>& states, std::size_t count, std::size_t entities) {
  for (std::size_t row = 2; row < count; row += 2)
    for (std::size_t e = 0; e < entities; ++e) {
      State kept = states[row * entities + e];
      widen(kept, states[(row - 1) * entities + e]);
      states[row / 2 * entities + e] = kept;
    }
  states.resize((count + 1) / 2 * entities);
}

}  // namespace

void SeriesRecorder::begin(Nanos epoch, std::vector<SeriesConnection> connections, std::vector<SeriesLink> links) {
  const std::size_t entities = std::max<std::size_t>(1, connections.size() + links.size());
  if (entities > kMaxEntities)
    throw InputError(
        fmt::format("series of {} connections and {} links: at most {} in total can be recorded; leave --series out, "
                    "or give fewer ranks, flows or hosts",
                    connections.size(), links.size(), kMaxEntities));
  epoch_ = epoch;
  interval_ = options_.interval;
  if (options_.is_usual_interval)
    interval_ = interval_ * static_cast<std::int64_t>((entities + kFewEntities - 1) / kFewEntities);
  next_ = epoch;
  max_rows_ = std::max(kFewestRows, options_.max_rows / entities) | 1U;
  connections_.resize(connections.size());
  links_.resize(links.size());
  bounds_.resize(connections.size());
  longest_queues_.resize(links.size());
  series_.connections = std::move(connections);
  series_.links = std::move(links);
  // Reserves one more row for the run's end.
  series_.times.reserve(max_rows_ + 1);
  series_.connection_states.reserve((max_rows_ + 1) * series_.connections.size());
  series_.link_states.reserve((max_rows_ + 1) * series_.links.size());
}

void SeriesRecorder::widen_bounds() {
  for (std::size_t c = 0; c < connections_.size(); ++c) {
    Bounds& bounds = bounds_[c];
    bounds.least = std::min(bounds.least, connections_[c].cwnd_bytes);
    bounds.most = std::max(bounds.most, connections_[c].cwnd_bytes);
    bounds.rtt = std::max(bounds.rtt, connections_[c].rtt);
  }
  for (std::size_t l = 0; l < links_.size(); ++l)
    longest_queues_[l] = std::max({longest_queues_[l], links_[l].queue_bytes, links_[l].queue_most_bytes});
}

void SeriesRecorder::sample() {
  widen_bounds();
  if (++samples_ == samples_of_row_) {
    if (series_.times.size() < max_rows_)
      store(next_);
    else
      thin();
  }
  next_ += interval_;
}

void SeriesRecorder::finish(Nanos now) {
  if (next_.is_never()) return;
  widen_bounds();
  // All rows must have different times. If the last row already has this time, the new row replaces it, with the bounds
  // of both.
  const bool again = !series_.times.empty() && epoch_ + series_.times.back() >= now;
  store(now);
  if (again) {
    const std::size_t rows = series_.times.size();
    const auto replace = [&](auto& states, std::size_t entities) {
      for (std::size_t e = 0; e < entities; ++e) {
        widen(states[(rows - 1) * entities + e], states[(rows - 2) * entities + e]);
        states[(rows - 2) * entities + e] = states[(rows - 1) * entities + e];
      }
      states.resize((rows - 1) * entities);
    };
    replace(series_.connection_states, connections_.size());
    replace(series_.link_states, links_.size());
    series_.times.pop_back();
  }
  next_ = Nanos::never();
}

void SeriesRecorder::adopt(RunSeries recorded) {
  interval_ = recorded.sampled_every;
  samples_of_row_ = interval_.count > 0 ? static_cast<std::uint32_t>(recorded.interval.count / interval_.count) : 1U;
  series_ = std::move(recorded);
}

void SeriesRecorder::store(Nanos at) {
  samples_ = 0;
  series_.times.push_back(at - epoch_);
  for (std::size_t c = 0; c < connections_.size(); ++c) {
    ConnectionState& state = series_.connection_states.emplace_back(connections_[c]);
    state.cwnd_least_bytes = bounds_[c].least;
    state.cwnd_most_bytes = bounds_[c].most;
    state.rtt_max = bounds_[c].rtt;
    bounds_[c] = {};
  }
  for (std::size_t l = 0; l < links_.size(); ++l) {
    LinkState& state = series_.link_states.emplace_back(links_[l]);
    state.queue_most_bytes = longest_queues_[l];
    longest_queues_[l] = 0;
  }
}

/// Removes every other row, and doubles the time between rows from now on. Half of the samples of the next row have
/// already been taken.
void SeriesRecorder::thin() {
  const std::size_t count = series_.times.size();
  keep_every_other(series_.connection_states, count, connections_.size());
  keep_every_other(series_.link_states, count, links_.size());
  for (std::size_t row = 2; row < count; row += 2) series_.times[row / 2] = series_.times[row];
  series_.times.resize((count + 1) / 2);
  if (samples_of_row_ < kMaxSamplesOfARow) {
    samples_of_row_ *= 2;
  } else {
    interval_ = interval_ * 2;
    samples_ /= 2;
  }
}

RunSeries SeriesRecorder::take() {
  RunSeries result = std::move(series_);
  result.interval = interval_ * samples_of_row_;
  result.sampled_every = interval_;
  // Leaves out links that carried nothing, which are most links of a large network.
  const std::size_t links = result.links.size();
  std::vector<std::size_t> used;
  for (std::size_t l = 0; l < links; ++l)
    if (!result.times.empty() && result.link(result.times.size() - 1, l).sent_bytes > 0) used.push_back(l);
  if (used.size() == links) return result;
  std::vector<LinkState> states;
  states.reserve(result.times.size() * used.size());
  for (std::size_t row = 0; row < result.times.size(); ++row)
    for (const std::size_t l : used) states.push_back(result.link(row, l));
  result.link_states = std::move(states);
  std::vector<SeriesLink> names;
  for (const std::size_t l : used) names.push_back(std::move(result.links[l]));
  result.links = std::move(names);
  return result;
}

}  // namespace mltcp::experiment
