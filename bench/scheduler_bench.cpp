// Measures the time to compute the time shifts of jobs on one link. Compares it with a grid search in steps of 5
// degrees, the precision of the published method (arXiv 2308.00852), and reports the score that the grid search loses.
// The grid search is a plain implementation of the paper's score: for every combination of grid positions, it sums the
// demand at each of the 72 angles.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "mltcp/base/random.h"
#include "mltcp/scheduler/problem.h"

namespace {

using namespace mltcp;
using namespace mltcp::scheduler;

constexpr Rate kCapacity(50'000'000'000);
constexpr std::uint64_t kSeeds = 16;

/// Creates jobs of one to three bursts at 40% to 100% of the link's rate. `load` is the mean total load of the jobs as
/// a fraction of the link's rate.
Problem random_jobs(std::uint64_t seed, std::size_t count, double load, std::vector<Nanos> periods) {
  Random random = Random::stream(seed, count);
  Problem problem;
  problem.links.push_back({"link", kCapacity, {}});
  for (std::uint32_t j = 0; j < count; ++j) {
    const Nanos period = periods[random.below(periods.size())] +
                         (periods.size() > 1 ? Nanos() : Nanos(static_cast<std::int64_t>(random.below(150'000'000))));
    Demand demand{period, {}};
    const std::uint64_t bursts = 1 + random.below(3);
    const double share = load / static_cast<double>(count) * (0.5 + random.uniform());
    const double height = 0.4 + 0.6 * random.uniform();
    const double busy = std::min(0.9, share / height);
    double at = 0;
    for (std::uint64_t b = 0; b < bursts; ++b) {
      const double length = busy / static_cast<double>(bursts);
      const auto whole = [&](double x) {
        return Nanos(static_cast<std::int64_t>(x * static_cast<double>(period.count)));
      };
      demand.bursts.push_back(
          {whole(at), whole(at + length),
           Rate(static_cast<std::uint64_t>(height * static_cast<double>(kCapacity.bits_per_second)))});
      at += length + (1 - busy) / static_cast<double>(bursts) * (0.2 + 0.6 * random.uniform());
    }
    problem.jobs.push_back({"job" + std::to_string(j), period, {}});
    problem.links[0].uses.push_back({j, std::move(demand)});
  }
  return problem;
}

const std::vector<Nanos> kHarmonic = {Nanos(40'000'000), Nanos(60'000'000), Nanos(120'000'000)};
const std::vector<Nanos> kAnything = {Nanos(100'000'000)};  // random_jobs() adds up to 150 ms to this period

Problem talk_pair() {
  const Demand a{Nanos(40'000'000), {{Nanos(0), Nanos(15'000'000), kCapacity}}};
  const Demand b{Nanos(60'000'000), {{Nanos(0), Nanos(25'000'000), kCapacity}}};
  return {{{"a", a.period, {}}, {"b", b.period, {}}}, {{"link", kCapacity, {{0, a}, {1, b}}}}};
}

void pair(benchmark::State& state) {
  const Problem problem = talk_pair();
  SolveOptions options;
  options.angles = static_cast<std::uint32_t>(state.range(0));
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(solve(problem, options));
}
BENCHMARK(pair)->ArgName("angles")->Arg(0)->Arg(72)->Arg(360)->Unit(benchmark::kMicrosecond);

/// The arguments are the number of jobs, the load of the link in percent, and 1 if the periods have a short common
/// multiple, 0 if not.
void random_link(benchmark::State& state) {
  std::vector<Problem> problems;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    problems.push_back(random_jobs(seed, static_cast<std::size_t>(state.range(0)),
                                   static_cast<double>(state.range(1)) / 100,
                                   state.range(2) != 0 ? kHarmonic : kAnything));
  double optimal = 0;
  double gap = 0;
  double score = 0;
  for ([[maybe_unused]] auto _ : state) {
    optimal = gap = score = 0;
    for (const Problem& problem : problems) {
      const Solution solution = solve(problem);
      optimal += solution.optimal ? 1 : 0;
      gap += solution.upper_bound - solution.score;
      score += solution.score;
    }
  }
  state.counters["each"] = benchmark::Counter(
      static_cast<double>(kSeeds), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["optimal"] = optimal / kSeeds;
  state.counters["gap"] = gap / kSeeds;
  state.counters["score"] = score / kSeeds;
}
BENCHMARK(random_link)
    ->ArgNames({"jobs", "load", "harmonic"})
    ->ArgsProduct({{2, 3, 4, 6, 8}, {70, 90, 110}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

/// A grid search that tries every combination of shifts by multiples of 5 degrees. Its score considers the demand at
/// the 72 angles only.
class FiveDegrees {
 public:
  static constexpr std::size_t kAngles = 72;
  FiveDegrees(const Problem& problem, const Slots& slots) : slots_(slots) {
    for (const auto& use : problem.links[0].uses) {
      std::vector<double> rates(kAngles, 0);
      for (std::size_t a = 0; a < kAngles; ++a) {
        const std::int64_t at = slots.perimeter.count / static_cast<std::int64_t>(kAngles) *
                                static_cast<std::int64_t>(a) % slots.periods[use.job].count;
        for (const Burst& burst : use.demand.bursts)
          if (burst.from.count <= at && at < burst.to.count) rates[a] = static_cast<double>(burst.rate.bits_per_second);
      }
      demands_.push_back(std::move(rates));
    }
    shifts_.assign(demands_.size(), 0);
    best_shifts_ = shifts_;
  }
  double search() {
    place(1);
    return best_;
  }
  [[nodiscard]] std::vector<Nanos> shifts() const {
    std::vector<Nanos> result;
    for (std::size_t j = 0; j < best_shifts_.size(); ++j)
      result.emplace_back(slots_.perimeter.count * static_cast<std::int64_t>(best_shifts_[j]) /
                          static_cast<std::int64_t>(kAngles) % slots_.periods[j].count);
    return result;
  }

 private:
  void place(std::size_t job) {
    if (job < demands_.size()) {
      const std::size_t positions = (kAngles + slots_.repetitions[job] - 1) / slots_.repetitions[job];
      for (shifts_[job] = 0; shifts_[job] < positions; ++shifts_[job]) place(job + 1);
      return;
    }
    double excess = 0;
    for (std::size_t a = 0; a < kAngles; ++a) {
      double demand = 0;
      for (std::size_t j = 0; j < demands_.size(); ++j) demand += demands_[j][(a + kAngles - shifts_[j]) % kAngles];
      excess += std::max(0.0, demand - static_cast<double>(kCapacity.bits_per_second));
    }
    const double score = 1 - excess / (static_cast<double>(kAngles) * static_cast<double>(kCapacity.bits_per_second));
    if (score <= best_) return;
    best_ = score;
    best_shifts_ = shifts_;
  }

  const Slots& slots_;
  std::vector<std::vector<double>> demands_;
  std::vector<std::size_t> shifts_, best_shifts_;
  double best_ = -1e9;
};

/// The counter `loses` is the score of the exact solution minus the true score of the grid search's shifts, with the
/// same slots. The counter `mistakes` is the error of the score that the grid search itself computes.
void five_degrees(benchmark::State& state) {
  std::vector<Problem> problems;
  std::vector<Solution> exact;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    problems.push_back(random_jobs(seed, static_cast<std::size_t>(state.range(0)), 0.9, kHarmonic));
    exact.push_back(solve(problems.back()));
  }
  double loses = 0;
  double max = 0;
  double mistakes = 0;
  for ([[maybe_unused]] auto _ : state) {
    loses = max = mistakes = 0;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      FiveDegrees grid(problems[i], exact[i].slots);
      const double claimed = grid.search();
      const double score = evaluate(problems[i], exact[i].slots, grid.shifts()).score;
      loses += exact[i].score - score;
      max = std::max(max, exact[i].score - score);
      mistakes += std::abs(claimed - score);
    }
  }
  state.counters["each"] = benchmark::Counter(
      static_cast<double>(kSeeds), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["loses"] = loses / kSeeds;
  state.counters["loses_most"] = max;
  state.counters["mistakes"] = mistakes / kSeeds;
}
BENCHMARK(five_degrees)->ArgName("jobs")->Arg(2)->Arg(3)->Arg(4)->Unit(benchmark::kMillisecond);

}  // namespace
