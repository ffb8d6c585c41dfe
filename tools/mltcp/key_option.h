// The option --key, the same for all commands: a job's key, from a file or a descriptor.
#pragma once

#include <optional>
#include <string>

#include "command_line.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::tools {

/// Adds the option. `what` begins its help: "Seal what the hosts say to each other".
void add_key_option(Options& options, std::optional<std::string>& value, const std::string& what);

/// The key that the option names; if it was not given, the one that MLTCP_KEY_FILE names (endpoint/environment.h); else
/// none. Throws InputError that begins with the option or variable. Call it once, since it reads a descriptor to its
/// end.
std::optional<security::JobKey> key_of(const std::optional<std::string>& value);

/// Adds the option --authenticate, which requires --key.
void add_authenticate_option(Options& options, bool& given);
/// The use of the key that key_of() finds: as --authenticate says or, if MLTCP_KEY_FILE names the key,
/// MLTCP_AUTHENTICATE. Throws InputError if there is no key.
security::Protection protection_of(const std::optional<std::string>& key, bool authenticate);

}  // namespace mltcp::tools
