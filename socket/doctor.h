// Examines what this machine's kernel offers to udp: ports (udp_name.h), by opening sockets. Sends nothing.
#pragma once

#include <string>

namespace mltcp::socket {

struct Examination {
  bool works = false;
  std::string detail;  ///< one line
  std::string cure;    ///< one line, if it works badly or not at all; else empty
};

/// Changes nothing, and never throws because of a finding.
Examination examine();

}  // namespace mltcp::socket
