// Collectives, and how many bytes each worker sends for them.
//
// The algorithms are the bandwidth-optimal algorithms that communication libraries use for large messages. With n
// workers and S bytes, each worker sends:
//
//   all-reduce, ring         2 (n-1)/n S  a reduce-scatter, then an all-gather (Patarasuk and Yuan, JPDC 2009)
//   all-gather, ring           (n-1)/n S  S: bytes that every worker holds at the end (Thakur, Rabenseifner and Gropp,
//                                         IJHPCA 2005)
//   reduce-scatter, ring       (n-1)/n S  S: bytes that every worker holds at the start (same paper)
//   all-to-all, pairwise       (n-1)/n S  S: bytes that every worker holds at the start, one n-th for each worker
//   broadcast, pipelined ring          S  for workers that forward; the last worker of the ring sends nothing
//
// Except for the root of a broadcast, a worker receives as much as it sends. So one number describes the worker's load
// in both directions. All workers of a job are modelled alike. So a broadcast counts the bytes of a forwarding worker,
// which has the highest load.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "mltcp/base/units.h"

namespace mltcp::workload {

enum class Collective {
  none,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  all_reduce_all_to_all,  ///< an all-reduce and then an all-to-all; each has the given size
};

/// Meaning of the size of an all-gather: the total that every worker holds at the end, or the shard that each worker
/// contributes. For all other collectives both values mean the same.
enum class GatherSize { total, shard };

/// Returns a name such as "all-reduce".
std::string_view name(Collective collective);

/// Returns how many bytes each of `workers` workers sends for a collective of `size` bytes, rounded up. Returns 0 if
/// `workers` is below 2. Returns nothing if the result would exceed 63 bits.
std::optional<Bytes> bytes_sent(Collective collective, Bytes size, std::uint32_t workers,
                                GatherSize gather_size = GatherSize::total);

}  // namespace mltcp::workload
