// The ports of this machine that verbs can use (verbs_name.h). Devices are opened, but nothing is sent.
#pragma once

#include <string>

namespace mltcp::rdma {

struct Examination {
  bool works = false;  ///< a port that can carry hosts is up
  bool has_devices = false;
  std::string detail;  ///< one line
  std::string cure;    ///< one line if there is something to do, else empty
};

/// Changes nothing; problems are returned, not thrown.
Examination examine();

/// Likewise for the named port.
Examination examine_port(const std::string& name);

}  // namespace mltcp::rdma
