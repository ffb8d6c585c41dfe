// Converts the counters and usage meters of links into results (see link_results.h).
#include "mltcp/lab/experiment/backends/link_results.h"

#include <algorithm>
#include <vector>

namespace mltcp::experiment {
namespace {

/// Returns the number of bins before the epoch, which contain only traffic of the set-up. Rounds to the nearest bin,
/// because the meter may have widened its bins after the epoch was chosen.
std::size_t bins_before(const fabric::UsageMeter& usage, Nanos epoch) {
  return static_cast<std::size_t>((epoch.count + usage.bin().count / 2) / usage.bin().count);
}

Carried carried_since(const fabric::UsageMeter& usage, Nanos epoch) {
  Carried carried;
  const std::size_t skip = bins_before(usage, epoch);
  for (const auto& [number, bins] : usage.jobs()) {
    if (bins.size() <= skip) continue;
    ++carried.jobs;
    for (std::size_t bin = skip; bin < bins.size(); ++bin) carried.bytes += bins[bin];
  }
  return carried;
}

double utilization(Bytes carried, Rate rate, Nanos duration) {
  const Bytes possible = rate.bytes_in(duration);
  return possible > 0 ? std::min(1.0, static_cast<double>(carried) / static_cast<double>(possible)) : 0.0;
}

}  // namespace

std::size_t record_links(std::span<const JobNetwork::LinkView> links, Nanos epoch,
                         const std::map<std::uint32_t, std::string>& names, Run& run,
                         std::span<const Carried> carried_on) {
  std::size_t busiest = 0;
  double max = -1;
  bool max_shared = false;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const JobNetwork::LinkView& link = links[i];
    const Carried carried = carried_on.empty() ? carried_since(*link.usage, epoch) : carried_on[i];
    const double used = utilization(carried.bytes, link.config->rate, run.duration);
    const bool shared = carried.jobs > 1;
    if ((shared && !max_shared) || (shared == max_shared && used > max)) {
      busiest = i;
      max = used;
      max_shared = shared;
    }
    if (links.size() > 1)
      run.links.push_back({std::string(link.name), link.config->rate, used, link.counters->marked_packets,
                           link.counters->dropped_packets, link.counters->max_queue_bytes, link.counters->pauses,
                           link.counters->trimmed_packets});
  }
  const JobNetwork::LinkView& link = links[busiest];
  const fabric::LinkCounters& counters = *link.counters;
  Bottleneck& bottleneck = run.bottleneck;
  if (links.size() > 1) bottleneck.name = link.name;
  bottleneck.utilization = std::max(max, 0.0);
  bottleneck.rate = link.config->rate;
  bottleneck.ecn_marked_packets = counters.marked_packets;
  bottleneck.dropped_packets = counters.dropped_packets;
  bottleneck.max_queue_bytes = counters.max_queue_bytes;
  bottleneck.lost_packets = counters.lost_packets;
  bottleneck.duplicated_packets = counters.duplicated_packets;
  bottleneck.corrupted_packets = counters.corrupted_packets;
  bottleneck.reordered_packets = counters.reordered_packets;
  if (link.usage == nullptr) return busiest;
  bottleneck.usage.bin = link.usage->bin();
  const std::size_t skip = bins_before(*link.usage, epoch);
  for (const auto& [number, bins] : link.usage->jobs()) {
    std::vector<Bytes>& kept = bottleneck.usage.jobs[names.at(number)];
    if (bins.size() > skip) kept.assign(bins.begin() + static_cast<std::ptrdiff_t>(skip), bins.end());
  }
  return busiest;
}

}  // namespace mltcp::experiment
