// Interprets names, for readers of several formats: ranks in names of files, collectives in names of operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {

/// The rank in an input's name: "trace.3.et", "rank3.json.gz", "dlrm_eg_3.json"; kUnknownRank if there is none.
std::uint32_t rank_in_name(std::string_view name);

/// A collective as libraries spell it ("all_reduce", "allreduce_coalesced", "ALLTOALLV", "_allgather_base").
struct NamedCollective {
  Collective collective = Collective::none;
  bool barrier = false;           ///< an all-reduce of no bytes
  const char* instead = nullptr;  ///< if the kind is not supported: what it is taken as ("a broadcast, backwards")
};
/// Empty if the name is that of no collective.
std::optional<NamedCollective> collective_named(std::string_view name);

/// Bytes of an element of a tensor, as PyTorch spells its type: "float", "c10::BFloat16", "long int", "Tensor(half)".
std::optional<Bytes> element_bytes(std::string_view type);

}  // namespace mltcp::workload
