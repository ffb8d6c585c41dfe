// What readers of several formats take from names: ranks from those of files, collectives from those of operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "mltcp/base/units.h"
#include "mltcp/lab/workload/collective.h"

namespace mltcp::workload {

/// The rank that an input's name tells: "trace.3.et", "rank3.json.gz", "dlrm_eg_3.json"; kUnknownRank if it tells none.
std::uint32_t rank_in_name(std::string_view name);

/// A collective as libraries spell it ("all_reduce", "allreduce_coalesced", "ALLTOALLV", "_allgather_base").
struct NamedCollective {
  Collective collective = Collective::none;
  bool barrier = false;           ///< an all-reduce of no bytes
  const char* instead = nullptr;  ///< what it is taken as, if there is none of its kind: "a broadcast, backwards"
};
/// Empty for a name that is none.
std::optional<NamedCollective> collective_named(std::string_view name);

/// Bytes of an element of a tensor, as PyTorch spells its type: "float", "c10::BFloat16", "long int", "Tensor(half)".
std::optional<Bytes> element_bytes(std::string_view type);

}  // namespace mltcp::workload
