// See recorded.h.
#include "mltcp/lab/workload/traces/recorded.h"

#include <array>
#include <cctype>
#include <charconv>
#include <string>
#include <utility>

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string letters(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::uint32_t number(std::string_view digits) {
  constexpr std::size_t max = 6;
  std::uint32_t value = kUnknownRank;
  if (digits.empty() || digits.size() > max) return kUnknownRank;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

}  // namespace

std::uint32_t rank_in_name(std::string_view name) {
  name = name.substr(name.find_last_of("/:") + 1);
  const std::string lower = [&] {
    std::string text(name);
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  }();
  for (std::size_t at = lower.rfind("rank"); at != std::string::npos;) {
    std::size_t from = at + 4;
    while (from < lower.size() && (lower[from] == '_' || lower[from] == '-' || lower[from] == '.')) ++from;
    std::size_t to = from;
    while (to < lower.size() && is_digit(lower[to])) ++to;
    if (to > from) return number(std::string_view(lower).substr(from, to - from));
    at = at == 0 ? std::string::npos : lower.rfind("rank", at - 1);
  }
  std::string_view stem = lower;
  bool chakra = false;
  while (true) {
    const std::size_t dot = stem.rfind('.');
    if (dot == std::string_view::npos) break;
    const std::string_view ending = stem.substr(dot + 1);
    if (ending != "gz" && ending != "zst" && ending != "xz" && ending != "bz2" && ending != "et" && ending != "json" &&
        ending != "jsonl" && ending != "txt" && ending != "log")
      break;
    chakra = chakra || ending == "et";
    stem = stem.substr(0, dot);
  }
  std::size_t from = stem.size();
  while (from > 0 && is_digit(stem[from - 1])) --from;
  if (from == stem.size() || from == 0) return kUnknownRank;
  const char before = stem[from - 1];
  if (before != '.' && before != '_' && before != '-') return kUnknownRank;
  // In a name like "0.0.4", the last number is part of a version.
  if (!chakra && before == '.' && from > 1 && is_digit(stem[from - 2])) return kUnknownRank;
  return number(stem.substr(from));
}

std::optional<NamedCollective> collective_named(std::string_view name) {
  static constexpr const char* kBackwards = "a broadcast, backwards";
  static constexpr const char* kAsExchange = "an all-to-all, by the busiest rank";
  // The first prefix in the table that matches counts, so longer prefixes come first.
  static constexpr std::array<std::pair<std::string_view, NamedCollective>, 13> kKnown{{
      {"allreduce", {Collective::all_reduce, false, nullptr}},
      {"allgather", {Collective::all_gather, false, nullptr}},
      {"gatherallbase", {Collective::all_gather, false, nullptr}},
      {"reducescatter", {Collective::reduce_scatter, false, nullptr}},
      {"reducescattertensor", {Collective::reduce_scatter, false, nullptr}},
      {"alltoall", {Collective::all_to_all, false, nullptr}},
      {"broadcast", {Collective::broadcast, false, nullptr}},
      {"bcast", {Collective::broadcast, false, nullptr}},
      {"barrier", {Collective::all_reduce, true, nullptr}},
      {"monitoredbarrier", {Collective::all_reduce, true, nullptr}},
      {"reduce", {Collective::broadcast, false, kBackwards}},
      {"gather", {Collective::all_to_all, false, kAsExchange}},
      {"scatter", {Collective::all_to_all, false, kAsExchange}},
  }};
  const std::string plain = letters(name);
  for (const auto& [beginning, what] : kKnown)
    if (plain.starts_with(beginning)) return what;
  return std::nullopt;
}

std::optional<Bytes> element_bytes(std::string_view type) {
  if (type.starts_with("Tensor(") && type.ends_with(')')) type = type.substr(7, type.size() - 8);
  if (const std::size_t colon = type.rfind(':'); colon != std::string_view::npos) type = type.substr(colon + 1);
  static constexpr std::array<std::pair<std::string_view, Bytes>, 35> kSizes{{
      {"float", 4},
      {"float32", 4},
      {"double", 8},
      {"float64", 8},
      {"half", 2},
      {"float16", 2},
      {"bfloat16", 2},
      {"long", 8},
      {"longint", 8},
      {"int64", 8},
      {"int", 4},
      {"int32", 4},
      {"short", 2},
      {"shortint", 2},
      {"int16", 2},
      {"char", 1},
      {"signedchar", 1},
      {"int8", 1},
      {"unsignedchar", 1},
      {"byte", 1},
      {"uint8", 1},
      {"bool", 1},
      {"uint16", 2},
      {"uint32", 4},
      {"uint64", 8},
      {"unsignedint", 4},
      {"unsignedlong", 8},
      {"unsignedshort", 2},
      {"float8e4m3fn", 1},
      {"float8e5m2", 1},
      {"float8e4m3fnuz", 1},
      {"float8e5m2fnuz", 1},
      {"complexfloat", 8},
      {"complexdouble", 16},
      {"complexhalf", 4},
  }};
  const std::string plain = letters(type);
  for (const auto& [name, bytes] : kSizes)
    if (plain == name) return bytes;
  return std::nullopt;
}

}  // namespace mltcp::workload
