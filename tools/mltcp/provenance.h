// Collects the provenance of this program's results (base/json/provenance.h): the program, its arguments and the
// machine.
#pragma once

#include <string>
#include <vector>

#include "mltcp/base/file.h"
#include "mltcp/base/json/provenance.h"

namespace mltcp::tools {

/// Returns the version, as in "0.1.0", or with the commit if it is known, as in "0.1.0 (1234567890ab)".
std::string version_text();

/// While an object of this class exists, it records the files that this thread reads, in order and without repetitions.
/// At most one object may exist at a time.
class FilesRead {
 public:
  FilesRead();
  [[nodiscard]] const std::vector<Provenance::File>& files() const { return files_; }

 private:
  std::vector<Provenance::File> files_;
  FileObserver observer_;
};

/// Returns the name of the program, without its path, and its arguments.
std::vector<std::string> command_line();

/// Returns the provenance of this process, with the files of `read`. Its date is the current time. If SOURCE_DATE_EPOCH
/// is set, in seconds since 1970, the date is that time instead, so that files are reproducible.
Provenance provenance_of(const FilesRead& read);

}  // namespace mltcp::tools
