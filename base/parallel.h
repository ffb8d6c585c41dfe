// Runs independent tasks in parallel with oneTBB. Files that include this header must link TBB.
#pragma once

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "mltcp/base/handoff.h"

namespace mltcp {

/// Calls `body` for each index i below `count`, on `threads` threads; 0 means one thread per core. The call is body(i),
/// or body(i, context) if `body` accepts a context, which can cancel tasks that have not begun. Rethrows the first
/// exception of a task, after which no further task begins.
template <typename Body>
void in_parallel(std::uint32_t threads, std::size_t count, const Body& body) {
  namespace tbb = oneapi::tbb;
  // Permits `threads` threads even if the machine has fewer cores.
  std::optional<tbb::global_control> allowed;
  if (threads > 0) allowed.emplace(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(threads == 0 ? tbb::task_arena::automatic : static_cast<int>(threads));
  struct HandOver {
    const Body* where;
    explicit HandOver(const Body& body) : where(&body) { take_over(where); }
    ~HandOver() { hand_over(where); }
    HandOver(const HandOver&) = delete;
    HandOver& operator=(const HandOver&) = delete;
  };
  struct TakeOver {
    const Body* where;
    explicit TakeOver(const Body& body) : where(&body) { hand_over(where); }
    ~TakeOver() { take_over(where); }
    TakeOver(const TakeOver&) = delete;
    TakeOver& operator=(const TakeOver&) = delete;
  } const results(body);
  arena.execute([&] {
    tbb::task_group_context context;
    // Each thread gets one task at a time, because tasks differ in length, and there may be few tasks.
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, count, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          for (std::size_t i = range.begin(); i < range.end(); ++i) {
            const HandOver piece(body);
            if constexpr (std::is_invocable_v<Body, std::size_t, tbb::task_group_context&>)
              body(i, context);
            else
              body(i);
          }
        },
        tbb::simple_partitioner(), context);
  });
}

}  // namespace mltcp
