// Computes how a job runs without other traffic, and writes jobs as text (see inspection.h).
#include "mltcp/lab/workload/inspection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>

#include "mltcp/lab/workload/job_fields.h"

namespace mltcp::workload {
namespace {

// Escapes `text` for the inside of a TOML basic string.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\u{:04X}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

// Returns `text` as one line of ASCII for a TOML comment, because names in a trace may be in any encoding.
std::string as_comment(const std::string& text) {
  std::string result = text;
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) c = '?';
  return result;
}

template <typename T>
bool differs(const T& a, const T& b) {
  if constexpr (HasFields<T>) {
    bool any = false;
    for_each_field<T>([&](const auto& field) { any |= differs(a.*field.member, b.*field.member); });
    return any;
  } else {
    return a != b;
  }
}

template <typename T>
std::string value_toml(const T& value) {
  if constexpr (HasFields<T>) {
    std::string fields;
    for_each_field<T>([&](const auto& field) {
      fields += fmt::format("{}{} = {}", fields.empty() ? "" : ", ", field.name, value_toml(value.*field.member));
    });
    return fmt::format("{{ {} }}", fields);
  } else if constexpr (std::is_same_v<T, Nanos> || std::is_same_v<T, Rate>) {
    return fmt::format("\"{}\"", to_text(value));
  } else if constexpr (std::is_same_v<T, double>) {
    // Write the shortest decimal that reads back as the same double. A TOML float needs a point or an exponent.
    const std::string text = fmt::format("{}", value);
    return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  } else {
    return fmt::format("{}", value);
  }
}

std::string phase_toml(const Phase& phase) {
  if (phase.kind == Phase::Kind::compute) return fmt::format("{{ compute = \"{}\" }}", to_text(phase.compute));
  std::string text = fmt::format("{{ communicate = \"{}\"", bytes_to_text(phase.bytes));
  if (!phase.rate.is_zero()) text += fmt::format(", rate = \"{}\"", to_text(phase.rate));
  if (phase.overlap) text += ", overlap = true";
  return text + " }";
}

constexpr Nanos kLatest(std::int64_t{1} << 62);  // 146 years, so that sums stay in range

Rate bounded(const Job& job, Rate link) { return job.rate.is_zero() ? link : std::min(link, job.rate); }

// Computes an iteration without other traffic on the link. Calls `each` for every transfer. Returns the length of the
// iteration.
template <typename Each>
Nanos walk(const std::vector<Phase>& phases, Rate link, Each each) {
  Nanos now;
  Nanos link_free;
  for (const Phase& phase : phases) {
    if (phase.kind == Phase::Kind::compute) {
      now = std::min(now + phase.compute, kLatest);
      continue;
    }
    const Rate rate = phase.rate.is_zero() ? link : std::min(link, phase.rate);
    const Nanos from = std::max(now, link_free);
    link_free = std::min(from + rate.time_for(phase.bytes), kLatest);
    each(Transfer{from, link_free, rate});
    if (!phase.overlap) now = link_free;
  }
  return std::max(now, link_free);
}

}  // namespace

std::string rounded(Bytes bytes) {
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  constexpr std::array<std::string_view, 6> units{"B", "kB", "MB", "GB", "TB", "PB"};
  for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 3, units[unit]);
}

IdealIteration ideal_iteration(const Job& job, Rate link) { return ideal_iteration(job.phases, bounded(job, link)); }

IdealIteration ideal_iteration(const std::vector<Phase>& phases, Rate link) {
  Nanos sending;
  const Nanos length = walk(phases, link, [&](const Transfer& transfer) { sending += transfer.to - transfer.from; });
  return {length, sending};
}

std::vector<Transfer> ideal_transfers(const Job& job, Rate link) {
  return ideal_transfers(job.phases, bounded(job, link));
}

std::vector<Transfer> ideal_transfers(const std::vector<Phase>& phases, Rate link) {
  std::vector<Transfer> result;
  walk(phases, link, [&](const Transfer& transfer) {
    if (!result.empty() && result.back().to == transfer.from && result.back().rate == transfer.rate)
      result.back().to = transfer.to;
    else
      result.push_back(transfer);
  });
  return result;
}

std::string to_toml(const Job& job) {
  std::string text = fmt::format("[[job]]\nname = \"{}\"\n", escaped(job.name));
  for_each_field<Job>([&](const auto& field) {
    if constexpr (kIsFileKey<decltype(field)>)
      if (differs(job.*field.member, Job().*field.member))
        text += fmt::format("{} = {}\n", field.name, value_toml(job.*field.member));
  });
  if (!job.cc.empty()) text += fmt::format("cc = \"{}\"\n", escaped(job.cc));
  text += "phases = [\n";
  for (const Phase& phase : job.phases) {
    text += "  " + phase_toml(phase) + ",";
    if (!phase.label.empty()) text += "  # " + as_comment(phase.label);
    text += "\n";
  }
  return text + "]\n";
}

}  // namespace mltcp::workload
