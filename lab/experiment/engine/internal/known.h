// The shard of a driver knows the driver's job and connections. If it does not, MLTCP would be off in silence.
#pragma once

#include <string>
#include <string_view>

#include "mltcp/base/error.h"

namespace mltcp::experiment {

/// `known` is what a call of the shard has returned. Throws RunError if it is false.
inline void expect_known(bool known, std::string_view call) {
  if (known) return;
  throw RunError("the transport does not know the job or connection of " + std::string(call) +
                 "; this is a bug of the experiment, so report it");
}

}  // namespace mltcp::experiment
