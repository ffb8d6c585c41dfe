// ASTRA-sim's file of communicator groups beside Chakra's traces, which name groups and do not list their ranks:
//
//   { "1": [0, 1, 2, 3], "2": [4, 5, 6, 7] }
//
// A group without a name, or "0", is that of all ranks (astra-sim/workload/Workload.cc of ASTRA-sim 2).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

/// Whether a file begins as one of these.
bool is_comm_groups(std::string_view beginning);

class CommGroups {
 public:
  /// Throws InputError "NAME: cause; cure", also for a group that another file lists otherwise.
  void read(TraceInput& input);
  [[nodiscard]] bool empty() const { return ranks_.empty(); }
  /// Lists the ranks of the part's groups that are among these.
  void apply(PartialGraph& part) const;

 private:
  std::map<std::string, std::vector<std::uint32_t>> ranks_;  ///< by name
};

}  // namespace mltcp::workload
