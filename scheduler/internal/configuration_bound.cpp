// The bound by configurations (see configuration_bound.h).
#include "mltcp/scheduler/internal/configuration_bound.h"

#include <bit>
#include <cmath>
#include <unordered_map>

namespace mltcp::scheduler::internal {

ConfigurationBound::ConfigurationBound(const Model& model, const std::vector<Set>& sets,
                                       const std::vector<Overlap>& overlaps)
    : model_(model) {
  std::vector<std::size_t> sizes;  // configurations of each block
  std::vector<std::size_t> open(model.capacities.size(), blocks_.max_size());
  for (std::uint32_t j = 0; j < model.jobs.size(); ++j) {
    const Model::Job& job = model.jobs[j];
    for (const Curve& curve : job.curves) {
      std::vector<Item> items;
      const auto lasts = [&](std::int64_t level, std::int64_t time) {
        if (level == 0) return;
        for (Item& item : items)
          if (item.level == level) {
            item.time += time;
            return;
          }
        items.push_back({j, level, time});
      };
      if (curve.steps.empty()) lasts(curve.level, model.perimeter);
      for (std::size_t i = 0; i < curve.steps.size(); ++i) {
        const std::int64_t to =
            i + 1 < curve.steps.size() ? curve.steps[i + 1].at : curve.steps.front().at + job.period;
        lasts(curve.steps[i].after, (to - curve.steps[i].at) * (model.perimeter / job.period));
      }
      std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.level > b.level; });
      // A job with too many levels is left out, which only lowers the bound.
      if (items.size() > 60) continue;
      std::size_t& block = open[curve.link];
      if (block == blocks_.max_size() || sizes[block] * (items.size() + 1) > kMostConfigurations ||
          blocks_[block].items.size() + items.size() > 60) {
        block = blocks_.size();
        blocks_.push_back({curve.link, {}, {}, {}, 0});
        sizes.push_back(1);
      }
      sizes[block] *= items.size() + 1;
      blocks_[block].items.insert(blocks_[block].items.end(), items.begin(), items.end());
    }
  }
  for (Block& block : blocks_) {
    std::uint64_t jobs = 0;
    for (const Item& item : block.items)
      if (item.job < 64) jobs |= std::uint64_t{1} << item.job;
    for (const Set& set : sets)
      if ((set.jobs & ~jobs) == 0) block.sets.push_back(set);
    for (const Overlap& overlap : overlaps) {
      Meeting meeting{{0, 0}, overlap.least, overlap.most, 0};
      for (std::size_t i = 0; i < block.items.size(); ++i)
        for (std::size_t k = 0; k < 2; ++k)
          if (block.items[i].job == overlap.jobs[k] && block.items[i].level >= overlap.levels[k])
            meeting.items[k] |= std::uint64_t{1} << i;
      if (meeting.items[0] != 0 && meeting.items[1] != 0) block.meetings.push_back(meeting);
    }
    // Prices and weights are at most 2^6 capacities each: what is summed up below stays in 126 bits.
    const std::size_t terms = block.items.size() + block.sets.size() + block.meetings.size() + 2;
    std::int64_t highest = model.capacities[block.link];
    for (std::size_t i = 0; i < block.items.size(); ++i)
      if (i == 0 || block.items[i].job != block.items[i - 1].job) highest += block.items[i].level;
    block.fraction = 126 - 7 - static_cast<int>(std::bit_width(terms)) -
                     static_cast<int>(std::bit_width(static_cast<std::uint64_t>(highest))) -
                     static_cast<int>(std::bit_width(static_cast<std::uint64_t>(model.perimeter)));
    if (block.fraction < 0) continue;
    block.fraction = std::min(block.fraction, kFraction);
    set_prices(block);
    Int128 kappa = 0;
    for (const Configuration& it : configurations(block.items)) {
      const std::int64_t capacity = model.capacities[block.link];
      Int128 value = it.price - (static_cast<Int128>(above(it.sum, capacity)) << block.fraction);
      for (const Set& set : block.sets)
        if (set.weight != 0) value += set.weight * above(sum_in(block, it.items, set.jobs), capacity);
      for (const Meeting& meeting : block.meetings)
        if (meeting.price != 0 && meeting.within(it.items)) value += meeting.price;
      kappa = std::max(kappa, value);
    }
    Int128 sum = -kappa * model.perimeter;
    for (const Item& item : block.items) sum += item.price * item.time;
    for (const Set& set : block.sets) sum += set.weight * set.least;
    for (const Meeting& meeting : block.meetings)
      sum += meeting.price * (meeting.price > 0 ? meeting.least : meeting.most);
    root_ += std::max<Int128>(sum >> block.fraction, 0);
  }
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

