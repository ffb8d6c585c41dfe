// The links of a testbed in the results of an experiment (see links.h).
#include "mltcp/lab/testbed/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/units.h"
#include "mltcp/lab/experiment/series/series_join.h"

namespace mltcp::testbed {
namespace {

using Json = nlohmann::ordered_json;

/// First and last index of a range of entries of a series.
struct Span {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Returns the entries from the last one before the run to the first one after the run. Hosts send nothing before the
/// run, so these entries count only traffic of the run. Returns an empty value if there are no entries.
std::optional<Span> span_of(const std::vector<std::int64_t>& times, std::int64_t from, std::int64_t to) {
  if (times.empty() || to <= from) return std::nullopt;
  const auto after = std::ranges::upper_bound(times, from);
  const auto behind = std::ranges::lower_bound(times, to);
  return Span{after == times.begin() ? 0 : static_cast<std::size_t>(after - times.begin()) - 1,
              std::min(static_cast<std::size_t>(behind - times.begin()), times.size() - 1)};
}

/// Returns entry number `index` of the counter `key` of a port. Throws RunError or Json::exception if the entry is
/// missing or invalid.
std::uint64_t entry_of(const Json& counts, const char* key, std::size_t index) {
  const Json& value = counts.at(key).at(index);
  if (!value.is_number_integer() || value < 0) throw RunError(fmt::format("\"{}\" is {}", key, one_line(value.dump())));
  return value.get<std::uint64_t>();
}

Json link_of(const TestbedLayout::Port& port, const Json& counts, const Span& span, double seconds) {
  const auto grown = [&](const char* key) {
    const std::uint64_t first = entry_of(counts, key, span.first);
    const std::uint64_t last = entry_of(counts, key, span.last);
    if (last < first) throw RunError(fmt::format("\"{}\" decreases from {} to {}", key, first, last));
    return last - first;
  };
  Bytes longest = 0;
  for (std::size_t entry = span.first + 1; entry <= span.last; ++entry)
    longest = std::max<Bytes>(longest, entry_of(counts, "max_queue_bytes", entry));
  const Rate rate = port.config.output.rate;
  const double carried = static_cast<double>(grown("sent_bytes")) * 8;
  const double max = static_cast<double>(rate.bits_per_second) * seconds;
  return {{"name", port.link},
          {"rate_bps", rate.bits_per_second},
          {"utilization", rate.is_zero() ? 0 : std::min(1.0, carried / max)},
          {"ecn_marked_packets", grown("marked_frames")},
          {"dropped_packets", grown("dropped_frames")},
          {"max_queue_bytes", longest},
          {"sent_packets", grown("sent_frames")},
          {"sent_bytes", grown("sent_bytes")}};
}

void add_links_of(Json& links, const TestbedLayout::Switch& made, const Json& series, std::int64_t from,
                  std::int64_t to) {
  const auto span = span_of(series.at("time_ns").get<std::vector<std::int64_t>>(), from, to);
  if (!span) return;
  for (std::size_t p = 0; p < made.ports.size(); ++p)
    links.push_back(link_of(made.ports[p], series.at("ports").at(p), *span, static_cast<double>(to - from) * 1e-9));
}

/// Calls `take` for each switch that has counters, with the switch in the layout and with the series of its counters.
/// Throws RunError if counters are invalid.
template <typename Take>
void each_switch(const TestbedLayout& layout, const Json& switches, Take&& take) {
  for (const Json& one : switches) {
    const auto stated = one.find("number");
    const std::size_t number =
        stated != one.end() && stated->is_number_integer() ? stated->get<std::size_t>() : layout.switches.size();
    if (number >= layout.switches.size())
      throw RunError("there are counters of a switch that the testbed does not have");
    const auto& made = layout.switches[number];
    try {
      take(made, one.at("series"));
    } catch (const std::exception& error) {
      throw RunError(
          fmt::format("the counters of {} are invalid ({}); read its output with --log-dir, and run the testbed again",
                      made.name, one_line(error.what())));
    }
  }
}

/// Returns the time at which the run began, and the time at which all of its hosts had stopped, in nanoseconds.
std::pair<std::int64_t, std::int64_t> time_of(const Json& run) {
  return {run.value("begun_ns", std::int64_t{0}), run.value("ended_ns", std::int64_t{0})};
}

/// Returns the series of those outputs that sent data between `from` and `to`. Times are relative to `from`. Totals
/// count from the last entry before `from`.
experiment::RunSeries link_series(const TestbedLayout::Switch& made, const Json& counted, std::int64_t from,
                                  std::int64_t to) {
  experiment::RunSeries part;
  const auto times = counted.at("time_ns").get<std::vector<std::int64_t>>();
  const auto span = span_of(times, from, to);
  if (!span) return part;
  for (std::size_t entry = span->first + 1; entry <= span->last; ++entry)
    part.times.emplace_back(std::min(times[entry], to) - from);
  std::vector<std::size_t> used;
  for (std::size_t p = 0; p < made.ports.size(); ++p) {
    const Json& counts = counted.at("ports").at(p);
    if (entry_of(counts, "sent_bytes", span->last) == entry_of(counts, "sent_bytes", span->first)) continue;
    used.push_back(p);
    part.links.push_back({made.ports[p].link, made.ports[p].config.output.rate});
  }
  for (std::size_t entry = span->first + 1; entry <= span->last; ++entry)
    for (const std::size_t p : used) {
      const Json& counts = counted.at("ports").at(p);
      const auto grown = [&](const char* key) {
        const std::uint64_t first = entry_of(counts, key, span->first);
        const std::uint64_t now = entry_of(counts, key, entry);
        if (now < first) throw RunError(fmt::format("\"{}\" decreases from {} to {}", key, first, now));
        return now - first;
      };
      part.link_states.push_back({.queue_bytes = entry_of(counts, "queue_bytes", entry),
                                  .queue_most_bytes = entry_of(counts, "max_queue_bytes", entry),
                                  .sent_bytes = grown("sent_bytes"),
                                  .sent_packets = grown("sent_frames"),
                                  .marked_packets = grown("marked_frames"),
                                  .dropped_packets = grown("dropped_frames")});
    }
  return part;
}

}  // namespace

void add_links(experiment::RunSeries& series, const Json& run, const TestbedLayout& layout, const Json& switches) {
  if (series.times.empty()) return;
  const auto [from, to] = time_of(run);
  each_switch(layout, switches, [&, begun = from, ended = to](const auto& made, const Json& counted) {
    experiment::join(series, link_series(made, counted, begun, ended));
  });
}

void add_links(Json& run, const TestbedLayout& layout, const Json& switches) {
  const auto [from, to] = time_of(run);
  Json links = Json::array();
  each_switch(layout, switches, [&, begun = from, ended = to](const auto& made, const Json& counted) {
    add_links_of(links, made, counted, begun, ended);
  });
  const Json* busiest = nullptr;
  for (const Json& link : links)
    if (link["rate_bps"] > 0 && (busiest == nullptr || link["utilization"] > (*busiest)["utilization"]))
      busiest = &link;
  if (busiest != nullptr) {
    run["bottleneck"] = *busiest;
    // A single bottleneck needs no name.
    if (layout.switches.size() == 1 &&
        std::ranges::count_if(links, [](const Json& link) { return link["rate_bps"] > 0; }) == 1)
      run["bottleneck"].erase("name");
  }
  run["links"] = std::move(links);
}

}  // namespace mltcp::testbed
