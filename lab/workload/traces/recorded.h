// Interprets names for the readers of several formats: ranks in file names, and collectives in operation names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {

/// Returns the rank in the name of an input, e.g. 3 for "trace.3.et", "rank3.json.gz" and "dlrm_eg_3.json". Returns
/// kUnknownRank if there is none.
std::uint32_t rank_in_name(std::string_view name);

/// A collective that libraries spell in different ways: "all_reduce", "allreduce_coalesced", "ALLTOALLV",
/// "_allgather_base".
struct NamedCollective {
  Collective collective = Collective::none;
  bool barrier = false;  ///< true for a barrier, which becomes an all-reduce of no bytes
  /// nullptr if the collective is supported. If not, a description of its replacement, e.g. "a broadcast, backwards".
  const char* instead = nullptr;
};
/// Returns the collective with this name. Returns an empty value if there is none.
std::optional<NamedCollective> collective_named(std::string_view name);

/// Returns the bytes per element of a tensor, given PyTorch's spelling of its type: "float", "c10::BFloat16", "long
/// int", "Tensor(half)". Returns an empty value if the type is unknown.
std::optional<Bytes> element_bytes(std::string_view type);

}  // namespace mltcp::workload
