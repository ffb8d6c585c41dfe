// Reader of measured demand profiles (see profile.h).
#include "mltcp/lab/workload/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "mltcp/base/csv.h"
#include "mltcp/base/error.h"
#include "mltcp/base/file.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/workload/inspection.h"

namespace mltcp::workload {
namespace {

constexpr TextFile kProfileFile{"a demand profile", 16U << 20};
constexpr double kLongestPeriod = 86'400e9;  // one day in ns
constexpr double kLowestRate = 1e3;          // minimum of all rates in experiment files
constexpr double kHighestRate = 1e14;
constexpr std::array<std::pair<std::string_view, double>, 4> kTimes{
    {{"time_ns", 1}, {"time_us", 1e3}, {"time_ms", 1e6}, {"time_s", 1e9}}};

class ProfileReader {
 public:
  ProfileReader(std::string_view text, const std::string& file) : csv_(text, file) { profile_.file = file; }

  Profile read() {
    while (csv_.next()) take(csv_.fields());
    if (unit_ <= 0) csv_.fail("header", "the file is empty", "begin it with time_ms,rate_bps");
    if (profile_.steps.size() < 2)
      csv_.fail("time", "there is one row or none", "write a row for each change of the rate, and one with the period");
    profile_.period = profile_.steps.back().from;
    profile_.steps.pop_back();
    bool sends = false;
    for (const Profile::Step& step : profile_.steps) sends |= !step.rate.is_zero();
    if (!sends) csv_.fail("rate", "there is no traffic before the last row", "give a profile of a job that sends");
    return std::move(profile_);
  }

 private:
  void take(const std::vector<std::string_view>& fields) {
    if (fields.size() != 2)
      csv_.fail("row", "it does not have two columns", "write time and rate with a comma between them");
    if (unit_ <= 0)
      header(fields[0], fields[1]);
    else
      row(fields[0], fields[1]);
  }

  void header(std::string_view time, std::string_view rate) {
    for (const auto& [name, nanos] : kTimes)
      if (time == name) unit_ = nanos;
    if (unit_ <= 0)
      csv_.fail("header", fmt::format("{} is not a time with its unit", in_quotes(time)),
                "write time_ns, time_us, time_ms or time_s, and rate_bps");
    if (rate != "rate_bps")
      csv_.fail("header", fmt::format("{} is not a rate in bits per second", in_quotes(rate)), "write rate_bps");
  }

  [[nodiscard]] double number(std::string_view column, std::string_view text) const {
    const auto value = number_from<double>(text);
    if (!value || !std::isfinite(*value))
      csv_.fail(column, fmt::format("{} is not a number", in_quotes(text)),
                "write only a decimal number, e.g. 150.5 or 1e9; its unit is in the header");
    if (*value < 0) csv_.fail(column, fmt::format("{} is below 0", *value), "write 0 or more");
    return *value;
  }

  void row(std::string_view time, std::string_view rate) {
    if (profile_.steps.size() > kMaxProfileSteps)
      csv_.fail("row", fmt::format("there are more than {} of them", kMaxProfileSteps), "average over longer steps");
    const double nanos = number("time", time) * unit_;
    if (nanos > kLongestPeriod) csv_.fail("time", "it is more than a day", "give one iteration");
    const double bps = number("rate", rate);
    if (bps > kHighestRate || (bps > 0 && bps < kLowestRate))
      csv_.fail("rate", fmt::format("{} is out of range", bps), "write 0, or 1000 to 1e14 bits per second");
    const Profile::Step step{Nanos(std::llround(nanos)), Rate(static_cast<std::uint64_t>(std::llround(bps)))};
    if (profile_.steps.empty() && step.from.count != 0)
      csv_.fail("time", fmt::format("the first is {}", in_quotes(time)), "begin with a row at time 0");
    if (!profile_.steps.empty() && step.from <= profile_.steps.back().from)
      csv_.fail("time", fmt::format("{} is not after the row before it, to the nanosecond", in_quotes(time)),
                "write times in ascending order");
    profile_.steps.push_back(step);
  }

