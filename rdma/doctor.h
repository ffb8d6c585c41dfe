// What this machine offers to verbs: ports (verbs_name.h), found out by opening devices; nothing is sent.
#pragma once

#include <string>

namespace mltcp::rdma {

struct Examination {
  bool works = false;  ///< a port is up that can carry hosts
  bool has_devices = false;
  std::string detail;  ///< one line
  std::string cure;    ///< one line, where there is something to do; else empty
};

/// Changes nothing, and never throws for what it finds.
Examination examine();

/// The same of one port, as it is named.
Examination examine_port(const std::string& name);

}  // namespace mltcp::rdma
