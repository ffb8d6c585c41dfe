// The option --key of commands (see key_option.h).
#include "key_option.h"

#include <fmt/format.h>

#include "mltcp/base/error.h"
#include "mltcp/endpoint/environment.h"

namespace mltcp::tools {

void add_key_option(Options& options, std::optional<std::string>& value, const std::string& what) {
  options.add("--key", value,
              what +
                  " with the key in this file (mltcp key FILE makes one), or from descriptor N: fd:N; default: what "
                  "MLTCP_KEY_FILE says, or none");
}

std::optional<security::JobKey> key_of(const std::optional<std::string>& value) {
  if (!value) return endpoint::read_key(&endpoint::process_variable);
  try {
    return security::JobKey::from_source(*value);
  } catch (const InputError& error) {
    throw InputError(fmt::format("--key: {}", error.what()));
  }
}

}  // namespace mltcp::tools
