// Examines the ports of this machine that verbs can use (verbs_name.h). Opens devices, but sends nothing.
#pragma once

#include <string>

namespace mltcp::rdma {

struct Examination {
  bool works = false;  ///< whether a port that can carry hosts is up
  bool has_devices = false;
  std::string detail;  ///< findings, in one line
  std::string cure;    ///< what to do, in one line; empty if nothing
};

/// Examines all devices. Changes nothing. Problems are in the result and are not thrown.
Examination examine();

/// Examines the named port. Changes nothing. Problems are in the result and are not thrown.
Examination examine_port(const std::string& name);

}  // namespace mltcp::rdma
