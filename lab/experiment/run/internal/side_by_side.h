// Runs independent pieces of work on several cores. Targets that include this header must link TBB. This header is not
// installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mltcp/base/parallel.h"

namespace mltcp::experiment {

/// Calls in_parallel(), but begins the pieces in ascending order. With one thread, runs the pieces in the calling
/// thread, since in_parallel() would limit the whole process to one thread, including work around this call.
template <typename Body>
void side_by_side(std::uint32_t threads, std::size_t count, const Body& body) {
  if (threads == 1) {
    for (std::size_t i = 0; i < count; ++i) body(i);
    return;
  }
  // Number of the next piece. The number that in_parallel() passes is ignored, since it may not ascend.
  std::atomic<std::size_t> next = 0;
  in_parallel(threads, count, [&](std::size_t /*piece*/) { body(next++); });
}

}  // namespace mltcp::experiment
