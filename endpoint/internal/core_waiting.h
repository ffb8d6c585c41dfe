// How a thread waits for a condition in an endpoint. With Driving::caller the thread drives the workers. Otherwise it
// sleeps until it is notified.
#pragma once

#include <algorithm>

#include "mltcp/endpoint/internal/core.h"

namespace mltcp::endpoint {

template <typename There>
bool Core::wait_for(Nanos limit, There there) noexcept {
  if (config_.driving == Driving::threads) return gate_.wait(limit, there);
  const auto over = [&] { return there() || shared_.closing.load(std::memory_order_relaxed); };
  const Nanos start = now();
  const Nanos end = limit > Nanos::never() - start ? Nanos::never() : start + limit;
  // Drive a few rounds first, because short waits do not need the poll loop.
  constexpr int kRounds = 16;
  for (int round = 0; round < kRounds; ++round) {
    progress();
    if (over() || now() >= end) return there();
  }
  while (!over() && now() < end) {
    std::size_t entered = 0;
    if (!looping_.exchange(true, std::memory_order_acquire)) {
      while (entered < workers_.size() && workers_[entered]->enter()) ++entered;
      if (entered == workers_.size()) {
        try {
          caller_loop_->run(end, over);
        } catch (const std::exception& error) {
          set_failure(error.what());
          shared_.closing.store(true);
        }
      }
      while (entered-- > 0) workers_[entered]->leave();
      looping_.store(false, std::memory_order_release);
    } else {
      // Another thread drives the workers, and may stop at any time, so wait only briefly.
      gate_.wait(std::clamp(end - now(), Nanos(1), Nanos(1'000'000)), over);
    }
    if (shared_.closing.load(std::memory_order_relaxed)) finish_here();
  }
  return there();
}

}  // namespace mltcp::endpoint
