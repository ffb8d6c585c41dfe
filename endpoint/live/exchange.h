// Passes snapshots from one thread, which must not wait, to other threads, which may. The first thread calls is_asked()
// again and again; a call costs one load. If another thread has asked, the first thread publishes a snapshot.
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
  // The thread whose state is shown.

  /// Whether a thread waits for publish().
  [[nodiscard]] bool is_asked() const noexcept { return state_.load(std::memory_order_acquire) == State::asked; }
  /// Only while is_asked().
  void publish(Snapshot snapshot) {
    snapshot_ = std::move(snapshot);
    state_.store(State::ready, std::memory_order_release);
  }

  // Any other thread.

  /// Waits for a snapshot; none if there was none in time.
  std::optional<Snapshot> ask(Nanos limit);

 private:
  enum class State : int { idle, asked, ready };
  std::atomic<State> state_{State::idle};
  Snapshot snapshot_;
  std::mutex askers_;
};

}  // namespace mltcp::live
