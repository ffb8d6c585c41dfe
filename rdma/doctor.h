// Examines the ports of this machine that verbs can use (verbs_name.h). Opens devices, but sends nothing.
#pragma once

#include <string>

namespace mltcp::rdma {

struct Examination {
  bool works = false;  ///< whether at least one usable port is up
  bool has_devices = false;
  std::string detail;  ///< findings, in one line
  std::string cure;    ///< what the user should do, in one line; may be empty
};

/// Examines all devices. Changes nothing. Problems are in the result and are not thrown.
Examination examine();

/// Examines the named port. Changes nothing. Problems are in the result and are not thrown.
Examination examine_port(const std::string& name);

}  // namespace mltcp::rdma
