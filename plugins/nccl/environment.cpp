#include "mltcp/plugins/nccl/environment.h"

#include <string_view>

namespace mltcp::nccl {

Settings read_environment(endpoint::ReadVariable read) {
  Settings settings;
  settings.required = endpoint::flag_variable(read, "MLTCP_REQUIRED");
  settings.verbose = endpoint::flag_variable(read, "MLTCP_DEBUG");
  static_cast<endpoint::Environment&>(settings) = endpoint::read_environment(read);
  return settings;
}

bool is_required(endpoint::ReadVariable read) noexcept {
  const std::string_view value = endpoint::variable(read, "MLTCP_REQUIRED");
  return !value.empty() && value != "0";
}

}  // namespace mltcp::nccl
