// Conversion of snapshots to and from JSON (see snapshot.h).
#include "mltcp/endpoint/live/snapshot.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "mltcp/base/error.h"
#include "mltcp/base/json.h"
#include "mltcp/base/text.h"
#include "mltcp/endpoint/live/snapshot_fields.h"

namespace mltcp::live {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "mltcp.live/1";

template <typename Entry>
const char* shown_name(const Entry& entry) {
  if constexpr (kIsMetric<Entry>)
    if (entry.about.shown != nullptr) return entry.about.shown;
  return entry.name;
}

/// Writes a struct as a JSON object. The metrics of a nested struct become members of the same object.
template <bool only_metrics = false, HasFields T>
void write_into(Json& json, const T& value) {
  for_each_field<T>([&](const auto& entry) {
    const auto& member = value.*(entry.member);
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (only_metrics && !kIsMetric<decltype(entry)>) {
      return;
    } else if constexpr (HasFields<Member>) {
      write_into<true>(json, member);
    } else if constexpr (std::is_same_v<Member, Nanos>) {
      json[shown_name(entry)] = member.seconds();
    } else if constexpr (std::is_same_v<Member, Rate>) {
      json[shown_name(entry)] = static_cast<double>(member.bits_per_second);
    } else if constexpr (std::is_class_v<Member> && !std::is_same_v<Member, std::string>) {
      Json& list = json[shown_name(entry)] = Json::array();
      for (const auto& row : member) write_into(list.emplace_back(Json::object()), row);
    } else {
      json[shown_name(entry)] = member;
    }
  });
}

/// Returns the number, limited to the range from 0 to `limit`.
double bounded(const Json& json, double limit) { return std::clamp(json.get<double>(), 0.0, limit); }

template <bool only_metrics = false, HasFields T>
void read_into(T& value, const Json& json);

template <typename Row>
void read_into(std::vector<Row>& rows, const Json& json) {
  for (const Json& row : json.get_ref<const Json::array_t&>()) {
    if (rows.size() == kMaxRows) break;
    read_into(rows.emplace_back(), row);
  }
}

template <bool only_metrics, HasFields T>
void read_into(T& value, const Json& json) {
  for_each_field<T>([&](const auto& entry) {
    auto& member = value.*(entry.member);
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (only_metrics && !kIsMetric<decltype(entry)>) {
      return;
    } else if constexpr (HasFields<Member>) {
      read_into<true>(member, json);
    } else {
      const auto found = json.find(shown_name(entry));
      // a process of another version may lack this counter
      if (kIsMetric<decltype(entry)> && found == json.end()) return;
      const Json& from = json.at(shown_name(entry));
      if constexpr (std::is_same_v<Member, std::string>)
        // the text comes from another process and is printed on a terminal
        member = one_line(from.get_ref<const std::string&>());
      else if constexpr (std::is_same_v<Member, Nanos>)
        member = Nanos::from_seconds(bounded(from, 9e9));
      else if constexpr (std::is_same_v<Member, Rate>)
        member = Rate(static_cast<std::uint64_t>(bounded(from, 1e16)));
      else if constexpr (std::is_class_v<Member>)
        read_into(member, from);
      else
        member = from.get<Member>();
    }
  });
}

}  // namespace

std::string to_json(const Snapshot& snapshot) {
  Json json{{"schema", kSchema}};
  write_into(json, snapshot);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Snapshot snapshot_from(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("schema") != kSchema)
      throw InputError("from another version of mltcp; use the same version as that process");
    Snapshot snapshot;
    read_into(snapshot, json);
    return snapshot;
  } catch (const Json::exception&) {
    throw InputError("not a snapshot of an MLTCP process; use the same version as that process");
  }
}

}  // namespace mltcp::live
