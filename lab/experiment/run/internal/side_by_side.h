// Runs independent pieces of work on several cores. Targets that include it must link TBB. Not installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mltcp/base/parallel.h"

namespace mltcp::experiment {

/// in_parallel(), with pieces begun in order. With one thread the pieces run in the calling thread instead, since
/// in_parallel() would limit the whole process to one thread, including work around this call.
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
