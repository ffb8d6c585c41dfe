// What this machine's kernel offers to udp: ports (udp_name.h), found out by opening sockets; nothing is sent.
#pragma once

#include <string>

namespace mltcp::socket {

struct Examination {
  bool works = false;
  std::string detail;  ///< one line
  std::string cure;    ///< one line, where it works less well than it could, or not at all; else empty
};

/// Changes nothing, and never throws for what it finds.
Examination examine();

}  // namespace mltcp::socket
