// Joins series (see series_join.h).
#include "mltcp/lab/experiment/series/series_join.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "mltcp/lab/experiment/series/internal/widen.h"

namespace mltcp::experiment {
namespace {

/// Sets the bounds to the state itself, since nothing was sampled after the previous row.
void narrow(ConnectionState& state) {
  state.cwnd_least_bytes = state.cwnd_most_bytes = state.cwnd_bytes;
  state.rtt_max = state.rtt;
}
void narrow(LinkState& state) { state.queue_most_bytes = state.queue_bytes; }

/// Writes the states of `part` into `states`, from column `column` on. A row of `states` has `width` columns, and its
/// time is in `times`.
template <typename State>
void put_columns(const std::vector<Nanos>& times, const std::vector<State>& part, const std::vector<Nanos>& part_times,
                 std::size_t entities, std::vector<State>& states, std::size_t width, std::size_t column) {
  std::size_t next = 0;  // next row of `part`
  for (std::size_t row = 0; row < times.size(); ++row) {
    const bool is_last = row + 1 == times.size();
    const std::size_t first = next;
    while (next < part_times.size() && (is_last || part_times[next] <= times[row])) ++next;
    if (next == 0) continue;  // the states before the first row of `part` remain 0
    for (std::size_t e = 0; e < entities; ++e) {
      State& state = states[row * width + column + e] = part[(next - 1) * entities + e];
      if (first == next) narrow(state);
      for (std::size_t left_out = first; left_out + 1 < next; ++left_out) widen(state, part[left_out * entities + e]);
    }
  }
}

/// Inserts `more` columns after the `entities` columns of `states`.
template <typename State>
void add_columns(std::vector<State>& states, std::size_t entities, std::size_t more, std::size_t rows) {
  if (more == 0) return;
  std::vector<State> all(rows * (entities + more));
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(states.begin() + static_cast<std::ptrdiff_t>(row * entities), entities,
                all.begin() + static_cast<std::ptrdiff_t>(row * (entities + more)));
  states = std::move(all);
}

/// Joins all `parts` as join() would, but copies the existing states only once.
void join_all(RunSeries& whole, const std::vector<const RunSeries*>& parts) {
  std::size_t connections = 0;
  std::size_t links = 0;
  for (const RunSeries* part : parts) {
    if (!part->times.empty()) whole.times.back() = std::max(whole.times.back(), part->times.back());
    connections += part->connections.size();
    links += part->links.size();
  }
  add_columns(whole.connection_states, whole.connections.size(), connections, whole.times.size());
  add_columns(whole.link_states, whole.links.size(), links, whole.times.size());
  const std::size_t all_connections = whole.connections.size() + connections;
  const std::size_t all_links = whole.links.size() + links;
  whole.connections.reserve(all_connections);
  whole.links.reserve(all_links);
  for (const RunSeries* part : parts) {
    put_columns(whole.times, part->connection_states, part->times, part->connections.size(), whole.connection_states,
                all_connections, whole.connections.size());
    put_columns(whole.times, part->link_states, part->times, part->links.size(), whole.link_states, all_links,
                whole.links.size());
    whole.connections.insert(whole.connections.end(), part->connections.begin(), part->connections.end());
    whole.links.insert(whole.links.end(), part->links.begin(), part->links.end());
  }
}

}  // namespace

void join(RunSeries& whole, const RunSeries& part) { join_all(whole, {&part}); }

RunSeries joined(const std::vector<RunSeries>& parts) {
  std::vector<const RunSeries*> all;  // the parts that have rows, in their given order
  for (const RunSeries& part : parts)
    if (!part.times.empty()) all.push_back(&part);
  if (all.empty()) return {};
  const RunSeries& widest =
      **std::ranges::max_element(all, [](const auto* a, const auto* b) { return a->interval < b->interval; });
  RunSeries rows;
  rows.policy = widest.policy;
  rows.cc = widest.cc;
  rows.datapath = widest.datapath;
  rows.seed = widest.seed;
  rows.duration = widest.duration;
  rows.interval = widest.interval;
  rows.sampled_every = widest.sampled_every;
  rows.packets = widest.packets;
  rows.times = widest.times;
  join_all(rows, all);
  return rows;
}

}  // namespace mltcp::experiment
