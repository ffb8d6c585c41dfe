// The table of datapaths and their capabilities. Files, checks and help texts use only this table. The functions in
// backends/datapath.h create the code that runs a datapath; datapath "hosts" has a separate command.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::experiment {

struct DatapathKind {
  std::string_view name;     ///< name in files and results
  std::string_view summary;  ///< description for help texts
  bool in_files = true;      ///< whether experiment files can name this datapath
  bool real_time = false;    ///< whether the datapath runs in real time; measurements then include the machine's noise
  /// Whether the datapath models packets. Losses, ECN marks, delays at hosts, and learning of iterations require
  /// packets.
  bool packets = true;
  bool topologies = true;   ///< whether the datapath supports topologies in addition to a single bottleneck
  bool patterns = true;     ///< whether the datapath supports communication patterns, whose ranks depend on each other
  bool priorities = false;  ///< whether the datapath has a queue for each priority class
  bool links_measured = true;  ///< whether the datapath measures the use of links over time
  bool repairs = true;         ///< whether jobs are polled often enough to repair missed slots (scheduler/repair.h)
};

/// Returns all datapaths; the default comes first.
std::span<const DatapathKind> datapath_kinds();
/// Returns the datapath named `name`. Throws InputError if there is no such datapath.
const DatapathKind& datapath_kind(std::string_view name);
/// Returns the names of the datapaths that experiment files can name.
const std::vector<std::string>& datapath_names();

}  // namespace mltcp::experiment
