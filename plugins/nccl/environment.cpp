#include "mltcp/plugins/nccl/environment.h"

#include <string_view>

namespace mltcp::nccl {

bool is_on(endpoint::ReadVariable read, const char* name) noexcept {
  const std::string_view value = endpoint::variable(read, name);
  return !value.empty() && value != "0";
}

Settings read_environment(endpoint::ReadVariable read) {
  Settings settings;
  (void)endpoint::flag_variable(read, "MLTCP_REQUIRED");
  settings.required = is_required(read);
  settings.verbose = endpoint::flag_variable(read, "MLTCP_DEBUG");
  static_cast<endpoint::Environment&>(settings) = endpoint::read_environment(read);
  return settings;
}

bool is_required(endpoint::ReadVariable read) noexcept {
  return is_on(read, "MLTCP_REQUIRED") || is_on(read, "MLTCP_AUTHENTICATE") || has_key(read);
}

bool has_key(endpoint::ReadVariable read) noexcept { return !endpoint::variable(read, "MLTCP_KEY_FILE").empty(); }

}  // namespace mltcp::nccl
