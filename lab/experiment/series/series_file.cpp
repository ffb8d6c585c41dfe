// Series as JSON and CSV (see series_file.h).
#include "mltcp/lab/experiment/series/series_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "mltcp/base/csv.h"
#include "mltcp/base/file.h"
#include "mltcp/base/json/json_object.h"
#include "mltcp/base/json/provenance.h"
#include "mltcp/base/text.h"
#include "mltcp/lab/experiment/series/internal/quoted.h"
#include "mltcp/lab/experiment/series/series_fields.h"

namespace mltcp::experiment {
namespace {

constexpr TextFile kSeriesFile{"a file that `mltcp run --series FILE.json` wrote", std::size_t{1} << 30};

using Text = std::string;

void append(Text& out, std::string_view text) { out.append(text); }

/// Writes the shortest text that identifies the number. A real number always has a point or an exponent, so that
/// readers that guess types recognise a column of real numbers. Uses to_chars because it is fast: files have hundreds
/// of thousands of numbers.
template <typename M>
void append_number(Text& out, const M& value) {
  if constexpr (std::is_same_v<M, Nanos>) {
    append_number(out, value.count);
  } else if constexpr (std::is_same_v<M, Rate>) {
    append_number(out, value.bits_per_second);
  } else {
    std::array<char, 32> text;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled up to `end`
    char* const last = text.data() + text.size();
    char* end = nullptr;
    if constexpr (std::is_floating_point_v<M>) {
      constexpr double min_fixed = 1e-4;
      constexpr double max_fixed = 1e15;
      const double size = std::abs(static_cast<double>(value));
      const bool is_fixed = size == 0 || (size >= min_fixed && size < max_fixed);
      end = std::to_chars(text.data(), last, value, is_fixed ? std::chars_format::fixed : std::chars_format::scientific)
                .ptr;
      if (is_fixed && std::find(text.data(), end, '.') == end) {
        *end++ = '.';
        *end++ = '0';
      }
    } else {
      end = std::to_chars(text.data(), last, value).ptr;
    }
    out.append(text.data(), end);
  }
}

std::uint64_t whole_rate(double bits_per_second) { return static_cast<std::uint64_t>(bits_per_second + 0.5); }

// ---- JSON ----

template <typename M>
void append_member(Text& out, const char* name, const M& value) {
  out += fmt::format("\"{}\": ", name);
  if constexpr (std::is_same_v<M, std::string>)
    append(out, quoted_in_json(value));
  else
    append_number(out, value);
  append(out, ", ");
}

/// Writes the columns of one connection or link.
template <typename State>
void append_columns(Text& out, const RunSeries& run, const std::vector<State>& states, std::size_t entities,
                    std::size_t number) {
  bool first = true;
  for_each_field<State>([&](const auto& field) {
    if (field.about.of_packets && !run.packets) return;
    out += fmt::format("{}\n      \"{}\": [", first ? "" : ",", field.name);
    first = false;
    for (std::size_t row = 0; row < run.times.size(); ++row) {
      if (row > 0) append(out, ",");
      append_number(out, states[row * entities + number].*field.member);
    }
    append(out, "]");
  });
}

template <typename Key, typename State>
void append_entities(Text& out, const char* name, const RunSeries& run, const std::vector<Key>& keys,
                     const std::vector<State>& states) {
  out += fmt::format(",\n    \"{}\": [", name);
  for (std::size_t number = 0; number < keys.size(); ++number) {
    append(out, number > 0 ? ",\n     {" : "\n     {");
    for_each_field<Key>([&](const auto& field) { append_member(out, field.name, keys[number].*field.member); });
    append_columns(out, run, states, keys.size(), number);
    append(out, "}");
  }
  append(out, "]");
}

template <typename State, typename M>
void read_column(const JsonObject& json, const char* name, M State::*member, std::vector<State>& states,
                 std::size_t entities, std::size_t number, std::size_t rows) {
  const auto store = [&](const auto& values, const auto& converted) {
    if (values.size() != rows)
      json.fail(json.path_of(name), fmt::format("has {} values for {} times", values.size(), rows));
    for (std::size_t row = 0; row < rows; ++row) states[row * entities + number].*member = converted(values[row]);
  };
  if constexpr (std::is_same_v<M, Nanos>)
    store(json.nanos_list(name), [](Nanos value) { return value; });
  else if constexpr (std::is_same_v<M, Rate>)
    store(json.whole_list(name), [](std::uint64_t value) { return Rate(value); });
  else if constexpr (std::is_floating_point_v<M> || std::is_signed_v<M>)
    store(json.reals(name), [](double value) { return static_cast<M>(value); });
  else
    store(json.whole_list(name), [](std::uint64_t value) { return static_cast<M>(value); });
}

template <typename Key, typename State>
void read_entities(const JsonObject& run, const char* name, bool packets, std::size_t rows, std::vector<Key>& keys,
                   std::vector<State>& states) {
  const std::vector<JsonObject> entries = run.objects(name);
  // Both connections and links have column sent_bytes. The length of this column is checked before memory is allocated,
  // since a damaged file may not have all rows.
  for (const JsonObject& entry : entries)
    if (const std::size_t length = entry.length("sent_bytes"); length != rows)
      entry.fail(entry.path_of("sent_bytes"), fmt::format("has {} values for {} times", length, rows));
  states.resize(entries.size() * rows);
  for (std::size_t number = 0; number < entries.size(); ++number) {
    const JsonObject& entry = entries[number];
    Key& key = keys.emplace_back();
    for_each_field<Key>([&](const auto& field) {
      auto& value = key.*field.member;
      using M = std::remove_reference_t<decltype(value)>;
      if constexpr (std::is_same_v<M, std::string>)
        value = entry.text(field.name);
      else if constexpr (std::is_same_v<M, Rate>)
        value = Rate(entry.whole(field.name));
      else
        value = entry.number(field.name);
    });
    for_each_field<State>([&](const auto& field) {
      if (!field.about.of_packets || packets)
        read_column(entry, field.name, field.member, states, entries.size(), number, rows);
    });
  }
}

RunSeries run_from(const JsonObject& json) {
  RunSeries run;
  run.policy = json.text("policy");
  run.cc = json.text("cc");
  run.datapath = json.text("datapath");
  run.seed = json.whole("seed");
  run.duration = json.nanos("duration_ns");
  run.interval = json.nanos("interval_ns");
  run.sampled_every = json.nanos("sampled_every_ns");
  run.packets = json.truth("packets");
  run.times = json.nanos_list("time_ns");
  if (!std::ranges::is_sorted(run.times, std::less_equal<>())) json.fail(json.path_of("time_ns"), "is not ascending");
  read_entities(json, "connections", run.packets, run.times.size(), run.connections, run.connection_states);
  read_entities(json, "links", run.packets, run.times.size(), run.links, run.link_states);
  return run;
}

// ---- CSV ----

template <typename Key, typename State>
std::string csv_of(const SeriesFile& series, std::vector<Key> RunSeries::*keys,
                   std::vector<State> RunSeries::*all_states) {
  Text out;
  append(out, "policy,seed,time_ns");
  for_each_field<Key>([&](const auto& field) { out += fmt::format(",{}", field.name); });
  append(out, ",rate_bps");
  for_each_field<State>([&](const auto& field) { out += fmt::format(",{}", field.name); });
  append(out, "\n");
  for (const RunSeries& run : series.runs) {
    const std::vector<Key>& entities = run.*keys;
    const std::vector<State>& states = run.*all_states;
    // These cells are the same in all rows of a connection or link.
    std::vector<std::string> names;
    for (const Key& key : entities) {
      Text name;
      for_each_field<Key>([&](const auto& field) {
        append(name, ",");
        const auto& value = key.*field.member;
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string>)
          append(name, csv_field(value));
        else
          append_number(name, value);
      });
      names.push_back(name);
    }
    Text lead;
    append(lead, csv_field(run.policy));
    lead += fmt::format(",{},", run.seed);
    for (std::size_t row = 0; row < run.times.size(); ++row)
      for (std::size_t number = 0; number < entities.size(); ++number) {
        out.append(lead);
        append_number(out, run.times[row]);
        append(out, names[number]);
        out += fmt::format(",{}", whole_rate(rate_in_row(states, entities.size(), number, run.times, row)));
        for_each_field<State>([&](const auto& field) {
          append(out, ",");
          if (!field.about.of_packets || run.packets)
            append_number(out, states[row * entities.size() + number].*field.member);
        });
        append(out, "\n");
      }
  }
  return out;
}

}  // namespace

