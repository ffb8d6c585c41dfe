// Makes the table of a sweep (see sweep_table.h).
#include "mltcp/lab/experiment/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "mltcp/base/csv.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/base/json/provenance.h"

namespace mltcp::experiment {
namespace {

using Json = nlohmann::ordered_json;

double ratio(Nanos a, Nanos b) { return b.count > 0 ? static_cast<double>(a.count) / static_cast<double>(b.count) : 0; }

// Returns the results by which policies are compared. Leaves out the unaware jobs of each run, unless all jobs of the
// run are unaware.
std::vector<Results> without_unaware(std::span<const Results> seeds) {
  std::vector<Results> result(seeds.begin(), seeds.end());
  for (Results& results : result)
    for (Run& run : results.runs) {
      const auto unaware = [](const JobResult& job) { return job.unaware; };
      if (!std::ranges::all_of(run.jobs, unaware)) std::erase_if(run.jobs, unaware);
    }
  return result;
}

// Returns the mean of `value` over the jobs of a run.
template <typename Value>
double over_jobs(const Run& run, Value value) {
  double sum = 0;
  for (const JobResult& job : run.jobs) sum += value(job);
  return run.jobs.empty() ? 0 : sum / static_cast<double>(run.jobs.size());
}

const Run* fair_run(const Results& results) {
  for (const Run& run : results.runs)
    if (run.policy == kBaselinePolicy) return &run;
  return nullptr;
}

// Returns the iteration from which on all jobs of a run are interleaved; empty if a job never is.
std::optional<std::uint64_t> interleaved(const Run& run) {
  std::uint64_t last = 0;
  for (const JobResult& job : run.jobs) {
    if (!job.interleaved_from) return std::nullopt;
    last = std::max(last, *job.interleaved_from);
  }
  return last;
}

bool same_times(const Run& a, const Run& b) {
  return std::ranges::equal(a.jobs, b.jobs, [](const JobResult& x, const JobResult& y) {
    return x.mean == y.mean && x.p50 == y.p50 && x.p99 == y.p99 && x.second_half_mean == y.second_half_mean &&
           x.bytes == y.bytes;
  });
}

SweepRow row_of(std::span<const Results> seeds, std::size_t number) {
  SweepRow row;
  const Run& first = seeds.front().runs[number];
  row.policy = first.policy;
  row.jobs = first.jobs.size();
  row.seeds = seeds.size();
  enum Time : std::size_t { mean, half_mean, p99, half_p99 };
  constexpr std::array<Nanos JobResult::*, 4> times{&JobResult::mean, &JobResult::second_half_mean, &JobResult::p99,
                                                    // in the order of the enumerators of Time
                                                    &JobResult::second_half_p99};
  std::array<std::vector<double>, times.size()> slowdowns;
  std::array<std::vector<double>, times.size()> gains;
  std::vector<std::uint64_t> from;
  row.same = seeds.size() > 1;
  for (const Results& results : seeds) {
    const Run& run = results.runs[number];
    const Run* const fair = fair_run(results);
    for (std::size_t t = 0; t < times.size(); ++t) {
      const auto time = times[t];
      slowdowns[t].push_back(over_jobs(run, [&](const JobResult& job) { return ratio(job.*time, job.isolated); }));
      std::size_t job = 0;
      if (fair != nullptr)
        gains[t].push_back(
            over_jobs(run, [&](const JobResult& mine) { return ratio(fair->jobs[job++].*time, mine.*time); }));
    }
    for (const JobResult& job : run.jobs) {
      row.second_half_worst_job = std::max(row.second_half_worst_job, ratio(job.second_half_mean, job.isolated));
      row.retransmitted_packets += static_cast<double>(job.retransmitted_packets);
    }
    if (const auto iteration = interleaved(run)) from.push_back(*iteration);
    row.utilization += run.bottleneck.utilization;
    row.dropped_packets += static_cast<double>(run.bottleneck.dropped_packets);
    row.marked_packets += static_cast<double>(run.bottleneck.ecn_marked_packets);
    row.max_queue_bytes = std::max(row.max_queue_bytes, run.bottleneck.max_queue_bytes);
    row.same = row.same && same_times(first, run);
  }
  for (double* total : {&row.utilization, &row.dropped_packets, &row.marked_packets, &row.retransmitted_packets})
    *total /= static_cast<double>(seeds.size());
  row.slowdown = estimate_of(slowdowns[mean]);
  row.second_half = estimate_of(slowdowns[half_mean]);
  row.second_half_worst_seed = *std::ranges::max_element(slowdowns[half_mean]);
  row.p99 = estimate_of(slowdowns[p99]);
  row.second_half_p99 = estimate_of(slowdowns[half_p99]);
  if (!gains[mean].empty()) {
    row.gain = estimate_of(gains[mean]);
    row.second_half_gain = estimate_of(gains[half_mean]);
    row.gain_p99 = estimate_of(gains[p99]);
    row.second_half_gain_p99 = estimate_of(gains[half_p99]);
  }
  row.interleaved = from.size();
  if (!from.empty()) {
    std::ranges::sort(from);
    const std::size_t middle = from.size() / 2;
    row.interleaved_median = static_cast<double>(from[middle] + from[(from.size() - 1) / 2]) / 2;
    row.interleaved_worst = from.back();
  }
  return row;
}

std::string number_text(const Estimate& estimate) {
  return estimate.ci95 ? fmt::format("{:.3f} ±{:.3f}", estimate.mean, *estimate.ci95)
                       : fmt::format("{:.3f}", estimate.mean);
}

// Rounds a number for files to six decimals, because further digits are not significant.
double rounded(double value) { return std::round(value * 1e6) / 1e6; }

Json to_json(const Estimate& estimate) {
  Json json;
  json["mean"] = rounded(estimate.mean);
  json["ci95"] = nullptr;
  if (estimate.ci95) json["ci95"] = rounded(*estimate.ci95);
  return json;
}

Json to_json(const std::optional<Estimate>& estimate) { return estimate ? to_json(*estimate) : Json(nullptr); }

Json to_json(const SweepRow& row) {
  Json json;
  json["policy"] = row.policy;
  json["jobs"] = row.jobs;
  json["seeds"] = row.seeds;
  json["slowdown"] = to_json(row.slowdown);
  json["second_half_slowdown"] = to_json(row.second_half);
  json["second_half_slowdown"]["worst_seed"] = rounded(row.second_half_worst_seed);
  json["second_half_slowdown"]["worst_job"] = rounded(row.second_half_worst_job);
  json["p99_slowdown"] = to_json(row.p99);
  json["second_half_p99_slowdown"] = to_json(row.second_half_p99);
  json["interleaved"] = {{"seeds", row.interleaved}, {"from_median", nullptr}, {"from_worst", nullptr}};
  if (row.interleaved_median) json["interleaved"]["from_median"] = *row.interleaved_median;
  if (row.interleaved_worst) json["interleaved"]["from_worst"] = *row.interleaved_worst;
  json["gain_mean"] = to_json(row.gain);
  json["gain_p99"] = to_json(row.gain_p99);
  json["second_half_gain_mean"] = to_json(row.second_half_gain);
  json["second_half_gain_p99"] = to_json(row.second_half_gain_p99);
  json["utilization"] = rounded(row.utilization);
  json["dropped_packets"] = rounded(row.dropped_packets);
  json["ecn_marked_packets"] = rounded(row.marked_packets);
  json["retransmitted_packets"] = rounded(row.retransmitted_packets);
  json["max_queue_bytes"] = row.max_queue_bytes;
  return json;
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += fmt::format("{}{}", line.empty() ? "" : ",", csv_field(cell));
  return line + "\n";
}

}  // namespace

std::vector<SweepRow> rows_of(std::span<const Results> seeds) {
  std::vector<SweepRow> rows;
  if (seeds.empty()) return rows;
  const std::vector<Results> compared = without_unaware(seeds);
  for (std::size_t i = 0; i < compared.front().runs.size(); ++i) rows.push_back(row_of(compared, i));
  return rows;
}

SweepTable tabulate(const Sweep& sweep, const std::filesystem::path& folder, const std::string& build) {
  SweepTable table;
  std::set<std::string> missing;
  for (const SweepPoint& point : sweep.points) {
    SweepTable::Point& result = table.points.emplace_back();
    std::vector<Results> seeds;
    for (const std::uint64_t seed : sweep.seeds) {
      const std::string identity = identity_of(point, seed);
      std::optional<SweepRecord> record = read_record(record_path(folder, identity), identity);
      if (!record) {
        ++result.missing;
        missing.insert(identity);
        continue;
      }
      if (record->build != build) ++table.other_builds;
      if (!record->failure.empty()) {
        result.failures.emplace_back(seed, record->failure);
        continue;
      }
      drop_series(record->results);
      seeds.push_back(std::move(record->results));
    }
    result.rows = rows_of(seeds);
  }
  table.missing = missing.size();
  return table;
}

Cells cells_of(const Sweep& sweep, const SweepTable& table) {
  struct Column {
    std::string title;
    bool shown = false;
    std::vector<std::string> cells;
  };
  std::vector<Column> columns;
  const auto column = [&](std::string title, bool shown, auto&& cell) {
    Column made{std::move(title), shown, {}};
    for (std::size_t p = 0; p < table.points.size(); ++p)
      for (const SweepRow& row : table.points[p].rows) made.cells.push_back(cell(sweep.points[p], row));
    columns.push_back(std::move(made));
  };
  std::set<std::string> policies;
  for (const SweepTable::Point& point : table.points)
    for (const SweepRow& row : point.rows) policies.insert(row.policy);
  for (std::size_t f = 0; f < sweep.factors.size(); ++f) {
    const bool varies = std::ranges::any_of(
        sweep.points, [&](const SweepPoint& point) { return point.values[f] != sweep.points.front().values[f]; });
    column(sweep.factors[f], varies, [&](const SweepPoint& point, const SweepRow&) { return point.values[f]; });
  }
  column("policy", policies.size() > 1, [](const SweepPoint&, const SweepRow& row) { return row.policy; });
  const std::size_t texts = columns.size();
  column("seeds", false, [](const SweepPoint&, const SweepRow& row) { return fmt::format("{}", row.seeds); });
  columns.back().shown = std::ranges::any_of(
      columns.back().cells, [&](const std::string& cell) { return cell != fmt::format("{}", sweep.seeds.size()); });
  bool several_jobs = false;
  bool gains = false;
  for (const SweepTable::Point& point : table.points) {
    for (const SweepRow& row : point.rows) {
      several_jobs = several_jobs || row.jobs > 1;
      gains = gains || (row.gain && row.policy != kBaselinePolicy);
    }
  }
  const bool seeds = sweep.seeds.size() > 1;
  column("slow-down", true, [](const SweepPoint&, const SweepRow& row) { return number_text(row.slowdown); });
  column("2nd half", true, [](const SweepPoint&, const SweepRow& row) { return number_text(row.second_half); });
  column("worst seed", seeds,
         [](const SweepPoint&, const SweepRow& row) { return fmt::format("{:.3f}", row.second_half_worst_seed); });
  column("p99", true, [](const SweepPoint&, const SweepRow& row) { return number_text(row.p99); });
  column("interleaved", several_jobs, [](const SweepPoint&, const SweepRow& row) {
    return row.jobs > 1 ? fmt::format("{}/{}", row.interleaved, row.seeds) : std::string("-");
  });
  column("from", several_jobs, [](const SweepPoint&, const SweepRow& row) {
    return row.jobs > 1 && row.interleaved_median ? fmt::format("{}", *row.interleaved_median) : std::string("-");
  });
  column("at worst", several_jobs && seeds, [](const SweepPoint&, const SweepRow& row) {
    return row.jobs > 1 && row.interleaved_worst ? fmt::format("{}", *row.interleaved_worst) : std::string("-");
  });
  const auto gain_text = [](const SweepRow& row, const std::optional<Estimate>& gain) {
    return gain && row.policy != kBaselinePolicy ? number_text(*gain) : std::string("-");
  };
  column("gain", gains, [&](const SweepPoint&, const SweepRow& row) { return gain_text(row, row.gain); });
  column("gain p99", gains, [&](const SweepPoint&, const SweepRow& row) { return gain_text(row, row.gain_p99); });
  column("2nd gain", gains,
         [&](const SweepPoint&, const SweepRow& row) { return gain_text(row, row.second_half_gain); });
  column("2nd gain p99", gains,
         [&](const SweepPoint&, const SweepRow& row) { return gain_text(row, row.second_half_gain_p99); });

  Cells cells;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const Column& source = columns[c];
    if (!source.shown) continue;
    if (c < texts) ++cells.left;
    cells.rows.resize(source.cells.size() + 1);
    cells.rows[0].push_back(source.title);
    for (std::size_t r = 0; r < source.cells.size(); ++r) cells.rows[r + 1].push_back(source.cells[r]);
  }
  return cells;
}

