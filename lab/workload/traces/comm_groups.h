// ASTRA-sim's file of communicator groups. Traces in Chakra's format name groups. This file lists the ranks of each
// group:
//
//   { "1": [0, 1, 2, 3], "2": [4, 5, 6, 7] }
//
// A group without a name, or with the name "0", contains all ranks (astra-sim/workload/Workload.cc of ASTRA-sim 2).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

/// Returns whether a file with this beginning is a file of communicator groups.
bool is_comm_groups(std::string_view beginning);

class CommGroups {
 public:
  /// Reads a file. Throws InputError "NAME: cause; cure" if the file is invalid, or if a file read earlier lists other
  /// ranks for a group of the same name.
  void read(TraceInput& input);
  [[nodiscard]] bool empty() const { return ranks_.empty(); }
  /// Gives each group of `part` that has no ranks the ranks that the files list for the group's name.
  void apply(PartialGraph& part) const;

 private:
  std::map<std::string, std::vector<std::uint32_t>> ranks_;  ///< ranks of each group, by name
};

}  // namespace mltcp::workload
