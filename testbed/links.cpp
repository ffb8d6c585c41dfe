// The links of a testbed in the results of an experiment (see links.h).
#include "mltcp/testbed/links.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::testbed {
namespace {

using Json = nlohmann::ordered_json;

/// Entries of a series.
struct Span {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The last entry before the run, during which hosts were connected and silent, and the first one behind it.
std::optional<Span> span_of(const std::vector<std::int64_t>& times, std::int64_t from, std::int64_t to) {
  if (times.empty() || to <= from) return std::nullopt;
  const auto after = std::upper_bound(times.begin(), times.end(), from);
  const auto behind = std::lower_bound(times.begin(), times.end(), to);
  return Span{after == times.begin() ? 0 : static_cast<std::size_t>(after - times.begin()) - 1,
              std::min(static_cast<std::size_t>(behind - times.begin()), times.size() - 1)};
}

Json link_of(const TestbedLayout::Port& port, const Json& counts, const Span& span, double seconds) {
  const auto grown = [&](const char* key) {
    return counts[key][span.last].get<std::uint64_t>() - counts[key][span.first].get<std::uint64_t>();
  };
  Bytes longest = 0;
  for (std::size_t entry = span.first + 1; entry <= span.last; ++entry)
    longest = std::max(longest, counts["max_queue_bytes"][entry].get<Bytes>());
  const Rate rate = port.config.output.rate;
  const double carried = static_cast<double>(grown("sent_bytes")) * 8;
  const double most = static_cast<double>(rate.bits_per_second) * seconds;
  return {{"name", port.link},
          {"rate_bps", rate.bits_per_second},
          {"utilization", rate.is_zero() ? 0 : std::min(1.0, carried / most)},
          {"ecn_marked_packets", grown("marked_frames")},
          {"dropped_packets", grown("dropped_frames")},
          {"max_queue_bytes", longest},
          {"sent_packets", grown("sent_frames")},
          {"sent_bytes", grown("sent_bytes")}};
}

}  // namespace

void add_links(Json& run, const TestbedLayout& layout, const Json& switches) {
  const std::int64_t from = run.value("begun_ns", std::int64_t{0});
  const std::int64_t to = run.value("ended_ns", std::int64_t{0});
  Json links = Json::array();
  for (const Json& one : switches) {
    const auto& made = layout.switches[one.at("number").get<std::size_t>()];
    const auto times = one.at("series").at("time_ns").get<std::vector<std::int64_t>>();
    const auto span = span_of(times, from, to);
    if (!span) continue;
    for (std::size_t p = 0; p < made.ports.size(); ++p)
      links.push_back(
          link_of(made.ports[p], one.at("series").at("ports").at(p), *span, static_cast<double>(to - from) * 1e-9));
  }
  const Json* busiest = nullptr;
  for (const Json& link : links)
    if (link["rate_bps"] > 0 && (busiest == nullptr || link["utilization"] > (*busiest)["utilization"]))
      busiest = &link;
  if (busiest != nullptr) {
    run["bottleneck"] = *busiest;
    // The only one needs no name.
    if (layout.switches.size() == 1 &&
        std::count_if(links.begin(), links.end(), [](const Json& link) { return link["rate_bps"] > 0; }) == 1)
      run["bottleneck"].erase("name");
  }
  run["links"] = std::move(links);
}

}  // namespace mltcp::testbed
