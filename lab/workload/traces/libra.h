// LIBRA's YAML files next to a workload (Won et al., ISPASS 2024), which describe its network and communicators.
//
//   communicator    Forward: [ 16, -1, -1 ]       of each pass, how many ranks of each dimension of the network run a
//                   InputGrad: [ 16, -1, -1 ]     collective together; -1: one of that dimension
//                   WeightGrad: [ -1, 8, 32 ]
//   network         Topology: [ Ring, FullyConnected, Switch ]      dimensions, innermost first, and their ranks
//                   NpusCount: [ 16, 8, 32 ]
//
// For a workload in 12 columns, the products of a communicator are the sizes of groups that share layers (Forward) and
// that reduce gradients (WeightGrad). A network gives only the number of ranks: LIBRA searches for the rates of its
// dimensions, so there is no topology. Costs ($ per GB/s) are not used. Of ASTRA-sim 2's network files (topology,
// npus_count, bandwidth in GB/s, latency in ns), too, only the number of ranks is used.
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
  std::uint32_t model = 0;  ///< communicator: ranks that share layers; 1: layers are not shared
  std::uint32_t data = 0;   ///< communicator: ranks that reduce gradients together
  std::uint32_t ranks = 0;  ///< network: of all dimensions
};

/// Whether `beginning` is that of such a file.
bool is_libra(std::string_view beginning);
/// Throws InputError "NAME:LINE: cause; cure".
LibraFile parse_libra(std::string_view text, const std::string& name);
/// The first communicator file, by name, in the folder of `workload`.
std::optional<std::string> communicator_beside(const std::filesystem::path& workload);
/// Reads an input, and sets the options that it describes.
void read_libra(TraceInput& input, TraceOptions& options);

}  // namespace mltcp::workload
