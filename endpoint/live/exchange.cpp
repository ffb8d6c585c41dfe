// Exchange of snapshots between threads (see exchange.h).
#include "mltcp/endpoint/live/exchange.h"

#include <chrono>
#include <thread>

#include "mltcp/base/clock.h"

namespace mltcp::live {

std::optional<Snapshot> Exchange::ask(Nanos limit) {
  const std::lock_guard lock(askers_);
  // State::ready means here that a snapshot came too late for the previous call. This snapshot is outdated, so ask
  // again.
  State state = state_.load(std::memory_order_acquire);
  if (state != State::asked) state_.store(State::asked, std::memory_order_release);
  const Nanos give_up = monotonic_now() + limit;
  while ((state = state_.load(std::memory_order_acquire)) != State::ready) {
    if (monotonic_now() >= give_up) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  Snapshot snapshot = std::move(snapshot_);
  state_.store(State::idle, std::memory_order_release);
  return snapshot;
}

}  // namespace mltcp::live
