// Provenance of results: which program made them, when, from which files, and on which machine, so that they can be
// cited and reproduced. It is the field "provenance" of every result file (docs/reference/results-file.md).
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
    std::string path;    ///< path as the user gave it, or as another input file names it
    std::string sha256;  ///< SHA-256 of the contents (FIPS 180-4), 64 hexadecimal digits
    Bytes bytes = 0;
    std::optional<std::string> text;  ///< contents of a small file in valid UTF-8; empty for other files
    bool operator==(const File&) const = default;
  };
  struct Machine {
    std::string cpu;         ///< model of the CPU; empty if unknown, and then not written
    std::uint32_t cpus = 0;  ///< number of CPUs usable by this process
    Bytes memory = 0;        ///< memory in bytes; 0 if unknown, and then not written
    std::string system;      ///< as in "Debian GNU/Linux 12 (bookworm)"; empty if unknown, and then not written
    std::string kernel;      ///< as in "Linux 6.1.0-18-amd64 x86_64"; empty if unknown, and then not written
    bool operator==(const Machine&) const = default;
  };

  std::string version;    ///< version of the program
  std::string commit;     ///< commit of the source, 40 hexadecimal digits; empty if unknown, and then not written
  bool modified = false;  ///< whether the source had uncommitted changes; written only if true
  std::string build;      ///< compiler and build type; empty if unknown, and then not written
  std::string date;       ///< start of the program, as in "2026-01-31T17:05:09Z" (RFC 3339, UTC)
  std::vector<std::string> command;  ///< the program's name and its arguments
  std::vector<File> files;           ///< input files in the order of reading, the experiment file first
  Machine machine;
  bool operator==(const Provenance&) const = default;
};

/// Returns one line for people: program, commit, date and command.
std::string to_text(const Provenance& provenance);
nlohmann::ordered_json to_json(const Provenance& provenance);

}  // namespace mltcp
