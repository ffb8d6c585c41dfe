// Measures the cost of recording time series (docs/reference/series.md). Runs each experiment in pairs, with and
// without recording, and compares the processor time of the thread. Prints a row per experiment, with the median and
// the quartiles of the pairs' ratios.
//
//   series_cost EXPERIMENT.toml... [PAIRS]     PAIRS: number of pairs, 15 by default
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/experiment/backends/datapath.h"
#include "mltcp/lab/experiment/files/experiment_file.h"
#include "mltcp/lab/experiment/run/runner.h"

namespace {

using namespace mltcp::experiment;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Measured {
  double seconds = 0;
  std::size_t rows = 0;
};

Measured run(const Experiment& experiment, bool recorded) {
  const auto datapath =
      experiment.datapath == "flow" ? make_flow_datapath() : std::unique_ptr<Datapath>(make_sim_datapath());
  std::vector<RunSeries> series;
  RunOptions options;
  if (recorded) {
    options.series.emplace();
    options.recorded = &series;
  }
  const double before = thread_seconds();
  run_experiment(experiment, *datapath, {}, options);
  Measured measured{thread_seconds() - before, 0};
  for (const RunSeries& one : series) measured.rows += one.connection_states.size() + one.link_states.size();
  return measured;
}

void compare(const std::string& file, int pairs) {
  const Experiment experiment = load_experiment(file, FileOptions{});
  std::vector<double> ratios;
  double without = 0;
  std::size_t rows = 0;
  run(experiment, true);  // the first run fills the caches
  for (int pair = 0; pair < pairs; ++pair) {
    // The order within pairs alternates, so that drift affects both kinds of run.
    Measured on;
    Measured off;
    if (pair % 2 == 0) {
      off = run(experiment, false);
      on = run(experiment, true);
    } else {
      on = run(experiment, true);
      off = run(experiment, false);
    }
    ratios.push_back(on.seconds / off.seconds);
    without += off.seconds / pairs;
    rows = on.rows;
  }
  std::sort(ratios.begin(), ratios.end());
  const auto quantile = [&](double share) {
    return 100 * (ratios[static_cast<std::size_t>(share * static_cast<double>(ratios.size() - 1))] - 1);
  };
  fmt::print("| {} | {} | {:.0f} ms | {} | {:+.1f}% | {:+.1f}% to {:+.1f}% |\n",
             file.substr(file.find_last_of('/') + 1), experiment.datapath, without * 1e3, rows, quantile(0.5),
             quantile(0.25), quantile(0.75));
}

}  // namespace

int main(int argc, char** argv) {
  int pairs = 15;
  std::vector<std::string> files(argv + 1, argv + argc);
  if (!files.empty()) {
    const std::string& last = files.back();
    if (std::from_chars(last.data(), last.data() + last.size(), pairs).ptr == last.data() + last.size())
      files.pop_back();
  }
  if (files.empty() || pairs < 1) {
    fmt::print(stderr, "usage: series_cost EXPERIMENT.toml... [PAIRS]\n");
    return 2;
  }
  try {
    fmt::print("| experiment | datapath | run | rows | series cost | quartiles |\n|---|---|---|---|---|---|\n");
    for (const std::string& file : files) compare(file, pairs);
  } catch (const std::exception& error) {
    fmt::print(stderr, "series_cost: {}\n", error.what());
    return 1;
  }
  return 0;
}
