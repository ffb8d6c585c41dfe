// Draws random streams of arriving jobs, and reads files of arrivals (see arrivals.h).
#include "mltcp/lab/workload/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "mltcp/base/csv.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"

namespace mltcp::workload {
namespace {

constexpr Nanos kLatest(std::int64_t{1} << 53);  // latest allowed arrival: 104 days after time 0
constexpr std::uint32_t kMaxWorkers = 1'000'000;
constexpr std::uint32_t kMaxIterations = 1'000'000;
constexpr std::uint32_t kMaxBatch = 1'000'000;

class ArrivalReader {
 public:
  ArrivalReader(std::string_view text, const std::string& file) : csv_(text, file) {}

  ArrivalFile read() {
    if (!csv_.next()) csv_.fail("columns", "the file is empty", "begin it with arrival,job,workers,iterations");
    csv_.read_columns(
        kKnown, kNeeded,
        "the columns are arrival (times with their unit, e.g. 1.5 s), job, workers, iterations and batch");
    while (csv_.next()) read_row();
    if (result_.rows.empty()) csv_.fail("arrival", "no job arrives", "add a line, e.g. 0 s,VGG16,8,500");
    std::ranges::stable_sort(result_.rows, [](const auto& a, const auto& b) { return a.arrival.at < b.arrival.at; });
    return std::move(result_);
  }

 private:
  static constexpr std::array<std::string_view, 5> kKnown{"arrival", "job", "workers", "iterations", "batch"};
  static constexpr std::size_t kNeeded = 4;  // number of columns that a file must contain: all but batch

  void read_row() {
    const auto& fields = csv_.fields();
    const auto& columns = csv_.columns();
    ArrivalFile::Row row;
    row.line = csv_.line();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string_view field = fields[i];
      if (columns[i] == "arrival")
        row.arrival.at = time(field);
      else if (columns[i] == "job")
        row.arrival.type = job(field);
      else if (columns[i] == "workers")
        row.arrival.workers = whole("workers", field, 2, kMaxWorkers);
      else if (columns[i] == "iterations")
        row.arrival.iterations = whole("iterations", field, 1, kMaxIterations);
      else if (!field.empty())
        row.arrival.batch = whole("batch", field, 1, kMaxBatch);
    }
    result_.rows.push_back(row);
  }

  [[nodiscard]] Nanos time(std::string_view field) const {
    // parse_duration() accepts a 0 without unit. Rejects such a 0 here, because it would suggest that other numbers
    // without unit are valid, too.
    if (!field.empty() && field.find_first_not_of("+-.0123456789eE") == std::string_view::npos)
      csv_.fail("arrival", fmt::format("{} is a time without its unit", in_quotes(field)),
                "write one of the units ns, us, ms, s, min, e.g. 1.5 s");
    const Nanos result = csv_.parsed("arrival", field, parse_duration);
    if (result > kLatest)
      csv_.fail("arrival", fmt::format("{} is too late", to_text(result)), "write at most " + to_text(kLatest));
    return result;
  }

  std::uint32_t job(std::string_view field) {
    if (field.empty()) csv_.fail("job", "the name is empty", "write the name of a job type or model");
    const auto [at, is_new] = numbers_.try_emplace(std::string(field), static_cast<std::uint32_t>(result_.jobs.size()));
    if (is_new) result_.jobs.emplace_back(field);
    return at->second;
  }

  [[nodiscard]] std::uint32_t whole(std::string_view column, std::string_view field, std::uint32_t min,
                                    std::uint32_t max) const {
    const auto value = number_from<std::uint32_t>(field, min, max);
    if (!value)
      csv_.fail(column, fmt::format("{} is not a whole number from {} to {}", in_quotes(field), min, max),
                "write one without sign, point or unit");
    return *value;
  }

  CsvReader csv_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // index of each name in result_.jobs
  ArrivalFile result_;
};

}  // namespace

double TypeChoices::mean_iterations() const {
  if (min_iterations >= max_iterations) return min_iterations;
  const double ratio = static_cast<double>(max_iterations) / min_iterations;
  return static_cast<double>(max_iterations - min_iterations) / std::log(ratio);
}

namespace {

/// Draws a type by weight and returns its index in `mix`.
std::uint32_t draw_type(std::span<const TypeChoices> mix, double weights, Random& random) {
  std::uint32_t type = 0;
  double draw = random.uniform() * weights;
  while (type + 1 < mix.size() && draw >= mix[type].weight) draw -= mix[type++].weight;
  return type;
}

double sum_of_weights(std::span<const TypeChoices> mix) {
  double weights = 0;
  for (const TypeChoices& type : mix) weights += type.weight;
  return weights;
}

}  // namespace

void draw_types(std::span<const TypeChoices> mix, std::uint64_t seed, std::span<Arrival> jobs) {
  enum : std::uint64_t { which = 0xA223 };
  Random random = Random::stream(seed, which);
  const double weights = sum_of_weights(mix);
  for (Arrival& job : jobs) {
    job.type = draw_type(mix, weights, random);
    const std::vector<std::uint32_t>& batches = mix[job.type].batches;
    job.batch = batches[random.below(batches.size())];
  }
}

std::vector<Arrival> draw_arrivals(std::span<const TypeChoices> mix, std::uint32_t count, std::uint32_t at_start,
                                   Nanos gap, std::uint64_t seed) {
  enum : std::uint64_t { what = 0xA221, when = 0xA222 };
  Random jobs = Random::stream(seed, what);
  Random times = Random::stream(seed, when);
  const double weights = sum_of_weights(mix);
  std::vector<Arrival> result;
  double now = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    Arrival arrival;
    arrival.type = draw_type(mix, weights, jobs);
    const TypeChoices& type = mix[arrival.type];
    arrival.workers = type.workers[jobs.below(type.workers.size())];
    arrival.batch = type.batches[jobs.below(type.batches.size())];
    const double min = std::log(type.min_iterations);
    const double max = std::log(type.max_iterations);
    arrival.iterations =
        std::clamp(static_cast<std::uint32_t>(std::lround(std::exp(min + (max - min) * jobs.uniform()))),
                   type.min_iterations, type.max_iterations);
    if (i >= at_start) now -= std::log(1.0 - times.uniform()) * static_cast<double>(gap.count);
    arrival.at = Nanos(static_cast<std::int64_t>(now));
    result.push_back(arrival);
  }
  return result;
}

ArrivalFile parse_arrivals(std::string_view text, const std::string& file) { return ArrivalReader(text, file).read(); }

}  // namespace mltcp::workload
