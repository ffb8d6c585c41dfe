// Detects the kind of a file by its contents, for messages when a command is given the wrong kind of file.
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

/// The files that the commands of `mltcp` read or write.
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
  trace,  ///< in any format that workload::read_traces() reads
  profile,
  links,
  slurm_topology,
  arrivals,
  job_table,  ///< from Helios or Philly
};

/// The text value of "schema" in the outermost object of JSON `text`; empty if there is none before a syntax error.
std::optional<std::string> schema_of_json(std::string_view text);

/// Detected by schema, columns or keys; empty if these are not conclusive, or for invalid TOML.
std::optional<FileKind> kind_of(std::string_view text);

/// Call when `text` was refused: throws InputError "NAME: this is ..., and WANTED is expected; cure" if the file is of
/// a known kind not among `readable`. The cure names the command that reads or unpacks it. Otherwise returns, so that
/// the reader reports its own error.
void refuse_known_kind(std::string_view text, const std::string& name, std::string_view wanted,
                       std::initializer_list<FileKind> readable);
/// The same, also for formats that no command reads (base/file_format.h).
void refuse_other_kind(std::string_view text, const std::string& name, std::string_view wanted,
                       std::initializer_list<FileKind> readable);

/// Returns `parse(text, name)` for a file. If `parse` refuses it and it is of another kind, the error says so.
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
