// Descriptions of counters and gauges in lists of fields (base/fields.h), for snapshots of running processes, for
// Prometheus and for documents.
#pragma once

#include <string_view>
#include <type_traits>

#include "mltcp/base/fields.h"
#include "mltcp/base/units.h"

namespace mltcp {

struct Metric {
  /// Last part of the name in Prometheus, which is "mltcp_FAMILY_NAME". Contains the base unit, and ends in _total for
  /// a counter. Null if the metric is not exported.
  const char* name = nullptr;
  const char* help = nullptr;   ///< description of one line
  const char* shown = nullptr;  ///< name in snapshots of running processes; null if the field's own name is shown
};

constexpr bool is_counter(std::string_view name) { return name.ends_with("_total"); }
template <typename Entry>
inline constexpr bool kIsMetric = std::is_same_v<decltype(std::remove_cvref_t<Entry>::about), Metric>;

/// Adds each field of `from` to the same field of `to`. Fields of type Nanos are round-trip times, which are not added:
/// `to` gets the maximum of both.
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
