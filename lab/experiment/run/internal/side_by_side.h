// Pieces of work that don't depend on each other, on several cores. Who includes it links TBB. Not installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mltcp/base/parallel.h"

namespace mltcp::experiment {

/// in_parallel(), begun in order; or with one thread the pieces one after the other in this one: also inside of a piece
/// of others' work, whose number of threads a bound of 1 would be for all of them.
template <typename Body>
void side_by_side(std::uint32_t threads, std::size_t count, const Body& body) {
  if (threads == 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<std::size_t> next = 0;  // the first ones first, whichever piece a thread takes
  in_parallel(threads, count, [&](std::size_t /*piece*/) { body(next++); });
}

}  // namespace mltcp::experiment
