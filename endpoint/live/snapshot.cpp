// Snapshots as JSON (see snapshot.h).
#include "mltcp/endpoint/live/snapshot.h"

#include <fmt/format.h>

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

template <HasFields T>
Json object_of(const T& value) {
  Json json = Json::object();
  for_each_field<T>([&](const auto& entry) {
    const auto& member = value.*(entry.member);
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_class_v<Member> && !std::is_same_v<Member, std::string>) {
      Json& list = json[entry.name] = Json::array();
      for (const auto& row : member) list.push_back(object_of(row));
    } else {
      json[entry.name] = member;
    }
  });
  return json;
}

template <HasFields T>
void read_into(T& value, const Json& json);

template <typename Row>
void read_into(std::vector<Row>& rows, const Json& json) {
  for (const Json& row : json.get_ref<const Json::array_t&>()) {
    if (rows.size() == kMostRows) break;
    read_into(rows.emplace_back(), row);
  }
}

template <HasFields T>
void read_into(T& value, const Json& json) {
  for_each_field<T>([&](const auto& entry) {
    auto& member = value.*(entry.member);
    using Member = std::remove_cvref_t<decltype(member)>;
    const Json& from = json.at(entry.name);
    if constexpr (std::is_same_v<Member, std::string>) {
      // Somebody else wrote it, and it goes to a terminal.
      member = one_line(from.get_ref<const std::string&>());
    } else if constexpr (std::is_class_v<Member>) {
      read_into(member, from);
    } else {
      member = from.get<Member>();
    }
  });
}

}  // namespace

std::string to_json(const Snapshot& snapshot) {
  Json json{{"schema", kSchema}};
  json.update(object_of(snapshot));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Snapshot snapshot_from(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("schema") != kSchema) throw InputError("of another version of mltcp; use the one that runs there");
    Snapshot snapshot;
    read_into(snapshot, json);
    return snapshot;
  } catch (const Json::exception&) {
    throw InputError("no snapshot of an MLTCP process; use the mltcp that runs there");
  }
}

}  // namespace mltcp::live
