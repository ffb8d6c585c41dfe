// What lists of fields (base/fields.h) tell of counters and gauges, for processes that show them while they run, for
// Prometheus and for documents.
#pragma once

#include <string_view>
#include <type_traits>

#include "mltcp/base/fields.h"
#include "mltcp/base/units.h"

namespace mltcp {

struct Metric {
  /// At Prometheus, after "mltcp_" and the family: in base units, and a counter ends in _total. Null: not collected.
  const char* name = nullptr;
  const char* help = nullptr;   ///< one line
  const char* shown = nullptr;  ///< its name in snapshots of running processes; null: the field's own
};

constexpr bool is_counter(std::string_view name) { return name.ends_with("_total"); }
template <typename Entry>
inline constexpr bool kIsMetric = std::is_same_v<decltype(std::remove_cvref_t<Entry>::about), Metric>;

/// Adds each field of `from`. Of times, which are round trips, `to` has the longest.
template <HasFields T>
constexpr void add_up(T& to, const T& from) {
  for_each_field<T>([&](const auto& entry) {
    auto& sum = to.*entry.member;
    const auto& value = from.*entry.member;
    using Member = std::remove_cvref_t<decltype(sum)>;
    if constexpr (std::is_same_v<Member, Nanos>)
      sum = sum < value ? value : sum;
    else if constexpr (std::is_same_v<Member, Rate>)
      sum = Rate(sum.bits_per_second + value.bits_per_second);
    else
      sum += value;
  });
}

}  // namespace mltcp
