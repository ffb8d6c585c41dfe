// Detects the kind of a file by its contents, for the error message if a command is given the wrong kind of file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/base/error.h"
#include "mltcp/base/file.h"

namespace mltcp::experiment {

/// Kinds of files that the commands of `mltcp` read or write.
enum class FileKind : std::uint8_t {
  experiment,
  sweep,
  cluster,
  ethernet_switch,  ///< for mltcp switch --file
  results,          ///< written by mltcp run, gen or testbed
  sweep_results,
  cluster_results,
  schedule,
  plan,
  doctor_results,
  switch_results,
  trace,  ///< trace in any format that workload::read_traces() reads
  profile,
  links,
  slurm_topology,
  arrivals,
  job_table,  ///< job table in the format of Helios or Philly
};

/// Returns the text value of "schema" in the outermost object of JSON `text`; empty if no such value precedes a syntax
/// error or the end.
std::optional<std::string> schema_of_json(std::string_view text);

/// Detects the kind of a file by its schema, columns or keys. Returns empty if these are not conclusive, or for invalid
/// TOML.
std::optional<FileKind> kind_of(std::string_view text);

/// Call after a reader has refused `text`. If the file is of a known kind that is not in `readable`, throws InputError
/// "NAME: this is ..., but WANTED is expected; cure"; the cure names the command that reads or unpacks the file.
/// Otherwise this function returns normally, and the caller reports the reader's error.
void refuse_known_kind(std::string_view text, const std::string& name, std::string_view wanted,
                       std::initializer_list<FileKind> readable);
/// Like refuse_known_kind(), but also throws for formats that no command reads (base/file_format.h).
void refuse_other_kind(std::string_view text, const std::string& name, std::string_view wanted,
                       std::initializer_list<FileKind> readable);

/// Returns `parse(text, name)` for the file at `path`. If `parse` refuses the text and the file is of a known kind that
/// is not in `readable`, the error names that kind.
template <typename Parse>
auto load_as(const std::filesystem::path& path, const TextFile& kind, std::initializer_list<FileKind> readable,
             const Parse& parse) {
  const std::string name = path.string();
  const std::string text = read_text_file(path, name, kind);
  try {
    return parse(text, name);
  } catch (const InputError&) {
    refuse_other_kind(text, name, kind.what, readable);
    throw;
  }
}

}  // namespace mltcp::experiment
