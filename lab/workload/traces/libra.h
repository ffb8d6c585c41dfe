// LIBRA's files beside a workload (Won et al., ISPASS 2024): what network and communicators it is meant for, in YAML.
//
//   communicator    Forward: [ 16, -1, -1 ]       of each pass, how many ranks of each dimension of the network run a
//                   InputGrad: [ 16, -1, -1 ]     collective together; -1: one of that dimension
//                   WeightGrad: [ -1, 8, 32 ]
//   network         Topology: [ Ring, FullyConnected, Switch ]      dimensions, innermost first, and their ranks
//                   NpusCount: [ 16, 8, 32 ]
//
// Given together with a workload in 12 columns, the products of a communicator tell how large groups are that share
// layers (Forward) and that reduce gradients (WeightGrad). A network tells how many ranks there are; its dimensions
// have no rates in LIBRA, which searches for them, so it makes no topology. Costs ($ per GB/s) have no use. The network
// of ASTRA-sim 2 is taken for the number of its ranks, too: topology, npus_count, bandwidth (GB/s), latency (ns).
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

/// Whether a file begins as one of these.
bool is_libra(std::string_view beginning);
/// Throws InputError "NAME:LINE: cause; cure".
LibraFile parse_libra(std::string_view text, const std::string& name);
/// A communicator file in the folder of `workload`, the first by its name.
std::optional<std::string> communicator_beside(const std::filesystem::path& workload);
/// Reads an input, and puts what it tells into `options`.
void read_libra(TraceInput& input, TraceOptions& options);

}  // namespace mltcp::workload
