// Detects the kind of a file (see file_kind.h).
#include "mltcp/lab/experiment/files/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/error.h"
#include "mltcp/base/file_format.h"
#include "mltcp/base/text.h"
#include "mltcp/base/text_parts.h"
#include "mltcp/lab/experiment/files/toml.h"
#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::experiment {
namespace {

// Describes each kind of file, with the command or key that reads it. In a cure, {} stands for the file's name.
struct Entry {
  FileKind kind;
  std::string_view what;
  std::string_view cure;
};
constexpr std::size_t kBeginning = std::size_t{64} << 10;  // number of bytes used to recognise formats
constexpr std::string_view kReport = "to read it, run mltcp report {}";
constexpr std::string_view kNoCommand = "no command reads it; give another file";
constexpr std::array kEntries{
    Entry{FileKind::experiment, "an experiment file",
          "to run it, use mltcp run {} --json results.json, or give it to mltcp schedule, sweep, gen or testbed"},
    Entry{FileKind::sweep, "a sweep file", "to run it, use mltcp sweep {} --json sweep.json"},
    Entry{FileKind::cluster, "a cluster file", "to run it, use mltcp cluster {} --json cluster.json"},
    Entry{FileKind::ethernet_switch, "a switch file", "to use it, run mltcp switch --file {}"},
    Entry{FileKind::results, "a file of results", kReport},
    Entry{FileKind::sweep_results, "the results of a sweep", kReport},
    Entry{FileKind::cluster_results, "the results of a cluster", kReport},
    Entry{FileKind::schedule, "a schedule", kReport},
    Entry{FileKind::plan, "a plan", "give it to mltcp run or gen with --plan"},
    Entry{FileKind::doctor_results, "a report of mltcp doctor", kNoCommand},
    Entry{FileKind::switch_results, "a report of mltcp switch", kNoCommand},
    Entry{FileKind::trace, "a trace",
          "to read it, use mltcp inspect {}, mltcp replay, or the key trace of a job in an experiment file"},
    Entry{FileKind::profile, "a demand profile",
          "to read it, use mltcp inspect {}, or the key profile of a job in an experiment file"},
    Entry{FileKind::links, "a file of links",
          "name it with the key file of [topology] in an experiment or cluster file"},
    Entry{FileKind::slurm_topology, "Slurm's description of a network",
          "write a TOML file that has [topology] with kind = \"slurm\", file = \"{}\" and the rates of links"},
    Entry{FileKind::arrivals, "a file of arrivals", "name it with the key file of [arrivals] in a cluster file"},
    Entry{FileKind::job_table, "a table of a cluster's jobs",
          "name it with the key file of [arrivals] in a cluster file"},
};

struct Schema {
  FileKind kind;
  std::string_view begin;  // beginning of the value of "schema"
};
constexpr std::array kSchemas{
    Schema{FileKind::results, "mltcp.results/"},
    Schema{FileKind::sweep_results, "mltcp.sweep/"},
    Schema{FileKind::cluster_results, "mltcp.cluster/"},
    Schema{FileKind::schedule, "mltcp.schedule/"},
    Schema{FileKind::plan, "mltcp.plan/"},
    Schema{FileKind::doctor_results, "mltcp.doctor/"},
    Schema{FileKind::switch_results, "mltcp.switch/"},
};

// Top-level keys that occur in files of only one kind.
struct Keys {
  FileKind kind;
  std::vector<std::string_view> keys;
};
const std::vector<Keys>& keys_of_kinds() {
  static const std::vector<Keys> all{
      {FileKind::experiment, {"job", "bottleneck"}},
      {FileKind::sweep, {"experiment", "vary", "case"}},
      {FileKind::cluster, {"arrivals", "type"}},
      {FileKind::ethernet_switch, {"port"}},
  };
  return all;
}

// Reads only the schema of the outermost object and stores no other values, so that the use of memory does not depend
// on the file's size.
class OuterKeys : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::optional<std::string> schema;

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(number_integer_t) override { return other(); }
  bool number_unsigned(number_unsigned_t) override { return other(); }
  bool number_float(number_float_t, const string_t&) override { return other(); }
  bool binary(binary_t&) override { return other(); }
  bool string(string_t& value) override {
    if (!at_schema_) return true;
    schema = value;
    return false;
  }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    at_schema_ = depth_ == 1 && name == "schema";
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool other() {
    at_schema_ = false;
    return true;
  }
  bool open() {
    ++depth_;
    return other();
  }
  bool close() {
    --depth_;
    return true;
  }

  std::size_t depth_ = 0;
  bool at_schema_ = false;
};

OuterKeys outer_keys(std::string_view text) {
  OuterKeys keys;
  nlohmann::json::sax_parse(text.begin(), text.end(), &keys);
  return keys;
}

std::optional<FileKind> kind_of_json(std::string_view text) {
  // Number of bytes to search; traces may be large and have no schema.
  constexpr std::size_t max = std::size_t{1} << 20;
  const std::optional<std::string> found = outer_keys(text.substr(0, max)).schema;
  for (const Schema& schema : kSchemas)
    if (found && found->starts_with(schema.begin)) return schema.kind;
  return std::nullopt;
}

// Returns the first line that is neither empty nor a comment.
std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    if (!line.empty() && line.front() != '#') return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return text;
}

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns = parts_of(line, ',');
  for (std::string_view& column : columns) column = trimmed(column);
  std::erase(columns, std::string_view());
  return columns;
}

