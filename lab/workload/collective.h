// Collectives, and how many bytes each worker sends for them.
//
// The algorithms are the bandwidth-optimal ones that communication libraries use for large messages; with n workers
// and S bytes each worker sends
//
//   all-reduce, ring        2 (n-1)/n S   a reduce-scatter, then an all-gather (Patarasuk and Yuan, JPDC 2009)
//   all-gather, ring          (n-1)/n S   S: what every worker holds at the end (Thakur, Rabenseifner and
//   reduce-scatter, ring      (n-1)/n S   S: what every worker holds at the start   Gropp, IJHPCA 2005)
//   all-to-all, pairwise      (n-1)/n S   S: what every worker holds at the start, one n-th for each worker
//   broadcast, pipelined ring         S   of a worker that forwards; the last of the ring sends nothing
//
// A worker receives as much as it sends (a broadcast's root excepted), so one number describes its load in each
// direction. Broadcast counts a forwarding worker, the busiest role, because all workers of a job are modelled alike.
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
  all_reduce_all_to_all,  ///< an all-reduce followed by an all-to-all, both of the given size
};

/// Whether the size of an all-gather is the total that every worker holds at the end, or the shard that each one
/// contributes. Makes no difference for other collectives.
enum class GatherSize { total, shard };

/// "all-reduce" and so on.
std::string_view name(Collective collective);

/// Bytes that each of `workers` sends for a collective of `size` bytes, rounded up; 0 with fewer than two workers.
/// Empty if the result does not fit into 63 bits.
std::optional<Bytes> bytes_sent(Collective collective, Bytes size, std::uint32_t workers,
                                GatherSize gather_size = GatherSize::total);

}  // namespace mltcp::workload
