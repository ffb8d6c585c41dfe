// The option --key, which is the same in all commands (see key_option.h).
#include "key_option.h"

#include "mltcp/base/error.h"
#include "mltcp/endpoint/environment.h"

namespace mltcp::tools {

void add_key_option(Options& options, std::optional<std::string>& value, const std::string& what) {
  options.add("--key", value,
              what +
                  " with the key in this file (made by mltcp key FILE), or read from descriptor N: fd:N; default: the "
                  "file that MLTCP_KEY_FILE names, or no key");
}

std::optional<security::JobKey> key_of(const std::optional<std::string>& value) {
  if (!value) return endpoint::read_key(&endpoint::process_variable);
  return of_option("--key", [&] { return security::JobKey::from_source(*value); });
}

void add_authenticate_option(Options& options, bool& given) {
  options.flag("--authenticate", given,
               "Authenticate packets with the key, but do not encrypt them, so that the network can read them; give it "
               "at both ends; default: encrypt, unless MLTCP_KEY_FILE is used with MLTCP_AUTHENTICATE=1");
}

security::Protection protection_of(const std::optional<std::string>& key, bool authenticate) {
  const bool by_environment = !key && endpoint::read_authenticate(&endpoint::process_variable);
  if (authenticate && !key && endpoint::variable(&endpoint::process_variable, "MLTCP_KEY_FILE").empty())
    throw InputError("--authenticate: there is no key; give --key FILE, or leave out --authenticate");
  return authenticate || by_environment ? security::Protection::authenticate : security::Protection::encrypt;
}

}  // namespace mltcp::tools
