// Provenance of results: which program made them, when, from which files, and on which machine, so that they can be
// cited and reproduced. Field "provenance" of every result file (docs/reference/results-file.md).
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp {

struct Provenance {
  /// An input file.
  struct File {
    std::string path;    ///< as given, or as named in another input file
    std::string sha256;  ///< FIPS 180-4, 64 hexadecimal digits
    Bytes bytes = 0;
    std::optional<std::string> text;  ///< contents; only of small files in valid UTF-8
    bool operator==(const File&) const = default;
  };
  struct Machine {
    std::string cpu;         ///< model; empty if unknown, like all texts here, and then not written
    std::uint32_t cpus = 0;  ///< number of CPUs usable by this process
    Bytes memory = 0;        ///< memory_bytes; 0: unknown, not written
    std::string system;      ///< "Debian GNU/Linux 12 (bookworm)"
    std::string kernel;      ///< "Linux 6.1.0-18-amd64 x86_64"
    bool operator==(const Machine&) const = default;
  };

  std::string version;               ///< version of the program
  std::string commit;                ///< commit of the source, 40 digits; empty: unknown, not written
  bool modified = false;             ///< the source had uncommitted changes; written if so
  std::string build;                 ///< compiler and build type; empty: unknown, not written
  std::string date;                  ///< start time, as in "2026-01-31T17:05:09Z" (RFC 3339, UTC)
  std::vector<std::string> command;  ///< the program's name and its arguments
  std::vector<File> files;           ///< in the order of reading, the experiment first
  Machine machine;
  bool operator==(const Provenance&) const = default;
};

/// One line for people: program, commit, date and command.
std::string to_text(const Provenance& provenance);
nlohmann::ordered_json to_json(const Provenance& provenance);

}  // namespace mltcp
