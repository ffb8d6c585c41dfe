// Computes the bound by configurations (see configuration_bound.h).
#include "mltcp/scheduler/internal/configuration_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "mltcp/scheduler/internal/simplex.h"

namespace mltcp::scheduler::internal {

ConfigurationBound::ConfigurationBound(const Model& model, const std::vector<Set>& sets,
                                       const std::vector<Overlap>& overlaps)
    : model_(model) {
  fill_blocks();
  for (Block& block : blocks_) {
    relate(block, sets, overlaps);
    if (!set_fraction(block)) continue;
    set_prices(block);
    root_ += std::max<Int128>(value_of(block) >> block.fraction, 0);
  }
}

std::vector<ConfigurationBound::Item> ConfigurationBound::items_of(std::uint32_t job, const Curve& curve) const {
  const std::int64_t period = model_.jobs[job].period;
  std::vector<Item> items;
  const auto lasts = [&](std::int64_t level, std::int64_t time) {
    if (level == 0) return;
    const auto same = std::ranges::find_if(items, [=](const Item& item) { return item.level == level; });
    if (same != items.end())
      same->time += time;
    else
      items.push_back({job, level, time});
  };
  if (curve.steps.empty()) lasts(curve.level, model_.perimeter);
  for (std::size_t i = 0; i < curve.steps.size(); ++i) {
    const std::int64_t to = i + 1 < curve.steps.size() ? curve.steps[i + 1].at : curve.steps.front().at + period;
    lasts(curve.steps[i].after, (to - curve.steps[i].at) * (model_.perimeter / period));
  }
  std::ranges::sort(items, [](const Item& a, const Item& b) { return a.level > b.level; });
  return items;
}

void ConfigurationBound::fill_blocks() {
  std::vector<std::size_t> sizes;  // number of configurations of each block
  std::vector<std::size_t> open(model_.capacities.size(), blocks_.max_size());
  for (std::uint32_t j = 0; j < model_.jobs.size(); ++j)
    for (const Curve& curve : model_.jobs[j].curves) {
      const std::vector<Item> items = items_of(j, curve);
      // A job with too many levels is left out, which only lowers the bound.
      if (items.size() > kMaxItems) continue;
      std::size_t& block = open[curve.link];
      if (block == blocks_.max_size() || sizes[block] * (items.size() + 1) > kMaxConfigurations ||
          blocks_[block].items.size() + items.size() > kMaxItems) {
        block = blocks_.size();
        blocks_.push_back({curve.link, {}, {}, {}, 0});
        sizes.push_back(1);
      }
      sizes[block] *= items.size() + 1;
      blocks_[block].items.insert(blocks_[block].items.end(), items.begin(), items.end());
    }
}

void ConfigurationBound::relate(Block& block, const std::vector<Set>& sets, const std::vector<Overlap>& overlaps) {
  std::uint64_t jobs = 0;
  for (const Item& item : block.items)
    if (item.job < 64) jobs |= std::uint64_t{1} << item.job;
  for (const Set& set : sets)
    if ((set.jobs & ~jobs) == 0) block.sets.push_back(set);
  for (const Overlap& overlap : overlaps) {
    Meeting meeting{{0, 0}, overlap.min, overlap.max, 0};
    for (std::size_t i = 0; i < block.items.size(); ++i)
      for (std::size_t k = 0; k < 2; ++k)
        if (block.items[i].job == overlap.jobs[k] && block.items[i].level >= overlap.levels[k])
          meeting.items[k] |= std::uint64_t{1} << i;
    if (meeting.items[0] != 0 && meeting.items[1] != 0) block.meetings.push_back(meeting);
  }
}

bool ConfigurationBound::set_fraction(Block& block) const {
  // Prices are at most 2^6 capacities and weights are at most 2^6, so the sums in value_of() fit in 126 bits.
  const std::size_t terms = block.items.size() + block.sets.size() + block.meetings.size() + 2;
  std::int64_t highest = model_.capacities[block.link];
  for (std::size_t i = 0; i < block.items.size(); ++i)
    if (i == 0 || block.items[i].job != block.items[i - 1].job) highest += block.items[i].level;
  const int fraction = 126 - 7 - static_cast<int>(std::bit_width(terms)) -
                       static_cast<int>(std::bit_width(static_cast<std::uint64_t>(highest))) -
                       static_cast<int>(std::bit_width(static_cast<std::uint64_t>(model_.perimeter)));
  block.fraction = std::min(fraction, kFraction);
  return fraction >= 0;
}

Int128 ConfigurationBound::value_of(const Block& block) const {
  const std::int64_t capacity = model_.capacities[block.link];
  Int128 kappa = 0;
  for (const Configuration& it : configurations(block.items)) {
    Int128 value = it.price - (static_cast<Int128>(above(it.sum, capacity)) << block.fraction);
    for (const Set& set : block.sets)
      if (set.weight != 0) value += set.weight * above(sum_in(block, it.items, set.jobs), capacity);
    for (const Meeting& meeting : block.meetings)
      if (meeting.price != 0 && meeting.within(it.items)) value += meeting.price;
    kappa = std::max(kappa, value);
  }
  Int128 sum = -kappa * model_.perimeter;
  for (const Item& item : block.items) sum += item.price * item.time;
  for (const Set& set : block.sets) sum += set.weight * set.min;
  for (const Meeting& meeting : block.meetings) sum += meeting.price * (meeting.price > 0 ? meeting.min : meeting.max);
  return sum;
}

std::vector<ConfigurationBound::Configuration> ConfigurationBound::configurations(const std::vector<Item>& items) {
  std::vector<Configuration> result{{0, 0, 0}};
  for (std::size_t i = 0; i < items.size();) {
    const std::size_t before = result.size();
    const std::uint32_t job = items[i].job;
    for (; i < items.size() && items[i].job == job; ++i)
      for (std::size_t k = 0; k < before; ++k)
        result.push_back({result[k].items | std::uint64_t{1} << i, result[k].sum + items[i].level,
                          result[k].price + items[i].price});
  }
  return result;
}

std::int64_t ConfigurationBound::sum_in(const Block& block, std::uint64_t items, std::uint64_t jobs) {
  std::int64_t sum = 0;
  for (; items != 0; items &= items - 1) {
    const Item& item = block.items[static_cast<std::size_t>(std::countr_zero(items))];
    if (item.job < 64 && (jobs >> item.job & 1) != 0) sum += item.level;
  }
  return sum;
}

std::vector<std::uint64_t> ConfigurationBound::all_at_once(const std::vector<Item>& items) {
  struct Change {
    std::int64_t at;
    std::size_t item;
    bool last;
  };
  std::vector<Change> changes;
  std::uint64_t now = 0;
  for (std::size_t i = 0; i < items.size();) {
    std::int64_t at = 0;
    const std::uint32_t job = items[i].job;
    now |= std::uint64_t{1} << i;
    for (; i < items.size() && items[i].job == job; ++i) {
      at += items[i].time;
      changes.push_back({at, i, i + 1 == items.size() || items[i + 1].job != job});
    }
  }
  std::ranges::stable_sort(changes, {}, &Change::at);
  std::vector<std::uint64_t> result{now};
  for (const Change& change : changes) {
    now &= ~(std::uint64_t{1} << change.item);
    if (!change.last) now |= std::uint64_t{1} << (change.item + 1);
    result.push_back(now);
  }
  return result;
}

void ConfigurationBound::set_prices(Block& block) const {
  // Row 0 makes the shares add up to 1. One row for each item sets its time. One row for each set is for its minimum
  // excess. Two rows for each overlap are for its minimum and its negated maximum.
  constexpr double penalty = 8;  // cost, in capacities, of an overlap beyond its maximum
  const std::size_t levels = block.items.size();
  const std::size_t first_set = 1 + levels;
  const std::size_t first_meeting = first_set + block.sets.size();
  const std::size_t rows = first_meeting + 2 * block.meetings.size();
  const std::int64_t capacity = model_.capacities[block.link];
  const auto share_of_capacity = [=](std::int64_t sum) {
    return static_cast<double>(above(sum, capacity)) / static_cast<double>(capacity);
  };
  // The first columns are the configurations. Columns with a single entry follow: one for the surplus of each row from
  // `first_set` on, and one for the time of each overlap beyond its maximum.
  const std::vector<Configuration> all = configurations(block.items);
  std::vector<LinearProgram::Single> singles;
  for (std::size_t r = first_set; r < rows; ++r) singles.push_back({r, -1, 0});
  for (std::size_t r = first_meeting + 1; r < rows; r += 2) singles.push_back({r, 1, penalty});
  LinearProgram program(rows, all.size(), std::move(singles));
  std::unordered_map<std::uint64_t, std::size_t> column_of;
  for (std::size_t k = 0; k < all.size(); ++k) {
    column_of[all[k].items] = k;
    program.costs[k] = share_of_capacity(all[k].sum);
    program.entry(0, k) = 1;
    for (std::size_t i = 0; i < levels; ++i) program.entry(1 + i, k) = static_cast<double>(all[k].items >> i & 1);
    for (std::size_t s = 0; s < block.sets.size(); ++s)
      program.entry(first_set + s, k) = share_of_capacity(sum_in(block, all[k].items, block.sets[s].jobs));
    for (std::size_t m = 0; m < block.meetings.size(); ++m) {
      const double within = block.meetings[m].within(all[k].items) ? 1 : 0;
      program.entry(first_meeting + 2 * m, k) = within;
      program.entry(first_meeting + 2 * m + 1, k) = -within;
    }
  }

  // The first basis uses the configurations of all_at_once(), where the excess of each set and the time of each overlap
  // are as large as possible.
  std::vector<std::size_t> basis;
  for (const std::uint64_t items : all_at_once(block.items)) basis.push_back(column_of[items]);
  const auto perimeter = static_cast<double>(model_.perimeter);
  program.needed[0] = 1;
  for (std::size_t i = 0; i < levels; ++i) program.needed[1 + i] = static_cast<double>(block.items[i].time) / perimeter;
  for (std::size_t s = 0; s < block.sets.size(); ++s) {
    basis.push_back(all.size() + s);
    program.needed[first_set + s] = static_cast<double>(block.sets[s].min) / static_cast<double>(capacity) / perimeter;
  }
  for (std::size_t m = 0; m < block.meetings.size(); ++m) {
    const std::size_t row = first_meeting + 2 * m;
    basis.push_back(all.size() + row - first_set);
    basis.push_back(all.size() + rows - first_set + m);
    program.needed[row] = static_cast<double>(block.meetings[m].min) / perimeter;
    program.needed[row + 1] = -static_cast<double>(block.meetings[m].max) / perimeter;
  }

  const std::vector<double> prices = program.prices(std::move(basis));
  const double one = 1 << block.fraction;
  // Any finite prices give a bound, so NaN and infinities are replaced.
  const auto within = [](double price, double min) { return std::fmin(std::fmax(price, min), 64); };
  for (std::size_t i = 0; i < levels; ++i)
    block.items[i].price = static_cast<Int128>(within(prices[1 + i], -64) * static_cast<double>(capacity) * one);
  for (std::size_t s = 0; s < block.sets.size(); ++s)
    block.sets[s].weight = static_cast<Int128>(within(prices[first_set + s], 0) * one);
  for (std::size_t m = 0; m < block.meetings.size(); ++m) {
    const double price = prices[first_meeting + 2 * m] - prices[first_meeting + 2 * m + 1];
    block.meetings[m].price = static_cast<Int128>(within(price, -64) * static_cast<double>(capacity) * one);
  }
}

}  // namespace mltcp::scheduler::internal