namespace {

using Row = SweepRow;
/// A column of the CSV file: its title, and a function that returns the text of its cell in a row.
struct CsvColumn {
  std::string title;
  std::function<std::string(const Row&)> cell;
};

template <typename Value>
CsvColumn csv(std::string title, Value value) {
  return {std::move(title), [value](const Row& row) {
            const auto own = value(row);
            if constexpr (requires { own.has_value(); })
              return own ? fmt::format("{}", *own) : std::string();
            else
              return fmt::format("{}", own);
          }};
}
/// Adds two columns for an estimate: its mean, and the half-width of the confidence interval of the mean.
void add_estimate(std::vector<CsvColumn>& columns, const std::string& title,
                  const std::function<std::optional<Estimate>(const Row&)>& estimate) {
  columns.push_back(csv(title, [estimate](const Row& row) {
    const auto own = estimate(row);
    return own ? std::optional(rounded(own->mean)) : std::nullopt;
  }));
  columns.push_back(csv(title + "_ci95", [estimate](const Row& row) {
    const auto own = estimate(row);
    return own && own->ci95 ? std::optional(rounded(*own->ci95)) : std::nullopt;
  }));
}

std::vector<CsvColumn> csv_columns() {
  std::vector<CsvColumn> columns;
  const auto add = [&](const char* title, auto value) { columns.push_back(csv(title, value)); };
  const auto estimate = [&](const char* title, auto value) { add_estimate(columns, title, value); };
  add("policy", [](const Row& row) { return row.policy; });
  add("jobs", [](const Row& row) { return row.jobs; });
  add("seeds", [](const Row& row) { return row.seeds; });
  estimate("slowdown", [](const Row& row) { return row.slowdown; });
  estimate("second_half", [](const Row& row) { return row.second_half; });
  add("second_half_worst_seed", [](const Row& row) { return rounded(row.second_half_worst_seed); });
  add("second_half_worst_job", [](const Row& row) { return rounded(row.second_half_worst_job); });
  estimate("p99", [](const Row& row) { return row.p99; });
  estimate("second_half_p99", [](const Row& row) { return row.second_half_p99; });
  add("interleaved", [](const Row& row) { return row.interleaved; });
  add("interleaved_median", [](const Row& row) { return row.interleaved_median; });
  add("interleaved_worst", [](const Row& row) { return row.interleaved_worst; });
  estimate("gain_mean", [](const Row& row) { return row.gain; });
  estimate("gain_p99", [](const Row& row) { return row.gain_p99; });
  estimate("second_half_gain_mean", [](const Row& row) { return row.second_half_gain; });
  estimate("second_half_gain_p99", [](const Row& row) { return row.second_half_gain_p99; });
  add("utilization", [](const Row& row) { return rounded(row.utilization); });
  add("dropped_packets", [](const Row& row) { return rounded(row.dropped_packets); });
  add("ecn_marked_packets", [](const Row& row) { return rounded(row.marked_packets); });
  add("retransmitted_packets", [](const Row& row) { return rounded(row.retransmitted_packets); });
  add("max_queue_bytes", [](const Row& row) { return row.max_queue_bytes; });
  return columns;
}

}  // namespace

