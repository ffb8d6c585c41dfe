// What a file is, by what stands in it: for the message to whoever gives a command the file of another one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace mltcp::experiment {

/// The files that the commands of `mltcp` read or write.
enum class FileKind : std::uint8_t {
  experiment,
  sweep,
  cluster,
  ethernet_switch,  ///< of mltcp switch --file
  results,          ///< of mltcp run, gen or testbed
  sweep_results,
  cluster_results,
  schedule,
  plan,
  doctor_results,
  switch_results,
  trace,  ///< in the 12-column text format
  kineto_trace,
  profile,
  links,
  arrivals,
  page,  ///< HTML or SVG
};

/// What the outermost object of JSON `text` has as "schema", a text; nothing if it has none before an error.
std::optional<std::string> schema_of_json(std::string_view text);

/// By its schema, its columns or its keys; nothing if these don't tell, as those of two kinds, or for TOML with an
/// error.
std::optional<FileKind> kind_of(std::string_view text);

/// For a reader that has refused `text`: throws InputError "NAME: this is ..., and WANTED is expected; cure" if the
/// file is of a kind that is not among `readable`, and otherwise leaves it to the reader's own message. The cure says
/// what takes the file.
void refuse_other_kind(std::string_view text, const std::string& name, std::string_view wanted,
                       std::initializer_list<FileKind> readable);

}  // namespace mltcp::experiment
