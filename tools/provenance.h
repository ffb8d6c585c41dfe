// Where this program's results come from (experiment/provenance.h): what is known of the program, of how it was called
// and of the machine.
#pragma once

#include <string>
#include <vector>

#include "mltcp/base/file.h"
#include "mltcp/experiment/results/provenance.h"

namespace mltcp::tools {

/// "0.1.0", and the commit behind it where it is known: "0.1.0 (1234567890ab)".
std::string version_text();

/// While it lives, notes what files this thread reads: each once, as it was first, in that order. One at a time.
class FilesRead {
 public:
  FilesRead();
  [[nodiscard]] const std::vector<experiment::Provenance::File>& files() const { return files_; }

 private:
  std::vector<experiment::Provenance::File> files_;
  FileObserver observer_;
};

/// How this program was called: its name, without the path to it, and its arguments.
std::vector<std::string> command_line();

/// Of this process, begun now (or at SOURCE_DATE_EPOCH, seconds since 1970, if that is set, for files that are the same
/// each time), and what it has read.
experiment::Provenance provenance_of(const FilesRead& read);

}  // namespace mltcp::tools
