// Examines what this machine's kernel offers to udp: ports (udp_name.h), by opening sockets. Sends nothing.
#pragma once

#include <string>

namespace mltcp::socket {

struct Examination {
  bool works = false;
  std::string detail;  ///< what the kernel offers, or the error, in one line
  std::string cure;    ///< what to do, in one line; empty if nothing needs to change
};

/// Changes nothing. Problems are in the result and are not thrown.
Examination examine();

}  // namespace mltcp::socket
