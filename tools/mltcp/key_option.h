// The option --key, which is the same in all commands. It names a job's key in a file or a descriptor.
#pragma once

#include <optional>
#include <string>

#include "command_line.h"
#include "mltcp/transport/security/job_key.h"
#include "mltcp/transport/security/key_schedule.h"

namespace mltcp::tools {

/// Adds the option. Its help begins with `what`, for example "Seal what the hosts say to each other".
void add_key_option(Options& options, std::optional<std::string>& value, const std::string& what);

/// Returns the key that `value` names. If the option was not given, returns the key that MLTCP_KEY_FILE names
/// (endpoint/environment.h). Returns nothing if neither is given. Throws InputError if the key cannot be read. The
/// message begins with the option or the variable. Call it only once, because it reads a descriptor to its end.
std::optional<security::JobKey> key_of(const std::optional<std::string>& value);

/// Adds the option --authenticate, which requires --key.
void add_authenticate_option(Options& options, bool& given);
/// Returns how packets are protected with the key of key_of(). Packets are only authenticated if `authenticate` is set,
/// or if MLTCP_KEY_FILE names the key and MLTCP_AUTHENTICATE is 1. Otherwise they are encrypted. Throws InputError if
/// `authenticate` is set but there is no key.
security::Protection protection_of(const std::optional<std::string>& key, bool authenticate);

}  // namespace mltcp::tools