// Returns whether `line` begins with one of `words`, which are in lower case. Ignores the case of `line`.
bool begins(std::string_view line, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    return line.size() >= word.size() && std::equal(word.begin(), word.end(), line.begin(), [](char a, char b) {
             return a == std::tolower(static_cast<unsigned char>(b));
           });
  });
}

// Returns whether JSON `text` is an array of jobs with attempts, as in the job table of Philly. Searches for this
// content because TOML can also begin with a bracket.
bool is_array_of_jobs(std::string_view text) {
  constexpr std::size_t looked_at = 1U << 16;
  text.remove_prefix(1);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.substr(0, looked_at).find("\"attempts\"") != std::string_view::npos;
}

std::optional<FileKind> kind_of_columns(std::string_view text) {
  const std::string_view line = first_line(text);
  if (begins(line, {"switchname", "blockname", "- topology:"})) return FileKind::slurm_topology;
  const std::vector<std::string_view> columns = columns_of(line);
  const auto has = [&](std::string_view column) { return std::ranges::find(columns, column) != columns.end(); };
  if (has("rate_bps")) return FileKind::profile;
  if (has("from") && has("to")) return FileKind::links;
  if (has("arrival") && has("job")) return FileKind::arrivals;
  if (has("gpu_num") && has("submit_time")) return FileKind::job_table;
  return std::nullopt;
}

// The beginning of the first file in a compressed file or archive, and the command that unpacks it.
struct Packed {
  std::string text;
  std::string_view command;
};

std::optional<Packed> unpacked(std::string_view text, const std::string& name) {
  using namespace std::literals;
  constexpr std::size_t max = std::size_t{16} << 20;
  if (is_text(text.substr(0, kBeginning))) return std::nullopt;
  struct Enough {};  // thrown to leave for_each_input_in() after the first file
  std::optional<Packed> found;
  try {
    workload::for_each_input_in(text, name, [&](workload::TraceInput& input) {
      found.emplace();
      found->command = input.name() == name ? "" : "tar -xf";
      for (const auto& [magic, command] : {std::pair("\x1f\x8b"sv, "gunzip -k"sv),
                                           {"\x28\xb5\x2f\xfd"sv, "unzstd"sv},
                                           {"\xfd"
                                            "7z"sv,
                                            "unxz -k"sv},
                                           {"BZh"sv, "bunzip2 -k"sv}})
        if (found->command.empty() && text.starts_with(magic)) found->command = command;
      found->text.resize(max);
      std::size_t size = 0;
      for (std::size_t read = 1; read > 0 && size < max; size += read)
        read = input.read(found->text.data() + size, max - size);
      found->text.resize(size);
      throw Enough();
    });
  } catch (const Enough&) {
  } catch (const InputError&) {
    return std::nullopt;  // the reader of the format reports the error
  }
  if (found && found->command.empty()) found.reset();  // neither compressed nor an archive
  return found;
}

std::optional<FileKind> kind_of_toml(std::string_view text) {
  std::optional<FileKind> kind;
  try {
    const toml::table root = parse_toml(text, "", "");
    for (const auto& [candidate, keys] : keys_of_kinds()) {
      if (std::ranges::none_of(keys, [&](std::string_view key) { return root.contains(key); })) continue;
      if (kind) return std::nullopt;  // the file has keys of two kinds
      kind = candidate;
    }
  } catch (const InputError&) {
    return std::nullopt;
  }
  return kind;
}

}  // namespace

std::optional<std::string> schema_of_json(std::string_view text) { return outer_keys(text).schema; }

std::optional<FileKind> kind_of(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  std::optional<FileKind> kind;
  if (text[first] == '{')
    kind = kind_of_json(text);
  else if (text[first] == '[' && is_array_of_jobs(text.substr(first)))
    kind = FileKind::job_table;
  else if (kind = kind_of_columns(text); !kind)
    kind = kind_of_toml(text);
  if (!kind && workload::format_of("", text.substr(0, kBeginning)) != nullptr) kind = FileKind::trace;
  return kind;
}

void refuse_known_kind(std::string_view text, const std::string& name, std::string_view wanted,
                       std::initializer_list<FileKind> readable) {
  const std::optional<Packed> packed = unpacked(text, name);
  const std::string_view held = packed ? packed->text : text;
  const auto kind = kind_of(held);
  const bool is_capture = packed && file_format(held).name.starts_with("a capture");
  const auto entry = std::ranges::find(kEntries, kind, &Entry::kind);
  // Commands can read compressed files only if they are traces.
  if (packed && kind != FileKind::trace && (kind || is_capture))
    throw InputError(one_line(fmt::format("{}: this is {}, compressed; unpack it: {} {}", name,
                                          kind ? entry->what : file_format(held).name, packed->command, name)));
  if (!kind || std::ranges::find(readable, *kind) != readable.end()) return;
  std::string what(entry->what);
  if (kind == FileKind::trace) what += fmt::format(" ({})", workload::format_of("", held.substr(0, kBeginning))->name);
  throw InputError(one_line(fmt::format("{}: this is {}, but {} is expected; {}", name, what, wanted,
                                        fmt::format(fmt::runtime(entry->cure), name))));
}

void refuse_other_kind(std::string_view text, const std::string& name, std::string_view wanted,
                       std::initializer_list<FileKind> readable) {
  refuse_known_kind(text, name, wanted, readable);
  if (const FileFormat format = file_format(text); format.is_foreign)
    throw InputError(one_line(fmt::format("{}: this is {}, but {} is expected; {}", name, format.name, wanted,
                                          format.cure.empty() ? "give such a file" : format.cure)));
}

}  // namespace mltcp::experiment
