// What users set for the plug-in by environment variables: those of all plug-ins (endpoint/environment.h), and two of
// its own.
#pragma once

#include "mltcp/endpoint/environment.h"

namespace mltcp::nccl {

struct Settings : endpoint::Environment {
  /// MLTCP_REQUIRED, or a key: what makes the plug-in unusable is an error of the job's. Who gives a key doesn't want
  /// another network that sends in the clear.
  bool required = false;
  bool verbose = false;  ///< MLTCP_DEBUG: a line for each connection
};

/// Throws InputError that names the variable.
Settings read_environment(endpoint::ReadVariable read);

/// Settings::required alone, where the others can't be read; never throws.
bool is_required(endpoint::ReadVariable read) noexcept;
/// Whether a variable that is 0 or 1 is given and not 0; also where it is wrong.
bool is_on(endpoint::ReadVariable read, const char* name) noexcept;
/// Whether MLTCP_KEY_FILE is set.
bool has_key(endpoint::ReadVariable read) noexcept;

}  // namespace mltcp::nccl
