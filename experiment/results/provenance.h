// Where results come from: what made them, when, of what, and on what, so that a file of results can be cited, and made
// again. Written into every result file, field "provenance" (docs/results-file.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mltcp/base/units.h"

namespace mltcp::experiment {

struct Provenance {
  /// A file that was read.
  struct File {
    std::string path;    ///< as it was given, or as another one of them names it
    std::string sha256;  ///< FIPS 180-4, 64 hexadecimal digits
    Bytes bytes = 0;
    std::optional<std::string> text;  ///< all of it; of small ones only, and of text in UTF-8
    bool operator==(const File&) const = default;
  };
  struct Machine {
    std::string cpu;         ///< its model; empty, and not written, where unknown, like the others
    std::uint32_t cpus = 0;  ///< that this process may use
    Bytes memory = 0;        ///< memory_bytes; 0, and not written: unknown
    std::string system;      ///< "Debian GNU/Linux 12 (bookworm)"
    std::string kernel;      ///< "Linux 6.1.0-18-amd64 x86_64"
    bool operator==(const Machine&) const = default;
  };

  std::string version;               ///< of the program
  std::string commit;                ///< of the source it was built from, 40 digits; empty, and not written: unknown
  bool modified = false;             ///< the source had changes beside that commit; written if so
  std::string build;                 ///< compiler and kind of build; empty, and not written: unknown
  std::string date;                  ///< when it was begun, as in "2026-01-31T17:05:09Z" (RFC 3339, UTC)
  std::vector<std::string> command;  ///< the program's name and its arguments
  std::vector<File> files;           ///< in the order of reading: the experiment first
  Machine machine;
  bool operator==(const Provenance&) const = default;
};

/// One line for people: program, commit, date and command.
std::string to_text(const Provenance& provenance);

}  // namespace mltcp::experiment
