// Reads the YAML files of LIBRA (Won et al., ISPASS 2024) next to a workload, which describe its network and its
// communicators.
//
//   communicator    Forward: [ 16, -1, -1 ]       for each pass, the number of ranks in each dimension of the network
//                   InputGrad: [ 16, -1, -1 ]     that run a collective together; -1 stands for one rank of that
//                   WeightGrad: [ -1, 8, 32 ]     dimension
//   network         Topology: [ Ring, FullyConnected, Switch ]      dimensions, innermost first, and their ranks
//                   NpusCount: [ 16, 8, 32 ]
//
// For a workload in 12 columns, the sizes of groups are products of the numbers in a communicator file. The product of
// Forward is the size of the groups that share layers. The product of WeightGrad is the size of the groups that reduce
// gradients. From a network file only the number of ranks is used. LIBRA searches for the rates of the dimensions, so
// the file defines no topology. Costs ($ per GB/s) are not used. From network files of ASTRA-sim 2 (topology,
// npus_count, bandwidth in GB/s, latency in ns), only the number of ranks is used, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "mltcp/lab/workload/traces/read_traces.h"

namespace mltcp::workload {

struct LibraFile {
  enum class Kind { communicator, network, costs };
  Kind kind = Kind::communicator;
  std::uint32_t model = 0;  ///< communicator: number of ranks that share layers; 1 if layers are not shared
  std::uint32_t data = 0;   ///< communicator: number of ranks that reduce gradients together
  std::uint32_t ranks = 0;  ///< network: number of ranks in all dimensions
};

/// Returns whether a file that begins with `beginning` is a YAML file of LIBRA or ASTRA-sim.
bool is_libra(std::string_view beginning);
/// Parses a file. `name` is used in messages. Throws InputError "NAME:LINE: cause; cure".
LibraFile parse_libra(std::string_view text, const std::string& name);
/// Returns the path of the first communicator file, by name, in the folder of `workload`. Returns an empty value if
/// there is none.
std::optional<std::string> communicator_beside(const std::filesystem::path& workload);
/// Reads a file and sets the options that it describes.
void read_libra(TraceInput& input, TraceOptions& options);

}  // namespace mltcp::workload
