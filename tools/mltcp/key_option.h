// The option --key of commands, which is the same for all of them: a job's key, from a file or a descriptor.
#pragma once

#include <optional>
#include <string>

#include "command_line.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::tools {

/// Adds it. `what` begins its help: "Seal what the hosts say to each other".
void add_key_option(Options& options, std::optional<std::string>& value, const std::string& what);

/// The key that the option names, or where it was not given MLTCP_KEY_FILE (endpoint/environment.h); else none. Throws
/// InputError that begins with the one or the other. Reads a descriptor to its end: to be called once.
std::optional<security::JobKey> key_of(const std::optional<std::string>& value);

/// The option --authenticate, which goes with --key.
void add_authenticate_option(Options& options, bool& given);
/// What is done with the key that key_of() finds: as --authenticate says or, of one that MLTCP_KEY_FILE names,
/// MLTCP_AUTHENTICATE. Throws InputError where there is none.
security::Protection protection_of(const std::optional<std::string>& key, bool authenticate);

}  // namespace mltcp::tools