void ConfigurationBound::set_prices(Block& block) const {
  // The revised simplex method. Row 0 says that shares add up to 1, then each item has its time, then each set at least
  // its excess, then each overlap its least and, negated, its greatest time.
  constexpr int most_steps = 500;
  constexpr double tiny = 1e-9;
  constexpr double penalty = 8;  // in capacities, of an overlap beyond its greatest time
  const std::size_t levels = block.items.size();
  const std::size_t first_set = 1 + levels;
  const std::size_t first_meeting = first_set + block.sets.size();
  const std::size_t rows = first_meeting + 2 * block.meetings.size();
  const std::int64_t capacity = model_.capacities[block.link];
  const auto share_of_capacity = [=](std::int64_t sum) {
    return static_cast<double>(above(sum, capacity)) / static_cast<double>(capacity);
  };
  // Columns are configurations, then those with a single entry: what is too much in a row from the sets on, and what an
  // overlap has beyond its greatest time.
  struct Single {
    std::size_t row;
    double entry;
    double cost;
  };
  const std::vector<Configuration> all = configurations(block.items);
  std::vector<Single> singles;
  for (std::size_t r = first_set; r < rows; ++r) singles.push_back({r, -1, 0});
  for (std::size_t r = first_meeting + 1; r < rows; r += 2) singles.push_back({r, 1, penalty});
  const std::size_t count = all.size() + singles.size();
  std::vector<double> matrix(all.size() * rows, 0.0);  // by row
  std::vector<double> costs(all.size(), 0.0);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto at = [&](std::size_t row) -> double& { return matrix[row * all.size() + k]; };
    costs[k] = share_of_capacity(all[k].sum);
    at(0) = 1;
    for (std::size_t i = 0; i < levels; ++i) at(1 + i) = static_cast<double>(all[k].items >> i & 1);
    for (std::size_t s = 0; s < block.sets.size(); ++s)
      at(first_set + s) = share_of_capacity(sum_in(block, all[k].items, block.sets[s].jobs));
    for (std::size_t m = 0; m < block.meetings.size(); ++m) {
      const double within = block.meetings[m].within(all[k].items) ? 1 : 0;
      at(first_meeting + 2 * m) = within;
      at(first_meeting + 2 * m + 1) = -within;
    }
  }
  const auto entry = [&](std::size_t row, std::size_t column) {
    if (column < all.size()) return matrix[row * all.size() + column];
    const Single& single = singles[column - all.size()];
    return single.row == row ? single.entry : 0;
  };

  // To begin with, all jobs start together and go through their levels from the highest down: configurations in that
  // order are a basis, and every set and every overlap has the most that it can.
  struct Change {
    std::int64_t at;
    std::size_t item;
    bool last;
  };
  std::vector<Change> changes;
  std::uint64_t now = 0;
  for (std::size_t i = 0; i < levels;) {
    std::int64_t at = 0;
    const std::uint32_t job = block.items[i].job;
    now |= std::uint64_t{1} << i;
    for (; i < levels && block.items[i].job == job; ++i) {
      at += block.items[i].time;
      changes.push_back({at, i, i + 1 == levels || block.items[i + 1].job != job});
    }
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  std::unordered_map<std::uint64_t, std::size_t> column_of;
  for (std::size_t k = 0; k < all.size(); ++k) column_of[all[k].items] = k;
  std::vector<std::size_t> basis{column_of[now]};
  for (const Change& change : changes) {
    now &= ~(std::uint64_t{1} << change.item);
    if (!change.last) now |= std::uint64_t{1} << (change.item + 1);
    basis.push_back(column_of[now]);
  }
  std::vector<double> needed(rows, 1.0);
  const auto perimeter = static_cast<double>(model_.perimeter);
  for (std::size_t i = 0; i < levels; ++i) needed[1 + i] = static_cast<double>(block.items[i].time) / perimeter;
  for (std::size_t s = 0; s < block.sets.size(); ++s) {
    basis.push_back(all.size() + s);
    needed[first_set + s] = static_cast<double>(block.sets[s].least) / static_cast<double>(capacity) / perimeter;
  }
  for (std::size_t m = 0; m < block.meetings.size(); ++m) {
    const std::size_t row = first_meeting + 2 * m;
    basis.push_back(all.size() + row - first_set);
    basis.push_back(all.size() + rows - first_set + m);
    needed[row] = static_cast<double>(block.meetings[m].least) / perimeter;
    needed[row + 1] = -static_cast<double>(block.meetings[m].most) / perimeter;
  }

  // Inverse of the basis, by elimination.
  std::vector<std::vector<double>> left(rows, std::vector<double>(rows));
  std::vector<std::vector<double>> inverse = left;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < rows; ++c) left[r][c] = entry(r, basis[c]);
    inverse[r][r] = 1;
  }
  for (std::size_t c = 0; c < rows; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < rows; ++r)
      if (std::abs(left[r][c]) > std::abs(left[pivot][c])) pivot = r;
    std::swap(left[c], left[pivot]);
    std::swap(inverse[c], inverse[pivot]);
    for (std::size_t r = 0; r < rows; ++r) {
      const double factor = r == c ? 1 - 1 / left[c][c] : left[r][c] / left[c][c];
      if (factor == 0) continue;
      for (std::size_t k = 0; k < rows; ++k) {
        left[r][k] -= factor * left[c][k];
        inverse[r][k] -= factor * inverse[c][k];
      }
    }
  }
  std::vector<double> shares(rows, 0.0);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t k = 0; k < rows; ++k) shares[r] += inverse[r][k] * needed[k];

  std::vector<double> prices(rows);
  std::vector<double> direction(rows);
  std::vector<double> reduced(all.size());
  const auto set_duals = [&] {
    std::fill(prices.begin(), prices.end(), 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
      const double cost = basis[r] < all.size() ? costs[basis[r]] : singles[basis[r] - all.size()].cost;
      if (cost == 0) continue;
      for (std::size_t c = 0; c < rows; ++c) prices[c] += cost * inverse[r][c];
    }
  };
  for (int step = 0; step < most_steps; ++step) {
    set_duals();
    reduced = costs;
    for (std::size_t r = 0; r < rows; ++r) {
      if (prices[r] == 0) continue;
      const double* row = &matrix[r * all.size()];
      for (std::size_t k = 0; k < all.size(); ++k) reduced[k] -= prices[r] * row[k];
    }
    std::size_t entering = count;
    double least = -tiny;
    const auto consider = [&](std::size_t column, double value) {
      if (value >= least) return;
      least = value;
      entering = column;
    };
    for (std::size_t k = 0; k < all.size(); ++k) consider(k, reduced[k]);
    for (std::size_t k = 0; k < singles.size(); ++k)
      consider(all.size() + k, singles[k].cost - prices[singles[k].row] * singles[k].entry);
    if (entering == count) break;
    std::fill(direction.begin(), direction.end(), 0.0);
    for (std::size_t k = 0; k < rows; ++k)
      if (const double value = entry(k, entering); value != 0)
        for (std::size_t r = 0; r < rows; ++r) direction[r] += inverse[r][k] * value;
    std::size_t leaving = rows;
    double most = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      if (direction[r] <= tiny) continue;
      const double ratio = std::max(shares[r], 0.0) / direction[r];
      if (leaving == rows || ratio < most) {
        most = ratio;
        leaving = r;
      }
    }
    if (leaving == rows) break;
    const double pivot = direction[leaving];
    for (double& value : inverse[leaving]) value /= pivot;
    shares[leaving] /= pivot;
    for (std::size_t r = 0; r < rows; ++r) {
      if (r == leaving || direction[r] == 0) continue;
      for (std::size_t k = 0; k < rows; ++k) inverse[r][k] -= direction[r] * inverse[leaving][k];
      shares[r] -= direction[r] * shares[leaving];
    }
    basis[leaving] = entering;
  }
  const double one = 1 << block.fraction;
  // Any prices give a bound, but a number they must be.
  const auto within = [](double price, double least) { return std::fmin(std::fmax(price, least), 64); };
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
