// Reads tables of jobs (see job_table.h).
#include "mltcp/lab/workload/traces/job_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "mltcp/base/csv.h"
#include "mltcp/base/error.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/traces/json_elements.h"

namespace mltcp::workload {
namespace {

constexpr std::uint32_t kMaxGpus = 1'000'000;
constexpr std::size_t kLookedAt = 4096;
constexpr int kFirstYear = 2000;
constexpr int kLastYear = 2099;
// Maximum duration of a job or an attempt: 366 days.
constexpr Nanos kLongest(std::int64_t{366} * 86'400 * 1'000'000'000);
constexpr std::size_t kMaxAttempts = 100;  // maximum of a job; keeps its total duration within 64 bits

/// Returns whether tables write `text` for a missing value.
bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 9> words{"", "None", "none", "null", "NULL", "nan", "NaN", "NaT", "Unknown"};
  return std::ranges::find(words, text) != words.end();
}

/// Parses a whole number from 0 to kMaxGpus, also if written as 4.0. Returns an empty value for any other text.
std::optional<std::uint32_t> count_of(std::string_view text) {
  const auto value = number_from<double>(text, 0, kMaxGpus);
  if (!value || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

/// Reason why a job is left out. Messages list the reasons in this order.
enum class Reason : std::uint8_t {
  other_vc,
  no_submission,
  outside,
  other_state,
  no_count,
  no_gpu,
  not_started,
  not_ended,
  no_time,
  backwards,
  nothing,
  too_long,
  too_many,
};
constexpr std::array<std::string_view, 13> kReasons{"other virtual cluster",
                                                    "no time of submission from 2000 to 2099",
                                                    "submitted outside from and to",
                                                    "other state",
                                                    "no number of GPUs",
                                                    "no GPU",
                                                    "never started",
                                                    "not ended",
                                                    "a time that is none from 2000 to 2099",
                                                    "ends before it starts",
                                                    "ran for no time",
                                                    "ran for more than a year",
                                                    "more than 100 attempts"};

/// Selects and counts rows and collects warnings, for the readers of both formats.
class Rows {
 public:
  /// `place` states what `number` in submission() counts: "line" or "job". `completed` is the state of successful jobs.
  Rows(const std::string& file, const JobTableOptions& options, std::string_view place, std::string_view completed)
      : file_(file), options_(options), place_(place), completed_(completed) {}

  /// Returns the time of submission if the options select the row by virtual cluster, time of submission and state.
  /// Returns an empty value and counts the row as left out if they do not. For a selected row, call take() or
  /// leave_out() next.
  std::optional<Nanos> submission(std::uint64_t number, std::string_view vc, std::string_view submitted,
                                  std::string_view state) {
    ++rows_;
    number_ = number;
    const auto among = [](const std::vector<std::string>& wanted, std::string_view one) {
      return wanted.empty() || std::ranges::find(wanted, one) != wanted.end();
    };
    const std::optional<Nanos> at = time_of_table(submitted);
    if (!among(options_.vcs, vc))
      leave_out(Reason::other_vc);
    else if (!at)
      leave_out(Reason::no_submission);
    else if ((options_.from && *at < *options_.from) || (options_.to && *at >= *options_.to))
      leave_out(Reason::outside);
    else if (!among(options_.states, state))
      leave_out(Reason::other_state);
    else
      return at;
    return std::nullopt;
  }
  void leave_out(Reason why) {
    Count& count = left_out_[why];
    if (count.jobs++ == 0) count.first = number_;
  }
  void take(const JobTable::Row& job, std::string_view state) {
    table_.jobs.push_back(job);
    if (state != completed_) ++incomplete_;
  }
  void warn(std::string warning) { table_.warnings.push_back(one_line(warning)); }

  /// Parses a start and an end. Sets `length`, or returns the reason why the period is not valid.
  static std::optional<Reason> period(std::string_view start, std::string_view end, Nanos& length) {
    if (is_missing(start)) return Reason::not_started;
    if (is_missing(end)) return Reason::not_ended;
    const std::optional<Nanos> from = time_of_table(start);
    const std::optional<Nanos> to = time_of_table(end);
    if (!from || !to) return Reason::no_time;
    if (*to < *from) return Reason::backwards;
    if (*to == *from) return Reason::nothing;
    if (*to - *from > kLongest) return Reason::too_long;
    length = *to - *from;
    return std::nullopt;
  }

  JobTable finished() {
    std::vector<std::string> parts;
    std::size_t count = 0;
    for (const auto& [why, left] : left_out_) {
      parts.push_back(
          fmt::format("{} ({}, first {} {})", kReasons[static_cast<std::size_t>(why)], left.jobs, place_, left.first));
      count += left.jobs;
    }
    const std::string list = fmt::format("{}", fmt::join(parts, ", "));
    if (table_.jobs.empty())
      throw InputError(
          one_line(fmt::format("{}: no job is left of {}{}{}; give a table of jobs that ran on GPUs, or "
                               "choose others by from, to, vc and states",
                               file_, rows_, list.empty() ? "" : ": ", list)));
    if (count > 0) warn(fmt::format("{}: {} of {} jobs are left out: {}", file_, count, rows_, list));
    if (incomplete_ > 0 && options_.states.empty())
      warn(
          fmt::format("{}: {} of {} jobs did not end as {}; they are kept, as they held their GPUs until they ended; "
                      "choose by states = [\"{}\"]",
                      file_, incomplete_, table_.jobs.size(), completed_, completed_));
    std::ranges::stable_sort(table_.jobs, [](const auto& a, const auto& b) { return a.submitted < b.submitted; });
    return std::move(table_);
  }

 private:
  struct Count {
    std::size_t jobs = 0;
    std::uint64_t first = 0;
  };
  const std::string& file_;
  const JobTableOptions& options_;
  std::string_view place_;
  std::string_view completed_;
  JobTable table_;
  std::map<Reason, Count> left_out_;
  std::size_t rows_ = 0;
  std::size_t incomplete_ = 0;
  std::uint64_t number_ = 0;
};

JobTable parse_helios(std::string_view text, const std::string& file, const JobTableOptions& options) {
  enum Column : std::uint8_t { submit, start, end, gpus, state, vc };
  constexpr std::array<std::string_view, 12> known{"submit_time", "start_time", "end_time", "gpu_num",
                                                   "state",       "vc",         "job_id",   "user",
                                                   "cpu_num",     "node_num",   "duration", "queue"};
  constexpr std::size_t needed = 6;
  CsvReader csv(text, file);
  csv.next();
  csv.read_columns(known, needed, fmt::format("the columns are {}", fmt::join(known, ", ")));
  std::array<std::size_t, known.size()> at{};
  for (std::size_t i = 0; i < known.size(); ++i)
    at[i] = static_cast<std::size_t>(std::ranges::find(csv.columns(), known[i]) - csv.columns().begin());
  Rows rows(file, options, "line", "COMPLETED");
  while (csv.next()) {
    const auto field = [&](Column column) { return csv.fields()[at[column]]; };
    const std::optional<Nanos> submitted = rows.submission(csv.line(), field(vc), field(submit), field(state));
    if (!submitted) continue;
    JobTable::Row job{*submitted, {}, 0};
    const std::optional<std::uint32_t> count = count_of(field(gpus));
    if (!count || *count == 0) {
      rows.leave_out(count ? Reason::no_gpu : Reason::no_count);
      continue;
    }
    job.gpus = *count;
    if (const std::optional<Reason> wrong = Rows::period(field(start), field(end), job.ran))
      rows.leave_out(*wrong);
    else
      rows.take(job, field(state));
  }
  return rows.finished();
}

/// Returns the number of GPUs that an attempt had.
std::uint64_t gpus_of(const rapidjson::Value& attempt) {
  std::uint64_t count = 0;
  const rapidjson::Value* detail = json::member(attempt, "detail");
  if (detail == nullptr || !detail->IsArray()) return 0;
  for (const rapidjson::Value& server : detail->GetArray())
    if (const rapidjson::Value* gpus = json::member(server, "gpus"); gpus != nullptr && gpus->IsArray())
      count += gpus->Size();
  return count;
}

JobTable parse_philly(std::string_view text, const std::string& file, const JobTableOptions& options) {
  Rows rows(file, options, "job", "Pass");
  std::uint64_t number = 0;
  std::size_t without_period = 0;  // attempts without a valid start and end, of jobs that are kept
  std::size_t differing = 0;       // jobs whose attempts had different numbers of GPUs
  const std::unique_ptr<TraceInput> input = memory_input(text, file);
  JsonElements elements(*input, "");
  elements.read([&](const rapidjson::Value& entry) {
    const std::string_view state = json::text(json::member(entry, "status"));
    const rapidjson::Value* attempts = json::member(entry, "attempts");
    if (!entry.IsObject() || attempts == nullptr || !attempts->IsArray())
      throw InputError(one_line(fmt::format("{}: {}: this is not a job with attempts; give Philly's cluster_job_log",
                                            file, elements.place())));
    const std::optional<Nanos> submitted = rows.submission(++number, json::text(json::member(entry, "vc")),
                                                           json::text(json::member(entry, "submitted_time")), state);
    if (!submitted) return;
    JobTable::Row job{*submitted, {}, 0};
    Reason why = Reason::not_started;
    Nanos max;  // duration of the longest attempt
    std::size_t wrong = 0;
    std::optional<std::uint64_t> first;
    bool differ = false;
    if (attempts->Size() > kMaxAttempts) {
      rows.leave_out(Reason::too_many);
      return;
    }
    for (const rapidjson::Value& attempt : attempts->GetArray()) {
      Nanos length;
      if (const auto reason = Rows::period(json::text(json::member(attempt, "start_time")),
                                           json::text(json::member(attempt, "end_time")), length)) {
        why = *reason;
        ++wrong;
        continue;
      }
      const std::uint64_t gpus = gpus_of(attempt);
      differ |= first && *first != gpus;
      first = gpus;
      job.ran = job.ran + length;
      if (length <= max) continue;
      max = length;
      job.gpus = static_cast<std::uint32_t>(std::min<std::uint64_t>(gpus, kMaxGpus));
    }
    if (max == Nanos()) {
      rows.leave_out(why);
    } else if (job.gpus == 0) {
      rows.leave_out(Reason::no_gpu);
    } else {
      rows.take(job, state);
      without_period += wrong;
      if (differ) ++differing;
    }
  });
  JobTable table = rows.finished();
  if (without_period > 0)
    table.warnings.push_back(
        one_line(fmt::format("{}: {} of kept jobs without a possible start or end: they add no time", file,
                             plural(without_period, "attempt"))));
  if (differing > 0)
    table.warnings.push_back(
        one_line(fmt::format("{}: {} with different numbers of GPUs in its attempts: that of the longest is taken",
                             file, plural(differing, "job"))));
  return table;
}

}  // namespace

std::optional<Nanos> time_of_table(std::string_view text) {
  constexpr std::string_view form = "dddd-dd-dd dd:dd:dd";
  constexpr std::size_t date = 10;
  if (text.size() != form.size() && text.size() != date) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return std::nullopt;
  const auto number = [&](std::size_t from, std::size_t digits) {
    int value = 0;
    if (from < text.size()) std::from_chars(text.data() + from, text.data() + from + digits, value);
    return value;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  const int hour = number(11, 2);
  const int minute = number(14, 2);
  const int second = number(17, 2);
  if (!day.ok() || number(0, 4) < kFirstYear || number(0, 4) > kLastYear || hour > 23 || minute > 59 || second > 59)
    return std::nullopt;
  const auto since = std::chrono::sys_days(day).time_since_epoch() + std::chrono::hours(hour) +
                     std::chrono::minutes(minute) + std::chrono::seconds(second);
  return Nanos(std::chrono::nanoseconds(since).count());
}

bool is_job_table(std::string_view text) {
  text = text.substr(0, kLookedAt);
  constexpr std::string_view blank = " \t\r\n\xef\xbb\xbf";
  std::size_t first = text.find_first_not_of(blank);
  while (first != std::string_view::npos && text[first] == '#')
    first = text.find_first_not_of(blank, std::min(text.find('\n', first), text.size()));
  if (first == std::string_view::npos) return false;
  if (text[first] == '[' || text[first] == '{') return true;
  const std::string_view line = text.substr(first, text.find('\n', first) - first);
  return line.find("gpu_num") != std::string_view::npos || line.find("submit_time") != std::string_view::npos;
}

JobTable parse_job_table(std::string_view text, const std::string& file, const JobTableOptions& options) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const bool json = first != std::string_view::npos && (text[first] == '[' || text[first] == '{');
  return json ? parse_philly(text.substr(first), file, options) : parse_helios(text, file, options);
}

}  // namespace mltcp::workload