std::string series_json(const SeriesFile& series) {
  Text out;
  out += fmt::format("{{\"schema\": \"{}\", \"experiment\": {},\n \"runs\": [", kSeriesSchema,
                     quoted_in_json(series.experiment));
  for (std::size_t r = 0; r < series.runs.size(); ++r) {
    const RunSeries& run = series.runs[r];
    append(out, r > 0 ? ",\n   {" : "\n   {");
    append_member(out, "policy", run.policy);
    append_member(out, "cc", run.cc);
    append_member(out, "datapath", run.datapath);
    append_member(out, "seed", run.seed);
    append_member(out, "duration_ns", run.duration);
    append_member(out, "interval_ns", run.interval);
    append_member(out, "sampled_every_ns", run.sampled_every);
    out += fmt::format("\"packets\": {},\n    \"time_ns\": [", run.packets);
    for (std::size_t row = 0; row < run.times.size(); ++row) {
      if (row > 0) append(out, ",");
      append_number(out, run.times[row]);
    }
    append(out, "]");
    append_entities(out, "connections", run, run.connections, run.connection_states);
    append_entities(out, "links", run, run.links, run.link_states);
    append(out, "}");
  }
  append(out, "]");
  if (series.provenance)
    out += fmt::format(",\n \"provenance\": {}",
                       to_json(*series.provenance).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  append(out, "}\n");
  return out;
}

SeriesFile parse_series(std::string_view text, const std::string& name) {
  const std::string cure = "give a file that `mltcp run --series FILE.json` wrote, or write it again";
  const nlohmann::json json = parsed(text, name, cure);
  const JsonObject root(json, name, cure, "");
  if (root.text("schema") != kSeriesSchema) root.fail("schema", fmt::format("is not \"{}\"", kSeriesSchema));
  SeriesFile series;
  series.experiment = root.text("experiment");
  for (const JsonObject& run : root.objects("runs")) series.runs.push_back(run_from(run));
  series.provenance = provenance_of(root);
  return series;
}

SeriesFile read_series(const std::filesystem::path& path) {
  const std::string name = path.string();
  return parse_series(read_text_file(path, one_line(name), kSeriesFile), name);
}

bool belongs(const RunSeries& series, const Run& run) {
  if (series.policy != run.policy || series.cc != run.cc || series.datapath != run.datapath ||
      series.seed != run.seed || series.duration != run.duration)
    return false;
  return std::ranges::all_of(series.connections, [&](const SeriesConnection& connection) {
    return std::ranges::any_of(run.jobs, [&](const JobResult& job) { return job.name == connection.job; });
  });
}

std::string connections_csv(const SeriesFile& series) {
  return csv_of(series, &RunSeries::connections, &RunSeries::connection_states);
}
std::string links_csv(const SeriesFile& series) { return csv_of(series, &RunSeries::links, &RunSeries::link_states); }

}  // namespace mltcp::experiment
