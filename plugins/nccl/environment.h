// Settings of the plug-in from environment variables: those of all plug-ins (endpoint/environment.h), and two of its
// own.
#pragma once

#include "mltcp/endpoint/environment.h"

namespace mltcp::nccl {

struct Settings : endpoint::Environment {
  /// MLTCP_REQUIRED is set, or a key is given: if the plug-in is unusable, the job fails. With a key, falling back to
  /// another network would send in the clear.
  bool required = false;
  bool verbose = false;  ///< MLTCP_DEBUG: a line for each connection
};

/// Throws InputError that names the variable.
Settings read_environment(endpoint::ReadVariable read);

/// Only Settings::required, if the others cannot be read; never throws.
bool is_required(endpoint::ReadVariable read) noexcept;
/// Whether a 0-or-1 variable is set and not 0; also true if its value is wrong.
bool is_on(endpoint::ReadVariable read, const char* name) noexcept;
/// Whether MLTCP_KEY_FILE is set.
bool has_key(endpoint::ReadVariable read) noexcept;

}  // namespace mltcp::nccl
