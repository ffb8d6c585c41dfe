// Streams of arriving jobs (see arrivals.h).
#include "mltcp/workload/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/random.h"
#include "mltcp/base/text.h"

namespace mltcp::workload {
namespace {

constexpr TextFile arrival_file{"a file of arrivals", 64U << 20};
constexpr Nanos latest(std::int64_t{1} << 53);  // 104 days
constexpr std::uint32_t most_workers = 1'000'000;
constexpr std::uint32_t most_iterations = 1'000'000;
constexpr std::uint32_t most_batch = 1'000'000;

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t comma = line.find(',');
    fields.push_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

class ArrivalReader {
 public:
  explicit ArrivalReader(const std::string& file) : file_(file) {}

  ArrivalFile read(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark of spreadsheets
    while (!text.empty()) {
      ++line_;
      const std::size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      line = trimmed(line.substr(0, line.find('#')));
      if (line.empty()) continue;
      if (columns_.empty())
        read_columns(fields_of(line));
      else
        read_row(fields_of(line));
    }
    line_ = std::max(line_, 1U);
    if (columns_.empty()) fail("columns", "the file is empty", "begin it with arrival,job,workers,iterations");
    if (result_.rows.empty()) fail("arrival", "no job arrives", "add a line such as 0 s,VGG16,8,500");
    std::stable_sort(result_.rows.begin(), result_.rows.end(),
                     [](const auto& a, const auto& b) { return a.arrival.at < b.arrival.at; });
    return std::move(result_);
  }

 private:
  static constexpr std::array<std::string_view, 5> known{"arrival", "job", "workers", "iterations", "batch"};

  [[noreturn]] void fail(std::string_view column, std::string_view cause, std::string_view cure) const {
    throw InputError(one_line(fmt::format("{}:{}: {}: {}; {}", file_, line_, column, cause, cure)));
  }

  void read_columns(const std::vector<std::string_view>& names) {
    for (const std::string_view name : names) {
      if (std::find(known.begin(), known.end(), name) == known.end())
        fail("columns", fmt::format("{} is not known", in_quotes(name)),
             "the columns are arrival (times with their unit, as in 1.5 s), job, workers, iterations and batch");
      if (std::find(columns_.begin(), columns_.end(), name) != columns_.end())
        fail("columns", fmt::format("{} stands there twice", in_quotes(name)), "keep one of them");
      columns_.emplace_back(name);
    }
    for (const std::string_view name : known)
      if (name != "batch" && std::find(columns_.begin(), columns_.end(), name) == columns_.end())
        fail("columns", fmt::format("{} is missing", in_quotes(name)), "add the column");
  }

  void read_row(const std::vector<std::string_view>& fields) {
    if (fields.size() != columns_.size())
      fail("columns",
           fmt::format("the line has {} fields and the first one {} columns", fields.size(), columns_.size()),
           "write a field for each, separated by commas");
    ArrivalFile::Row row;
    row.line = line_;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const std::string_view field = fields[i];
      if (columns_[i] == "arrival")
        row.arrival.at = time(field);
      else if (columns_[i] == "job")
        row.arrival.type = job(field);
      else if (columns_[i] == "workers")
        row.arrival.workers = whole("workers", field, 2, most_workers);
      else if (columns_[i] == "iterations")
        row.arrival.iterations = whole("iterations", field, 1, most_iterations);
      else if (!field.empty())
        row.arrival.batch = whole("batch", field, 1, most_batch);
    }
    result_.rows.push_back(row);
  }

  [[nodiscard]] Nanos time(std::string_view field) const {
    // parse_duration() takes a bare 0, next to which a bare 5 would look like a time, too.
    if (!field.empty() && field.find_first_not_of("+-.0123456789eE") == std::string_view::npos)
      fail("arrival", fmt::format("{} is a time without its unit", in_quotes(field)),
           "write one of the units ns, us, ms, s, min, as in 1.5 s");
    Nanos result;
    try {
      result = parse_duration(field);
    } catch (const InputError& error) {
      throw InputError(one_line(fmt::format("{}:{}: arrival: {}", file_, line_, error.what())));
    }
    if (result > latest)
      fail("arrival", fmt::format("{} is too late", to_text(result)), "write at most " + to_text(latest));
    return result;
  }

  std::uint32_t job(std::string_view field) {
    if (field.empty()) fail("job", "the name is empty", "write the name of a job type or model");
    const auto [at, is_new] = numbers_.try_emplace(std::string(field), static_cast<std::uint32_t>(result_.jobs.size()));
    if (is_new) result_.jobs.emplace_back(field);
    return at->second;
  }

  [[nodiscard]] std::uint32_t whole(std::string_view column, std::string_view field, std::uint32_t least,
                                    std::uint32_t most) const {
    std::uint32_t value = 0;
    const auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (problem != std::errc() || end != field.data() + field.size() || value < least || value > most)
      fail(column, fmt::format("{} is not a whole number from {} to {}", in_quotes(field), least, most),
           "write one without sign, point or unit");
    return value;
  }

  const std::string& file_;
  std::uint32_t line_ = 0;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // of result_.jobs
  ArrivalFile result_;
};

}  // namespace

double TypeChoices::mean_iterations() const {
  if (least_iterations >= most_iterations) return least_iterations;
  const double ratio = static_cast<double>(most_iterations) / least_iterations;
  return static_cast<double>(most_iterations - least_iterations) / std::log(ratio);
}

std::vector<Arrival> draw_arrivals(std::span<const TypeChoices> mix, std::uint32_t count, std::uint32_t at_start,
                                   Nanos gap, std::uint64_t seed) {
  enum : std::uint64_t { what = 0xA221, when = 0xA222 };
  Random jobs = Random::stream(seed, what);
  Random times = Random::stream(seed, when);
  double weights = 0;
  for (const TypeChoices& type : mix) weights += type.weight;
  std::vector<Arrival> result;
  double now = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    Arrival arrival;
    double draw = jobs.uniform() * weights;
    while (arrival.type + 1 < mix.size() && draw >= mix[arrival.type].weight) draw -= mix[arrival.type++].weight;
    const TypeChoices& type = mix[arrival.type];
    arrival.workers = type.workers[jobs.below(type.workers.size())];
    arrival.batch = type.batches[jobs.below(type.batches.size())];
    const double least = std::log(type.least_iterations);
    const double most = std::log(type.most_iterations);
    arrival.iterations =
        std::clamp(static_cast<std::uint32_t>(std::lround(std::exp(least + (most - least) * jobs.uniform()))),
                   type.least_iterations, type.most_iterations);
    if (i >= at_start) now -= std::log(1.0 - times.uniform()) * static_cast<double>(gap.count);
    arrival.at = Nanos(static_cast<std::int64_t>(now));
    result.push_back(arrival);
  }
  return result;
}

ArrivalFile parse_arrivals(std::string_view text, const std::string& file) { return ArrivalReader(file).read(text); }

ArrivalFile load_arrivals(const std::filesystem::path& path) {
  const std::string file = path.string();
  return parse_arrivals(read_text_file(path, file + ":1: file", arrival_file), file);
}

}  // namespace mltcp::workload
