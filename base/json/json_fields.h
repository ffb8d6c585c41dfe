// Converts structs to and from JSON objects, by their lists of fields (base/fields.h) with the options of in_json.h.
// Not installed.
#pragma once

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "mltcp/base/fields.h"
#include "mltcp/base/json/in_json.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/base/json/json_values.h"
#include "mltcp/base/units.h"

namespace mltcp {
namespace internal {

/// Returns whether `value` is neither empty nor the default of its type. A struct with a list of fields counts as set.
template <typename M>
bool is_set(const M& value) {
  if constexpr (requires { value.empty(); })
    return !value.empty();
  else if constexpr (kIsMaybe<M>)
    return value.has_value();
  else if constexpr (HasFields<M>)
    return true;
  else
    return value != M();
}

template <typename T, typename M>
bool is_written(const T& /*value*/, const Field<T, M, Plain>& /*field*/) {
  return true;
}
template <typename T, typename M>
bool is_written(const T& value, const Field<T, M, InJson>& field) {
  return field.about.presence != Presence::if_set || is_set(value.*field.member);
}
template <typename T, typename M, typename Other>
bool is_written(const T& value, const Field<T, M, WrittenWith<T, Other>>& field) {
  return is_set(value.*field.about.other);
}
template <typename T, typename M>
bool is_written(const T& value, const Field<T, M, WrittenUnless<T>>& field) {
  return !(value.*field.about.other);
}

inline constexpr bool may_be_missing(const Plain& /*about*/) { return false; }
inline constexpr bool may_be_missing(const InJson& about) { return about.presence != Presence::required; }
template <typename About>
constexpr bool may_be_missing(const About& /*about*/) {
  return !requires { &About::read; };
}

/// Returns whether null stands for an empty optional. If not, the field of an empty optional is missing.
inline constexpr bool may_be_null(const Plain& /*about*/) { return true; }
inline constexpr bool may_be_null(const InJson& about) { return about.presence != Presence::if_set; }

template <typename About>
inline constexpr bool kIsSpread = std::is_same_v<std::remove_cvref_t<About>, Spread>;

template <HasFields T>
void write_fields(const T& value, nlohmann::ordered_json& json);

}  // namespace internal

/// Returns `value` as JSON. The fields of a struct are in the order of their list.
template <typename M>
nlohmann::ordered_json written(const M& value) {
  using Json = nlohmann::ordered_json;
  if constexpr (std::is_same_v<M, Nanos>) {
    return value.count;
  } else if constexpr (std::is_same_v<M, Rate>) {
    return value.bits_per_second;
  } else if constexpr (kIsMaybe<M>) {
    return value ? written(*value) : Json();
  } else if constexpr (kIsList<M>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(written(element));
    return list;
  } else if constexpr (HasFields<M>) {
    Json json = Json::object();
    internal::write_fields(value, json);
    return json;
  } else {
    return value;
  }
}

template <HasFields T>
void internal::write_fields(const T& value, nlohmann::ordered_json& json) {
  for_each_field<T>([&](const auto& field) {
    const auto& member = value.*field.member;
    if constexpr (kIsSpread<decltype(field.about)>) {
      if constexpr (HasFields<std::remove_cvref_t<decltype(member)>>)
        write_fields(member, json);
      else if (member)
        write_fields(*member, json);
    } else if constexpr (requires { field.about.written(member); }) {
      json[field.name] = written(field.about.written(member));
    } else {
      if (is_written(value, field)) json[field.name] = written(member);
    }
  });
}

/// Called after the fields of `value` were read. Overload it for a struct to check the consistency of fields and to
/// derive missing fields.
template <typename T>
void complete(const JsonObject& /*json*/, T& /*value*/) {}

template <HasFields T>
void read(const JsonObject& json, T& value);

/// Reads the field `key` of `json` into `value`. All functions read() throw InputError if a field is invalid.
template <typename M, typename About>
void read(const JsonObject& json, const char* key, const About& about, M& value) {
  if constexpr (requires { about.read(json, key, value); }) {
    about.read(json, key, value);
  } else if constexpr (kIsMaybe<M>) {
    if (!(internal::may_be_null(about) && json.is_null(key))) read(json, key, about, value.emplace());
  } else if constexpr (std::is_same_v<M, std::string>) {
    value = json.text(key);
  } else if constexpr (std::is_same_v<M, bool>) {
    value = json.truth(key);
  } else if constexpr (std::is_same_v<M, double>) {
    static_assert(std::is_same_v<About, InJson>, "a number that isn't whole has bounds");
    value = json.real(key, about.max, about.min);
  } else if constexpr (std::is_same_v<M, std::uint32_t>) {
    value = json.number(key);
  } else if constexpr (std::is_same_v<M, std::uint64_t>) {
    value = json.whole(key);
  } else if constexpr (std::is_same_v<M, std::int64_t>) {
    value = static_cast<M>(json.whole(key, std::numeric_limits<M>::max()));
  } else if constexpr (std::is_same_v<M, Nanos>) {
    value = json.nanos(key);
  } else if constexpr (std::is_same_v<M, Rate>) {
    value = Rate(json.whole(key));
  } else if constexpr (std::is_same_v<M, std::vector<std::string>>) {
    value = json.texts(key);
  } else if constexpr (std::is_same_v<M, std::vector<Nanos>>) {
    value = json.nanos_list(key);
  } else if constexpr (std::is_same_v<M, std::vector<std::uint64_t>>) {
    value = json.whole_list(key);
  } else if constexpr (kIsList<M>) {
    for (const JsonObject& element : json.objects(key)) read(element, value.emplace_back());
  } else if constexpr (HasFields<M>) {
    read(json.object(key), value);
  } else {
    static_assert(std::is_same_v<M, std::map<std::string, typename M::mapped_type>>);
    const JsonObject entries = json.object(key);
    for (const std::string& name : entries.keys()) read(entries, name.c_str(), about, value[name]);
  }
}

template <HasFields T>
void read(const JsonObject& json, T& value) {
  for_each_field<T>([&](const auto& field) {
    auto& member = value.*field.member;
    constexpr bool spread = internal::kIsSpread<decltype(field.about)>;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field.about)>, WrittenOnly>) {
      return;
    } else if constexpr (spread && HasFields<std::remove_cvref_t<decltype(member)>>) {
      read(json, member);
    } else if (json.has(field.name) || !internal::may_be_missing(field.about)) {
      if constexpr (spread)
        read(json, member.emplace());
      else
        read(json, field.name, field.about, member);
    }
  });
  complete(json, value);
}

}  // namespace mltcp