  CsvReader csv_;
  Profile profile_;
  double unit_ = 0;  // nanoseconds per unit of the time column; 0 before the header
};

}  // namespace

Profile load_profile(const std::filesystem::path& path) {
  const std::string file = path.string();
  return parse_profile(read_text_file(path, file, kProfileFile), file);
}

Profile parse_profile(std::string_view text, const std::string& file) { return ProfileReader(text, file).read(); }

std::vector<Phase> to_phases(const Profile& profile) {
  std::vector<Phase> phases;
  Uint128 bit_nanos = 0;  // traffic not sent yet, in bits times 1e9
  constexpr Uint128 byte = 8'000'000'000;
  Nanos silence;
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    const Profile::Step& step = profile.steps[i];
    const Nanos time = (i + 1 < profile.steps.size() ? profile.steps[i + 1].from : profile.period) - step.from;
    bit_nanos += static_cast<Uint128>(step.rate.bits_per_second) * static_cast<std::uint64_t>(time.count);
    // A step whose rate is 0 cannot send the fraction of a byte that earlier steps have left.
    const auto bytes = step.rate.is_zero() ? 0 : static_cast<Bytes>(bit_nanos / byte);
    if (bytes == 0) {
      silence += time;
      continue;
    }
    bit_nanos %= byte;
    if (silence.count > 0) {
      phases.emplace_back().compute = silence;
      silence = Nanos();
    }
    Phase& phase = phases.emplace_back();
    phase.kind = Phase::Kind::communicate;
    phase.bytes = bytes;
    phase.rate = step.rate;
  }
  if (phases.empty())
    throw InputError(one_line(
        fmt::format("{}: an iteration sends less than a byte; give a profile of a job that sends", profile.file)));
  if (silence.count > 0) phases.emplace_back().compute = silence;
  return phases;
}

bool is_profile(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && line.front() != '#')
      return line.find(',') != std::string_view::npos && (line.starts_with("time_") || line.ends_with("rate_bps"));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

std::string describe(const Profile& profile, Rate link) {
  struct Burst {
    Nanos from;
    Nanos to;
    Rate peak;
    double bits = 0;
  };
  constexpr std::size_t max = 20;  // maximum number of bursts to list
  std::vector<Burst> bursts;
  Nanos sending;
  Rate peak;
  double bits = 0;
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    const auto& [from, rate] = profile.steps[i];
    if (rate.is_zero()) continue;
    const Nanos to = i + 1 < profile.steps.size() ? profile.steps[i + 1].from : profile.period;
    if (bursts.empty() || bursts.back().to != from) bursts.push_back({from, to, rate});
    const double these = static_cast<double>(rate.bits_per_second) * (to - from).seconds();
    bursts.back().to = to;
    bursts.back().peak = std::max(bursts.back().peak, rate);
    bursts.back().bits += these;
    bits += these;
    peak = std::max(peak, rate);
    sending += to - from;
  }
  const auto bytes = [](double of) { return rounded(static_cast<Bytes>(std::llround(of / 8))); };
  const IdealIteration ideal = ideal_iteration(to_phases(profile), link);
  std::string text;
  text += fmt::format("{}: measured profile of one iteration, {}\n", one_line(profile.file),
                      plural(profile.steps.size(), "step"));
  text += fmt::format("an iteration takes {:.3f} ms and sends {} for {:.1f}% of them, in {} at up to {}\n",
                      profile.period.millis(), bytes(bits), 100 * sending.seconds() / profile.period.seconds(),
                      plural(bursts.size(), "burst"), to_text(peak));
  text += fmt::format("alone on {} it takes {:.3f} ms and sends for {:.1f}% of them\n", to_text(link),
                      ideal.length.millis(), ideal.duty_cycle() * 100);
  for (std::size_t i = 0; i < std::min(bursts.size(), max); ++i) {
    const Burst& burst = bursts[i];
    const double seconds = (burst.to - burst.from).seconds();
    text += fmt::format("  at {:>9.3f} ms for {:>9.3f} ms {:>11}, at {:.3f} Mbps on average and up to {:.3f} Mbps\n",
                        burst.from.millis(), (burst.to - burst.from).millis(), bytes(burst.bits),
                        burst.bits / seconds / 1e6, static_cast<double>(burst.peak.bits_per_second) / 1e6);
  }
  if (bursts.size() > max) text += fmt::format("  and {} more\n", bursts.size() - max);
  return text;
}

}  // namespace mltcp::workload
