// Joining of series (see series_join.h).
#include "mltcp/experiment/series/series_join.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "mltcp/experiment/series/internal/widen.h"

namespace mltcp::experiment {
namespace {

/// The states of `part` in the rows that end at `times`.
template <typename State>
std::vector<State> in_rows(const std::vector<Nanos>& times, const std::vector<State>& part,
                           const std::vector<Nanos>& part_times, std::size_t entities) {
  std::vector<State> states;
  states.reserve(times.size() * entities);
  std::size_t next = 0;  // row of `part`
  for (std::size_t row = 0; row < times.size(); ++row) {
    const bool is_last = row + 1 == times.size();
    const std::size_t first = next;
    while (next < part_times.size() && (is_last || part_times[next] <= times[row])) ++next;
    for (std::size_t e = 0; e < entities; ++e) {
      State& state = states.emplace_back(next > 0 ? part[(next - 1) * entities + e] : State());
      for (std::size_t left_out = first; left_out + 1 < next; ++left_out) widen(state, part[left_out * entities + e]);
    }
  }
  return states;
}

/// Adds the columns of `added` to those of `states`.
template <typename State>
void add_columns(std::vector<State>& states, std::size_t entities, const std::vector<State>& added,
                 std::size_t added_entities, std::size_t rows) {
  std::vector<State> all;
  all.reserve(states.size() + added.size());
  const auto row_of = [](const std::vector<State>& from, std::size_t row, std::size_t width) {
    return from.begin() + static_cast<std::ptrdiff_t>(row * width);
  };
  for (std::size_t row = 0; row < rows; ++row) {
    all.insert(all.end(), row_of(states, row, entities), row_of(states, row + 1, entities));
    all.insert(all.end(), row_of(added, row, added_entities), row_of(added, row + 1, added_entities));
  }
  states = std::move(all);
}

}  // namespace

void join(RunSeries& whole, const RunSeries& part) {
  if (!part.times.empty()) whole.times.back() = std::max(whole.times.back(), part.times.back());
  const std::size_t rows = whole.times.size();
  add_columns(whole.connection_states, whole.connections.size(),
              in_rows(whole.times, part.connection_states, part.times, part.connections.size()),
              part.connections.size(), rows);
  add_columns(whole.link_states, whole.links.size(),
              in_rows(whole.times, part.link_states, part.times, part.links.size()), part.links.size(), rows);
  whole.connections.insert(whole.connections.end(), part.connections.begin(), part.connections.end());
  whole.links.insert(whole.links.end(), part.links.begin(), part.links.end());
}

RunSeries joined(std::vector<RunSeries> parts) {
  parts.erase(std::remove_if(parts.begin(), parts.end(), [](const RunSeries& part) { return part.times.empty(); }),
              parts.end());
  if (parts.empty()) return {};
  const auto widest = std::max_element(parts.begin(), parts.end(),
                                       [](const RunSeries& a, const RunSeries& b) { return a.interval < b.interval; });
  RunSeries rows = *widest;
  rows.connections.clear();
  rows.links.clear();
  rows.connection_states.clear();
  rows.link_states.clear();
  // In the order of the parts, whoever has the widest rows.
  for (const RunSeries& part : parts) join(rows, part);
  return rows;
}

}  // namespace mltcp::experiment
