// The check of `mltcp doctor` for kernel TCP: whether this machine can run MLTCP for kernel TCP, or already runs it.
#pragma once

#include <string>

namespace mltcp::kernel {

struct Examination {
  bool works = false;
  std::string detail;  ///< finding, in one line
  std::string cure;    ///< what the user should do, in one line; empty if and only if `works` is true
};

/// Examines the machine without changing it. Problems are returned, not thrown. If the process is not root, the result
/// is what root could do.
Examination examine();

}  // namespace mltcp::kernel
