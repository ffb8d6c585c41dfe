// Passes snapshots between threads. The thread whose state is shown must not wait. It calls is_asked() repeatedly, at
// the cost of one load, and publishes a snapshot if another thread has asked for one. Other threads wait for the
// snapshot.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "mltcp/base/units.h"
#include "mltcp/endpoint/live/snapshot.h"

namespace mltcp::live {

class Exchange {
 public:
  // For the thread whose state is shown:

  /// Returns whether a thread waits for publish().
  [[nodiscard]] bool is_asked() const noexcept { return state_.load(std::memory_order_acquire) == State::asked; }
  /// Hands a snapshot to the waiting thread. May be called only while is_asked() is true.
  void publish(Snapshot snapshot) {
    snapshot_ = std::move(snapshot);
    state_.store(State::ready, std::memory_order_release);
  }

  // For all other threads:

  /// Asks for a snapshot and waits for it. Returns nothing if no snapshot arrives within `limit`.
  std::optional<Snapshot> ask(Nanos limit);

 private:
  enum class State : int { idle, asked, ready };
  std::atomic<State> state_{State::idle};
  Snapshot snapshot_;
  std::mutex askers_;
};

}  // namespace mltcp::live
