// ASTRA-sim's file of communicator groups. Chakra's traces name groups, and this file lists their ranks:
//
//   { "1": [0, 1, 2, 3], "2": [4, 5, 6, 7] }
//
// A group without a name, or named "0", has all ranks (astra-sim/workload/Workload.cc of ASTRA-sim 2).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

/// Whether `beginning` is that of such a file.
bool is_comm_groups(std::string_view beginning);

class CommGroups {
 public:
  /// Throws InputError "NAME: cause; cure", also if another file lists other ranks for a group.
  void read(TraceInput& input);
  [[nodiscard]] bool empty() const { return ranks_.empty(); }
  /// Adds the ranks of groups that have been read to the part's groups of the same names.
  void apply(PartialGraph& part) const;

 private:
  std::map<std::string, std::vector<std::uint32_t>> ranks_;  ///< by name
};

}  // namespace mltcp::workload
