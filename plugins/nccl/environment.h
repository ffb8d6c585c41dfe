// Settings of the plug-in from environment variables: the settings of all plug-ins (endpoint/environment.h), and two
// that only this plug-in has.
#pragma once

#include "mltcp/endpoint/environment.h"

namespace mltcp::nccl {

struct Settings : endpoint::Environment {
  /// True if MLTCP_REQUIRED or MLTCP_AUTHENTICATE is set, or if a key is given. If the plug-in is unusable, the job
  /// then fails instead of using another network, which would ignore the key.
  bool required = false;
  bool verbose = false;  ///< MLTCP_DEBUG: writes a line for each connection
};

/// Reads all settings. Throws InputError, which names the variable.
Settings read_environment(endpoint::ReadVariable read);

/// Returns only Settings::required, even if the other settings cannot be read. Never throws.
bool is_required(endpoint::ReadVariable read) noexcept;
/// Returns whether a variable that should be 0 or 1 is set and not 0. A wrong value counts as 1.
bool is_on(endpoint::ReadVariable read, const char* name) noexcept;
/// Returns whether MLTCP_KEY_FILE is set.
bool has_key(endpoint::ReadVariable read) noexcept;

}  // namespace mltcp::nccl
