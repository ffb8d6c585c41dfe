// For `mltcp doctor`: whether this machine can run MLTCP for kernel TCP, or does.
#pragma once

#include <string>

namespace mltcp::kernel {

struct Examination {
  bool works = false;
  std::string detail;  ///< one line
  std::string cure;    ///< one line, empty if and only if it works
};

/// Changes nothing; problems are not thrown but returned. Without root's rights it reports what root can do.
Examination examine();

}  // namespace mltcp::kernel