std::string to_csv(const Sweep& sweep, const SweepTable& table) {
  const std::vector<CsvColumn> columns = csv_columns();
  std::vector<std::string> header = sweep.factors;
  for (const CsvColumn& column : columns) header.push_back(column.title);
  std::string text = csv_line(header);
  for (std::size_t p = 0; p < table.points.size(); ++p) {
    for (const SweepRow& row : table.points[p].rows) {
      std::vector<std::string> cells = sweep.points[p].values;
      for (const CsvColumn& column : columns) cells.push_back(column.cell(row));
      text += csv_line(cells);
    }
  }
  return text;
}

std::string to_json(const Sweep& sweep, const SweepTable& table, const std::optional<Provenance>& provenance) {
  Json json;
  json["schema"] = "mltcp.sweep/1";
  json["name"] = sweep.name;
  json["seeds"] = sweep.seeds;
  json["factors"] = sweep.factors;
  json["points"] = Json::array();
  for (std::size_t p = 0; p < table.points.size(); ++p) {
    Json point;
    point["values"] = sweep.points[p].values;
    point["set"] = Json::object();
    for (const Override& override : sweep.points[p].overrides) point["set"][override.key] = override.value;
    point["policies"] = Json::array();
    for (const SweepRow& row : table.points[p].rows) point["policies"].push_back(to_json(row));
    point["missing_seeds"] = table.points[p].missing;
    point["failures"] = Json::array();
    for (const auto& [seed, reason] : table.points[p].failures)
      point["failures"].push_back({{"seed", seed}, {"reason", reason}});
    json["points"].push_back(std::move(point));
  }
  if (provenance) json["provenance"] = to_json(*provenance);
  return json_text(json, 2);
}

}  // namespace mltcp::experiment
