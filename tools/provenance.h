// Where this program's results come from (experiment/provenance.h): what is known of the program, of how it was called
// and of the machine.
#pragma once

#include <span>
#include <string>

#include "mltcp/base/file.h"
#include "mltcp/experiment/provenance.h"

namespace mltcp::tools {

/// "0.1.0", and the commit behind it where it is known: "0.1.0 (1234567890ab)".
std::string version_text();

/// Of this process, begun now (or at SOURCE_DATE_EPOCH, seconds since 1970, if that is set, for files that are the same
/// each time). `files` are what it has read.
experiment::Provenance provenance_of(std::span<const FileRecorder::File> files);

}  // namespace mltcp::tools
