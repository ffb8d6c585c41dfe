// Checks that a driver's shard knows the driver's job and connections. Without this check, a bug could disable MLTCP
// without any error.
#pragma once

#include <string>
#include <string_view>

#include "mltcp/base/error.h"

namespace mltcp::experiment {

/// Throws RunError if `known`, the return value of the shard's function `call`, is false.
inline void expect_known(bool known, std::string_view call) {
  if (known) return;
  throw RunError("the transport does not know the job or connection of call " + std::string(call) +
                 "; this is a bug in mltcp: report it");
}

}  // namespace mltcp::experiment
