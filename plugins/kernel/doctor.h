// Whether this machine can have MLTCP for kernel TCP, or has it, for `mltcp doctor`.
#pragma once

#include <string>

namespace mltcp::kernel {

struct Examination {
  bool works = false;
  std::string detail;  ///< one line
  std::string cure;    ///< one line, empty if and only if it works
};

/// Changes nothing, and never throws for what it finds. Of anybody but root it tells what root can do.
Examination examine();

}  // namespace mltcp::kernel
