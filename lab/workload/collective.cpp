// Computes the bytes that a worker sends for a collective (see collective.h).
#include "mltcp/lab/workload/collective.h"

#include "mltcp/base/text_parts.h"

#include <limits>

namespace mltcp::workload {
namespace {

constexpr Uint128 kMaxBytes = std::numeric_limits<std::int64_t>::max();

// Returns `times` * (n-1)/n * S, rounded up, where n is `workers` and S is `size`.
Uint128 share(Uint128 size, std::uint32_t workers, std::uint32_t times) {
  return (size * (workers - 1) * times + (workers - 1)) / workers;
}

}  // namespace

std::string_view name(Collective collective) {
  using enum Collective;
  return word_of<Collective>(collective, {{none, "none"},
                                          {all_reduce, "all-reduce"},
                                          {all_gather, "all-gather"},
                                          {reduce_scatter, "reduce-scatter"},
                                          {all_to_all, "all-to-all"},
                                          {broadcast, "broadcast"},
                                          {all_reduce_all_to_all, "all-reduce and all-to-all"}});
}

std::optional<Bytes> bytes_sent(Collective collective, Bytes size, std::uint32_t workers, GatherSize gather_size) {
  if (workers <= 1 || size == 0) return 0;
  Uint128 sent = 0;
  switch (collective) {
    case Collective::none:
      return 0;
    case Collective::all_reduce:
      sent = share(size, workers, 2);
      break;
    case Collective::all_gather:
      sent = gather_size == GatherSize::total ? share(size, workers, 1) : Uint128{size} * (workers - 1);
      break;
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      sent = share(size, workers, 1);
      break;
    case Collective::broadcast:
      sent = size;
      break;
    case Collective::all_reduce_all_to_all:
      sent = share(size, workers, 2) + share(size, workers, 1);
      break;
  }
  if (sent > kMaxBytes) return std::nullopt;
  return static_cast<Bytes>(sent);
}

}  // namespace mltcp::workload
