// The bound by configurations (see configuration_bound.h).
#include "mltcp/scheduler/internal/configuration_bound.h"

#include <bit>
#include <cmath>
#include <unordered_map>

namespace mltcp::scheduler::internal {

ConfigurationBound::ConfigurationBound(const Model& model, const std::vector<Set>& sets) : model_(model) {
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
        blocks_.push_back({curve.link, {}, {}, 0});
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
    // Prices are below 2^6 capacities, and there are fewer than 2^6 items: what is summed up below stays in 126 bits.
    std::int64_t highest = model.capacities[block.link];
    for (std::size_t i = 0; i < block.items.size(); ++i)
      if (i == 0 || block.items[i].job != block.items[i - 1].job) highest += block.items[i].level;
    block.fraction = 126 - 14 - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(highest))) -
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
      kappa = std::max(kappa, value);
    }
    Int128 sum = -kappa * model.perimeter;
    for (const Item& item : block.items) sum += item.price * item.time;
    for (const Set& set : block.sets) sum += set.weight * set.least;
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
  // its excess, from which a column of its own takes away what is too much.
  constexpr int most_steps = 500;
  constexpr double tiny = 1e-9;
  const std::size_t levels = block.items.size();
  const std::size_t rows = 1 + levels + block.sets.size();
  const std::int64_t capacity = model_.capacities[block.link];
  const auto share_of_capacity = [=](std::int64_t sum) {
    return static_cast<double>(above(sum, capacity)) / static_cast<double>(capacity);
  };
  const std::vector<Configuration> all = configurations(block.items);
  const std::size_t count = all.size() + block.sets.size();
  std::vector<double> matrix(count * rows, 0.0);  // by column
  std::vector<double> costs(count, 0.0);
  for (std::size_t k = 0; k < all.size(); ++k) {
    double* column = &matrix[k * rows];
    costs[k] = share_of_capacity(all[k].sum);
    column[0] = 1;
    for (std::size_t i = 0; i < levels; ++i) column[1 + i] = static_cast<double>(all[k].items >> i & 1);
    for (std::size_t s = 0; s < block.sets.size(); ++s)
      column[1 + levels + s] = share_of_capacity(sum_in(block, all[k].items, block.sets[s].jobs));
  }
  for (std::size_t s = 0; s < block.sets.size(); ++s) matrix[(all.size() + s) * rows + 1 + levels + s] = -1;

  // To begin with, all jobs start together and go through their levels from the highest down: configurations in that
  // order are a basis, and every set has the most excess that it can.
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
  for (std::size_t s = 0; s < block.sets.size(); ++s) basis.push_back(all.size() + s);

  std::vector<double> needed(rows, 1.0);
  const auto perimeter = static_cast<double>(model_.perimeter);
  for (std::size_t i = 0; i < levels; ++i) needed[1 + i] = static_cast<double>(block.items[i].time) / perimeter;
  for (std::size_t s = 0; s < block.sets.size(); ++s)
    needed[1 + levels + s] = static_cast<double>(block.sets[s].least) / static_cast<double>(capacity) / perimeter;

  // Inverse of the basis, by elimination.
  std::vector<std::vector<double>> left(rows, std::vector<double>(rows)), inverse = left;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < rows; ++c) left[r][c] = matrix[basis[c] * rows + r];
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

  std::vector<double> prices(rows), direction(rows);
  const auto set_duals = [&] {
    std::fill(prices.begin(), prices.end(), 0.0);
    for (std::size_t r = 0; r < rows; ++r)
      if (const double cost = costs[basis[r]]; cost != 0)
        for (std::size_t c = 0; c < rows; ++c) prices[c] += cost * inverse[r][c];
  };
  for (int step = 0; step < most_steps; ++step) {
    set_duals();
    std::size_t entering = count;
    double least = -tiny;
    for (std::size_t k = 0; k < count; ++k) {
      const double* column = &matrix[k * rows];
      double reduced = costs[k];
      for (std::size_t r = 0; r < rows; ++r) reduced -= prices[r] * column[r];
      if (reduced < least) {
        least = reduced;
        entering = k;
      }
    }
    if (entering == count) break;
    const double* column = &matrix[entering * rows];
    std::size_t leaving = rows;
    double most = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      direction[r] = 0;
      for (std::size_t k = 0; k < rows; ++k) direction[r] += inverse[r][k] * column[k];
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
    block.sets[s].weight = static_cast<Int128>(within(prices[1 + levels + s], 0) * one);
}

}  // namespace mltcp::scheduler::internal
