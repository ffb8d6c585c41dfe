// The datapaths: what each of them is able to do. One entry of the table is all that files, checks and help know of a
// datapath; what runs it is made by name in backends/datapath.h, or is its own command's (hosts).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mltcp::experiment {

struct DatapathKind {
  std::string_view name;     ///< as files and results have it
  std::string_view summary;  ///< for help, in a few words
  bool in_files = true;      ///< an experiment file may name it
  bool real_time = false;    ///< time passes by itself, and noise of the machine is in every measurement
  bool packets = true;       ///< which may be lost, marked, held up by hosts, and from which iterations can be learned
  bool topologies = true;    ///< beside a bottleneck
  bool patterns = true;      ///< of communication between ranks that depend on each other
  bool priorities = false;   ///< queues with a class for each
  bool links_measured = true;  ///< somebody counts who uses which link when
  bool repairs = true;         ///< jobs are looked at often enough to move the slot of one that has missed its own
};

/// All of them, the default first.
std::span<const DatapathKind> datapath_kinds();
/// Throws InputError if there is none of that name.
const DatapathKind& datapath_kind(std::string_view name);
/// Those that files may name.
const std::vector<std::string>& datapath_names();

}  // namespace mltcp::experiment
