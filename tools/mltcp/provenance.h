// Provenance of this program's results (base/json/provenance.h): the program, its arguments and the
// machine.
#pragma once

#include <string>
#include <vector>

#include "mltcp/base/file.h"
#include "mltcp/base/json/provenance.h"

namespace mltcp::tools {

/// "0.1.0", with the commit if known: "0.1.0 (1234567890ab)".
std::string version_text();

/// During its lifetime, records the files read by this thread, in order and without repetitions. At most one at a time.
class FilesRead {
 public:
  FilesRead();
  [[nodiscard]] const std::vector<Provenance::File>& files() const { return files_; }

 private:
  std::vector<Provenance::File> files_;
  FileObserver observer_;
};

/// The program's name, without its path, and its arguments.
std::vector<std::string> command_line();

/// Provenance of this process, started now (or at SOURCE_DATE_EPOCH, in seconds since 1970, if that is set, for
/// reproducible files), and of the files read.
Provenance provenance_of(const FilesRead& read);

}  // namespace mltcp::tools
