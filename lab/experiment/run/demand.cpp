// Computes a job's ideal demand on a link (see demand.h).
#include "mltcp/lab/experiment/run/demand.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "mltcp/lab/workload/inspection.h"

namespace mltcp::experiment {
namespace {

using scheduler::Burst;
using scheduler::Demand;

double bits_of(const Burst& burst) {
  return static_cast<double>(burst.rate.bits_per_second) * static_cast<double>((burst.to - burst.from).count);
}

// Replaces two neighbouring bursts and the gap between them by one burst with the same number of bits.
Burst joined(const Burst& a, const Burst& b) {
  const double mean = (bits_of(a) + bits_of(b)) / static_cast<double>((b.to - a.from).count);
  return {a.from, b.to, Rate(std::max<std::uint64_t>(static_cast<std::uint64_t>(std::llround(mean)), 1))};
}

// Returns the number of bits that joining the two bursts would move to another time.
double moved(const Burst& a, const Burst& b) {
  const double mean = static_cast<double>(joined(a, b).rate.bits_per_second);
  double above = 0;
  for (const Burst& burst : {a, b})
    above += std::max(0.0, static_cast<double>(burst.rate.bits_per_second) - mean) *
             static_cast<double>((burst.to - burst.from).count);
  return above;
}

}  // namespace

// Joins the pairs of neighbours where joining changes the demand least. The changes are computed once, for the initial
// neighbours. To compute the changes again after each joining would take too long for 100,000 bursts.
bool limit_bursts(std::vector<Burst>& bursts, std::size_t max) {
  if (bursts.size() <= max) return false;
  std::vector<std::size_t> order(bursts.size() - 1);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<double> cost;
  cost.reserve(order.size());
  for (const std::size_t i : order) cost.push_back(moved(bursts[i], bursts[i + 1]));
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return cost[a] < cost[b]; });
  std::vector<bool> join(bursts.size());
  for (std::size_t i = 0; i < bursts.size() - max; ++i) join[order[i]] = true;
  std::vector<Burst> result;
  for (std::size_t i = 0; i < bursts.size(); ++i) {
    if (i > 0 && join[i - 1])
      result.back() = joined(result.back(), bursts[i]);
    else
      result.push_back(bursts[i]);
  }
  bursts = std::move(result);
  return true;
}

Demand demand_of(const workload::Job& job, Rate link, bool* joined) {
  Demand demand;
  demand.period = workload::ideal_iteration(job.phases, link).length;
  for (const workload::Transfer& transfer : workload::ideal_transfers(job.phases, link))
    demand.bursts.push_back({transfer.from, transfer.to, transfer.rate});
  const bool changed = limit_bursts(demand.bursts);
  if (joined != nullptr) *joined = changed;
  return demand;
}

scheduler::Demand demand_of(const workload::Job& job, Nanos period) {
  const double stretch =
      static_cast<double>(period.count) / static_cast<double>(workload::ideal_iteration(job, job.rate).length.count);
  const auto stretched = [&](Nanos time) {
    return std::min(period, Nanos(std::llround(static_cast<double>(time.count) * stretch)));
  };
  scheduler::Demand demand;
  demand.period = period;
  for (const workload::Transfer& transfer : workload::ideal_transfers(job, job.rate))
    if (const Nanos from = stretched(transfer.from), to = stretched(transfer.to); from < to)
      demand.bursts.push_back({from, to, transfer.rate});
  return demand;
}

}  // namespace mltcp::experiment
