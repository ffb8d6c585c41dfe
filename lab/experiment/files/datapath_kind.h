// The datapaths and their capabilities. Files, checks and help use only the entries of this table. The code that runs a
// datapath is created by name in backends/datapath.h; datapath hosts has a command of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::experiment {

struct DatapathKind {
  std::string_view name;     ///< as in files and results
  std::string_view summary;  ///< for help texts
  bool in_files = true;      ///< can be named in an experiment file
  bool real_time = false;    ///< runs in real time, so that measurements include the machine's noise
  bool packets = true;  ///< models packets: losses, ECN marks, delays at hosts, and learning of iterations are possible
  bool topologies = true;      ///< supports topologies, not only a single bottleneck
  bool patterns = true;        ///< supports communication patterns of ranks that depend on each other
  bool priorities = false;     ///< has a queue for each priority class
  bool links_measured = true;  ///< measures the use of links over time
  bool repairs = true;         ///< jobs are polled often enough to repair missed slots (scheduler/repair.h)
};

/// All datapaths, the default first.
std::span<const DatapathKind> datapath_kinds();
/// Throws InputError if no datapath has that name.
const DatapathKind& datapath_kind(std::string_view name);
/// Names of the datapaths with in_files.
const std::vector<std::string>& datapath_names();

}  // namespace mltcp::experiment
